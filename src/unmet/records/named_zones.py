"""Zones that the names of time columns state, as in `Start (UTC)`, `end_time_gmt` or `Start [UTC+1]`.

Such a name is about its own column: a start may be in UTC and the end local.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from unmet.records.mapping import Mapping

__all__ = ["UNNAMED", "NamedZones", "named_zones", "zone_in_name"]

_OFFSET = re.compile(r"(?i)(?:utc|gmt)\s*([+\-\u2212])\s*(\d{1,2})(?::?(\d\d))?(?!\d)")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_UTC_WORDS = {"utc", "gmt", "zulu"}


@dataclass(frozen=True, slots=True)
class NamedZones:
    """The zone of each time column by its name; None where the name states none."""

    start: str | None = None
    end: str | None = None
    charged: str | None = None

    @property
    def all_utc(self) -> bool:
        """Whether starts and ends are both in UTC by their names."""
        return self.start == self.end == "UTC"


UNNAMED = NamedZones()
"""No name states a zone."""


def zone_in_name(columns: str | tuple[str, ...] | None) -> str | None:
    """The zone that the name of a time column (or of its date and time) states: UTC, or an offset.

    >>> zone_in_name("StartTimeUTC"), zone_in_name(("Day", "Time [GMT]")), zone_in_name("Start (UTC+1)")
    ('UTC', 'UTC', '+0100')
    """
    for name in (columns,) if isinstance(columns, str) else columns or ():
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


def named_zones(mapping: Mapping, base: Mapping, said: Collection[str]) -> NamedZones:
    """The zones that the columns of a mapping state by their names.

    None does if the user `said` what the zone is, or the format (`base`) did. A column of zones that was only found
    by its name comes second: beside times in UTC, it is the zone of the place.
    """
    if {"time_zone", "zone"} & set(said) or "time_zone" in base.model_fields_set:
        return UNNAMED
    end = mapping.end if mapping.duration is None else mapping.start
    return NamedZones(zone_in_name(mapping.start), zone_in_name(end), zone_in_name(mapping.charged))
