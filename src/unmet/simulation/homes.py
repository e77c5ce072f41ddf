"""Homes of cars, inferred from where they park at night."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.geo import haversine_km

__all__ = ["ends_at_home"]

NIGHT_HOUR = 3  # local hour at which a parked car is assumed to stay for the night
NEAR_KM = 1.2  # slightly more than twice the largest privacy noise


def ends_at_home(trips: pl.DataFrame, time_zone: str) -> NDArray[np.bool_]:
    """Whether each trip ends at the car's home. The result is in the order of end times, then vehicles.

    Home is the median position of a car's stops at three in the morning; a car without such a stop has none.
    """
    ids = trips["vehicle_id"].unique().sort()
    ordered = trips.with_columns(
        vehicle=pl.col("vehicle_id").replace_strict(ids, np.arange(len(ids)), return_dtype=pl.Int64),
        leaves=pl.col("start_time").shift(-1).over("vehicle_id", order_by="start_time"),
    ).sort((pl.col("end_time").dt.epoch("ms") / 1000), "vehicle", maintain_order=True)

    def day_from_night(time: str) -> pl.Expr:
        return pl.col(time).dt.convert_time_zone(time_zone).dt.offset_by(f"-{NIGHT_HOUR}h").dt.date()

    nights = ordered.filter(day_from_night("leaves") > day_from_night("end_time"))
    homes = nights.group_by("vehicle").agg(home_lat=pl.col("end_lat").median(), home_lon=pl.col("end_lon").median())
    joined = ordered.select("vehicle", "end_lat", "end_lon").join(
        homes, on="vehicle", how="left", maintain_order="left"
    )
    km = haversine_km(joined["end_lat"], joined["end_lon"], joined["home_lat"], joined["home_lon"])
    return np.asarray(np.nan_to_num(km, nan=np.inf) <= NEAR_KM)
