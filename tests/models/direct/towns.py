"""Made-up sparse demand for the tests of direct forecasters."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
from numpy.typing import NDArray

MONDAY = dt.datetime(2023, 1, 2, tzinfo=dt.UTC)
Floats = NDArray[np.float64]


def rates(hours: int) -> Floats:
    """Sessions per hour of a region: none at night, many on weekday afternoons."""
    hour, day = np.arange(hours) % 24, np.arange(hours) // 24 % 7
    return np.where((hour >= 8) & (hour < 20), 1.2, 0.15) * np.where(day >= 5, 0.5, 1.0)


def demand_of(rate: Floats, seed: int = 0) -> Floats:
    """Energy of Poisson sessions, each gamma(4) with a mean of 12 kWh."""
    rng = np.random.default_rng(seed)
    sessions = rng.poisson(rate)
    return rng.gamma(np.maximum(4.0 * sessions, 1e-9), 3.0) * (sessions > 0)


def panel_of(demand: Floats) -> pl.DataFrame:
    """`unique_id, ds, y` of demand (hours, regions); NaN is a missing hour."""
    hours, regions = demand.shape
    ds = pl.datetime_range(MONDAY, MONDAY + dt.timedelta(hours=hours - 1), "1h", time_zone="UTC", eager=True)
    frames = [
        pl.DataFrame({"unique_id": [f"r{i}"] * hours, "ds": ds, "y": demand[:, i]}).filter(pl.col("y").is_not_nan())
        for i in range(regions)
    ]
    return pl.concat(frames)


def town(weeks: int = 20, regions: int = 3, seed: int = 0) -> pl.DataFrame:
    """Regions of different sizes with the same week."""
    rate = rates(weeks * 168)
    return panel_of(np.stack([demand_of(rate * (1 + i), seed + i) for i in range(regions)], axis=1))
