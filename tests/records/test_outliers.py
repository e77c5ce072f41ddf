"""Lone sessions are found by their distance to all others; silences and jumps of clocks are named."""

from __future__ import annotations

import datetime as dt

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from unmet.records.outliers import clock_notes, far_note, lone_starts
from unmet.records.sessions import read_sessions

DAY = 86_400_000
FIRST = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def test_a_lone_session_years_away_is_found():
    starts = pl.Series([DAY * day for day in range(7000, 7400)] + [DAY * 400])
    days = lone_starts(starts)
    assert days.to_list() == [0] * 400 + [6600]


def test_two_periods_of_weight_are_both_kept():
    starts = pl.Series([DAY * day for day in (*range(1000, 1200), *range(3000, 3300))])
    assert (lone_starts(starts) == 0).all()


def test_a_clock_reset_to_2000_for_many_sessions_is_found():
    usual, reset = range(19_700, 19_900), range(10_957, 10_967)  # from 2023-12-09, and from 2000-01-01
    days = lone_starts(pl.Series([DAY * day for day in (*usual, *reset)]))
    assert (days > 0).to_list() == [False] * 200 + [True] * 10
    earlier = range(15_000, 15_010)  # in 2011 there were networks
    assert (lone_starts(pl.Series([DAY * day for day in (*usual, *earlier)])) == 0).all()


def test_a_reset_clock_in_one_of_several_files_is_set_aside():
    times = [FIRST + dt.timedelta(hours=hour) for hour in range(600)]
    files = []
    for part in range(6):
        starts = [time.replace(year=2000) if part == 4 else time for time in times[100 * part : 100 * part + 100]]
        ends = [time + dt.timedelta(minutes=30) for time in starts]
        files.append(
            pl.DataFrame({"start": starts, "end": ends}).with_columns(
                pl.lit("A").alias("station_id"), pl.lit(5.0).alias("energy_kwh")
            )
        )
    records = read_sessions(files)
    assert records.counts["start_far_away"] == records.rejected.height == 100
    assert records.sessions["start"].min() == FIRST
    assert any(note.startswith("100 sessions at 1 station (A)") for note in records.notes)


def test_sessions_set_aside_are_told_with_their_stations():
    times = pl.Series([dt.datetime(2000, 1, 1 + day, tzinfo=dt.UTC) for day in range(4)])
    far = pl.DataFrame({"station_id": ["A", "B", "A", "A"], "start": times})
    note = far_note(far) or ""
    assert note.startswith("4 sessions at 2 stations (A, B), dated from 2000-01-01 to 2000-01-04, are")
    assert far_note(far.clear()) is None


def test_few_sessions_tell_nothing():
    assert (lone_starts(pl.Series([0, DAY * 5000])) == 0).all()
    assert len(lone_starts(pl.Series([], dtype=pl.Int64))) == 0


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=200))
def test_what_is_found_is_lone_and_never_much(days):
    found = lone_starts(pl.Series([day * DAY for day in days]))
    lone = [day for day, distance in zip(days, found, strict=True) if distance]
    kept = [day for day, distance in zip(days, found, strict=True) if not distance]
    assert kept
    assert len(lone) <= max(1, 0.2 * len(days)) * len(set(lone))
    assert sum(day >= 11_688 for day in lone) <= max(1, 0.01 * len(days)) * len(set(lone))
    assert all(abs(day - other) >= 365 for day in lone for other in kept)


def busy(days: list[int], ids: list[int] | None = None) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "session_id": [str(number) for number in ids or range(len(days))],
            "station_id": "A",
            "start": pl.Series([FIRST + dt.timedelta(days=day) for day in days], dtype=pl.Datetime("ms", "UTC")),
        }
    )
    return frame.sort("start")


def test_a_silence_of_a_busy_station_is_named():
    (note,) = clock_notes(busy([*range(100), *range(160, 300)]))
    assert note.startswith("1 station had no session for 30 days or more")
    assert clock_notes(busy(list(range(0, 900, 30)))) == []  # a station that is always quiet


def test_a_clock_that_jumps_back_is_named():
    days = list(range(200))
    days[150] = 20
    (note,) = clock_notes(busy(days))
    assert "the clock of 1 station jumped back" in note
    assert "2020-01-21" in note
    assert clock_notes(busy(list(range(200)), ids=[(n * 37) % 200 for n in range(200)])) == []  # ids in no order
