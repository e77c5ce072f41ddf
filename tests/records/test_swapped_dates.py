"""Dates that a spreadsheet swapped are swapped back where rows agree, kept where they contradict, and named else."""

import datetime as dt

import polars as pl
import pytest

from unmet.records.times import read_times

HOURS = 7
DAYS = [dt.datetime(2024, 1, 15) + dt.timedelta(hours=HOURS * n) for n in range(24 * 105 // HOURS)]
STAYS = [dt.timedelta(hours=9)] * len(DAYS)


def rewritten(time: dt.datetime, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """As a spreadsheet that puts months first leaves a time with the day first."""
    if time.day <= 12:
        return f"{time.replace(month=time.day, day=time.month):{form}}"
    return f"{time:%d/%m/%Y %H:%M}"


def local(clock) -> list[dt.datetime]:
    return clock.wall.cast(pl.Datetime("ms")).to_list()


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"])
@pytest.mark.parametrize("day_first", [None, True])
@pytest.mark.parametrize("shuffled", [False, True])
def test_dates_among_texts_are_swapped_back(form, day_first, shuffled):
    rows = pl.DataFrame({"start": DAYS, "end": [a + b for a, b in zip(DAYS, STAYS, strict=True)]})
    rows = pl.concat([rows.filter(pl.col("start").dt.day() > 12)] * 3 + [rows])  # no date in the first 100 rows
    rows = rows.sample(fraction=1.0, shuffle=True, seed=1) if shuffled else rows
    texts = [pl.Series([rewritten(time, form) for time in rows[name]]) for name in ("start", "end")]
    clocks, readings, notes = read_times(texts, day_first)
    assert local(clocks[0]) == rows["start"].to_list()
    assert local(clocks[1]) == rows["end"].to_list()
    count = sum(time.day <= 12 for name in ("start", "end") for time in rows[name])
    assert any(note.startswith(f"{count:,} dates") and "swapped back" in note for note in notes)
    assert any(f"{count:,} dates in which" in str(reading) for reading in readings)


def test_few_dates_are_swapped_back_if_only_then_rows_are_in_order():
    times = [dt.datetime(2024, 1, 29, 8) + dt.timedelta(hours=8 * n) for n in range(14)]
    (clock,), _, notes = read_times([pl.Series([rewritten(time) for time in times])])
    assert local(clock) == times
    assert "swapped back" in notes[0]


def test_a_new_form_of_dates_from_the_first_of_a_month_is_not_swapped():
    times = [dt.datetime(2024, 1, 13, 8) + dt.timedelta(hours=8 * n) for n in range(3 * 31)]
    texts = [f"{time:%d/%m/%Y %H:%M}" if time.month == 1 else f"{time:%Y-%m-%d %H:%M:%S}" for time in times]
    (clock,), _, notes = read_times([pl.Series(texts)])
    assert local(clock) == times
    assert not notes


def test_two_dates_that_may_be_swapped_are_named():
    texts = ["20/01/2024 08:00", "14/01/2024 09:00", "2024-01-02 10:00:00", "17/01/2024 09:00", "2024-02-01 11:00:00"]
    (clock,), _, notes = read_times([pl.Series(texts)])
    assert local(clock)[2] == dt.datetime(2024, 1, 2, 10)
    assert notes[0].startswith("2 dates are written differently")
    assert "export the file again" in notes[0]
