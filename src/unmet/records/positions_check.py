"""Implausible positions: latitude and longitude swapped, or a station far from all others.

Each station is checked against the best evidence available: the city that the time zone of the records is named after;
else, if stations lie in two groups that mirror each other, the group near a city; else the larger group.
"""

from __future__ import annotations

import functools
import re
from importlib import resources

import numpy as np
import polars as pl

from unmet.arrays import Booleans, Floats
from unmet.geo import haversine_km
from unmet.records.positions import FAR_KM

__all__ = ["mend_positions", "zone_cities", "zone_place"]

ZONE_KM = 2500.0  # farther from the city that a time zone is named after, a station is not in that zone
NEAR_KM = 50.0  # stations this near to such a city belong to it
# Swapping must bring a station nearer by these factors: to the city of the time zone, and to the other stations.
ZONE_FACTOR, GROUP_FACTOR = 3, 10
MIN_STATIONS = 4  # fewer form no meaningful majority

LatLon = tuple[float, float]  # latitude and longitude [degree]


def mend_positions(
    stations: pl.DataFrame, time_zone: str, name: str, *, are_certain: bool = False
) -> tuple[pl.DataFrame, list[str]]:
    """Correct swapped positions. Returns the stations, and sentences about corrections and remote positions.

    `stations` has station_id, lat and lon [degree], null where unknown. If no time zone decides, a sentence says where
    the stations lie, unless positions `are_certain`.
    """
    placed = stations.drop_nulls(["lat", "lon"])
    if placed.is_empty():
        return stations, []
    lat, lon = placed["lat"].to_numpy(), placed["lon"].to_numpy()
    city = zone_place(time_zone)
    swapped, why = _swapped_by_zone(lat, lon, city), f"only then do they lie in {time_zone}."
    if not swapped.any():
        swapped, why = _swapped_by_groups(lat, lon, has_zone=city is not None)
    notes = []
    if swapped.any():
        ids = placed["station_id"].filter(pl.Series(swapped))
        stations = _swap(stations, ids)
        notes.append(f"{name}: {_subject(ids, placed.height)} swapped: {why}")
    elif not are_certain and city is None:
        notes += _place_note(lat, lon, name)
    return stations, notes + _far_notes(stations, name)


def _subject(ids: pl.Series, stations: int) -> str:
    """The beginning of a sentence about swapped positions."""
    if len(ids) == stations:
        return "latitudes and longitudes were"
    return f"latitude and longitude of {len(ids):,} of {stations:,} stations (such as {ids[0]}) were"


