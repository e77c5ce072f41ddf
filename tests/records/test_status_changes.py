"""Changes of status show when plugs were taken and when they were out of order, but not what was charged."""

from __future__ import annotations

import datetime as dt
import itertools
import json

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from unmet.csv_files import LINE
from unmet.records.formats.status_changes import OCCUPIED, stays_and_outages
from unmet.records.sessions import read_sessions
from unmet.tables import UTC

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
FEED = [
    ("L1", "E1", "AVAILABLE", "2024-05-01T07:00:00Z"),
    ("L1", "E1", "CHARGING", "2024-05-01T08:00:00Z"),
    ("L1", "E1", "CHARGING", "2024-05-01T08:30:00Z"),
    ("L1", "E1", "AVAILABLE", "2024-05-01T09:00:00Z"),
    ("L1", "E2", "OUTOFORDER", "2024-05-01T06:00:00Z"),
    ("L1", "E2", "AVAILABLE", "2024-05-01T10:00:00Z"),
    ("L1", "E2", "CHARGING", "2024-05-01T11:00:00Z"),
    ("L2", "E3", "INOPERATIVE", "2024-05-01T11:30:00Z"),
    ("L2", "E4", "AVAILABLE", "2024-05-01T12:00:00Z"),
]


def at(hour: int, minute: int = 0) -> dt.datetime:
    return dt.datetime(2024, 5, 1, hour, minute, tzinfo=dt.UTC)


def check(records):
    stays = records.sessions.select("station_id", "plug_id", "start", "end", "energy_kwh").rows()
    assert stays == [("L1", "E1", at(8), at(9), 0.0)]
    assert records.counts["open_sessions"] == 1
    assert records.outages.rows() == [("L1", "E2", at(6), at(10)), ("L2", "E3", at(11, 30), at(12))]
    assert any("no energies" in note for note in records.notes)


def test_a_table_of_changes(tmp_path):
    lines = ["location_id,evse_uid,status,timestamp", *(",".join(row) for row in reversed(FEED))]
    (tmp_path / "feed.csv").write_text("\n".join(lines) + "\n")
    records = read_sessions(tmp_path / "feed.csv", now=NOW)
    assert records.formats == {str(tmp_path / "feed.csv"): "status-changes"}
    check(records)
    (tmp_path / "feed.csv").write_text("\n".join([*lines, "L1,E1,AVAILABLE,soon"]) + "\n")
    records = read_sessions(tmp_path / "feed.csv", now=NOW)
    check(records)
    assert records.rejected.filter(pl.col("line") == 11)["value"].to_list() == ["soon"]


def test_an_empty_feed_is_no_stay(tmp_path):
    (tmp_path / "feed.csv").write_text("location_id,evse_uid,status,timestamp\n")
    assert read_sessions(tmp_path / "feed.csv", now=NOW).sessions.is_empty()


def test_changes_as_json(tmp_path):
    names = ("location_id", "evse_uid", "status", "timestamp")
    (tmp_path / "feed.json").write_text(json.dumps([dict(zip(names, row, strict=True)) for row in FEED]))
    check(read_sessions(tmp_path / "feed.json", now=NOW))


def test_locations_by_name(tmp_path):
    place = {"latitude": "51.047599", "longitude": "3.729944"}
    snapshots = [
        {"id": location, "coordinates": place, "evses": [{"uid": evse, "status": status, "last_updated": time}]}
        for location, evse, status, time in FEED
    ]
    (tmp_path / "locations.json").write_text(json.dumps(snapshots))
    records = read_sessions(tmp_path / "locations.json", format="ocpi-status", now=NOW)
    check(records)
    assert records.stations.select("station_id", "plugs").sort("station_id").rows() == [("L1", 2), ("L2", 2)]
    plain = read_sessions(tmp_path / "locations.json", now=NOW)
    assert plain.sessions.is_empty()


changes = st.lists(
    st.tuples(
        st.sampled_from(["E1", "E2"]), st.sampled_from(["AVAILABLE", "CHARGING", "OUTOFORDER"]), st.integers(0, 99)
    ),
    min_size=1,
    max_size=30,
    unique_by=lambda change: (change[0], change[2]),
)


@given(changes)
def test_stays_are_the_minutes_in_which_a_plug_is_taken(drawn):
    frame = pl.DataFrame(
        [
            (n, "L", evse, status, at(0) + dt.timedelta(minutes=minute))
            for n, (evse, status, minute) in enumerate(drawn)
        ],
        schema={LINE: pl.UInt32, "station_id": pl.String, "plug_id": pl.String, "status": pl.String, "at": UTC},
        orient="row",
    )
    stays, _ = stays_and_outages(frame)
    for evse in ("E1", "E2"):
        seen = sorted((minute, status) for plug, status, minute in drawn if plug == evse)
        taken = sum(after - before for (before, status), (after, _) in itertools.pairwise(seen) if status in OCCUPIED)
        closed = stays.filter(pl.col("plug_id") == evse).drop_nulls("end")
        minutes = closed.select((pl.col("end") - pl.col("start")).dt.total_minutes().sum()).item()
        open_since = stays.filter(pl.col("plug_id") == evse, pl.col("end").is_null())
        if open_since.height and seen:
            taken -= seen[-1][0] - int((open_since["start"][0] - at(0)).total_seconds() // 60)
        assert minutes == taken
