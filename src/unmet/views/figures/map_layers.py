"""The background of maps: lines from a GeoJSON file, outlines of regions, and the frame around them.

Maps are drawn in kilometres around the middle of the points, without tiles, so they need no network.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Floats
from unmet.errors import InputError
from unmet.geo import Projection
from unmet.views.theme import layout

__all__ = [
    "MAX_DOTS",
    "MAX_HOVERS",
    "MapLayers",
    "add_layers",
    "compact",
    "far_away",
    "far_positions",
    "map_frame",
    "read_layers",
    "region_outlines",
    "shows_outlines",
]

Outline = tuple[str, Floats]

LAND, BORDER = "rgba(110, 125, 140, 0.55)", "rgba(110, 125, 140, 0.9)"  # colours that are visible on white and on black
MARGIN_KM, MARGIN = 0.3, 0.08  # margin around the points: a constant, plus a share of their extent
WIDTH, HEIGHTS = 920, (380, 760)  # width of the plot, and limits of the height of the figure [px]
FRAME_HEIGHT = 120  # height of the legend, the axis and its title [px]
HULL_KM = 0.25  # distance between the outermost stations of a region and its outline
FAR_FACTOR, FAR_KM = 12.0, 30.0  # farther than this many median distances, and than these km, is likely a mistake
DETAIL = 1 / 1500  # visible detail of lines, as a share of the map's extent
MAX_VERTICES, MAX_OUTLINE_VERTICES = 20_000, 6000  # most vertices of lines and of outlines, for a small page
MAX_DOTS, MAX_HOVERS = 4000, 300  # points of a map, and points whose label on hover has more than a name


@dataclass(frozen=True, slots=True)
class MapLayers:
    """Lines and outlines as longitude and latitude [degree], (vertices, 2) each."""

    lines: tuple[Floats, ...] = ()
    outlines: tuple[Outline, ...] = ()
    """Outlines of regions, with their names."""


def read_layers(path: Path) -> MapLayers:
    """Lines to draw under a map, such as coasts, streets or borders, from a GeoJSON file in degrees."""
    import shapely
    from shapely.geometry import shape

    try:
        data = path.read_bytes()
        document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        kind = document["type"]
        features = document["features"] if kind == "FeatureCollection" else [document]
        shapes = [shape(part["geometry"] if part["type"] == "Feature" else part) for part in features]
        lines = [line for part in shapes for line in _lines(part)]
        if not lines or not all(_is_degrees(line) for line in lines):
            raise ValueError
    except OSError as error:
        raise InputError(f"Cannot read the map {path}: {error.strerror}.") from None
    except (UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError, shapely.errors.ShapelyError):
        raise InputError(
            f"{path} is not a GeoJSON file of lines or areas in degrees: export coasts or streets as GeoJSON (WGS 84)."
        ) from None
    return MapLayers(lines=tuple(lines))


def _lines(part: Any) -> list[Floats]:
    """The lines of a Shapely geometry, and the boundaries of its areas; points are ignored."""
    if part.is_empty:
        return []
    if hasattr(part, "geoms"):
        return [line for one in part.geoms for line in _lines(one)]
    if part.geom_type == "Polygon":
        return [np.asarray(ring.coords)[:, :2] for ring in (part.exterior, *part.interiors)]
    return [np.asarray(part.coords)[:, :2]] if part.geom_type in ("LineString", "LinearRing") else []


def _is_degrees(line: Floats) -> bool:
    lon, lat = line.T
    return bool(np.isfinite(line).all() and (np.abs(lon) <= 180).all() and (np.abs(lat) <= 90).all())


def region_outlines(stations: pl.DataFrame) -> tuple[Outline, ...]:
    """Outlines of regions around their stations (`unique_id, lat, lon`); none if each station is a region."""
    from shapely.geometry import MultiPoint

    placed = stations.drop_nulls(["lat", "lon"])
    if placed.is_empty() or placed["unique_id"].n_unique() >= placed.height:
        return ()
    middle = Projection(_median(placed["lat"]), _median(placed["lon"]))
    placed = placed.filter(pl.Series(~far_away(*middle.to_km(placed["lat"], placed["lon"]))))
    found = []
    for (name,), part in placed.group_by("unique_id", maintain_order=True):
        points = np.column_stack(middle.to_km(part["lat"], part["lon"]))
        ring = np.asarray(MultiPoint(points).convex_hull.buffer(HULL_KM, quad_segs=4).exterior.coords)
        lat, lon = middle.to_degrees(ring[:, 0], ring[:, 1])
        found.append((str(name), np.column_stack([lon, lat])))
    return tuple(found)


def far_away(east_km: Floats, north_km: Floats) -> NDArray[np.bool_]:
    """Which points are so far from the middle that their positions look wrong, such as swapped coordinates."""
    if len(east_km) < 3:  # of two points, neither is the wrong one
        return np.zeros(len(east_km), bool)
    distance = np.hypot(east_km - np.median(east_km), north_km - np.median(north_km))
    return np.asarray(distance > max(FAR_FACTOR * float(np.median(distance)), FAR_KM))


def far_positions(lat: pl.Series, lon: pl.Series) -> pl.Series:
    """Which positions [degree] are so far from the middle of all that they look wrong."""
    middle = Projection(_median(lat), _median(lon))
    return pl.Series(far_away(*middle.to_km(lat, lon)), dtype=pl.Boolean)


def add_layers(figure: go.Figure, layers: MapLayers | None, origin: Projection, box: tuple[Floats, Floats]) -> None:
    """Draw the lines and outlines that lie in the box of east and north [km]; later traces are drawn on top."""
    if layers is None:
        return
    if layers.lines:
        drawn = _clipped([_km(line, origin) for line in layers.lines], box)
        _add_lines(figure, drawn, {"color": LAND, "width": 1})
    if layers.outlines:
        shown = [_km(line, origin) for _, line in layers.outlines] if shows_outlines(layers) else []
        _add_lines(figure, shown, {"color": BORDER, "width": 1, "dash": "dot"})


def shows_outlines(layers: MapLayers | None) -> bool:
    """Whether outlines of regions are drawn: too many of them would hide the map."""
    return layers is not None and 0 < sum(len(line) for _, line in layers.outlines) <= MAX_OUTLINE_VERTICES


def _km(line: Floats, origin: Projection) -> Floats:
    return np.column_stack(origin.to_km(line[:, 1], line[:, 0]))


def _clipped(lines: list[Floats], box: tuple[Floats, Floats]) -> list[Floats]:
    """Lines clipped to the box and simplified to visible detail, so that a coastline does not bloat the page."""
    from shapely import clip_by_rect
    from shapely.geometry import MultiLineString

    (left, right), (bottom, top) = box
    tolerance_km = DETAIL * max(right - left, top - bottom)
    whole = MultiLineString([line for line in lines if len(line) > 1])
    while True:
        cut = clip_by_rect(whole.simplify(tolerance_km), left, bottom, right, top)
        found = _lines(cut)
        if sum(map(len, found)) <= MAX_VERTICES:
            return found
        tolerance_km *= 2


def _add_lines(figure: go.Figure, lines: list[Floats], style: dict[str, Any]) -> None:
    """Draw all lines as one trace, separated by gaps."""
    if not lines:
        return
    gap = np.full((1, 2), np.nan)
    joined = np.concatenate([part for line in lines for part in (line, gap)]).round(3)
    x, y = ([None if np.isnan(value) else float(value) for value in axis] for axis in joined.T)
    figure.add_scatter(x=x, y=y, mode="lines", line=style, hoverinfo="skip", showlegend=False, connectgaps=False)


def map_frame(figure: go.Figure, east: Floats, north: Floats) -> tuple[Floats, Floats]:
    """Set the axes of a map of these points, with equal scales in both directions. Returns the box [km]."""
    ranges = []
    for values in (east, north):
        margin = MARGIN_KM + MARGIN * float(np.ptp(values))
        ranges.append(np.array([float(values.min()) - margin, float(values.max()) + margin]))
    for update, title, limits in zip(
        (figure.update_xaxes, figure.update_yaxes), ("East [km]", "North [km]"), ranges, strict=True
    ):
        update(title=title, range=limits.tolist(), constrain="domain")
    figure.update_yaxes(scaleanchor="x", scaleratio=1, constraintoward="top")
    (left, right), (bottom, top) = ranges
    layout(figure, int(np.clip(FRAME_HEIGHT + WIDTH * (top - bottom) / (right - left), *HEIGHTS)))
    figure.update_xaxes(gridcolor="#e8ebee", zeroline=False)
    figure.update_layout(hovermode="closest")
    return ranges[0], ranges[1]


def compact(values: Floats) -> NDArray[np.float32]:
    """Coordinates or sizes of many points, rounded to 0.001 km or px, in 32 bits, to keep a page small."""
    return values.round(3).astype(np.float32)


def _median(values: pl.Series) -> float:
    return float(values.median() or 0.0)  # type: ignore[arg-type]
