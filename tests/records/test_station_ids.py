"""Ids that differ only in spelling are joined to the one row of the table that they can mean, or named."""

import polars as pl
import pytest

from unmet.records.sessions import read_sessions
from unmet.records.station_ids import alike_note, respell_ids


def sessions(ids: list[str]) -> pl.DataFrame:
    return pl.DataFrame({
        "station_id": ids,
        "start": [f"2024-03-{4 + n:02d} 08:00:00" for n in range(len(ids))],
        "end": [f"2024-03-{4 + n:02d} 09:00:00" for n in range(len(ids))],
        "energy_kwh": [7.0] * len(ids),
    })  # fmt: skip


@pytest.mark.parametrize(
    ("written", "table"), [("0008", "8"), ("8", "0008"), ("st008 ", "ST008"), ("101.0", "101"), ("101", "101.0")]
)
def test_a_station_spelled_otherwise_is_found_in_the_table(written, table):
    records = read_sessions(
        sessions([written, "other"]), stations=pl.DataFrame({"station_id": [table, "other"], "plugs": [2, 2]})
    )
    assert records.sessions["station_id"].to_list() == [table, "other"]
    assert records.rejected.is_empty()
    assert any(f"{written.strip()} is listed as {table}" in note for note in records.notes)


def test_an_id_that_may_be_two_rows_is_not_joined():
    ids, note = respell_ids(pl.Series(["008", "8", None]), ["8", "08"])
    assert ids.to_list() == ["008", "8", None]
    assert note is None


def test_zeros_within_an_id_and_other_decimals_count():
    ids, note = respell_ids(pl.Series(["ST08", "10.5", "0", "1.10"]), ["ST8", "105", "", "1.1"])
    assert ids.to_list() == ["ST08", "10.5", "0", "1.10"]
    assert note is None


def test_stations_that_differ_only_in_case_are_named():
    records = read_sessions(sessions(["ST1", "st1 ", "ST2"]))
    assert records.stations.height == 3
    (note,) = [note for note in records.notes if "differ only in" in note]
    assert "2 stations" in note
    assert "ST1 and st1" in note
    assert "--stations" in note
    assert alike_note(pl.Series(["ST1", "ST2"])) is None
