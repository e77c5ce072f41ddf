"""Time zones in the names of time columns: `Start (UTC)`, `end_time_gmt`, `Start [UTC+1]`, `Start (Europe/Berlin)`.

Such a name applies to its own column only: the start may be in UTC and the end in local time.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from unmet.errors import InputError
from unmet.records.mapping import Mapping
from unmet.zones import checked_zone

__all__ = ["UNNAMED", "NamedZones", "named_zones", "without_region", "zone_in_name"]

_OFFSET = re.compile(r"(?i)(?:utc|gmt)\s*([+\-\u2212])\s*(\d{1,2})(?::?(\d\d))?(?!\d)")
_REGION = re.compile(r"[A-Z][A-Za-z]+(?:/[A-Z][A-Za-z_\-]+){1,2}")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")  # splits StartTimeUTC into Start, Time and UTC
_UTC_WORDS = {"utc", "gmt", "zulu"}


@dataclass(frozen=True, slots=True)
class NamedZones:
    """The zone in the name of each time column, or None."""

    start: str | None = None
    end: str | None = None
    charged: str | None = None

    @property
    def all_utc(self) -> bool:
        """Whether starts and ends are both named as UTC."""
        return self.start == self.end == "UTC"


UNNAMED = NamedZones()
"""No column name states a zone."""


def zone_in_name(columns: str | tuple[str, ...] | None) -> str | None:
    """The zone in the name of a time column (or of its date and time columns): UTC, an offset, or a region.

    >>> zone_in_name("StartTimeUTC"), zone_in_name(("Day", "Time [GMT]")), zone_in_name("Start (UTC+1)")
    ('UTC', 'UTC', '+0100')
    >>> zone_in_name("Start (Europe/Berlin)"), zone_in_name("Start Date/Time")
    ('Europe/Berlin', None)
    """
    for name in (columns,) if isinstance(columns, str) else columns or ():
        region = _region(name)
        if region is not None:
            return "UTC" if region == "Etc/UTC" else region
        offset = _OFFSET.search(name)
        if offset is not None:
            sign, hours, minutes = offset.groups()
            written = f"{'+' if sign == '+' else '-'}{int(hours):02}{minutes or '00'}"
            return "UTC" if written[1:] == "0000" else written
        words = [word.lower() for word in _WORD.findall(name)]
        if _UTC_WORDS & set(words) or (len(words) > 1 and words[-1] == "z"):
            return "UTC"
        if re.search("(?i)(?:utc|gmt)$|^(?:utc|gmt)", re.sub(r"[\W_]+$", "", name)):  # starttimeutc
            return "UTC"
    return None


def _region(name: str) -> str | None:
    """The name of a zone such as Europe/Berlin within a column name; None if there is none."""
    found = _REGION.search(name)
    try:
        return checked_zone(found[0]) if found is not None else None
    except InputError:
        return None


def without_region(name: str) -> str:
    """A column name without the name of a zone such as Europe/Berlin.

    >>> without_region("Start (Europe/Berlin)"), without_region("Date/Time")
    ('Start ()', 'Date/Time')
    """
    region = _region(name)
    return name if region is None else name.replace(region, "")


def named_zones(mapping: Mapping, base: Mapping, given: Collection[str]) -> NamedZones:
    """The zones in the names of the time columns of a mapping.

    Names are ignored if the zone is among the entries `given` by the user, or part of the format (`base`). They take
    precedence over a column of zones that was only recognised by its name: next to times in UTC, such a column holds
    the zone of the place.
    """
    if {"time_zone", "zone"} & set(given) or "time_zone" in base.model_fields_set:
        return UNNAMED
    end = mapping.end if mapping.duration is None else mapping.start  # an end from a duration has the start's zone
    return NamedZones(zone_in_name(mapping.start), zone_in_name(end), zone_in_name(mapping.charged))