def _swap(stations: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    swapped = pl.col("station_id").is_in(ids.implode())
    return stations.with_columns(
        lat=pl.when(swapped).then("lon").otherwise("lat"), lon=pl.when(swapped).then("lat").otherwise("lon")
    )


def _swapped_by_zone(lat: Floats, lon: Floats, city: LatLon | None) -> Booleans:
    """Which stations lie in their time zone only with latitude and longitude swapped."""
    if city is None:
        return np.zeros(len(lat), dtype=np.bool_)
    as_given = haversine_km(lat, lon, *city)
    mirrored = haversine_km(np.clip(lon, -90, 90), lat, *city)
    possible = (np.abs(lon) <= 90) & (mirrored < ZONE_KM) & (mirrored < as_given / ZONE_FACTOR)
    return np.asarray(possible & (as_given > ZONE_KM))


def _swapped_by_groups(lat: Floats, lon: Floats, *, has_zone: bool) -> tuple[Booleans, str]:
    """Which stations lie among the others only if swapped, given two groups that mirror each other; and why.

    The group near a city is right. If both or neither are near one, the larger group is, given at least four stations.
    """
    none = np.zeros(len(lat), dtype=np.bool_)
    middle = _middle(lat, lon)
    others = _belong_if_swapped(lat, lon, middle)
    if not others.any():
        return none, ""
    here, there = _middle(lat[~others], lon[~others]), _middle(lat[others], lon[others])
    (city, km), (other, other_km) = _nearest_city(*here), _nearest_city(*there)
    if not has_zone and min(km, other_km) < NEAR_KM < max(km, other_km):
        if km < other_km:
            return others, f"only then do they lie among the others, near {city}."
        return _belong_if_swapped(lat, lon, there), f"only then do they lie among the others, near {other}."
    if len(lat) < MIN_STATIONS or 2 * others.sum() >= len(lat):
        return none, ""
    return others, (
        f"only then do they lie among the others, around latitude {here[0]:.1f}, longitude {here[1]:.1f}. If the "
        f"others are the swapped ones, {'correct the table' if has_zone else 'give --time-zone'}."
    )


def _belong_if_swapped(lat: Floats, lon: Floats, middle: LatLon) -> Booleans:
    """Which positions are far from a place, but near it if swapped."""
    as_given = haversine_km(lat, lon, *middle)
    mirrored = haversine_km(np.clip(lon, -90, 90), lat, *middle)
    possible = (np.abs(lon) <= 90) & (mirrored < FAR_KM) & (mirrored < as_given / GROUP_FACTOR)
    return np.asarray(possible & (as_given > FAR_KM))


def _middle(lat: Floats, lon: Floats) -> LatLon:
    """The centre of the largest cluster of stations."""
    place = np.round(np.column_stack([lat, lon]) / 3).astype(int)  # cells of three degrees
    _, which, sizes = np.unique(place, axis=0, return_inverse=True, return_counts=True)
    here = which.ravel() == int(np.argmax(sizes))
    return float(np.median(lat[here])), float(np.median(lon[here]))


def _place_note(lats: Floats, lons: Floats, name: str) -> list[str]:
    """A sentence about where the stations lie, and would lie if swapped, when no time zone decides."""
    lat, lon = _middle(lats, lons)
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
    cities = zone_cities()
    km = haversine_km(lat, lon, *np.array(list(cities.values())).T)
    nearest = int(np.argmin(km))
    return list(cities)[nearest].rsplit("/", maxsplit=1)[-1].replace("_", " "), float(km[nearest])


def zone_place(time_zone: str) -> tuple[float, float] | None:
    """Latitude and longitude of the city that a time zone is named after; None for UTC and the like."""
    return zone_cities().get(time_zone)


@functools.cache
def zone_cities() -> dict[str, tuple[float, float]]:
    """Latitude and longitude of the cities that time zones are named after, from tzdata's `zone.tab`."""
    try:
        table = (resources.files("tzdata") / "zoneinfo" / "zone.tab").read_text(encoding="utf-8")
    except (FileNotFoundError, ModuleNotFoundError):
        return {}
    rows = re.findall(r"^\w\w\t([+-]\d+)([+-]\d+)\t([^\t\n]+)", table, re.MULTILINE)
    return {zone: (_degrees(north, 2), _degrees(east, 3)) for north, east, zone in rows}


def _degrees(text: str, degree_digits: int) -> float:
    """Degrees of ISO 6709 text: +DDMM or +DDMMSS for a latitude, with one more digit for a longitude."""
    digits = text[1:]
    rest = digits[degree_digits:].ljust(4, "0")
    value = int(digits[:degree_digits]) + int(rest[:2]) / 60 + int(rest[2:4]) / 3600
    return -value if text[0] == "-" else value


def _far_notes(stations: pl.DataFrame, name: str) -> list[str]:
    """A sentence about stations far from the others: one of a few, or up to a quarter of many.

    In a large network, a station is far only if it is 20 times as far from the middle as the median.
    """
    placed = stations.drop_nulls(["lat", "lon"])
    if placed.height < 2:
        return []
    lat, lon = placed["lat"].to_numpy(), placed["lon"].to_numpy()
    km = haversine_km(lat, lon, *_middle(lat, lon))
    usual = float(np.median(np.sort(km)[:-1]))  # without the farthest, which counts for much among two or three
    far = np.flatnonzero(km > max(FAR_KM, 20 * usual))
    if not 0 < len(far) < max(len(km) / 4, 2):
        return []
    farthest = int(far[np.argmax(km[far])])
    station = placed["station_id"][farthest]
    if len(far) == 1:
        some = f"1 of {len(km):,} stations, {station}, is {km[farthest]:,.0f} km from the others: check its position"
        return [f"{name}: {some}, or leave it out of the table."]
    return [
        f"{name}: {len(far):,} of {len(km):,} stations are far from the others (the farthest is {station}, "
        f"{km[farthest]:,.0f} km): check their positions, or leave them out of the table."
    ]
