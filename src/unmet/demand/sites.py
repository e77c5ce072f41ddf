"""Sites: stations beside each other as one, because a driver who finds one of them taken takes the next."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from unmet.geo import haversine_km

__all__ = ["SITE_KM", "merge_sites"]

SITE_KM = 0.1
"""Distance up to which stations are one site."""


def merge_sites(
    sessions: pl.DataFrame, stations: pl.DataFrame, within_km: float = SITE_KM
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sessions and stations (`station_id, lat, lon, plugs`) by site, named by its first station; plugs are summed.

    A station without a position is a site of its own.
    """
    placed = (stations["lat"].is_not_null() & stations["lon"].is_not_null()).to_numpy()
    lat, lon = (stations[name].fill_null(0.0).to_numpy() for name in ("lat", "lon"))
    near = haversine_km(lat[:, None], lon[:, None], lat, lon) <= within_km
    near &= (placed[:, None] & placed) | np.eye(stations.height, dtype=bool)
    _, label = connected_components(csr_array(near.astype(np.int8)), directed=False)
    first = pl.Series(np.unique(label, return_index=True)[1])
    name = stations["station_id"].gather(first.gather(label))
    power = [pl.col("power_kw").mean()] if "power_kw" in stations.columns else []
    merged = (
        stations.with_columns(name.alias("station_id"))
        .group_by("station_id", maintain_order=True)
        .agg(pl.col("lat", "lon").mean(), pl.col("plugs").sum().cast(pl.Int64), *power)
    )
    renamed = sessions["station_id"].replace_strict(stations["station_id"], name, return_dtype=pl.String)
    return sessions.with_columns(renamed.alias("station_id")).drop("plug_id", strict=False), merged
