"""Convert the positions of a station table from metres of a national grid to degrees.

Metres are recognised by their size, and the grid by the range of both columns. If several grids fit, the user must
choose one. pyproj converts the coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from pyproj import CRS, Transformer
from pyproj.exceptions import CRSError

from unmet.errors import InputError
from unmet.geo import haversine_km

__all__ = ["FAR_KM", "X_NAMES", "Y_NAMES", "in_degrees"]

# Names of columns with positions, in degrees or metres.
X_NAMES: tuple[str, ...] = (
    "lon",
    "longitude",
    "lng",
    "long",
    "x",
    "easting",
    "eastings",
    "east",
    "coord_x",
    "x_coord",
    "point_x",
    "e",
)
X_NAMES += ("längengrad", "laengengrad", "rechtswert", "ostwert", "longitudine", "longitud")
Y_NAMES: tuple[str, ...] = (
    "lat",
    "latitude",
    "y",
    "northing",
    "northings",
    "north",
    "coord_y",
    "y_coord",
    "point_y",
    "n",
)
Y_NAMES += ("breitengrad", "hochwert", "nordwert", "latitudine", "latitud")


FAR_KM = 300.0  # stations that are farther apart do not belong to one town or region


@dataclass(frozen=True, slots=True)
class _Grid:
    """A grid, and the range of its coordinates in the country that uses it."""

    code: str
    name: str
    east: tuple[float, float]  # metres
    north: tuple[float, float]


_MERCATOR = _Grid("EPSG:3857", "web Mercator", (-20_050_000, 20_050_000), (-20_050_000, 20_050_000))
_GRIDS = (
    _Grid("EPSG:2056", "Swiss LV95", (2_480_000, 2_840_000), (1_070_000, 1_300_000)),
    _Grid("EPSG:21781", "Swiss LV03", (480_000, 840_000), (70_000, 300_000)),
    _Grid("EPSG:27700", "British National Grid", (80_000, 660_000), (5_000, 1_220_000)),
    _Grid("EPSG:28992", "Dutch RD New", (7_000, 300_000), (289_000, 629_000)),
    _Grid("EPSG:2154", "French Lambert-93", (95_000, 1_245_000), (6_030_000, 7_120_000)),
    _Grid("EPSG:31370", "Belgian Lambert 72", (20_000, 300_000), (20_000, 250_000)),
    _Grid("EPSG:31287", "Austrian Lambert", (110_000, 700_000), (270_000, 580_000)),
    _Grid("EPSG:3006", "SWEREF 99 TM", (260_000, 925_000), (6_120_000, 7_700_000)),
    _Grid("EPSG:3067", "Finnish TM35FIN", (50_000, 760_000), (6_600_000, 7_800_000)),
    _Grid("EPSG:25832", "UTM zone 32N", (280_000, 930_000), (5_200_000, 6_500_000)),
    _Grid("EPSG:25833", "UTM zone 33N", (80_000, 610_000), (5_200_000, 6_200_000)),
    *(
        _Grid(f"EPSG:{31464 + zone}", f"Gauss-Krüger zone {zone}", (x0 - 200_000, x0 + 200_000), (5_200_000, 6_150_000))
        for zone, x0 in ((2, 2_500_000), (3, 3_500_000), (4, 4_500_000), (5, 5_500_000))
    ),
    _MERCATOR,
)


def in_degrees(frame: pl.DataFrame, crs: str | None, name: str) -> tuple[pl.DataFrame, list[str]]:
    """The frame with columns `lat` and `lon` in degrees instead of metres, and a sentence if that was done.

    `crs` names the grid, such as EPSG:2056. A frame without positions, or with positions in degrees, is left unchanged.
    """
    spelled = {column.strip().lower(): column for column in frame.columns}
    x_column, y_column = (next((spelled[n] for n in names if n in spelled), None) for names in (X_NAMES, Y_NAMES))
    if x_column is None or y_column is None:
        if crs is not None:
            raise InputError(f"{name} has no columns of positions that --crs could convert: map them to lon and lat.")
        return frame, []
    x, y = (_numbers(frame[column]) for column in (x_column, y_column))
    if crs is None:
        swapped = _are_swapped(x, y)
        if swapped.any():
            return _with_swapped_rows(frame, x_column, y_column, swapped, name)
        if not _are_metres(x, y):
            return frame, []
        grid = _recognised(x, y, name)
        crs, title = grid.code, f"{grid.code}, {grid.name}"
    else:
        title = crs
    lon, lat = _converted(x, y, crs, name)
    note = f"{name}: positions in metres ({title}) were converted to degrees."
    # A cell that could not be converted stays, so that validation lists it.
    cells = [
        degrees.cast(pl.String).fill_null(frame[column].cast(pl.String)).alias(new)
        for degrees, column, new in ((lon, x_column, "lon"), (lat, y_column, "lat"))
    ]
    return frame.drop(x_column, y_column).with_columns(cells), [note]


def _numbers(cells: pl.Series) -> pl.Series:
    """Coordinates as numbers, also those with a decimal comma or grouped digits, such as 2'600'000."""
    if cells.dtype == pl.String:
        cells = cells.str.strip_chars().str.replace_all(r"['\s]", "").str.replace(r"^(\d+),(\d+)$", "${1}.${2}")
    return cells.cast(pl.Float64, strict=False)


def _are_swapped(lon: pl.Series, lat: pl.Series) -> pl.Series:
    """Which rows have latitude and longitude swapped: the latitude is beyond 90 degrees, the longitude is not.

    If this holds for most rows, they are swapped. Otherwise, only those are swapped that then lie among the others; the
    rest are typing errors.
    """
    given = (lon.is_not_null() & lat.is_not_null()).fill_null(value=False)
    beyond = (given & lat.abs().is_between(90, 180, closed="right") & (lon.abs() <= 90)).fill_null(value=False)
    others = given & ~beyond & (lat.abs() <= 90) & (lon.abs() <= 180)
    are_most = 2 * int(beyond.sum()) > int(given.sum())
    if are_most or not beyond.any() or not others.any():
        return beyond & are_most
    middle = [float(np.median(cells.filter(others).to_numpy())) for cells in (lat, lon)]
    km = haversine_km(np.clip(lon.fill_null(0.0).to_numpy(), -90, 90), lat.fill_null(0.0).to_numpy(), *middle)
    return beyond & pl.Series(km < FAR_KM)


def _with_swapped_rows(
    frame: pl.DataFrame, x_column: str, y_column: str, swapped: pl.Series, name: str
) -> tuple[pl.DataFrame, list[str]]:
    """The frame with latitudes and longitudes of some rows swapped, and a sentence about it."""
    rows = pl.lit(swapped)
    lat = pl.when(rows).then(x_column).otherwise(y_column).alias("lat")
    lon = pl.when(rows).then(y_column).otherwise(x_column).alias("lon")
    count = int(swapped.sum())
    some = (
        "latitudes and longitudes" if swapped.all() else f"latitude and longitude of {count:,} of {len(swapped):,} rows"
    )
    note = f"{name}: {some} were swapped: as given, latitudes are beyond 90 degrees."
    return frame.with_columns(lat, lon).drop({x_column, y_column} - {"lat", "lon"}), [note]


def _are_metres(x: pl.Series, y: pl.Series) -> bool:
    """Whether most positions are too large to be degrees, in both columns."""
    given = x.is_not_null() & y.is_not_null()
    beyond = given & (x.abs() > 180) & (y.abs() > 180)
    return int(beyond.sum()) > int(given.sum()) / 2


def _recognised(x: pl.Series, y: pl.Series, name: str) -> _Grid:
    """The only grid that fits the coordinates; raises `InputError` if there is none, or more than one.

    Web Mercator covers the world, so it is used only if no national grid fits, not even with the columns exchanged.
    """
    # Swiss maps call the easting Y and the northing X.
    as_named = [grid for grid in _GRIDS if _fits(grid, x, y) or ("Swiss" in grid.name and _fits(grid, y, x))]
    national = [grid for grid in as_named if grid is not _MERCATOR]
    fitting = national or [grid for grid in _GRIDS if grid is not _MERCATOR and _fits(grid, y, x)] or as_named
    if len(fitting) == 1:
        return fitting[0]
    example = f"{x.drop_nulls()[0]:g}, {y.drop_nulls()[0]:g}"
    names = ", ".join(f"{grid.code} ({grid.name})" for grid in fitting)
    remedy = f"one of {names}" if fitting else "such as EPSG:2056"
    raise InputError(f"{name}: positions such as {example} are not degrees: name their grid with --crs, {remedy}.")


def _fits(grid: _Grid, east: pl.Series, north: pl.Series) -> bool:
    """Whether nine of ten positions lie in the area of a grid."""
    given = int((east.is_not_null() & north.is_not_null()).sum())
    within = int((east.is_between(*grid.east) & north.is_between(*grid.north)).sum())
    return within > 0.9 * given


def _converted(x: pl.Series, y: pl.Series, crs: str, name: str) -> tuple[pl.Series, pl.Series]:
    """Longitudes and latitudes; columns in the order north, east are recognised by the resulting positions."""
    try:
        system = CRS.from_user_input(crs)
    except CRSError:
        raise InputError(f"--crs {crs!r} is not a coordinate reference system: give one such as EPSG:2056.") from None
    transformer = Transformer.from_crs(system, "EPSG:4326", always_xy=True)
    best, most = (x, y), 0
    for first, second in ((x, y), (y, x)):
        east, north = transformer.transform(first.to_numpy(), second.to_numpy())
        lon, lat = (pl.Series(values).fill_nan(None) for values in (east, north))
        good = _within(lon, lat, system)
        if int(good.sum()) > most:
            best, most = (lon.set(~good, None), lat.set(~good, None)), int(good.sum())
    if not most and (x.is_not_null() & y.is_not_null()).any():
        raise InputError(f"{name}: no position lies where {crs} is used: check --crs, and the columns of positions.")
    return best


def _within(lon: pl.Series, lat: pl.Series, system: CRS) -> pl.Series:
    """Which positions lie in the area of a coordinate system, or up to a degree outside."""
    area = system.area_of_use
    if area is None:
        good = lat.is_between(-90, 90) & lon.is_between(-180, 180)
    else:
        good = lat.is_between(area.south - 1, area.north + 1) & lon.is_between(area.west - 1, area.east + 1)
    return good.fill_null(value=False)
