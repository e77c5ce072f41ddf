"""Ends from durations, however they are written."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.errors import InputError
from unmet.records.durations import read_durations

MINUTE = 60_000


@pytest.mark.parametrize(
    ("column", "text", "minutes"),
    [
        ("Duration", "1:23:00", 83),
        ("Duration", "1:23", 83),
        ("Duration", "1.02:03:00", 26 * 60 + 3),
        ("Duration", "2 days, 1:00:00", 49 * 60),
        ("Duration", "1899-12-31 01:23:00", 83),
        ("Duration", "1899-12-30 01:23:00", 83),
        ("Duration", "1900-01-01 01:00:00", 25 * 60),
        ("Duration", "83 min", 83),
        ("Dauer", "1 h 23 min", 83),
        ("Dauer", "1,5 Std.", 90),
        ("Duration", "1h23m", 83),
        ("Duration (min)", "83", 83),
        ("duration_minutes", "83.5", 83.5),
        ("Duration (h)", "1,5", 90),
        ("Duration (secs)", "90", 1.5),
        ("Duration", "soon", None),
        ("Duration", "", None),
        ("Duration", "12 apples", None),
    ],
)
def test_ways_to_write_a_duration(column, text, minutes):
    assert read_durations(pl.Series(column, [text])).to_list() == [None if minutes is None else minutes * MINUTE]


def test_numbers_without_a_unit_are_asked_about():
    cells = pl.Series("Duration", ["83", "90"])
    with pytest.raises(InputError, match="duration_unit"):
        read_durations(cells)
    assert read_durations(cells, "min").to_list() == [83 * MINUTE, 90 * MINUTE]


@given(st.integers(0, 10**6))
def test_clocks_and_words_agree(seconds):
    hours, minutes, rest = seconds // 3600, seconds % 3600 // 60, seconds % 60
    cells = pl.Series(
        "Duration", [f"{hours}:{minutes:02}:{rest:02}", f"{hours} h {minutes} min {rest} s", f"{seconds} s"]
    )
    assert read_durations(cells).to_list() == [seconds * 1000] * 3
