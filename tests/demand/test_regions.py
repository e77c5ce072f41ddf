"""Regions: k-means on projected positions."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmet.city.stations import synthetic_stations
from unmet.demand.regions import kmeans_regions
from unmet.errors import InputError
from unmet.geo import Projection


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 12))
def test_every_station_is_in_the_region_with_the_nearest_centre(seed, stations, regions):
    rng = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "station_id": [f"s{i}" for i in range(stations)],
            "lat": 55 + rng.random(stations),
            "lon": 12 + rng.random(stations),
            "plugs": rng.integers(1, 5, stations),
        }
    )
    grouped = kmeans_regions(table, regions)
    assert grouped.centres.height == min(stations, regions)
    assert grouped.centres["stations"].sum() == stations
    assert grouped.centres["plugs"].sum() == table["plugs"].sum()
    plane = Projection.around(table["lat"], table["lon"])
    x, y = plane.to_km(table["lat"], table["lon"])
    cx, cy = plane.to_km(grouped.centres["lat"], grouped.centres["lon"])
    nearest = np.hypot(x[:, None] - cx, y[:, None] - cy).argmin(axis=1)
    names = grouped.centres["unique_id"].to_list()
    assert grouped.of_station["unique_id"].to_list() == [names[i] for i in nearest]
    assert (np.diff(cx) >= 0).all()  # numbered from west to east


def test_stations_at_one_position_are_one_region():
    table = pl.DataFrame({"station_id": ["a", "b"], "lat": [55.0, 55.0], "lon": [12.0, 12.0], "plugs": [1, 2]})
    assert kmeans_regions(table, 10).centres["stations"].to_list() == [2]


def test_the_built_in_city_has_ten_regions_and_asking_for_none_is_refused():
    stations = synthetic_stations()
    assert kmeans_regions(stations).centres.height == 10
    with pytest.raises(InputError, match="at least one"):
        kmeans_regions(stations, 0)
