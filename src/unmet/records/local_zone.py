"""The local zone of the stations, in which hours of the day are counted.

Times with an offset or in UTC are certain, but the local clocks may show another zone. The local zone comes from the
first of these that gives one: the user, the format, a column or heading with the name of a zone, the offsets of the
times, and the positions of the stations. If none does, hours of the day are in UTC, and a note says so.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

import numpy as np
import polars as pl

from unmet.arrays import Floats
from unmet.csv_files import LINE
from unmet.geo import haversine_km
from unmet.records.mapping import Mapping
from unmet.records.named_zones import NamedZones
from unmet.records.offsets import minutes_as_text, offsets_in, zone_of_offsets, zone_offsets
from unmet.records.places import local_zone_of
from unmet.records.positions_check import zone_cities
from unmet.records.time_cells import join_cells
from unmet.zones import country_of_zone

__all__ = ["settled_zone", "zone_by_positions", "zone_by_rows"]

NEAREST_KM = 250.0  # from the nearest city that a zone is named after; farther away, zones are only suggested
# Cities up to this much farther than the nearest, or up to this many times as far, must have the same clocks.
_MARGIN_KM, _MARGIN_RATIO = 150.0, 4
_LIKELY_RATIO = 2  # highest ratio of distances (see `zone_by_positions`) of the city of a suggested zone
_FARTHEST_KM = 1500.0  # greatest distance of the city of a suggested zone
_NEUTRAL = {  # names that belong to no country, and so imply no public holidays
    "CET": "Central Europe (CET)",
    "WET": "Western Europe (WET)",
    "EET": "Eastern Europe (EET)",
}


def zone_by_rows(
    raw: pl.DataFrame, kept: pl.DataFrame, mapping: Mapping, named: NamedZones
) -> tuple[str | None, str | None]:
    """The local zone of one file, from its headings, zones and offsets, and a sentence; None if they do not show it.

    Args:
        raw: cells with LINE.
        kept: its sessions, with LINE and `start` [ms].
        mapping: its columns.
        named: zones stated in its headings.
    """
    name = named.start if named.start == named.end and "/" in (named.start or "") else None
    if name is not None:
        return name, None
    if mapping.zone is not None:
        local = local_zone_of(raw[mapping.zone])
        why = f"column {mapping.zone!r} says that the stations are in {local}. Give --time-zone if they are elsewhere."
        return local, None if local is None else why
    columns = (mapping.start,) if isinstance(mapping.start, str) else mapping.start
    dtype = raw.schema[columns[0]]
    if isinstance(dtype, pl.Datetime):
        return (
            dtype.time_zone if "/" in (dtype.time_zone or "") and "Etc/" not in (dtype.time_zone or "") else None
        ), None
    cells = raw if raw.height == kept.height else raw.filter(raw[LINE].is_in(kept[LINE].implode()))
    found = offsets_in(join_cells(cells, columns), kept["start"])
    local = zone_of_offsets(found)
    if local is None:
        return None, None
    seen = [minutes_as_text(minutes) for minutes in found["minutes"].unique().sort()]
    if len(seen) == 1:
        return local, (
            f"all times have the offset {seen[0]}, so hours of the day are counted at that offset all year. If clocks "
            "change there, give --time-zone and the name of the zone, such as Europe/Berlin."
        )
    return local, (
        f"the offsets of the times ({' and '.join(seen)}) change as the clocks of {_NEUTRAL.get(local, local)} do, so "
        f"hours of the day follow those clocks.{_country_hint(local)}"
    )


def _country_hint(zone: str) -> str:
    if zone in _NEUTRAL:
        return " Give --time-zone and the name of your zone, for its public holidays."
    return " Give --time-zone if the stations are elsewhere."


def settled_zone(
    zones: Sequence[str | None], given: str | None, stations: pl.DataFrame | None
) -> tuple[str, str | None]:
    """The one local zone of all files, and a sentence if the files do not give it.

    Args:
        zones: zones of the files; None where unknown.
        given: the zone that the user gave.
        stations: `lat, lon` [degree], null where unknown; None if there is no table.
    """
    named = [zone for zone in zones if zone is not None]
    known = next((zone for zone in named if zone != "UTC"), given)
    if known is not None or named or not zones:
        return known or "UTC", None
    zone, likely = None, tuple[str, ...]()
    if stations is not None and {"lat", "lon"} <= set(stations.columns):
        placed = stations.select(pl.col("lat", "lon").cast(pl.Float64, strict=False)).drop_nulls()
        zone, likely = zone_by_positions(placed["lat"].to_numpy(), placed["lon"].to_numpy())
    if zone is not None:
        return zone, (
            "Times are in UTC; by the positions of the stations, their clocks are those of "
            f"{_NEUTRAL.get(zone, zone)}, so hours of the day follow them. Give --time-zone if that is wrong."
        )
    example = f"perhaps {' or '.join(likely)}" if likely else "such as Europe/London or America/Denver"
    return "UTC", (
        "The times have zones, but the local zone of the stations is not known, so hours of the day are in UTC. Give "
        f"--time-zone and its name, {example}."
    )


def zone_by_positions(lat: Floats, lon: Floats) -> tuple[str | None, tuple[str, ...]]:
    """The zone of stations [degree] if the cities around them that zones are named after have the same clocks.

    Returns None and the likeliest zones where clocks differ, as near a border between zones.
    """
    cities = zone_cities()
    if not len(lat) or not cities:
        return None, ()
    names, places = list(cities), np.array(list(cities.values()))
    around: dict[str, tuple[float, float]] = {}  # distance [km], and its ratio to the nearest city or `_MARGIN_KM`
    nearest = 0.0  # distance from the nearest city, of the station that is farthest from one [km]
    # Positions are rounded to 0.1 degrees, so that stations near each other count once.
    for where in np.unique(np.round(np.column_stack([lat, lon]), 1), axis=0):
        km = haversine_km(where[0], where[1], places[:, 0], places[:, 1])
        nearest = max(nearest, float(km.min()))
        for place in np.flatnonzero(km <= max(_MARGIN_RATIO * km.min(), km.min() + _MARGIN_KM)):
            found = float(km[place]), float(km[place] / max(km.min(), _MARGIN_KM))
            around[names[place]] = min(around.get(names[place], found), found)
    by_distance = sorted(around, key=lambda name: around[name])
    if nearest <= NEAREST_KM and len({_clock_of(name) for name in by_distance}) == 1:
        return _common_name(by_distance), ()
    likely = {_clock_of(name): name for name in reversed(by_distance) if around[name][1] <= _LIKELY_RATIO}
    if nearest > _FARTHEST_KM:
        return None, ()
    return None, tuple(name for name in by_distance if name in likely.values())[:2]


def _common_name(names: Collection[str]) -> str:
    """The first of several zones with the same clocks, or a name without a country if they belong to several."""
    first = next(iter(names))
    if len({country_of_zone(name) for name in names}) == 1:
        return first
    return next((zone for zone in _NEUTRAL if _clock_of(zone) == _clock_of(first)), first)


@cache
def _clock_of(zone: str) -> bytes:
    """The offsets of a zone every five days from 2014 to 2026: equal for zones with the same clocks."""
    days = np.arange(16_071, 20_820, 5, dtype=np.int64) * 86_400_000
    return zone_offsets(days, zone).tobytes()
