"""Zones and positions in the rows of sessions show where the stations are."""

from __future__ import annotations

import polars as pl
import pytest

from unmet.records.places import local_zone_of
from unmet.records.sessions import read_sessions


def table(zones: list[str], **columns: object) -> pl.DataFrame:
    rows = len(zones)
    frame = pl.DataFrame(
        {
            "station_id": ["A", "B"] * (rows // 2),
            "start": [f"2024-{1 + 6 * (zone[1:] == 'DT'):02}-03 09:{row:02}" for row, zone in enumerate(zones)],
            "end": [f"2024-{1 + 6 * (zone[1:] == 'DT'):02}-03 10:{row:02}" for row, zone in enumerate(zones)],
            "energy_kwh": [5.0] * rows,
            "Time Zone": zones,
        }
    )
    return frame.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def test_abbreviations_of_winter_and_summer_give_the_local_zone():
    records = read_sessions(table(["CST", "CST", "CDT", "CDT"]))
    assert records.time_zone == "America/Chicago"
    assert records.sessions["start"].dt.hour().to_list() == [15, 15, 14, 14]
    assert any("the stations are in America/Chicago" in note for note in records.notes)
    assert read_sessions(table(["CST", "CST", "CDT", "CDT"]), time_zone="America/Winnipeg").notes != records.notes


def test_one_abbreviation_leaves_the_zone_open_and_a_note_asks():
    records = read_sessions(table(["MST"] * 4))
    assert records.time_zone == "UTC"
    assert any("hours of the day are in UTC. Give --time-zone" in note for note in records.notes)


def test_columns_in_utc_ask_for_the_local_zone():
    frame = table(["UTC"] * 4).drop("Time Zone").rename({"start": "Start (UTC)", "end": "End (UTC)"})
    assert any("Give --time-zone" in note for note in read_sessions(frame).notes)
    assert not any("--time-zone" in note for note in read_sessions(frame, time_zone="Europe/Berlin").notes)


@pytest.mark.parametrize(
    ("zones", "local"),
    [
        (["Europe/Oslo"], "Europe/Oslo"),
        (["Europe/Oslo", "Europe/Rome"], None),
        (["EST", "EDT", "CST"], None),
        (["+01:00", "+02:00"], None),
        (["Not/AZone"], None),
    ],
)
def test_a_zone_is_given_by_one_name_or_one_pair(zones, local):
    assert local_zone_of(pl.Series(zones)) == local


def test_positions_beside_sessions_are_those_of_the_stations():
    frame = table(["CST", "CST", "CDT", "CDT"], Latitude=[41.8, 41.9, 41.8, None], Longitude=[-87.6, -87.7, -87.6, 0.0])
    stations = read_sessions(frame).stations.sort("station_id")
    assert stations["lat"].to_list() == [41.8, 41.9]
    assert stations["lon"].to_list() == [-87.6, -87.7]
