"""Records put aside in cells of stations: read back, they are what reading everything at once gives."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from unmet.records import partitions
from unmet.records.one_file import Reading
from unmet.records.sessions import read_sessions
from unmet.records.stations import check_stations

MONDAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
STATIONS = pl.DataFrame({"station_id": [f"s{i}" for i in range(7)], "lat": [55.0 + i for i in range(7)], "lon": 12.0})


def sessions(count: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    start = [MONDAY + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 60 * 24 * 40, count)]
    minutes = rng.integers(1, 300, count).tolist()
    return pl.DataFrame(
        {
            "session_id": [f"{seed}-{i}" for i in range(count)],
            "station_id": [f"s{i}" for i in rng.integers(0, 7, count)],
            "start": start,
            "end": [time + dt.timedelta(minutes=m) for time, m in zip(start, minutes, strict=True)],
            "energy_kwh": rng.uniform(0, 40, count).round(3),
        }
    )  # fmt: skip


@pytest.fixture
def files(tmp_path):
    """Files of several layouts: repeated rows, shared plugs, drivers who start again, a row of the year 2000."""
    folder = tmp_path / "records"
    folder.mkdir()
    one, two = sessions(900, 1), sessions(700, 2)
    far = one.head(1).with_columns(
        session_id=pl.lit("far"), start=pl.lit(dt.datetime(2000, 1, 1, tzinfo=dt.UTC)).cast(one.schema["start"]),
        end=pl.lit(dt.datetime(2000, 1, 1, 1, tzinfo=dt.UTC)).cast(one.schema["end"]),
    )  # fmt: skip
    pl.concat([one, one.head(50), far]).write_parquet(folder / "a.parquet")
    plugs = two.with_columns(
        plug_id=pl.format("{}-{}", "station_id", pl.int_range(pl.len()) % 2),
        user_id=pl.format("driver of {}", "station_id"),
    )
    plugs.write_parquet(folder / "b.parquet")
    one.tail(300).write_csv(folder / "c.csv")
    unknown = sessions(20, 3).with_columns(station_id=pl.lit("elsewhere"))
    unknown.write_parquet(folder / "d.parquet")
    return folder


@pytest.mark.parametrize("part_rows", [2_000_000, 137])
def test_cells_hold_what_reading_at_once_gives(files, tmp_path, monkeypatch, part_rows):
    monkeypatch.setattr(partitions, "PART_ROWS", part_rows)
    table = check_stations(STATIONS)
    at_once = read_sessions(files, stations=STATIONS)
    spilled = tmp_path / "cells"
    spilled.mkdir()
    cell = np.array([0, 1, 2, 0, 1, 2, 2])
    reading = Reading(known_stations=set(STATIONS["station_id"]))
    partition, records = partitions.partition_records(files, spilled, reading, table, cell, join_minutes=15)
    parts = [partition.read([number]) for number in range(3)]
    together = pl.concat([part for part, _, _ in parts]).sort("start", "station_id", "session_id")
    expected = at_once.sessions.sort("start", "station_id", "session_id")
    assert_frame_equal(together, expected)
    aside = sum(part.height for _, part, _ in parts) + records.rejected.height
    assert aside == at_once.rejected.height
    counts = {name: sum(found[name] for _, _, found in parts) for name in parts[0][2]}
    for name in ("rows_kept", "restarts_joined", "duplicates", "ends_cut_short", "start_far_away"):
        assert counts[name] == at_once.counts[name] > 0, name
    assert records.counts["rows_in"] == at_once.counts["rows_in"] == counts["rows_kept"] + aside
    assert partition.rows.sum() == counts["rows_kept"] + sum(part.height for _, part, _ in parts)


def test_a_part_of_a_file_has_the_lines_of_the_file(tmp_path):
    path = tmp_path / "s.parquet"
    sessions(10, 1).with_columns(end=pl.lit(None, pl.Datetime("us", "UTC"))).write_parquet(path)
    from unmet.records.batches import read_batches
    from unmet.records.sources import find_sources, in_parts

    made = list(read_batches(in_parts(find_sources(path), 4), Reading()))
    lines = [line for batch in made for line in batch.rejected["line"].to_list()]
    assert lines == list(range(1, 11))
