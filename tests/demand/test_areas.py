"""Areas: every station is in one, sites are not split, and areas have similar numbers of sessions."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmet.demand.areas import areas_of_cells, cells_of_stations, period_of, regions_of
from unmet.demand.regions import kmeans_regions
from unmet.errors import InputError


def stations(count: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    at = rng.normal((50, 8), 0.5, (count, 2))
    at[1::5] = at[::5][: len(at[1::5])] + 1e-4  # every fifth has a neighbour at 13 m
    names = [f"s{i}" for i in range(count)]
    return pl.DataFrame({"station_id": names, "lat": at[:, 0], "lon": at[:, 1], "plugs": [1] * count})


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 120), st.integers(0, 99), st.integers(1, 9), st.integers(1, 12))
def test_every_station_is_in_one_area_and_neighbours_in_the_same(count, seed, max_cells, areas):
    table = stations(count, seed)
    cell = cells_of_stations(table, kmeans_regions(table, 3), max_cells)
    assert cell.min() == 0
    assert set(cell) == set(range(cell.max() + 1))
    near = [i for i in range(1, count, 5) if i - 1 < count]
    assert all(cell[i] == cell[i - 1] for i in near)
    rows = np.random.default_rng(seed).integers(0, 50, cell.max() + 1)
    rows[0] += 1
    joined = areas_of_cells(cell, rows, areas)
    assert 1 <= len(joined) <= areas
    assert sorted(np.concatenate([area.stations for area in joined])) == list(range(count))
    assert sum(area.rows for area in joined) == rows.sum()
    assert sorted(c for area in joined for c in area.cells) == list(np.flatnonzero(rows))
    for area in joined:
        assert set(cell[area.stations]) >= set(area.cells)


def test_areas_have_similar_numbers_of_sessions():
    table = stations(1000, 3)
    cell = cells_of_stations(table, kmeans_regions(table, 4), 100)
    rows = np.bincount(cell) * 10
    sizes = [area.rows for area in areas_of_cells(cell, rows, 5)]
    assert max(sizes) < 1.3 * min(sizes)


def test_stations_of_an_area_are_near_each_other():
    """The mean distance within an area is well below that of the network."""
    table = stations(800, 5)
    cell = cells_of_stations(table, kmeans_regions(table, 2), 100)
    at = table.select("lat", "lon").to_numpy()
    spread = [at[area.stations].std(axis=0).mean() for area in areas_of_cells(cell, np.bincount(cell), 8)]
    assert np.mean(spread) < 0.6 * at.std(axis=0).mean()


def test_stations_without_positions_are_in_areas_too():
    table = stations(50, 1).with_columns(lat=pl.lit(None, pl.Float64), lon=pl.lit(None, pl.Float64))
    from unmet.demand.regions import group_stations

    cell = cells_of_stations(table, group_stations(table, "10")[0], 10)
    assert sorted(np.concatenate([a.stations for a in areas_of_cells(cell, np.bincount(cell), 4)])) == list(range(50))


def test_an_area_keeps_the_regions_of_the_network():
    table = stations(40, 2)
    regions = kmeans_regions(table, 4)
    some = regions_of(regions, table["station_id"].head(7))
    assert some.of_station["station_id"].to_list() == table["station_id"].head(7).to_list()
    assert set(some.centres["unique_id"]) == set(some.of_station["unique_id"])
    assert some.centres.join(regions.centres, on=regions.centres.columns, how="anti").is_empty()


def test_the_period_leaves_out_days_that_are_years_away():
    day = (dt.date(2024, 3, 1) - dt.date(1970, 1, 1)).days
    days = pl.DataFrame({"day": [day - 3000, day, day + 9], "rows": [1, 5000, 5000]})
    first, last = period_of(days)
    assert (first.date(), last.date()) == (dt.date(2024, 3, 1), dt.date(2024, 3, 11))
    with pytest.raises(InputError, match="no session"):
        period_of(days.clear())


def test_asking_for_no_area_is_refused():
    with pytest.raises(InputError, match="0 areas"):
        areas_of_cells(np.zeros(3, np.int64), np.ones(1, np.int64), 0)
