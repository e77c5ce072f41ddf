"""Outages put together cover exactly the minutes that they covered apart."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from unmet.records.formats.base import OUTAGES
from unmet.records.outages import merge_outages

PERIODS = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from(["1", "2"]), st.integers(0, 60), st.integers(0, 60)), max_size=12
)
ZERO = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)


def frame_of(periods: list[tuple[str, Any, int, int]]) -> pl.DataFrame:
    minute = dt.timedelta(minutes=1)
    content = [(station, plug, ZERO + a * minute, ZERO + b * minute) for station, plug, a, b in periods]
    return pl.DataFrame(content, schema=OUTAGES, orient="row")


def minutes_of(frame: pl.DataFrame) -> list[tuple[str, str, int]]:
    """Every minute of every plug that is out, by brute force."""
    grid = []
    for station, plug, start, end in frame.rows():
        a, b = ((time - ZERO).total_seconds() / 60 for time in (start, end))
        grid += [(station, plug, minute) for minute in range(60) if a <= minute < b]
    return grid


@given(periods=PERIODS)
def test_merged_outages_cover_the_same_minutes_once(periods: list[tuple[str, str, int, int]]):
    given_frame = frame_of(periods)
    merged = merge_outages(given_frame)
    minutes = minutes_of(merged)
    assert sorted(minutes) == sorted(set(minutes_of(given_frame)))
    starts = merged.filter(pl.col("start") <= pl.col("end").shift().over("station_id", "plug_id"))
    assert starts.is_empty()  # what touches is one
    assert_frame_equal(merge_outages(merged), merged)


@given(periods=PERIODS, cut=st.integers(0, 12))
def test_files_can_be_merged_in_any_order(periods: list[tuple[str, str, int, int]], cut: int):
    one, other = merge_outages(frame_of(periods[:cut])), merge_outages(frame_of(periods[cut:]))
    assert_frame_equal(merge_outages(pl.concat([other, one])), merge_outages(frame_of(periods)))


def test_outages_of_unnamed_plugs_are_not_merged():
    unnamed = frame_of([("A", None, 0, 10), ("A", None, 5, 20), ("A", None, 5, 5)])
    assert merge_outages(unnamed).height == 2
