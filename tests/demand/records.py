"""Small records for the tests of panels."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

import numpy as np
import polars as pl

MONDAY = dt.datetime(2019, 9, 2, tzinfo=dt.UTC)


def sessions(*rows, **columns) -> pl.DataFrame:
    """Rows of station, start and end in hours from Monday midnight, kWh."""
    at = [(MONDAY + dt.timedelta(hours=a), MONDAY + dt.timedelta(hours=b)) for _, a, b, _ in rows]
    frame = pl.DataFrame(
        {
            "session_id": [str(i) for i in range(len(rows))],
            "station_id": [row[0] for row in rows],
            "start": [a for a, _ in at],
            "end": [b for _, b in at],
            "energy_kwh": [float(row[3]) for row in rows],
        }
    ).with_columns(pl.col("start", "end").cast(pl.Datetime("ms", "UTC")))
    return frame.with_columns(pl.Series(name, values, pl.String) for name, values in columns.items())


def stations(*ids, **columns) -> pl.DataFrame:
    frame = pl.DataFrame(
        {"station_id": ids, "lat": 55 + 0.01 * np.arange(len(ids)), "lon": 12 + 0.01 * np.arange(len(ids))}
    )
    given = {"power_kw": [22.0] * len(ids), "plugs": [1] * len(ids), "operator": [None] * len(ids)} | columns
    return frame.with_columns(pl.Series(name, values) for name, values in given.items())


class Visits(NamedTuple):
    """Drivers at one station: rows for `sessions`, their plugs, and the hours at which others were turned away."""

    rows: list[tuple[str, float, float, float]]
    plug_id: list[str]
    lost: list[float]


def visits(
    station: str,
    per_hour: float,
    plugs: int,
    first_day: float,
    last_day: float,
    stay: float = 2.0,
    seed: int = 0,
    waiting: float = 0.0,
) -> Visits:
    """Poisson arrivals between two days, with a mean stay in hours; a share of those who find no plug waits for one."""
    rng = np.random.default_rng([seed, *station.encode()])
    drawn = Visits([], [], [])
    free_at = np.zeros(plugs)
    begin, end = 24 * first_day, 24 * last_day
    for at in np.sort(rng.uniform(begin, end, rng.poisson(per_hour * (end - begin)))):
        plug = int(free_at.argmin())
        if free_at[plug] > at and rng.random() >= waiting:
            drawn.lost.append(at)
            continue
        start = max(at, free_at[plug])
        free_at[plug] = start + stay * rng.gamma(4, 1 / 4)
        drawn.rows.append((station, start, free_at[plug], 10.0))
        drawn.plug_id.append(f"{station}{plug}")
    return drawn
