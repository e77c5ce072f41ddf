"""Regions: stations grouped by k-means, because demand at a single station is sporadic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from unmet.errors import InputError
from unmet.geo import Projection

__all__ = ["Regions", "kmeans_regions"]


@dataclass(frozen=True, slots=True)
class Regions:
    """Which station is in which region, and where the regions' centres are."""

    of_station: pl.DataFrame  # station_id, unique_id
    centres: pl.DataFrame  # unique_id, lat, lon, stations, plugs


def kmeans_regions(stations: pl.DataFrame, regions: int = 10, seed: int = 0) -> Regions:
    """Group stations into regions by k-means on projected positions [km]; regions are numbered from west to east.

    Where there are fewer places than regions, each place is a region.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    if regions < 1:
        raise InputError(f"{regions} regions make no sense: ask for at least one.")
    origin = Projection.around(stations["lat"], stations["lon"])
    points = np.column_stack(origin.to_km(stations["lat"], stations["lon"]))
    k = min(regions, len(np.unique(points, axis=0)))
    with threadpool_limits(1):  # sums in one order, so that the result does not depend on the number of cores
        fitted = KMeans(k, n_init=10, random_state=seed).fit(points)
    rank = np.argsort(np.argsort(fitted.cluster_centers_[:, 0]))
    width = len(str(k - 1))
    label = pl.Series([f"r{rank[group]:0{width}d}" for group in fitted.labels_])
    of_station = stations.select("station_id", label.alias("unique_id"))
    lat, lon = origin.to_degrees(*fitted.cluster_centers_.T)
    places = pl.DataFrame({"unique_id": [f"r{rank[g]:0{width}d}" for g in range(k)], "lat": lat, "lon": lon})
    sizes = (
        stations.join(of_station, on="station_id").group_by("unique_id").agg(stations=pl.len(), plugs=pl.sum("plugs"))
    )
    return Regions(of_station, places.join(sizes, on="unique_id").sort("unique_id"))
