"""Streamed trips give the same result as trips in memory, to the bit, for parts of any size."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.simulation.cities import small_city
from unmet.city.build import build_city
from unmet.errors import InputError
from unmet.simulation.run import summarise
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate
from unmet.simulation.stream import stream_simulation
from unmet.simulation.trip_files import Sizes, find_trip_files


@pytest.fixture(scope="module")
def city():
    return small_city(1, 60, 20, 6, 2)


def stored(trips: pl.DataFrame, folder, files: int):
    """Trips in several files, unsorted."""
    folder.mkdir()
    mixed = trips.sample(fraction=1, shuffle=True, seed=3)
    step = -(-mixed.height // files)
    for i in range(files):
        mixed.slice(i * step, step).write_parquet(folder / f"trips-{i}.parquet")
    return find_trip_files(folder)


@pytest.mark.parametrize("sizes", [Sizes(), Sizes(100, 150, 80), Sizes(1000, 10**6, 7), Sizes(13, 40, 10**6)])
@pytest.mark.parametrize(
    "scenario",
    [Scenario(penetration=1.0), Scenario(penetration=0.4, queue="gas-station", seed=5, turned_away="retry")],
)
def test_parts_and_files_make_no_difference(city, scenario, sizes, tmp_path):
    files = stored(city.trips, tmp_path / "trips", 3)
    (tmp_path / "out").mkdir()
    streamed = stream_simulation(files, city.stations, scenario, tmp_path / "out", cars=city.cars, sizes=sizes)
    expected = simulate(prepare(city), scenario)
    assert_frame_equal(pl.read_parquet(streamed.arrivals), expected.arrivals, check_exact=True)
    assert_frame_equal(streamed.vehicles, expected.vehicles, check_exact=True)
    assert streamed.trips == expected.trips
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["arrivals.parquet"]
    summary = summarise(streamed.city, scenario, streamed.outcome())
    assert summary == summarise(build_city(city.trips, city.stations, city.cars), scenario, expected)


def test_invalid_rows_are_set_aside_as_from_one_table(city, tmp_path):
    trips = pl.concat([city.trips, city.trips.head(5)])  # twice
    spoiled = trips.with_columns(
        end_lat=pl.when(pl.int_range(pl.len()) % 50 == 7).then(99.0).otherwise("end_lat"),
        vehicle_id=pl.when(pl.int_range(pl.len()) % 90 == 3).then(pl.lit("")).otherwise("vehicle_id"),
        end_time=pl.col("end_time") + pl.duration(hours=9 * (pl.int_range(pl.len()) % 70 == 9).cast(pl.Int64)),
    )
    (tmp_path / "out").mkdir()
    spoiled.write_parquet(tmp_path / "trips.parquet")
    scenario = Scenario(penetration=1.0)
    streamed = stream_simulation(
        [tmp_path / "trips.parquet"], city.stations, scenario, tmp_path / "out", sizes=Sizes(100, 150, 80)
    )
    expected = build_city(spoiled, city.stations)
    assert expected.rejected.height > 0
    columns = ["table", "line", "column", "reason"]
    assert_frame_equal(
        streamed.city.rejected.select(columns).sort(columns), expected.rejected.select(columns).sort(columns),
        check_dtypes=False,
    )  # fmt: skip
    played = simulate(prepare(expected), scenario)
    assert_frame_equal(pl.read_parquet(streamed.arrivals), played.arrivals, check_exact=True)


def test_trips_that_cannot_be_streamed_are_refused(city, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no Parquet files"):
        find_trip_files(tmp_path / "empty")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="check that the file is whole"):
        stream_simulation([tmp_path / "bad.parquet"], city.stations, Scenario(), tmp_path)
    city.trips.drop("distance_km").write_parquet(tmp_path / "short.parquet")
    with pytest.raises(InputError, match="has no column distance_km"):
        stream_simulation([tmp_path / "short.parquet"], city.stations, Scenario(), tmp_path)
    city.trips.with_columns(pl.col("end_time").cast(pl.String)).write_parquet(tmp_path / "text.parquet")
    with pytest.raises(InputError, match="save it as a timestamp"):
        stream_simulation([tmp_path / "text.parquet"], city.stations, Scenario(), tmp_path)


def test_a_folder_of_trips_gives_a_run_like_any_other(city, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from unmet.cli import app

    stored(city.trips, tmp_path / "trips", 3)
    city.trips.write_parquet(tmp_path / "trips.parquet")
    city.stations.write_parquet(tmp_path / "stations.parquet")

    def run(trips, out):
        given = ["--trips", trips, "--stations", tmp_path / "stations.parquet", "--out", tmp_path / out, "--json"]
        done = CliRunner().invoke(app, ["simulate", *map(str, given)])
        assert done.exit_code == 0, done.output
        return {file.name: file for file in (tmp_path / out).iterdir()}

    whole = run(tmp_path / "trips.parquet", "whole")
    streamed = run(tmp_path / "trips", "streamed")
    monkeypatch.setenv("UNMET_MAX_MEMORY", "100KB")
    large = run(tmp_path / "trips.parquet", "large")
    missing = {name for name in set(whole) - set(streamed) if not name.endswith((".csv", ".geojson"))}
    assert missing == {"panel.parquet", "panel.json", "regions.parquet"}
    for run_files in (streamed, large):
        for name in ("arrivals", "sessions", "vehicles", "stations"):
            ours, theirs = (pl.read_parquet(files[f"{name}.parquet"]) for files in (run_files, whole))
            by = ours.columns[0]
            assert_frame_equal(ours.sort(by), theirs.sort(by), check_exact=True)
        assert run_files["summary.json"].read_bytes() == whole["summary.json"].read_bytes()


def test_buckets_without_electric_cars_add_nothing(city, tmp_path):
    """One car of sixty is electric, so that most buckets of seven trips have none of its."""
    files, scenario = stored(city.trips, tmp_path / "trips", 1), Scenario(penetration=1 / city.cars)
    (tmp_path / "out").mkdir()
    sizes = Sizes(1000, 10**6, 7)
    streamed = stream_simulation(files, city.stations, scenario, tmp_path / "out", cars=city.cars, sizes=sizes)
    expected = simulate(prepare(city), scenario)
    assert streamed.vehicles.height == expected.vehicles.height == 1
    assert_frame_equal(pl.read_parquet(streamed.arrivals), expected.arrivals, check_exact=True)
