from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unmet.geo import EARTH_RADIUS_KM, Projection, haversine_km, nearest_stations

lats = st.floats(-80, 80)
lons = st.floats(-179, 179)


def test_known_distances():
    assert np.isclose(haversine_km(0, 0, 1, 0), EARTH_RADIUS_KM * np.pi / 180)
    assert np.isclose(haversine_km(0, 0, 0, 90), EARTH_RADIUS_KM * np.pi / 2)
    # from Copenhagen town hall to the airport: about 7.9 km
    assert 7.5 < haversine_km(55.6761, 12.5683, 55.6180, 12.6508) < 8.5


@given(lats, lons, lats, lons)
def test_distance_is_symmetric_and_bounded(lat_a, lon_a, lat_b, lon_b):
    distance = float(haversine_km(lat_a, lon_a, lat_b, lon_b))
    assert distance == float(haversine_km(lat_b, lon_b, lat_a, lon_a))
    assert 0 <= distance <= np.pi * EARTH_RADIUS_KM + 1e-6


@given(st.floats(-60, 60), lons, st.floats(-20, 20), st.floats(-20, 20))
def test_the_projection_is_invertible_and_preserves_distances(lat, lon, x, y):
    plane = Projection(lat, lon)
    at_lat, at_lon = plane.to_degrees(x, y)
    assert np.allclose(plane.to_km(at_lat, at_lon), (x, y), atol=1e-6)
    assert np.isclose(haversine_km(lat, lon, at_lat, at_lon), np.hypot(x, y), rtol=0.01, atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 5))
def test_nearest_stations_agree_with_a_brute_force_search(seed, stations, k):
    rng = np.random.default_rng(seed)
    lat, lon = 55 + rng.random(20), 12 + rng.random(20)
    s_lat, s_lon = 55 + rng.random(stations), 12 + rng.random(stations)
    found = nearest_stations(lat, lon, s_lat, s_lon, k)
    every = haversine_km(lat[:, None], lon[:, None], s_lat, s_lon)
    assert found.station.shape == (20, min(k, stations))
    assert np.allclose(found.km, np.sort(every, axis=1)[:, :k], atol=1e-6)
    assert np.allclose(np.take_along_axis(every, found.station, axis=1), found.km, atol=1e-6)
