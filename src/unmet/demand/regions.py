"""Regions: stations grouped by k-means, by given areas, or one by one."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.errors import InputError
from unmet.files import read_json
from unmet.geo import Projection

__all__ = ["Regions", "area_regions", "group_stations", "kmeans_regions", "station_regions"]

MAX_UNPLACED = 500  # up to this many stations, each is a region if positions are missing
MAX_AUTO_REGIONS = 20  # highest number of regions that `auto` tries
OUTSIDE = "outside"  # region of stations outside all given areas
UNPLACED = "unplaced"  # the only region if positions are missing


@dataclass(frozen=True, slots=True)
class Regions:
    """The region of each station, and the centres of regions."""

    of_station: pl.DataFrame  # station_id, unique_id; one row per station, in the order of the station table
    centres: pl.DataFrame  # unique_id, lat, lon, stations, plugs; sorted by unique_id

    def codes(self) -> NDArray[np.int64]:
        """The row in `centres` of the region of each station."""
        names = self.centres["unique_id"]
        rows = pl.Series(np.arange(len(names)))
        return self.of_station["unique_id"].replace_strict(names, rows, return_dtype=pl.Int64).to_numpy()


def group_stations(stations: pl.DataFrame, how: str = "10") -> tuple[Regions, str]:
    """Group stations by a number, `auto`, `station` or a GeoJSON file. Returns regions, and a sentence about them."""
    placed = stations.height > 0 and stations["lat"].is_not_null().all() and stations["lon"].is_not_null().all()
    if how.isdecimal() and int(how) < 1:
        raise InputError(f"{how} regions make no sense: ask for at least one.")
    if how == "station":
        return station_regions(stations), "Every station is a region."
    if how.isdecimal() or how == "auto":
        if not placed and stations.height > MAX_UNPLACED:
            note = f"{stations.height:,} stations form one region, because not all have a position: give positions."
            return _regions(stations, pl.Series([UNPLACED] * stations.height)), note
        if not placed:
            return station_regions(stations), "Every station is a region, because not all have a position."
        if how == "auto":
            return _best_kmeans(stations)
        regions = kmeans_regions(stations, int(how))
        grouped = "1 region" if regions.centres.height == 1 else f"{regions.centres.height} regions"
        subject = "1 station is" if stations.height == 1 else f"{stations.height:,} stations are"
        return regions, f"{subject} grouped into {grouped} by k-means."
    path = Path(how)
    if not path.is_file():
        raise InputError(f"--regions {how!r} makes no sense: give a number, auto, station, or a GeoJSON file of areas.")
    if not placed:
        raise InputError("Areas need stations with a position: give them with --stations.")
    regions = area_regions(stations, path)
    outside = int((regions.of_station["unique_id"] == OUTSIDE).sum())
    return regions, f"Stations are grouped by the areas of {path}; {outside} lie outside all of them."


def station_regions(stations: pl.DataFrame) -> Regions:
    """Each station as a region of its own."""
    return _regions(stations, stations["station_id"])


def kmeans_regions(stations: pl.DataFrame, regions: int = 10, seed: int = 0) -> Regions:
    """Group stations into regions by k-means on projected positions [km]; regions are numbered from west to east.

    If there are fewer distinct positions than regions, each position is a region.
    """
    if regions < 1:
        raise InputError(f"{regions} regions make no sense: ask for at least one.")
    points = _points(stations)
    fitted = _kmeans(points, min(regions, len(np.unique(points, axis=0))), seed)
    return _regions(stations, _west_to_east(fitted.labels_, fitted.cluster_centers_))


def area_regions(stations: pl.DataFrame, path: Path) -> Regions:
    """Group stations by the areas of a GeoJSON file, named by their `name`, `id` or number; others are `outside`."""
    import shapely
    from shapely.geometry import shape

    try:
        document = read_json(path)
        features = document["features"] if document["type"] == "FeatureCollection" else [document]
        areas = [(_area_name(feature, i), shape(feature["geometry"])) for i, feature in enumerate(features)]
        if not areas or any(area.geom_type not in ("Polygon", "MultiPolygon") for _, area in areas):
            raise ValueError
    except (OSError, EOFError, zlib.error, *_MALFORMED, shapely.errors.ShapelyError):
        raise InputError(f"{path} is not a GeoJSON file of areas: give a FeatureCollection of polygons.") from None
    name = np.full(stations.height, OUTSIDE, object)
    for area, polygon in reversed(areas):  # if areas overlap, the first one counts
        name[shapely.contains_xy(polygon, stations["lon"].to_numpy(), stations["lat"].to_numpy())] = area
    return _regions(stations, pl.Series(name.tolist(), dtype=pl.String))


_MALFORMED = (ValueError, LookupError, TypeError, AttributeError)  # raised by JSON that is not GeoJSON


def _area_name(feature: dict[str, Any], number: int) -> str:
    """The name of an area by its properties (`navn` in Danish files), else its id or number."""
    properties = feature.get("properties") or {}
    for key in ("name", "navn", "NAME", "Name", "id"):
        if properties.get(key) is not None:
            return _text(properties[key])
    return _text(feature.get("id", f"area{number}"))


def _text(value: Any) -> str:
    """A name without lone surrogates, which JSON can hold but UTF-8 cannot."""
    return str(value).encode("utf-8", errors="replace").decode()


def _points(stations: pl.DataFrame) -> NDArray[np.float64]:
    origin = Projection.around(stations["lat"], stations["lon"])
    return np.column_stack(origin.to_km(stations["lat"], stations["lon"]))


def _kmeans(points: NDArray[np.float64], k: int, seed: int) -> Any:
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # a fixed order of summation, so that the result does not depend on the number of cores
        return KMeans(k, n_init=10, random_state=seed).fit(points)


def _best_kmeans(stations: pl.DataFrame) -> tuple[Regions, str]:
    """The number of regions with the highest silhouette score, and a sentence about it."""
    from sklearn.metrics import silhouette_score

    points = _points(stations)
    max_regions = min(MAX_AUTO_REGIONS, len(np.unique(points, axis=0)) - 1)
    if max_regions < 2:
        return kmeans_regions(stations, 1), "All stations are one region: there are too few to group."
    fits = {k: _kmeans(points, k, 0) for k in range(2, max_regions + 1)}
    scores = {k: float(silhouette_score(points, fit.labels_)) for k, fit in fits.items()}
    best = max(scores, key=scores.__getitem__)
    label = _west_to_east(fits[best].labels_, fits[best].cluster_centers_)
    note = f"{best} regions fit the {stations.height} stations best (silhouette {scores[best]:.2f})."
    return _regions(stations, label), note


def _west_to_east(labels: NDArray[np.int32], centres: NDArray[np.float64]) -> pl.Series:
    rank = np.argsort(np.argsort(centres[:, 0], kind="stable"))
    width = len(str(len(centres) - 1))
    return pl.Series([f"r{rank[label]:0{width}d}" for label in labels])


def _regions(stations: pl.DataFrame, label: pl.Series) -> Regions:
    of_station = stations.select("station_id", label.alias("unique_id"))
    centres = (
        stations.with_columns(label.alias("unique_id"))
        .group_by("unique_id")
        .agg(pl.col("lat", "lon").mean().round(6), stations=pl.len(), plugs=pl.sum("plugs"))
        .sort("unique_id")
    )
    return Regions(of_station, centres)
