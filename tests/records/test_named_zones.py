"""A time column with UTC or an offset in its name is read in that zone, whatever the local zone is."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import polars as pl
import pytest
import yaml

from unmet.records.inspection import inspect_files
from unmet.records.named_zones import zone_in_name
from unmet.records.one_file import Reading
from unmet.records.sessions import read_sessions

BERLIN = ZoneInfo("Europe/Berlin")
STARTS = [dt.datetime(2024, month, 5, 9, tzinfo=dt.UTC) for month in range(1, 13)]
ENDS = [start + dt.timedelta(minutes=40) for start in STARTS]


def written(times: list[dt.datetime], zone: dt.tzinfo = dt.UTC) -> list[str]:
    return [f"{time.astimezone(zone):%Y-%m-%d %H:%M:%S}" for time in times]


def table(**columns: list[str]) -> pl.DataFrame:
    return pl.DataFrame({"station_id": ["A"] * 12, **columns, "energy_kwh": [5.0] * 12})


def is_exact(frame: pl.DataFrame, **options: object) -> bool:
    records = read_sessions(frame, **options)
    return records.sessions["start"].to_list() == STARTS and records.sessions["end"].to_list() == ENDS


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("Start (UTC)", "End (UTC)"),
        ("start_utc", "end_utc"),
        ("StartTimeUTC", "EndTimeUTC"),
        ("Start time [UTC]", "End time [UTC]"),
        ("start_time_gmt", "end_time_gmt"),
        ("starttimeutc", "endtimeutc"),
        ("Start Time (Z)", "End Time (Z)"),
    ],
)
def test_a_name_with_utc_decides_for_its_column(start, end):
    frame = table(**{start: written(STARTS), end: written(ENDS)})
    records = read_sessions(frame, time_zone="Europe/Berlin")
    assert records.sessions["start"].to_list() == STARTS
    assert records.sessions["end"].to_list() == ENDS
    assert records.time_zone == "Europe/Berlin"  # the local zone of the network is unchanged
    assert any("as its name says" in line for line in records.readings_in_short)


def test_an_offset_in_the_name_is_used():
    east = dt.timezone(dt.timedelta(hours=1))
    frame = table(**{"Start (UTC+1)": written(STARTS, east), "End (UTC+01:00)": written(ENDS, east)})
    assert is_exact(frame, time_zone="Europe/Berlin", mapping={"start": "Start (UTC+1)", "end": "End (UTC+01:00)"})


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 3, 0, 1), (0, 3, 2, 1), (2, 1, 0, 3)])
def test_of_utc_and_local_columns_a_pair_is_read(order):
    columns = [
        ("Start (UTC)", written(STARTS)),
        ("End (UTC)", written(ENDS)),
        ("Start (local)", written(STARTS, BERLIN)),
        ("End (local)", written(ENDS, BERLIN)),
    ]
    frame = table(**dict(columns[place] for place in order))
    assert is_exact(frame, time_zone="Europe/Berlin")
    assert is_exact(frame)


def test_a_start_in_utc_may_have_a_local_end():
    frame = table(**{"Start (UTC)": written(STARTS), "End (local)": written(ENDS, BERLIN)})
    assert is_exact(frame, time_zone="Europe/Berlin")


def test_dates_and_times_are_paired_within_their_zone():
    columns = {}
    for label, zone in (("local", BERLIN), ("UTC", dt.UTC)):
        for what, times in (("Start", STARTS), ("End", ENDS)):
            texts = [text.split() for text in written(times, zone)]
            columns[f"{what} date ({label})"] = [day for day, _ in texts]
            columns[f"{what} time ({label})"] = [time for _, time in texts]
    assert is_exact(table(**columns), time_zone="Europe/Berlin")


def test_a_mapped_time_zone_still_wins():
    frame = table(**{"Start (UTC)": written(STARTS, BERLIN), "End (UTC)": written(ENDS, BERLIN)})
    assert is_exact(frame, mapping={"time_zone": "Europe/Berlin"})


def test_a_column_of_zones_beside_times_in_utc_is_that_of_the_place():
    frame = table(start_utc=written(STARTS), end_utc=written(ENDS), timezone=["Europe/Berlin"] * 12)
    assert is_exact(frame)


@pytest.mark.parametrize("name", ["start", "Start (local)", "Startzeit", "Start Time (PST)", "z", "Outcome"])
def test_other_names_state_no_zone(name):
    assert zone_in_name(name) is None


def test_the_mapping_that_inspection_prints_reads_the_same(tmp_path):
    path = tmp_path / "utc.csv"
    table(**{"Start (UTC)": written(STARTS), "End (UTC)": written(ENDS)}).write_csv(path)
    (found,) = inspect_files([path], Reading(time_zone="Europe/Berlin"))
    records = read_sessions(path, mapping=yaml.safe_load(found.mapping))
    assert records.sessions["start"].to_list() == STARTS
    assert records.time_zone == "Europe/Berlin"
