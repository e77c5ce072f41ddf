"""Sites: stations side by side, which are one choice for a driver.

A driver who finds one of them taken uses the next. Drivers who want a rapid charger do not use a slow one, however, so
only stations of similar power are joined.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from unmet.geo import EARTH_RADIUS_KM, unit_vectors

__all__ = ["SITE_KM", "find_sites", "merge_sites"]

SITE_KM = 0.1
"""Distance up to which stations are one site [km]."""
SIMILAR_POWER = 2.0  # ratio up to which powers are similar
MAX_NAMESAKES, MIN_NAMESAKES = 12, 4
"""Stations of one name that can be one site: at most half of all stations, within these limits."""
NO_NAMES = ["", "-", "--", ".", "?", "n/a", "na", "nan", "none", "null", "unknown", "test"]  # placeholders
FAST_SESSIONS = 0.9  # quantile of the mean power of a station's sessions that replaces an unknown power


def find_sites(stations: pl.DataFrame, sessions: pl.DataFrame, within_km: float = SITE_KM) -> pl.Series:
    """The site of each station, named after its first station.

    Args:
        stations: `station_id, lat, lon`, perhaps `power_kw` and `name`. Stations without a position are neighbours if
            they have the same name.
        sessions: `station_id, start, end, energy_kwh`, perhaps `charged`; they show the power if it is not listed.
        within_km: distance up to which stations are neighbours.
    """
    placed = np.flatnonzero((stations["lat"].is_not_null() & stations["lon"].is_not_null()).to_numpy())
    links = np.empty((0, 2), np.int64)
    if len(placed) > 1:
        at = stations[placed]
        tree = KDTree(unit_vectors(at["lat"].to_numpy(), at["lon"].to_numpy()))
        near = tree.query_pairs(2 * np.sin(within_km / EARTH_RADIUS_KM / 2), output_type="ndarray")
        links = placed[near] if len(near) else links
    links = np.concatenate([links, _namesakes(stations)])
    if len(links):
        power = np.log(_power(stations, sessions))
        first, second = power[links].T
        unknown = np.isnan(first) & np.isnan(second)  # similar to each other, but to no station of known power
        links = links[unknown | (np.abs(first - second) <= np.log(SIMILAR_POWER) + 1e-9)]
    graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(stations.height,) * 2)
    _, label = connected_components(graph, directed=False)
    first_of = pl.Series(np.unique(label, return_index=True)[1])
    return stations["station_id"].gather(first_of.gather(label)).alias("site_id")


def _namesakes(stations: pl.DataFrame) -> NDArray[np.int64]:
    """Pairs of stations without a position that have the same name, (pairs, 2)."""
    none = np.empty((0, 2), np.int64)
    if "name" not in stations.columns:
        return none
    is_placed = pl.col("lat", "lon").is_not_null()
    rows = stations.with_row_index("row").filter(~pl.all_horizontal(is_placed)).drop_nulls("name")
    rows = rows.filter(~pl.col("name").str.strip_chars().str.to_lowercase().is_in(NO_NAMES))
    named = rows.group_by("name", maintain_order=True).agg("row")
    # A name that many stations share names a town, an operator or a model rather than a site.
    max_namesakes = min(MAX_NAMESAKES, max(stations.height // 2, MIN_NAMESAKES))
    groups = [row for row in named["row"].to_list() if 1 < len(row) <= max_namesakes]
    return np.concatenate([none, *(np.array(list(combinations(group, 2))) for group in groups)])


def merge_sites(stations: pl.DataFrame) -> pl.DataFrame:
    """Sites of stations with `site_id` and `capacity`: `site_id, name, lat, lon, capacity, capacity_sure, stations`."""
    name = pl.coalesce("name", "station_id") if "name" in stations.columns else pl.col("station_id")
    return (
        stations.with_columns(name=name)
        .group_by("site_id", maintain_order=True)
        .agg(
            pl.first("name"),
            pl.col("lat", "lon").mean(),
            pl.col("capacity").sum(),
            pl.col("capacity_sure").product(),
            stations=pl.len().cast(pl.Int64),
        )
    )


def _power(stations: pl.DataFrame, sessions: pl.DataFrame) -> NDArray[np.float64]:
    """Power of each station [kW], NaN if neither the table nor the sessions show it."""
    until = pl.coalesce("charged", "end") if "charged" in sessions.columns else pl.col("end")
    hours = (until - pl.col("start")).dt.total_milliseconds() / 3_600_000
    # Shorter or smaller sessions say little about power.
    fast = (
        sessions.filter((hours > 0.05) & (pl.col("energy_kwh") > 1))
        .group_by("station_id")
        .agg(fast=(pl.col("energy_kwh") / hours).quantile(FAST_SESSIONS))
    )
    known = stations.join(fast, on="station_id", how="left", maintain_order="left")
    power = pl.coalesce("power_kw", "fast") if "power_kw" in stations.columns else pl.col("fast")
    value = known.select(power.cast(pl.Float64).fill_null(np.nan)).to_series().to_numpy()
    return np.where(value > 0, value, np.nan)
