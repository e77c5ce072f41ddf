"""Ends from durations, however they are written."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.errors import InputError
from unmet.records.durations import read_durations
from unmet.records.sessions import read_sessions

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
        ("Durée", "1h23", 83),
        ("Durée", "1,5 heures", 90),
        ("Durata", "1 ora 23 minuti", 83),
        ("Duración", "1,5 horas", 90),
        ("Duur", "1,5 uur", 90),
        ("Duration", "PT1H23M", 83),
        ("Duration", "PT83M", 83),
        ("Duration", "P1DT1H", 25 * 60),
        ("Duration", "PT90S", 1.5),
        ("Duration", "PT1.5H", 90),
        ("Duration", "PT", None),
        ("Duration", "P1M", None),  # a month has no length
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


def sessions(minutes: list[int], kw: float) -> pl.DataFrame:
    """Sessions of a plug, one after another, at a power."""
    starts, at = [], dt.datetime(2024, 1, 1)
    for stay in minutes:
        starts.append(f"{at:%Y-%m-%d %H:%M:%S}")
        at += dt.timedelta(minutes=stay + 20)
    return pl.DataFrame({"station_id": "A", "plug_id": "1", "start": starts, "kwh": [kw * m / 60 for m in minutes]})


STAYS = [20 + (37 * number) % 90 for number in range(60)]


@pytest.mark.parametrize("with_plug", [True, False])
def test_minutes_and_seconds_are_told_by_the_rows(with_plug):
    frame = sessions(STAYS, 9.0).with_columns(pl.Series("Duration", [f"{minutes}:30" for minutes in STAYS]))
    records = read_sessions(frame if with_plug else frame.drop("plug_id"))
    length = records.sessions["end"] - records.sessions["start"]
    assert length.dt.total_seconds().to_list() == [60 * minutes + 30 for minutes in STAYS]
    assert any("read as minutes and seconds" in note for note in records.notes)


@pytest.mark.parametrize("name", ["Duration", "Duration (hh:mm)"])
def test_hours_and_minutes_stay(name):
    texts = [f"{minutes // 60}:{minutes % 60:02}" for minutes in STAYS]
    records = read_sessions(sessions(STAYS, 9.0).with_columns(pl.Series(name, texts)))
    length = records.sessions["end"] - records.sessions["start"]
    assert length.dt.total_minutes().to_list() == STAYS


def test_durations_that_may_be_either_are_asked_for():
    frame = sessions([15] * 30, 20.0).drop("plug_id").with_columns(pl.lit("15:00").alias("Duration"))
    with pytest.raises(InputError, match="duration_unit=h or min"):
        read_sessions(frame)
    records = read_sessions(frame, mapping={"duration_unit": "min"})
    assert (records.sessions["end"] - records.sessions["start"]).dt.total_minutes().to_list() == [15] * 30


def test_few_durations_are_read_by_their_rows_or_noted():
    few = [51, 24, 38]
    frame = sessions(few, 9.0).with_columns(pl.Series("Duration", [f"{minutes}:00" for minutes in few]))
    records = read_sessions(frame)
    assert (records.sessions["end"] - records.sessions["start"]).dt.total_minutes().to_list() == few
    assert any("read as minutes and seconds" in note for note in records.notes)
    frame = sessions([15, 15], 20.0).drop("plug_id").with_columns(pl.lit("15:00").alias("Duration"))
    assert any("too few rows to be sure" in note for note in read_sessions(frame).notes)
