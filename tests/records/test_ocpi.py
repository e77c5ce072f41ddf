"""OCPI files: every CDR is a session or set aside, and the status of EVSEs becomes exactly the time they were out."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from unmet.errors import InputError
from unmet.records.formats.base import LINE, OUTAGES, Head, Raw
from unmet.records.formats.ocpi_cdrs import OCPI_CDRS
from unmet.records.formats.ocpi_locations import OCPI_LOCATIONS
from unmet.records.outages import merge_outages

CDR: dict[str, Any] = {
    "country_code": "BE",
    "party_id": "BEC",
    "id": "12345",
    "start_date_time": "2015-06-29T21:39:09Z",
    "end_date_time": "2015-06-29T23:37:32Z",
    "session_id": "S-1",
    "cdr_token": {"country_code": "DE", "party_id": "TNM", "uid": "012345678", "type": "RFID"},
    "auth_method": "WHITELIST",
    "cdr_location": {
        "id": "LOC1",
        "name": "Gent Zuid",
        "address": "F.Rooseveltlaan 3A",
        "coordinates": {"latitude": "51.047599", "longitude": "3.729944"},
        "evse_uid": "3256",
        "evse_id": "BE*BEC*E041503003",
        "connector_id": "1",
        "connector_power_type": "AC_1_PHASE",
    },
    "currency": "EUR",
    "tariffs": [{"id": "12", "elements": [{"price_components": [{"type": "TIME", "price": 2.0}]}]}],
    "charging_periods": [
        {
            "start_date_time": "2015-06-29T21:39:09Z",
            "dimensions": [{"type": "TIME", "volume": 1.973}],
            "tariff_id": "12",
        }
    ],
    "total_cost": {"excl_vat": 4.00, "incl_vat": 4.40},
    "total_energy": 15.342,
    "total_time": 1.973,
    "last_updated": "2015-06-29T22:01:13Z",
}
# 2.3.0 has other prices and no Z need be written.
CDR_230 = CDR | {
    "id": "23-0",
    "start_date_time": "2025-02-03T08:00:00",
    "end_date_time": "2025-02-03T09:30:00.500Z",
    "total_cost": {"before_taxes": 4.0, "taxes": [{"name": "VAT", "amount": 0.4}]},
    "tariffs": [{"id": "12", "tax_included": "NO"}],
}
LOCATION: dict[str, Any] = {
    "country_code": "BE",
    "party_id": "BEC",
    "id": "LOC1",
    "publish": True,
    "name": "Gent Zuid",
    "coordinates": {"latitude": "51.047599", "longitude": "3.729944"},
    "parking_type": "ON_STREET",
    "evses": [
        {
            "uid": "3256",
            "evse_id": "BE*BEC*E041503001",
            "status": "AVAILABLE",
            "status_schedule": [],
            "connectors": [
                {"id": "1", "power_type": "AC_3_PHASE", "max_voltage": 220, "max_amperage": 16},
                {"id": "2", "power_type": "AC_1_PHASE", "max_voltage": 220, "max_amperage": 16},
            ],
            "last_updated": "2015-06-28T08:12:01Z",
        },
        {
            "uid": "3257",
            "status": "RESERVED",
            "connectors": [
                {"id": "1", "power_type": "DC", "max_voltage": 920, "max_amperage": 400, "max_electric_power": 150000}
            ],
            "last_updated": "2015-06-29T20:39:09Z",
        },
        {"uid": "3258", "status": "PLANNED", "connectors": [], "last_updated": "2015-06-29T20:39:09Z"},
    ],
    "operator": {"name": "BeCharged"},
    "time_zone": "Europe/Brussels",
    "last_updated": "2015-06-29T20:39:09Z",
}


def head_of(path: Path, content: Any) -> Head:
    text = content if isinstance(content, str) else json.dumps(content)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return Head(path, "json", (), text[:50_000])


def cdrs(folder: Path, content: Any, name: str = "cdrs.json") -> Raw:
    return OCPI_CDRS.read(head_of(folder / name, content))


def locations(folder: Path, content: Any) -> Raw:
    return OCPI_LOCATIONS.read(head_of(folder / "locations.json", content))


def rows(raw: Raw) -> pl.DataFrame:
    assert raw.sessions is not None
    return raw.sessions


def page(data: Any, **more: Any) -> dict[str, Any]:
    return {"data": data, "status_code": 1000, "status_message": "Success", "timestamp": "2015-06-30T21:59:59Z"} | more


def with_cdr(**more: Any) -> dict[str, Any]:
    return CDR | more


def at_place(**more: Any) -> dict[str, Any]:
    return CDR | {"cdr_location": CDR["cdr_location"] | more}


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


class TestCdrs:
    def test_a_cdr_is_a_session_at_a_station(self, tmp_path: Path):
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
    def test_every_way_to_wrap_cdrs_reads_alike(self, tmp_path: Path, content: Any, name: str):
        raw = cdrs(tmp_path, content, name)
        assert rows(raw)["id"].to_list() == ["12345", "23-0"]
        assert rows(raw)[LINE].to_list() == [1, 2]
        assert raw.rejected.is_empty()

    def test_a_single_object_and_an_empty_page(self, tmp_path: Path):
        assert rows(cdrs(tmp_path, CDR)).height == 1
        for nothing in ([], page([]), page(None)):
            raw = cdrs(tmp_path, nothing)
            assert rows(raw).is_empty()
            assert raw.mapping.energy_kwh in rows(raw).columns
            assert raw.stations is not None
            assert raw.stations.is_empty()

    def test_neither_a_credit_nor_what_it_takes_back_counts(self, tmp_path: Path):
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
            (1, "id", "a", "was taken back by the credit CDR A-C"),
            (2, "id", "A-C", "is a credit CDR that takes back A"),
            (5, "id", "c-C", "is a credit CDR that takes back an unnamed CDR"),
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
    def test_malformed_members_are_set_aside(self, tmp_path: Path, member: Any, column: str, reason: str):
        raw = cdrs(tmp_path, [CDR, member])
        assert rows(raw)[LINE].to_list() == [1]
        assert raw.rejected.select("line", "column", "reason").row(0) == (2, column, reason)

    def test_a_session_counts_where_its_place_is_not_told(self, tmp_path: Path):
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
    def test_the_flow_ends_where_the_last_periods_are_idle(self, tmp_path: Path, periods: Any, charged: str | None):
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
    def test_periods_without_sense_are_no_periods(self, tmp_path: Path, periods: Any):
        assert rows(cdrs(tmp_path, [with_cdr(charging_periods=periods)]))["charged"].item() is None

    def test_an_error_of_the_server_is_no_data(self, tmp_path: Path):
        answer = {"status_code": 2001, "status_message": "Invalid parameters", "data": None}
        with pytest.raises(InputError, match="error \\(2001 Invalid parameters\\) instead of all its data: fetch"):
            cdrs(tmp_path, answer)


class TestLocations:
    def test_a_location_is_a_station(self, tmp_path: Path):
        raw = locations(tmp_path, page([LOCATION]))
        assert raw.sessions is None
        assert raw.stations is not None
        powers = (3 * 220 * 16 / 1000, 150.0)
        expected = ("LOC1", 51.047599, 3.729944, pytest.approx(sum(powers) / 2), 2, "BeCharged", "Gent Zuid")
        assert raw.stations.row(0) == expected
        assert hours(raw) == []

    def test_what_is_not_told_stays_open(self, tmp_path: Path):
        bare = {key: LOCATION[key] for key in ("id", "coordinates", "country_code", "party_id")}
        raw = locations(tmp_path, [bare, bare | {"id": "LOC2", "evses": [{"uid": "1", "status": "REMOVED"}]}])
        assert raw.stations is not None
        assert raw.stations.select("station_id", "power_kw", "plugs", "operator", "name").rows() == [
            ("LOC1", None, None, "BE*BEC", None),
            ("LOC2", None, 0, "BE*BEC", None),
        ]

    def test_a_status_holds_until_the_next_snapshot(self, tmp_path: Path):
        raw = locations(
            tmp_path,
            [
                snapshot(
                    evse("1", "OUTOFORDER", "2024-05-03T10:00:00Z"), evse("2", "CHARGING", "2024-05-03T09:00:00Z")
                ),
                snapshot(evse("1", "AVAILABLE", "2024-05-01T08:00:00"), evse("2", "AVAILABLE", "2024-05-01T08:00:00Z")),
                snapshot(
                    evse("1", "INOPERATIVE", "2024-05-03T11:00:00Z"), evse("2", "BLOCKED", "2024-05-03T12:00:00Z")
                ),
                snapshot(evse("1", "CHARGING", "2024-05-03T13:30:00+01:00"), updated="2024-05-03T15:00:00Z"),
            ],
        )
        assert hours(raw) == [("1", "03T10:00", "03T12:30"), ("2", "03T12:00", "03T15:00")]

    def test_the_last_status_lasts_to_the_end_of_the_file(self, tmp_path: Path):
        out = snapshot(evse("1", "OUTOFORDER", "2015-06-30T10:00:00Z"))
        assert hours(locations(tmp_path, [out])) == []  # nothing later than its own time is known
        assert hours(locations(tmp_path, page([out]))) == [("1", "30T10:00", "30T21:59")]

    def test_a_schedule_counts_until_a_snapshot_says_otherwise(self, tmp_path: Path):
        plan = ("2024-05-04T00:00:00Z", "2024-05-05T00:00:00Z", "OUTOFORDER")
        works = ("2024-05-06T00:00:00Z", "2024-05-07T00:00:00Z", "CHARGING")
        first = snapshot(evse("1", "AVAILABLE", "2024-05-03T00:00:00Z", plan, works))
        assert hours(locations(tmp_path, [first])) == [("1", "04T00:00", "05T00:00")]
        again = snapshot(evse("1", "AVAILABLE", "2024-05-04T06:00:00Z"))
        assert hours(locations(tmp_path, [first, again])) == [("1", "04T00:00", "04T06:00")]
        earlier = snapshot(evse("1", "AVAILABLE", "2024-05-02T06:00:00Z"))
        assert hours(locations(tmp_path, [first, earlier])) == [("1", "04T00:00", "05T00:00")]

    def test_schedules_without_an_end_end_with_the_file(self, tmp_path: Path):
        open_end = ("2015-06-30T20:00:00Z", None, "REMOVED")
        later = ("2015-07-30T20:00:00Z", None, "REMOVED")
        raw = locations(tmp_path, page([snapshot(evse("1", "AVAILABLE", "2015-06-29T00:00:00Z", open_end, later))]))
        assert hours(raw) == [("1", "30T20:00", "30T21:59")]

    def test_status_and_schedule_that_overlap_are_one_outage(self, tmp_path: Path):
        plan = ("2024-05-03T11:00:00Z", "2024-05-03T13:00:00Z", "INOPERATIVE")
        content = [
            snapshot(evse("1", "OUTOFORDER", "2024-05-03T10:00:00Z", plan)),
            snapshot(evse("1", "OUTOFORDER", "2024-05-03T12:00:00Z", plan), updated="2024-05-03T12:30:00Z"),
        ]
        assert hours(locations(tmp_path, content)) == [("1", "03T10:00", "03T13:00")]

    def test_a_plug_that_came_or_went_is_out_while_it_is_not_there(self, tmp_path: Path):
        content = [
            snapshot(evse("1", "PLANNED", "2024-05-01T00:00:00Z"), evse("2", "AVAILABLE", "2024-05-01T00:00:00Z")),
            snapshot(evse("1", "AVAILABLE", "2024-05-02T00:00:00Z"), evse("2", "REMOVED", "2024-05-03T00:00:00Z")),
            snapshot(evse("3", "PLANNED", "2024-05-03T00:00:00Z"), updated="2024-05-04T00:00:00Z"),
        ]
        raw = locations(tmp_path, content)
        assert raw.stations is not None
        assert raw.stations["plugs"].item() == 2
        assert hours(raw) == [("1", "01T00:00", "02T00:00"), ("2", "03T00:00", "04T00:00")]

    def test_the_newest_snapshot_describes_the_station(self, tmp_path: Path):
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
                "is not degrees as 51.047599",
            ),
            (LOCATION | {"evses": {"uid": "1"}}, "evses", "is not a list"),
            (snapshot(evse("1", "AVAILABLE", None), 5), "evses[1]", "is not an object"),
            (snapshot({"status": "AVAILABLE"}), "evses[0].uid", "is missing"),
            (snapshot(evse("1", "AVAILABLE", "yesterday")), "evses[0].last_updated", "is not a time as"),
            (
                snapshot(evse("1", "AVAILABLE", None, ("x", None, "BLOCKED"))),
                "evses[0].status_schedule[0].period_begin",
                "is not a time as",
            ),
            (
                snapshot({"uid": "1", "status": "AVAILABLE", "connectors": [{"max_voltage": "230"}]}),
                "evses[0].connectors[0].max_voltage",
                "is not a number",
            ),
        ],
    )
    def test_malformed_members_are_set_aside(self, tmp_path: Path, member: Any, column: str, reason: str):
        raw = locations(tmp_path, [member, LOCATION | {"id": "fine"}])
        assert raw.stations is not None
        assert raw.stations["station_id"].to_list() == ["fine"]
        assert raw.rejected.height == 1
        line, where, _, why = raw.rejected.row(0)
        assert (line, where) == (1, column)
        assert why.startswith(reason)


def test_the_example_in_the_document_is_what_it_says(tmp_path: Path):
    text = (Path(__file__).parents[2] / "docs" / "ocpi-and-sql.md").read_text(encoding="utf-8")
    example = text.split("```json\n")[1].split("```")[0]
    assert "EVSE 3256 out from 10:00 to 12:30" in text
    assert hours(locations(tmp_path, example)) == [("3256", "03T10:00", "03T12:30")]


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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters()),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=6,
)


def odd(good: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Good objects in which some fields hold anything."""
    return st.dictionaries(st.sampled_from([*good, "credit", "credit_reference_id", LINE]), JSON, max_size=2).map(
        lambda wrong: good | wrong
    )


@settings(database=None, max_examples=60)
@given(members=st.lists(JSON | odd(CDR) | odd(CDR["cdr_location"]).map(lambda place: with_cdr(cdr_location=place))))
def test_every_cdr_is_a_row_or_set_aside(tmp_path_factory: pytest.TempPathFactory, members: list[Any]):
    raw = cdrs(tmp_path_factory.mktemp("ocpi"), members)
    lines = rows(raw)[LINE].to_list() + raw.rejected["line"].to_list()
    assert sorted(lines) == list(range(1, len(members) + 1))


@settings(database=None, max_examples=60)
@given(members=st.lists(JSON | odd(LOCATION) | st.lists(JSON | odd(LOCATION["evses"][0])).map(lambda e: snapshot(*e))))
def test_every_location_is_a_station_or_set_aside(tmp_path_factory: pytest.TempPathFactory, members: list[Any]):
    raw = locations(tmp_path_factory.mktemp("ocpi"), members)
    aside = set(raw.rejected["line"])
    kept = {member["id"] for number, member in enumerate(members, 1) if number not in aside}
    assert raw.stations is not None
    assert len(aside) == raw.rejected.height
    assert sorted(raw.stations["station_id"]) == sorted(kept)


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
