"""Stations of the built-in city, and validation of one's own tables."""

from __future__ import annotations

import polars as pl
import pytest

from unmet.city.build import build_city
from unmet.city.places import ORIGIN, land_polygons_km
from unmet.city.stations import synthetic_stations
from unmet.city.trips import is_land
from unmet.errors import InputError


def test_stations_resemble_those_of_2021():
    stations = synthetic_stations()
    assert stations["station_id"].is_unique().all()
    assert stations["power_kw"].min() == 3.7
    assert stations["power_kw"].max() == 150
    assert (stations["plugs"] >= 1).all()
    # uneven: the ten places with most stations have more than half of them
    by_place = stations.group_by("name").len()["len"].sort(descending=True)
    assert by_place.head(10).sum() > 0.5 * stations.height
    outlines = land_polygons_km()
    assert all(
        is_land(*map(float, ORIGIN.to_km(lat, lon)), *outlines) for lat, lon in stations.select("lat", "lon").rows()
    )


def test_stations_are_the_same_in_every_call():
    assert synthetic_stations().equals(synthetic_stations())


def test_real_stations_from_openstreetmap_are_read(shared_data):
    trips = pl.DataFrame(
        {
            "vehicle_id": ["a"],
            "start_time": [1567321200],
            "end_time": [1567322200],
            "end_lat": [55.7],
            "end_lon": [12.5],
            "distance_km": [9],
        }
    )
    city = build_city(trips, shared_data / "stations" / "copenhagen_osm.csv", time_zone="Europe/Copenhagen")
    assert city.stations.height == 244
    assert city.filled == {"power_kw": 170, "plugs": 116}
    assert city.rejected.is_empty()
    assert city.notes() == [
        "170 of 244 stations have no power_kw: 22 is assumed.",
        "116 of 244 stations have no plugs: 2 is assumed.",
    ]


def test_own_trips_are_validated():
    trips = pl.DataFrame(
        {
            "vehicle_id": ["a", "a", "a", "b", "a"],
            "start_time": [
                "2019-09-01T07:00",
                "2019-09-01T07:05",
                "2019-09-01T09:00",
                "2019-09-01T09:00",
                "2019-09-01T07:40",
            ],
            "end_time": [
                "2019-09-01T07:30",
                "2019-09-01T09:00",
                "2019-09-01T08:00",
                "2019-09-01T09:20",
                "2019-09-01T08:00",
            ],
            "end_lat": [55.7] * 5,
            "end_lon": [12.5] * 5,
            "distance_km": [5.0] * 5,
        }
    )
    city = build_city(trips)
    assert city.trips["vehicle_id"].to_list() == ["a", "a", "b"]
    assert city.cars == 2
    assert city.rejected.select("table", "line", "reason").rows() == [
        ("trips", 2, "starts before the vehicle's last trip has ended"),
        ("trips", 3, "ends before it starts"),
    ]
    with pytest.raises(InputError, match="None of the 1 rows of trips can be used; the first, line 1: end_time"):
        build_city(trips.filter(pl.col("end_time") < pl.col("start_time")))
