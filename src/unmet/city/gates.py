"""Validation of the tables of trips and stations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.compiled import compiled
from unmet.tables import Checked, Column, RowRule, Table, check_table

__all__ = ["STATIONS", "TRIPS", "check_city_stations", "check_trips"]

TRIPS = Table(
    "trips",
    (
        Column("vehicle_id", "text", "", "the car", aliases=("uid",)),
        Column("start_time", "time", "UTC", "when the trip starts"),
        Column("end_time", "time", "UTC", "when it ends"),
        Column("start_lat", "number", "degree", "latitude of its start", required=False, minimum=-90, maximum=90),
        Column("start_lon", "number", "degree", "longitude of its start", required=False, minimum=-180, maximum=180),
        Column("end_lat", "number", "degree", "latitude of its end", minimum=-90, maximum=90),
        Column("end_lon", "number", "degree", "longitude of its end", minimum=-180, maximum=180),
        Column("distance_km", "number", "km", "driven distance", minimum=0, maximum=5000),
    ),
)

STATIONS = Table(
    "stations",
    (
        Column("station_id", "text", "", "the station", aliases=("osm_id", "id")),
        Column("lat", "number", "degree", "latitude", aliases=("latitude",), minimum=-90, maximum=90),
        Column("lon", "number", "degree", "longitude", aliases=("longitude", "lng"), minimum=-180, maximum=180),
        Column(
            "power_kw",
            "number",
            "kW",
            "power of a plug",
            default=22,
            aliases=("max_kw", "power"),
            minimum=0.5,
            maximum=1500,
        ),
        Column("plugs", "integer", "", "number of plugs", default=2, aliases=("capacity",), minimum=1, maximum=1000),
        Column("operator", "text", "", "operator of the station", required=False),
        Column("name", "text", "", "name of the station", required=False),
    ),
)


MAX_KMH = 300  # a faster trip is an error in the data


def check_trips(source: Any, mapped: Mapping[str, str] | None = None) -> Checked:
    """Validate trips, and sort them by vehicle and time. A trip that overlaps the vehicle's previous one is rejected.

    Args:
        source: a data frame or a file.
        mapped: headings of columns with other names, as {name: heading}.
    """
    hours = (pl.col("end_time") - pl.col("start_time")).dt.total_milliseconds() / 3.6e6
    # Trips up to 1 km say little about speed. Times may be rounded to the minute, hence the extra 0.02 h.
    speed = pl.when(pl.col("distance_km") > 1).then(pl.col("distance_km") / (hours + 0.02)).otherwise(0)
    rules = (
        RowRule("end_time", pl.col("end_time") >= pl.col("start_time"), "ends before it starts"),
        RowRule("end_lat", (pl.col("end_lat") != 0) | (pl.col("end_lon") != 0), "is 0 and so is end_lon: no position"),
        RowRule("distance_km", speed < MAX_KMH, f"would take more than {MAX_KMH} km/h"),
        RowRule(
            "start_time",
            pl.struct("vehicle_id", "start_time", "end_time").is_first_distinct(),
            "is the same trip as on an earlier line",
        ),
        RowRule(
            "start_time",
            pl.struct(
                pl.col("vehicle_id").rle_id().cast(pl.Int64), pl.col("start_time", "end_time").dt.epoch("ms")
            ).map_batches(_does_not_overlap, return_dtype=pl.Boolean),
            "starts before the vehicle's last trip has ended",
        ),
    )
    return check_table(source, TRIPS, rules, sort=("vehicle_id", "start_time", "end_time"), mapped=mapped)


def _does_not_overlap(trips: pl.Series) -> pl.Series:
    """`_without_overlaps` for a series of structs of vehicle, start and end."""
    vehicle, start, end = (trips.struct.field(f).to_numpy(writable=True) for f in trips.struct.fields)
    return pl.Series(_without_overlaps(vehicle, start, end))


@compiled("boolean[::1](int64[::1], int64[::1], int64[::1])")
def _without_overlaps(
    vehicle: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which trips start after the vehicle's last kept trip has ended; sorted by vehicle and start, times in ms."""
    keep = np.zeros(len(start), np.bool_)
    last_end = 0
    for i in range(len(start)):
        if i == 0 or vehicle[i] != vehicle[i - 1] or start[i] >= last_end:
            keep[i], last_end = True, end[i]
    return keep


def check_city_stations(source: Any, mapped: Mapping[str, str] | None = None) -> Checked:
    """Stations with a position, a power and at least one plug; empty power and plugs get a default."""
    rules = (RowRule("station_id", pl.col("station_id").is_first_distinct(), "is the id of an earlier station"),)
    return check_table(source, STATIONS, rules, mapped=mapped)
