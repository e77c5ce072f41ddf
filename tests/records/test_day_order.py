"""The order of day and month is the one that the rows themselves support, never one that they contradict."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.records.day_order import find_day_orders
from unmet.records.sessions import read_sessions

DAY_FIRST, MONTH_FIRST = "%d/%m/%Y", "%m/%d/%Y"


def stays(rows: int, seed: int = 0, days: int = 300) -> list[tuple[dt.datetime, dt.datetime]]:
    """Sessions in order of time over most of a year."""
    random = np.random.default_rng(seed)
    minutes = np.sort(random.integers(0, days * 1440, rows))
    first = dt.datetime(2018, 1, 2)
    starts = [first + dt.timedelta(minutes=int(minute)) for minute in minutes]
    return [(start, start + dt.timedelta(minutes=int(random.exponential(180)))) for start in starts]


def written(times: list[dt.datetime], forms: list[str]) -> pl.Series:
    return pl.Series([f"{time.strftime(form)} {time:%H:%M}" for time, form in zip(times, forms, strict=True)])


def check(
    sessions: list[tuple[dt.datetime, dt.datetime]], forms: list[str], suggested: bool | None = None
) -> str | None:
    """Whether all dates that have two readings are read as they were written; gives the note."""
    found = find_day_orders([written([row[which] for row in sessions], forms) for which in (0, 1)], suggested)
    for which, orders in enumerate(found.columns):
        for row, form, order in zip(sessions, forms, orders, strict=True):
            day = row[which].date()
            assert day.day == day.month or order == (form.startswith("%d")), (day, form, order)
    return found.note


@pytest.mark.parametrize("suggested", [None, True, False])
@pytest.mark.parametrize("form", [DAY_FIRST, MONTH_FIRST])
def test_a_suggestion_does_not_outweigh_the_rows(form, suggested):
    note = check(stays(400), [form] * 400, suggested)
    assert (note is None) == (suggested is None or suggested == (form == DAY_FIRST))


def test_blocks_of_rows_may_differ():
    note = check(stays(900), [DAY_FIRST] * 300 + [MONTH_FIRST] * 250 + [DAY_FIRST] * 350)
    assert note is not None
    assert "blocks of rows" in note


def test_blocks_may_change_among_settled_dates():
    sessions = stays(600, days=45)
    change = next(n for n, (start, _) in enumerate(sessions) if start.day == 25)
    note = check(sessions, [DAY_FIRST] * change + [MONTH_FIRST] * (600 - change))
    assert note is not None
    assert "blocks of rows" in note


def test_a_spreadsheet_that_rewrote_the_dates_it_could_read():
    sessions = stays(600)
    # Months came first. A spreadsheet that expects days first parsed the dates with a day up to 12 and swapped them.
    for turned in ("%d.%m.%y", DAY_FIRST):
        starts, ends = (
            pl.Series([f"{t.strftime(turned if t.day <= 12 else MONTH_FIRST)} {t:%H:%M}" for t in column])
            for column in zip(*sessions, strict=True)
        )
        found = find_day_orders([starts, ends])
        for column, orders in zip(zip(*sessions, strict=True), found.columns, strict=True):
            for time, order in zip(column, orders, strict=True):
                assert time.day == time.month or order == (time.day <= 12)


def test_two_forms_of_one_order():
    sessions = stays(600)
    starts, ends = (
        pl.Series([f"{t.strftime('%m.%d.%y' if t.day <= 12 else MONTH_FIRST)} {t:%H:%M}" for t in column])
        for column in zip(*sessions, strict=True)
    )
    found = find_day_orders([starts, ends])
    for column, orders in zip(zip(*sessions, strict=True), found.columns, strict=True):
        assert not any(order for time, order in zip(column, orders, strict=True) if time.day != time.month)


def test_rows_in_no_order_of_time_are_told_by_their_ends_and_settled_dates():
    sessions = stays(500)
    shuffled = [sessions[place] for place in np.random.default_rng(1).permutation(500)]
    for form in (DAY_FIRST, MONTH_FIRST):
        assert check(shuffled, [form] * 500) is None


def test_ends_alone_can_tell():
    starts = pl.Series(["01/02/2018 22:00", "03/04/2018 22:00", "05/06/2018 22:00", "02/03/2018 22:00"])
    for ends, day_first in (
        (["02/02/2018 02:00", "04/04/2018 02:00", "06/06/2018 02:00", "03/03/2018 02:00"], True),
        (["01/03/2018 02:00", "03/05/2018 02:00", "05/07/2018 02:00", "02/04/2018 02:00"], False),
    ):
        found = find_day_orders([starts, pl.Series(ends)], suggested=not day_first)
        assert found.columns[0].to_list() == [day_first] * 4


def test_where_nothing_tells_days_come_first_and_the_user_is_asked():
    found = find_day_orders([pl.Series(["03/04/2018 10:00"]), pl.Series(["03/04/2018 12:00"])])
    assert found.columns[0].to_list() == [True]
    assert found.note is not None
    assert "day_first" in found.note


def test_other_texts_have_no_order():
    found = find_day_orders([pl.Series([None, "x", "2018-01-02 10:00"], dtype=pl.String)] * 2)
    assert [column.to_list() for column in found.columns] == [[None] * 3] * 2
    assert found.note is None


@given(
    st.integers(0, 10_000), st.integers(3, 60), st.sampled_from([None, True, False]), st.booleans(), st.integers(1, 400)
)
def test_no_order_is_chosen_that_the_rows_contradict(seed, rows, suggested, day_first, days):
    """What is chosen explains the file at least as well as what was written."""
    sessions = stays(rows, seed, days)
    form = DAY_FIRST if day_first else MONTH_FIRST
    columns = [written([row[which] for row in sessions], [form] * rows) for which in (0, 1)]
    found = find_day_orders(columns, suggested)
    read = []
    for column, orders in zip(columns, found.columns, strict=True):
        dates = []
        for text, order in zip(column, orders, strict=True):
            a, b, year = (int(part) for part in text.split()[0].split("/"))
            assert order is not None
            dates.append(dt.date(year, b if order else a, a if order else b))  # a date that does not exist would raise
        read.append(dates)
    wrong = sum(not 0 <= (end - start).days <= 31 for start, end in zip(*read, strict=True))
    assert wrong == 0


@pytest.mark.parametrize("is_shuffled", [True, False])
@pytest.mark.parametrize("days", [50, 300])
def test_orders_at_random_are_read_right_or_left_open(is_shuffled, days):
    random = np.random.default_rng(4)
    sessions = stays(500, 3, days)
    if is_shuffled:
        sessions = [sessions[place] for place in random.permutation(500)]
    forms = [DAY_FIRST if first else MONTH_FIRST for first in random.integers(0, 2, 500)]
    found = find_day_orders([written([row[which] for row in sessions], forms) for which in (0, 1)])
    assert found.open_rows is not None
    assert found.note is not None
    for which, orders in enumerate(found.columns):
        for row, form, order, is_open in zip(sessions, forms, orders, found.open_rows, strict=True):
            day = row[which].date()
            assert is_open or day.day == day.month or order == (form == DAY_FIRST), (day, form)
    # In order of time, or in a short period, few rows are open; a shuffled year shows nothing.
    assert found.open_rows.mean() < (0.4 if is_shuffled and days == 300 else 0.15)


def test_rows_with_an_open_order_are_set_aside_and_counted():
    random = np.random.default_rng(5)
    sessions = [stays(300, 6, 60)[place] for place in random.permutation(300)]
    forms = [DAY_FIRST if first else MONTH_FIRST for first in random.integers(0, 2, 300)]
    starts, ends = (written([row[which] for row in sessions], forms) for which in (0, 1))
    table = pl.DataFrame({"start": starts, "end": ends, "energy_kwh": 5.0, "station_id": "A", "session_id": range(300)})
    records = read_sessions(table, mapping={"time_zone": "UTC"}, join_minutes=0)
    assert records.counts["day_order_open"] > 0
    assert records.counts["rows_in"] == records.counts["rows_kept"] + records.counts["rows_set_aside"]
    kept = {int(number): start for number, start in records.sessions.select("session_id", "start").rows()}
    assert all(start.date() == sessions[number][0].date() for number, start in kept.items())
