"""The local zone of the stations: told by offsets, locations or positions, or asked for."""

from __future__ import annotations

import datetime as dt
import json
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.records import partitions
from unmet.records.inspection import inspect_files
from unmet.records.local_zone import zone_by_positions
from unmet.records.offsets import offsets_in, zone_of_offsets, zone_offsets
from unmet.records.one_file import Reading
from unmet.records.sessions import read_sessions
from unmet.records.stations import check_stations

FIRST = dt.datetime(2023, 1, 5, 7, tzinfo=dt.UTC)
TIMES = [FIRST + dt.timedelta(hours=31 * n) for n in range(300)]


def text(zone: str, times: list[dt.datetime], **columns: object) -> str:
    start = [time.astimezone(ZoneInfo(zone)).isoformat() for time in times]
    end = [(time + dt.timedelta(hours=1)).astimezone(ZoneInfo(zone)).isoformat() for time in times]
    frame = pl.DataFrame({"station": "A", "start": start, "end": end, "kwh": 7.0}).with_columns(
        **{name: pl.lit(value) for name, value in columns.items()}
    )
    return frame.write_csv()


@pytest.mark.parametrize(
    ("zone", "found"),
    [
        ("Europe/Berlin", "CET"),
        ("Europe/London", "WET"),
        ("Europe/Helsinki", "EET"),
        ("America/Denver", "America/Denver"),
        ("America/Phoenix", "Etc/GMT+7"),
        ("Asia/Kolkata", "Asia/Kolkata"),
        ("Australia/Lord_Howe", "Australia/Lord_Howe"),
    ],
)
def test_offsets_tell_the_local_zone(tmp_path, zone, found):
    path = tmp_path / "a.csv"
    path.write_text(text(zone, TIMES))
    records = read_sessions(path)
    assert records.time_zone == found
    assert records.sessions["start"].to_list() == TIMES
    assert any("--time-zone" in note for note in records.notes)
    local = records.sessions["start"].dt.convert_time_zone(found).dt.hour().to_list()
    assert local == [time.astimezone(ZoneInfo(zone)).hour for time in TIMES]


@given(
    st.sampled_from(["Europe/Berlin", "America/Santiago", "Asia/Jerusalem", "Asia/Tehran", "Europe/Istanbul"]),
    st.lists(st.datetimes(dt.datetime(2012, 1, 1), dt.datetime(2024, 1, 1)), min_size=1, max_size=40),
    st.booleans(),
)
def test_no_zone_is_told_that_an_offset_contradicts(zone, naive, is_odd):
    times = [time.replace(microsecond=0, tzinfo=dt.UTC) for time in naive]
    cells = [time.astimezone(ZoneInfo(zone)).isoformat() for time in times]
    if is_odd:
        cells[0] = times[0].astimezone(dt.timezone(dt.timedelta(hours=-11))).isoformat()
    offsets = offsets_in(pl.Series(cells), pl.Series(times).cast(pl.Datetime("ms", "UTC")).cast(pl.Int64))
    found = zone_of_offsets(offsets)
    if found is not None:
        assert zone_offsets(offsets["ms"].to_numpy(), found).tolist() == offsets["minutes"].to_list()
    assert found is not None or is_odd


def test_times_in_utc_are_asked_about_once(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(text("UTC", TIMES).replace("+00:00", "Z"))
    records = read_sessions(tmp_path)
    assert records.time_zone == "UTC"
    (asked,) = [note for note in records.notes if "--time-zone" in note]
    assert "hours of the day are in UTC" in asked
    given_zone = read_sessions(tmp_path, time_zone="Europe/Rome")
    assert given_zone.time_zone == "Europe/Rome"
    assert not any("--time-zone" in note for note in given_zone.notes)
    (inspected, _) = inspect_files([tmp_path])
    assert asked in inspected.notes


def test_seconds_since_1970_are_asked_about(tmp_path):
    rows = [f"A,{time.timestamp():.0f},{time.timestamp() + 3600:.0f},7" for time in TIMES]
    (tmp_path / "a.csv").write_text("\n".join(["station,start,end,kwh", *rows]) + "\n")
    assert any("hours of the day are in UTC" in note for note in read_sessions(tmp_path / "a.csv").notes)


def test_positions_tell_the_zone_of_times_in_utc(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text("UTC", TIMES, latitude=52.5, longitude=13.4))
    records = read_sessions(path)
    assert records.time_zone == "Europe/Berlin"
    assert any("by the positions" in note and "--time-zone" in note for note in records.notes)
    naive = pl.read_csv(path).with_columns(pl.col("start", "end").str.slice(0, 19))
    assert read_sessions(naive).time_zone == "UTC"  # such times may be local: they are asked about


@pytest.mark.parametrize(
    ("lat", "lon", "zone", "likely"),
    [
        (52.5, 13.4, "Europe/Berlin", ()),
        (48.58, 7.75, "CET", ()),  # Strasbourg: cities of several countries, with the same clocks
        (40.0, -105.3, "America/Denver", ()),
        (42.2, -8.7, None, ("Europe/Lisbon", "Europe/Madrid")),  # Vigo is Spanish, and nearer to Lisbon
        (38.5, -101.5, None, ("America/Denver",)),  # western Kansas is on Central time
        (0.0, -120.0, None, ()),  # in the Pacific
    ],
)
def test_positions_near_a_border_between_zones_only_suggest(lat, lon, zone, likely):
    assert zone_by_positions(np.array([lat]), np.array([lon])) == (zone, likely)


def test_stations_of_two_zones_have_none():
    zone, likely = zone_by_positions(np.array([52.5, 40.0]), np.array([13.4, -105.3]))
    assert zone is None
    assert set(likely) == {"Europe/Berlin", "America/Denver"}


def test_ocpi_locations_name_the_zone(tmp_path):
    (tmp_path / "a.csv").write_text(text("UTC", TIMES))
    place = {"id": "A", "coordinates": {"latitude": "42.2", "longitude": "-8.7"}, "evses": []}
    (tmp_path / "b.json").write_text(json.dumps([place | {"time_zone": "Europe/Madrid"}]))
    assert read_sessions(tmp_path).time_zone == "Europe/Madrid"
    (tmp_path / "b.json").write_text(json.dumps([place | {"time_zone": "Middle/Earth"}]))
    assert read_sessions(tmp_path).time_zone == "UTC"


def test_records_read_by_cell_have_the_same_notes_and_zone(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text("Europe/Berlin", TIMES).replace(",7.0", ',"7,5"'))
    table = check_stations(
        pl.DataFrame({"station_id": ["A", "B", "C"], "lat": [52.5, 52.6, 30.0], "lon": [13.4, 13.4, 5.0]})
    )
    cells = tmp_path / "cells"
    cells.mkdir()
    reading = Reading(known_stations={"A", "B", "C"})
    _, told = partitions.partition_records(path, cells, reading, table, np.zeros(3, np.int64), join_minutes=15)
    at_once = read_sessions(path, stations=table.kept)
    assert told.time_zone == at_once.time_zone == "CET"
    assert told.notes == at_once.notes
    for words in ("Central Europe (CET)", "decimal marks", "km from the others"):
        assert any(words in note for note in told.notes), words
