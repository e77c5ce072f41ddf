"""Sites: stations beside each other as one, because a driver who finds one of them taken takes the next.

Who wants a rapid charger does not take a slow one, though, so only stations of about the same power are linked.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from unmet.geo import haversine_km

__all__ = ["SITE_KM", "merge_sites"]

SITE_KM = 0.1
"""Distance up to which stations are one site."""
ALIKE = 2.0  # times that the power of one may be that of another
FAST_SESSIONS = 0.9  # quantile of the power of a station's sessions that is taken for its own, where that is not known


def merge_sites(
    sessions: pl.DataFrame, stations: pl.DataFrame, within_km: float = SITE_KM
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sessions and stations (`station_id, lat, lon, plugs`) by site, named by its first station; plugs are summed.

    A station without a position is a site of its own. Where the power of a station is not known, its quickest sessions
    tell it.
    """
    placed = (stations["lat"].is_not_null() & stations["lon"].is_not_null()).to_numpy()
    lat, lon = (stations[name].fill_null(0.0).to_numpy() for name in ("lat", "lon"))
    near = haversine_km(lat[:, None], lon[:, None], lat, lon) <= within_km
    known = _power(sessions, stations)
    power = np.log(np.where(known > 0, known, np.nan))
    unknown = np.isnan(power)  # like each other, and like no other: one must not link a rapid charger to slow ones
    near &= (np.abs(power[:, None] - power) <= np.log(ALIKE)) | (unknown[:, None] & unknown)
    near &= (placed[:, None] & placed) | np.eye(stations.height, dtype=bool)
    _, label = connected_components(csr_array(near.astype(np.int8)), directed=False)
    first = pl.Series(np.unique(label, return_index=True)[1])
    name = stations["station_id"].gather(first.gather(label))
    powers = [pl.col("power_kw").mean()] if "power_kw" in stations.columns else []
    merged = (
        stations.with_columns(name.alias("station_id"))
        .group_by("station_id", maintain_order=True)
        .agg(pl.col("lat", "lon").mean(), pl.col("plugs").sum().cast(pl.Int64), *powers)
    )
    renamed = sessions["station_id"].replace_strict(stations["station_id"], name, return_dtype=pl.String)
    return sessions.with_columns(renamed.alias("station_id")).drop("plug_id", strict=False), merged


def _power(sessions: pl.DataFrame, stations: pl.DataFrame) -> NDArray[np.float64]:
    """Power of each station [kW], NaN where neither the table nor the sessions tell it."""
    until = pl.coalesce("charged", "end") if "charged" in sessions.columns else pl.col("end")
    hours = (until - pl.col("start")).dt.total_milliseconds() / 3_600_000
    quick = (
        sessions.filter((hours > 0.05) & (pl.col("energy_kwh") > 1))
        .group_by("station_id")
        .agg(quick=(pl.col("energy_kwh") / hours).quantile(FAST_SESSIONS))
    )
    known = stations.join(quick, on="station_id", how="left", maintain_order="left")
    told = pl.coalesce("power_kw", "quick") if "power_kw" in stations.columns else pl.col("quick")
    return known.select(told.cast(pl.Float64).fill_null(np.nan)).to_series().to_numpy()
