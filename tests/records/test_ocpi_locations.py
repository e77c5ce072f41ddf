"""OCPI locations: each is a station, and the status of its EVSEs becomes exactly the time they were out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records.ocpi_files import JSON, LOCATION, head_of, odd, page
from unmet.records.formats.base import OUTAGES, Raw
from unmet.records.formats.ocpi_locations import OCPI_LOCATIONS


def locations(folder: Path, content: Any) -> Raw:
    return OCPI_LOCATIONS.read(head_of(folder / "locations.json", content))


def evse(uid: str, status: str, updated: str | None, *schedule: tuple[str, str | None, str]) -> dict[str, Any]:
    periods = [{"period_begin": a, "period_end": b, "status": c} for a, b, c in schedule]
    return {"uid": uid, "status": status, "last_updated": updated, "status_schedule": periods}


def snapshot(*evses: Any, updated: str | None = None, **more: Any) -> dict[str, Any]:
    return LOCATION | {"evses": list(evses), "last_updated": updated} | more


def hours(raw: Raw) -> list[tuple[str, str, str]]:
    """Outages as plug, start and end, written short."""
    assert raw.outages is not None
    assert raw.outages.schema == pl.Schema(OUTAGES)
    return [(uid, f"{a:%dT%H:%M}", f"{b:%dT%H:%M}") for _, uid, a, b in raw.outages.rows()]


def test_a_location_is_a_station(tmp_path: Path):
    raw = locations(tmp_path, page([LOCATION]))
    assert raw.sessions is None
    assert raw.stations is not None
    powers = (3 * 220 * 16 / 1000, 150.0)
    expected = ("LOC1", 51.047599, 3.729944, pytest.approx(sum(powers) / 2), 2, "BeCharged", "Gent Zuid")
    assert raw.stations.row(0) == expected
    assert hours(raw) == []


def test_what_is_not_told_stays_open(tmp_path: Path):
    bare = {key: LOCATION[key] for key in ("id", "coordinates", "country_code", "party_id")}
    raw = locations(tmp_path, [bare, bare | {"id": "LOC2", "evses": [{"uid": "1", "status": "REMOVED"}]}])
    assert raw.stations is not None
    assert raw.stations.select("station_id", "power_kw", "plugs", "operator", "name").rows() == [
        ("LOC1", None, None, "BE*BEC", None),
        ("LOC2", None, 0, "BE*BEC", None),
    ]


def test_a_status_holds_until_the_next_snapshot(tmp_path: Path):
    raw = locations(
        tmp_path,
        [
            snapshot(evse("1", "OUTOFORDER", "2024-05-03T10:00:00Z"), evse("2", "CHARGING", "2024-05-03T09:00:00Z")),
            snapshot(evse("1", "AVAILABLE", "2024-05-01T08:00:00"), evse("2", "AVAILABLE", "2024-05-01T08:00:00Z")),
            snapshot(evse("1", "INOPERATIVE", "2024-05-03T11:00:00Z"), evse("2", "BLOCKED", "2024-05-03T12:00:00Z")),
            snapshot(evse("1", "CHARGING", "2024-05-03T13:30:00+01:00"), updated="2024-05-03T15:00:00Z"),
        ],
    )
    assert hours(raw) == [("1", "03T10:00", "03T12:30"), ("2", "03T12:00", "03T15:00")]


def test_the_last_status_lasts_to_the_end_of_the_file(tmp_path: Path):
    out = snapshot(evse("1", "OUTOFORDER", "2015-06-30T10:00:00Z"))
    assert hours(locations(tmp_path, [out])) == []  # nothing later than its own time is known
    assert hours(locations(tmp_path, page([out]))) == [("1", "30T10:00", "30T21:59")]


def test_a_schedule_counts_until_a_snapshot_says_otherwise(tmp_path: Path):
    plan = ("2024-05-04T00:00:00Z", "2024-05-05T00:00:00Z", "OUTOFORDER")
    works = ("2024-05-06T00:00:00Z", "2024-05-07T00:00:00Z", "CHARGING")
    first = snapshot(evse("1", "AVAILABLE", "2024-05-03T00:00:00Z", plan, works))
    assert hours(locations(tmp_path, [first])) == [("1", "04T00:00", "05T00:00")]
    again = snapshot(evse("1", "AVAILABLE", "2024-05-04T06:00:00Z"))
    assert hours(locations(tmp_path, [first, again])) == [("1", "04T00:00", "04T06:00")]
    earlier = snapshot(evse("1", "AVAILABLE", "2024-05-02T06:00:00Z"))
    assert hours(locations(tmp_path, [first, earlier])) == [("1", "04T00:00", "05T00:00")]


def test_schedules_without_an_end_end_with_the_file(tmp_path: Path):
    open_end = ("2015-06-30T20:00:00Z", None, "REMOVED")
    later = ("2015-07-30T20:00:00Z", None, "REMOVED")
    raw = locations(tmp_path, page([snapshot(evse("1", "AVAILABLE", "2015-06-29T00:00:00Z", open_end, later))]))
    assert hours(raw) == [("1", "30T20:00", "30T21:59")]


def test_status_and_schedule_that_overlap_are_one_outage(tmp_path: Path):
    plan = ("2024-05-03T11:00:00Z", "2024-05-03T13:00:00Z", "INOPERATIVE")
    content = [
        snapshot(evse("1", "OUTOFORDER", "2024-05-03T10:00:00Z", plan)),
        snapshot(evse("1", "OUTOFORDER", "2024-05-03T12:00:00Z", plan), updated="2024-05-03T12:30:00Z"),
    ]
    assert hours(locations(tmp_path, content)) == [("1", "03T10:00", "03T13:00")]


def test_a_plug_that_came_or_went_is_out_while_it_is_not_there(tmp_path: Path):
    content = [
        snapshot(evse("1", "PLANNED", "2024-05-01T00:00:00Z"), evse("2", "AVAILABLE", "2024-05-01T00:00:00Z")),
        snapshot(evse("1", "AVAILABLE", "2024-05-02T00:00:00Z"), evse("2", "REMOVED", "2024-05-03T00:00:00Z")),
        snapshot(evse("3", "PLANNED", "2024-05-03T00:00:00Z"), updated="2024-05-04T00:00:00Z"),
    ]
    raw = locations(tmp_path, content)
    assert raw.stations is not None
    assert raw.stations["plugs"].item() == 2
    assert hours(raw) == [("1", "01T00:00", "02T00:00"), ("2", "03T00:00", "04T00:00")]


def test_the_newest_snapshot_describes_the_station(tmp_path: Path):
    content = [
        snapshot(name="new", updated="2024-05-02T00:00:00Z"),
        snapshot(name="old", updated="2024-05-01T00:00:00Z"),
        snapshot(name="undated"),
    ]
    raw = locations(tmp_path, content)
    assert raw.stations is not None
    assert raw.stations["name"].to_list() == ["new"]


@pytest.mark.parametrize(
    ("member", "column", "reason"),
    [
        ("LOC1", "", "is not an object"),
        ({"id": "LOC1"}, "coordinates", "is missing"),
        (LOCATION | {"coordinates": {"latitude": 51.04, "longitude": 3.72}}, "coordinates.latitude", "is not text"),
        (
            LOCATION | {"coordinates": {"latitude": "51,04", "longitude": "3.72"}},
            "coordinates.latitude",
            "is not a number of degrees such as 51.047599",
        ),
        (LOCATION | {"evses": {"uid": "1"}}, "evses", "is not a list"),
        (snapshot(evse("1", "AVAILABLE", None), 5), "evses[1]", "is not an object"),
        (snapshot({"status": "AVAILABLE"}), "evses[0].uid", "is missing"),
        (snapshot(evse("1", "AVAILABLE", "yesterday")), "evses[0].last_updated", "is not a time such as"),
        (
            snapshot(evse("1", "AVAILABLE", None, ("x", None, "BLOCKED"))),
            "evses[0].status_schedule[0].period_begin",
            "is not a time such as",
        ),
        (
            snapshot({"uid": "1", "status": "AVAILABLE", "connectors": [{"max_voltage": "230"}]}),
            "evses[0].connectors[0].max_voltage",
            "is not a number",
        ),
    ],
)
def test_malformed_members_are_set_aside(tmp_path: Path, member: Any, column: str, reason: str):
    raw = locations(tmp_path, [member, LOCATION | {"id": "fine"}])
    assert raw.stations is not None
    assert raw.stations["station_id"].to_list() == ["fine"]
    assert raw.rejected.height == 1
    line, where, _, why = raw.rejected.row(0)
    assert (line, where) == (1, column)
    assert why.startswith(reason)


def test_the_example_in_the_document_is_what_it_says(tmp_path: Path):
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "ocpi.md").read_text(encoding="utf-8")
    example = text.split("```json\n")[1].split("```")[0]
    assert "EVSE 3256 is out of order from 10:00 to 12:30" in text
    assert hours(locations(tmp_path, example)) == [("3256", "03T10:00", "03T12:30")]


@settings(database=None, max_examples=60)
@given(members=st.lists(JSON | odd(LOCATION) | st.lists(JSON | odd(LOCATION["evses"][0])).map(lambda e: snapshot(*e))))
def test_every_location_is_a_station_or_set_aside(tmp_path_factory: pytest.TempPathFactory, members: list[Any]):
    raw = locations(tmp_path_factory.mktemp("ocpi"), members)
    aside = set(raw.rejected["line"])
    kept = {member["id"] for number, member in enumerate(members, 1) if number not in aside}
    assert raw.stations is not None
    assert len(aside) == raw.rejected.height
    assert sorted(raw.stations["station_id"]) == sorted(kept)
