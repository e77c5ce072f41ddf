"""Simulated records of a small network in which the lost drivers are known, for tests of commands and pages."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl

MONDAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
STATIONS = pl.DataFrame(
    {
        "station_id": ["a", "b", "c", "d", "e", "f"],
        "name": ["Town hall", "Station <West>", "Library", "Harbour", "Market", "Market"],
        "lat": [55.60, 55.61, 55.70, 55.71, 55.66, 55.6601],  # the last two are side by side
        "lon": [12.50, 12.51, 12.50, 12.52, 12.56, 12.56],
        "power_kw": [11.0] * 6,
        "plugs": [1, 1, 2, 2, 1, 1],
    }
)
SITES = {"a": 0.5, "b": 0.3, "c": 0.35, "d": 0.1, "e": 0.7}
"""Drivers per hour by the first station of each site."""
STAY = 2.0
"""Hours at a plug, on average."""


def records(days: int = 42, seed: int = 1, busy: float = 1.0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sessions, and lost drivers (`station_id, time, energy_kwh`). Arrival rates are higher by day than at night.

    Args:
        days: length of the records, from `MONDAY` on.
        seed: of the random numbers.
        busy: factor on the arrival rates.
    """
    rng = np.random.default_rng(seed)
    served, lost = [], []
    for site, rate in SITES.items():
        plugs = [(s, p) for s, n in STATIONS.select("station_id", "plugs").iter_rows() for p in range(n)]
        plugs = [(s, p) for s, p in plugs if s == site or (site, s) == ("e", "f")]
        free_at = np.zeros(len(plugs))
        times = np.sort(rng.uniform(0, 24 * days, rng.poisson(2 * busy * rate * 24 * days)))
        for time in times[rng.random(len(times)) < 0.5 - 0.4 * np.cos(2 * np.pi * times / 24)]:
            kwh = float(rng.gamma(4, 3))
            plug = int(free_at.argmin())
            if free_at[plug] > time:
                lost.append((site, time, kwh))
                continue
            free_at[plug] = time + STAY * rng.gamma(4, 1 / 4)
            station, number = plugs[plug]
            served.append((station, f"{station}{number}", time, free_at[plug], kwh))
    moment = (pl.lit(MONDAY) + pl.duration(seconds=(pl.col("^(start|end|time)$") * 3600).cast(pl.Int64))).name.keep()
    sessions = pl.DataFrame(served, schema=["station_id", "plug_id", "start", "end", "energy_kwh"], orient="row")
    missed = pl.DataFrame(lost, schema=["station_id", "time", "energy_kwh"], orient="row")
    return sessions.with_columns(moment).sort("start"), missed.with_columns(moment)
