"""OCPI CDRs: each is a session at a station, or set aside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records.ocpi_files import CDR, CDR_230, JSON, LOCATION, head_of, odd, page
from unmet.csv_files import LINE
from unmet.errors import InputError
from unmet.records.formats.base import Raw
from unmet.records.formats.ocpi_cdrs import OCPI_CDRS
from unmet.records.formats.ocpi_locations import OCPI_LOCATIONS


def cdrs(folder: Path, content: Any, name: str = "cdrs.json") -> Raw:
    return OCPI_CDRS.read(head_of(folder / name, content))


def rows(raw: Raw) -> pl.DataFrame:
    assert raw.sessions is not None
    return raw.sessions


def with_cdr(**more: Any) -> dict[str, Any]:
    return CDR | more


def at_place(**more: Any) -> dict[str, Any]:
    return CDR | {"cdr_location": CDR["cdr_location"] | more}


def test_a_cdr_is_a_session_at_a_station(tmp_path: Path):
    raw = cdrs(tmp_path, [CDR, CDR_230])
    mapping = raw.mapping
    names = ("session_id", "station_id", "plug_id", "start", "end", "energy_kwh", "vehicle_id", "operator")
    expected = (
        "12345",
        "LOC1",
        "3256",
        CDR["start_date_time"],
        CDR["end_date_time"],
        "15.342",
        "012345678",
        "BE*BEC",
    )
    assert rows(raw).select(getattr(mapping, name) for name in names).row(0) == expected
    assert rows(raw)[mapping.start].to_list() == [CDR["start_date_time"], CDR_230["start_date_time"]]
    assert mapping.time_zone == "UTC"
    assert set(rows(raw).dtypes) == {pl.UInt32, pl.String}
    assert raw.stations is not None
    assert raw.stations.rows() == [("LOC1", 51.047599, 3.729944, "BE*BEC", "Gent Zuid")]


def as_2_1_1(cdr: dict[str, Any]) -> dict[str, Any]:
    """A CDR as OCPI 2.1.1 writes it: its location holds the EVSE, which holds the connector."""
    place = dict(cdr["cdr_location"])
    evse = {"uid": place.pop("evse_uid"), "evse_id": place.pop("evse_id"), "connectors": [{"id": "1"}]}
    gone = {"cdr_location", "cdr_token", "end_date_time", "country_code", "party_id"}
    return {name: value for name, value in cdr.items() if name not in gone} | {
        "stop_date_time": cdr["end_date_time"],
        "auth_id": cdr["cdr_token"]["uid"],
        "location": place | {"evses": [evse]},
    }


def test_a_cdr_of_2_1_1_is_read_like_one_of_2_2_1(tmp_path: Path):
    old, new = cdrs(tmp_path, [as_2_1_1(CDR)]), cdrs(tmp_path, [CDR], "new.json")
    assert OCPI_CDRS.matches(head_of(tmp_path / "page.json", page([as_2_1_1(CDR)])))
    for name in ("session_id", "station_id", "plug_id", "start", "end", "energy_kwh", "vehicle_id"):
        column = getattr(old.mapping, name)
        assert rows(old)[column].to_list() == rows(new)[column].to_list()
    assert old.stations is not None
    assert old.stations.rows() == [("LOC1", 51.047599, 3.729944, None, "Gent Zuid")]
    several = as_2_1_1(CDR)
    several["location"]["evses"] *= 2  # which of them is not said
    assert rows(cdrs(tmp_path, [several]))[old.mapping.plug_id].to_list() == [None]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ([CDR, CDR_230], "a.json"),
        ([CDR, CDR_230], "a.json.gz"),
        (page([CDR, CDR_230]), "a.json"),
        ({"status_code": 1000, "timestamp": "2015-06-30T21:59:59Z", "data": [CDR, CDR_230]}, "a.json.gz"),
        (json.dumps(page([CDR])) + json.dumps(page([CDR_230])), "a.json"),
        (json.dumps([CDR]) + json.dumps([CDR_230]), "a.json"),
        (json.dumps(page(CDR)) + "\n" + json.dumps(CDR_230), "a.json"),
        (json.dumps(CDR) + "\n" + json.dumps(CDR_230) + "\n", "a.jsonl"),
    ],
    ids=["array", "zipped", "page", "page, other order", "two pages", "two arrays", "single objects", "lines"],
)
def test_every_way_to_wrap_cdrs_reads_alike(tmp_path: Path, content: Any, name: str):
    raw = cdrs(tmp_path, content, name)
    assert rows(raw)["id"].to_list() == ["12345", "23-0"]
    assert rows(raw)[LINE].to_list() == [1, 2]
    assert raw.rejected.is_empty()


def test_a_single_object_and_an_empty_page(tmp_path: Path):
    assert rows(cdrs(tmp_path, CDR)).height == 1
    for nothing in ([], page([]), page(None)):
        raw = cdrs(tmp_path, nothing)
        assert rows(raw).is_empty()
        assert raw.mapping.energy_kwh in rows(raw).columns
        assert raw.stations is not None
        assert raw.stations.is_empty()


def test_neither_a_credit_nor_what_it_takes_back_counts(tmp_path: Path):
    content = [
        with_cdr(id="a"),
        with_cdr(id="A-C", credit=True, credit_reference_id="A", total_cost={"excl_vat": -4.0}),
        with_cdr(id="b", credit=False),
        with_cdr(id="a", party_id="XYZ"),
        with_cdr(id="c-C", credit=True),
    ]
    raw = cdrs(tmp_path, content)
    assert rows(raw)[LINE].to_list() == [3, 4]
    assert raw.rejected.rows() == [
        (1, "id", "a", "was cancelled by the credit CDR A-C"),
        (2, "id", "A-C", "is a credit CDR that cancels A"),
        (5, "id", "c-C", "is a credit CDR that cancels an unnamed CDR"),
    ]
    assert set(rows(raw).columns).isdisjoint({"key", "by", "why"})


@pytest.mark.parametrize(
    ("member", "column", "reason"),
    [
        (7, "", "is not an object"),
        ({k: v for k, v in CDR.items() if k != "id"}, "id", "is missing"),
        (with_cdr(id=12345), "id", "is not text"),
        (with_cdr(id=""), "id", "is empty"),
        (with_cdr(cdr_location=None), "cdr_location", "is not an object"),
        (at_place(id=None), "cdr_location.id", "is not text"),
        (with_cdr(total_energy=[1]), "total_energy", "is not a single value"),
        (with_cdr(credit="true"), "credit", "is not true or false"),
        (
            at_place(evse_uid="#NA"),
            "cdr_location.evse_uid",
            "is a reservation that never became a charging session",
        ),
        (
            at_place(coordinates={"latitude": 51.047599, "longitude": 3.729944}),
            "cdr_location.coordinates.latitude",
            "is not text",
        ),
        (
            at_place(coordinates={"latitude": "51.047599", "longitude": "203.7"}),
            "cdr_location.coordinates.longitude",
            "is not between -180 and 180",
        ),
    ],
)
def test_malformed_members_are_set_aside(tmp_path: Path, member: Any, column: str, reason: str):
    raw = cdrs(tmp_path, [CDR, member])
    assert rows(raw)[LINE].to_list() == [1]
    assert raw.rejected.select("line", "column", "reason").row(0) == (2, column, reason)


def test_a_session_counts_where_its_place_is_not_told(tmp_path: Path):
    raw = cdrs(tmp_path, [at_place(coordinates=None)])
    assert rows(raw).height == 1
    assert raw.stations is not None
    assert raw.stations.row(0) == ("LOC1", None, None, "BE*BEC", "Gent Zuid")


@pytest.mark.parametrize(
    ("periods", "charged"),
    [
        ([("21:39", {"ENERGY": 15.3, "TIME": 1}), ("22:39", {"PARKING_TIME": 0.9})], "22:39"),
        ([("21:39", {"ENERGY": 15.3}), ("22:39", {"ENERGY": 0}), ("23:00", {"PARKING_TIME": 0.6})], "22:39"),
        ([("23:00", {"ENERGY": 0}), ("21:39", {"ENERGY": 15.3})], "23:00"),
        ([("21:39", {"ENERGY": 9}), ("22:00", {"PARKING_TIME": 0.2}), ("22:30", {"ENERGY": 6})], None),
        ([("21:39", {"ENERGY": 15.3}), ("22:39", {"TIME": 0.5, "PARKING_TIME": 0.4})], None),
        ([("21:39", {"TIME": 1.973})], None),
        ([("21:39", {"PARKING_TIME": 1.973})], None),
        ([("21:39", {"ENERGY": 15.3}), ("soon", {"ENERGY": 0})], None),
        ([], None),
    ],
)
def test_the_flow_ends_where_the_last_periods_are_idle(tmp_path: Path, periods: Any, charged: str | None):
    content = [
        {
            "start_date_time": f"2015-06-29T{time}:00Z",
            "dimensions": [{"type": kind, "volume": volume} for kind, volume in volumes.items()],
        }
        for time, volumes in periods
    ]
    raw = cdrs(tmp_path, [with_cdr(charging_periods=content)])
    assert rows(raw)["charged"].item() == (charged and f"2015-06-29T{charged}:00Z")


@pytest.mark.parametrize("periods", [5, [5], [{}], [{"start_date_time": 5, "dimensions": 5}], {"a": 1}])
def test_periods_without_sense_are_no_periods(tmp_path: Path, periods: Any):
    assert rows(cdrs(tmp_path, [with_cdr(charging_periods=periods)]))["charged"].item() is None


def test_an_error_of_the_server_is_no_data(tmp_path: Path):
    answer = {"status_code": 2001, "status_message": "Invalid parameters", "data": None}
    with pytest.raises(InputError, match="error \\(2001 Invalid parameters\\) instead of all its data: fetch"):
        cdrs(tmp_path, answer)


def test_each_format_knows_its_files(tmp_path: Path):
    files = {
        "cdr": [CDR],
        "location": page([LOCATION]),
        "geojson": {"features": [{"geometry": {"coordinates": [1, 2]}}]},
        "old cdr": [{"id": "1", "start_date_time": "2015", "location": LOCATION, "total_energy": 1}],
    }
    heads = {name: head_of(tmp_path / "x.json", content) for name, content in files.items()}
    assert [name for name, head in heads.items() if OCPI_CDRS.matches(head)] == ["cdr"]
    assert [name for name, head in heads.items() if OCPI_LOCATIONS.matches(head)] == ["location"]


@settings(database=None, max_examples=60)
@given(members=st.lists(JSON | odd(CDR) | odd(CDR["cdr_location"]).map(lambda place: with_cdr(cdr_location=place))))
def test_every_cdr_is_a_row_or_set_aside(tmp_path_factory: pytest.TempPathFactory, members: list[Any]):
    raw = cdrs(tmp_path_factory.mktemp("ocpi"), members)
    lines = rows(raw)[LINE].to_list() + raw.rejected["line"].to_list()
    assert sorted(lines) == list(range(1, len(members) + 1))
