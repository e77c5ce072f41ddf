"""Lone sessions are found by their distance to all others; silences and jumps of clocks are named."""

from __future__ import annotations

import datetime as dt

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from unmet.records.outliers import clock_notes, lone_starts

DAY = 86_400_000
FIRST = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def test_a_lone_session_years_away_is_found():
    starts = pl.Series([DAY * day for day in range(7000, 7400)] + [DAY * 400])
    days = lone_starts(starts)
    assert days.to_list() == [0] * 400 + [6600]


def test_two_periods_of_weight_are_both_kept():
    starts = pl.Series([DAY * day for day in (*range(1000, 1200), *range(3000, 3300))])
    assert (lone_starts(starts) == 0).all()


def test_few_sessions_tell_nothing():
    assert (lone_starts(pl.Series([0, DAY * 5000])) == 0).all()
    assert len(lone_starts(pl.Series([], dtype=pl.Int64))) == 0


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=200))
def test_what_is_found_is_lone_and_never_much(days):
    found = lone_starts(pl.Series([day * DAY for day in days]))
    lone = [day for day, distance in zip(days, found, strict=True) if distance]
    kept = [day for day, distance in zip(days, found, strict=True) if not distance]
    assert kept
    assert len(lone) <= max(1, 0.001 * len(days)) * len(set(lone))
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
