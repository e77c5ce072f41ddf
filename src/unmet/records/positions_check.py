"""Positions that cannot be right: latitude and longitude swapped, or a station far from all others."""

from __future__ import annotations

import functools
import re
from importlib import resources

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.geo import haversine_km

__all__ = ["mend_positions", "zone_place"]

FAR_KM = 300.0  # from the middle of all stations: farther than one operator's town or region
ZONE_KM = 2500.0  # from the city that a time zone is named after
NEAR_KM = 50.0  # from such a city: stations so near to one are those of its town
LEAST_STATIONS = 4

Floats = NDArray[np.float64]


def mend_positions(
    stations: pl.DataFrame, time_zone: str, name: str, *, are_certain: bool = False
) -> tuple[pl.DataFrame, list[str]]:
    """Stations with swapped positions turned, and sentences on that and on positions far from all others.

    A position is swapped if it lies among the others only the other way round; all of them are, if they lie in the
    records' time zone only then. `stations` has station_id, lat and lon [degree], null where unknown. Where there is no
    time zone to tell, a sentence says where they lie, unless positions `are_certain`.
    """
    notes = []
    placed = stations.drop_nulls(["lat", "lon"])
    if placed.height >= LEAST_STATIONS:
        turned = _turned(placed["lat"].to_numpy(), placed["lon"].to_numpy())
        if turned.any():
            ids = placed["station_id"].filter(pl.Series(turned))
            stations = _swap(stations, ids)
            some = f"{len(ids):,} of {placed.height:,} stations (as {ids[0]})"
            notes.append(
                f"{name}: latitude and longitude of {some} were swapped: only then do they lie among the others."
            )
    if placed.height and _is_other_way_round(stations, time_zone):
        stations = _swap(stations, placed["station_id"])
        notes.append(f"{name}: latitudes and longitudes were swapped: only then do they lie in {time_zone}.")
    elif placed.height and not notes and not are_certain and zone_place(time_zone) is None:
        notes += _place_note(stations, name)
    return stations, notes + _far_notes(stations, name)


def _swap(stations: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    swapped = pl.col("station_id").is_in(ids.implode())
    return stations.with_columns(
        lat=pl.when(swapped).then("lon").otherwise("lat"), lon=pl.when(swapped).then("lat").otherwise("lon")
    )


def _turned(lat: Floats, lon: Floats) -> NDArray[np.bool_]:
    """Which positions are near the others only if swapped; of two groups that mirror each other the larger is right."""
    middle = _middle(lat, lon)
    as_given, mirrored = haversine_km(lat, lon, *middle), haversine_km(lon, lat, *middle)
    possible = (np.abs(lon) <= 90) & (mirrored < FAR_KM) & (mirrored < as_given / 10)
    return np.asarray(possible & (as_given > FAR_KM))


def _middle(lat: Floats, lon: Floats) -> tuple[float, float]:
    """The middle of the largest group of stations that lie together."""
    place = np.round(np.column_stack([lat, lon]) / 3).astype(int)  # cells of three degrees
    _, which, sizes = np.unique(place, axis=0, return_inverse=True, return_counts=True)
    here = which.ravel() == int(np.argmax(sizes))
    return float(np.median(lat[here])), float(np.median(lon[here]))


def _is_other_way_round(stations: pl.DataFrame, time_zone: str) -> bool:
    """Whether the stations lie in their time zone only with latitude and longitude swapped."""
    city = zone_place(time_zone)
    placed = stations.drop_nulls(["lat", "lon"])
    if city is None or placed.is_empty():
        return False
    lat, lon = _middle(placed["lat"].to_numpy(), placed["lon"].to_numpy())
    if abs(lon) > 90:
        return False
    as_given, mirrored = float(haversine_km(lat, lon, *city)), float(haversine_km(lon, lat, *city))
    return mirrored < ZONE_KM < as_given and mirrored < as_given / 3


def _place_note(stations: pl.DataFrame, name: str) -> list[str]:
    """A sentence on where the stations lie, and would if swapped: without a time zone, nothing tells which is right."""
    placed = stations.drop_nulls(["lat", "lon"])
    lat, lon = _middle(placed["lat"].to_numpy(), placed["lon"].to_numpy())
    if abs(lon) > 90:
        return []
    (city, km), (other, other_km) = _nearest_city(lat, lon), _nearest_city(lon, lat)
    if km < NEAR_KM and 3 * km < other_km:
        return []
    return [
        f"{name}: the stations lie around latitude {lat:.1f}, longitude {lon:.1f}, {km:,.0f} km from {city}; swapped, "
        f"they would lie {other_km:,.0f} km from {other}. If they are swapped, give --time-zone, or --map-stations for "
        "lat and lon."
    ]


def _nearest_city(lat: float, lon: float) -> tuple[str, float]:
    """The nearest of the cities that time zones are named after, and its distance [km]."""
    cities = _zone_cities()
    km = haversine_km(lat, lon, *np.array(list(cities.values())).T)
    nearest = int(np.argmin(km))
    return list(cities)[nearest].rsplit("/", maxsplit=1)[-1].replace("_", " "), float(km[nearest])


def zone_place(time_zone: str) -> tuple[float, float] | None:
    """Latitude and longitude of the city that a time zone is named after; None for UTC and the like."""
    return _zone_cities().get(time_zone)


@functools.cache
def _zone_cities() -> dict[str, tuple[float, float]]:
    """Latitude and longitude of the cities that time zones are named after, from tzdata's `zone.tab`."""
    try:
        table = (resources.files("tzdata") / "zoneinfo" / "zone.tab").read_text(encoding="utf-8")
    except (FileNotFoundError, ModuleNotFoundError):
        return {}
    rows = re.findall(r"^\w\w\t([+-]\d+)([+-]\d+)\t([^\t\n]+)", table, re.MULTILINE)
    return {zone: (_degrees(north, 2), _degrees(east, 3)) for north, east, zone in rows}


def _degrees(text: str, whole: int) -> float:
    """Degrees of ISO 6709 text, +DDMM or +DDMMSS."""
    digits = text[1:]
    rest = digits[whole:].ljust(4, "0")
    value = int(digits[:whole]) + int(rest[:2]) / 60 + int(rest[2:4]) / 3600
    return -value if text[0] == "-" else value


def _far_notes(stations: pl.DataFrame, name: str) -> list[str]:
    placed = stations.drop_nulls(["lat", "lon"])
    if placed.height < LEAST_STATIONS:
        return []
    lat, lon = placed["lat"].to_numpy(), placed["lon"].to_numpy()
    km = haversine_km(lat, lon, *_middle(lat, lon))
    far = np.flatnonzero(km > max(FAR_KM, 20 * float(np.median(km))))
    if not 0 < len(far) < len(km) / 4:
        return []
    most = int(far[np.argmax(km[far])])
    station = placed["station_id"][most]
    return [
        f"{name}: {len(far):,} of {len(km):,} stations are far from the others (as {station}, {km[most]:,.0f} km): "
        "check their positions, or leave them out of the table."
    ]
