"""The local zone, inferred from offsets: `+01:00` in winter and `+02:00` in summer are the clocks of Central Europe.

An offset says what the local clocks showed. A zone is accepted only if its clocks had the offset of every row.
Hours of the day are then the same in all zones that fit, so a name that belongs to no country is preferred.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from unmet.arrays import Integers
from unmet.records.positions_check import zone_cities
from unmet.records.times import ZONES

__all__ = ["minutes_as_text", "offsets_in", "zone_of_offsets", "zone_offsets"]

_PREFERRED = (  # tried first: the best-known names of zones with the same clocks
    "CET", "WET", "EET", "America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles",
    "America/Halifax", "America/Anchorage", "America/St_Johns", "Australia/Sydney", "Australia/Adelaide",
    "Pacific/Auckland", "America/Santiago", "Asia/Kolkata",
)  # fmt: skip
_OFFSET = r"([+-]\d\d:?\d\d|[+-]\d\d|[A-Za-z]{1,4})\s*(?:\([^)]*\))?\s*$"
_QUARTER_HOUR = 900_000  # ms; clocks change only at the beginning of one
_TRIAL_ROWS = 300  # spread over the whole period; only zones that fit these are tried on all rows


def offsets_in(cells: pl.Series, utc: pl.Series) -> pl.DataFrame:
    """Distinct times [ms, UTC, to the quarter hour] and offsets [minutes] of cells that carry one, in order of time.

    Args:
        cells: times as written.
        utc: the same times as read [ms].
    """
    nothing = pl.DataFrame(schema={"ms": pl.Int64, "minutes": pl.Int64})
    if cells.dtype != pl.String:
        return nothing
    quarter, text = pl.col("ms") // _QUARTER_HOUR * _QUARTER_HOUR, pl.col("text").str.extract(_OFFSET)
    found = pl.LazyFrame({"ms": utc, "text": cells}).select(quarter, text).drop_nulls().unique().collect()
    minutes = {text: _minutes(text) for text in found["text"].unique()}
    if not any(value is not None for value in minutes.values()):
        return nothing
    known = pl.col("text").replace_strict(minutes, return_dtype=pl.Int64).alias("minutes")
    return found.lazy().select("ms", known).drop_nulls().unique().sort("ms", "minutes").collect()


def _minutes(text: str) -> int | None:
    """Minutes east of Greenwich of +01:00, -07, Z or MST."""
    parts = re.fullmatch(r"([+-])(\d\d):?(\d\d)?", text)
    if parts is None:
        return ZONES.get(text.upper())
    return (-1 if parts[1] == "-" else 1) * (60 * int(parts[2]) + int(parts[3] or 0))


def minutes_as_text(minutes: int) -> str:
    """Minutes east of Greenwich as an offset.

    >>> minutes_as_text(-210)
    '-03:30'
    """
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def zone_of_offsets(found: pl.DataFrame) -> str | None:
    """The zone whose clocks had the offsets of all rows; None if there is none, or if all times are in UTC.

    A single offset gives a zone that always has it, such as Etc/GMT-1: whether clocks change cannot be known.
    """
    seen = found["minutes"].unique().to_list()
    if not seen or seen == [0]:
        return None
    ms, minutes = found["ms"].to_numpy(), found["minutes"].to_numpy()
    if len(seen) == 1 and seen[0] % 60 == 0 and abs(seen[0]) <= 720:
        return f"Etc/GMT{-seen[0] // 60:+d}"  # signs of these zones are reversed: Etc/GMT-1 is an hour ahead of UTC
    changes = np.flatnonzero(np.diff(minutes)) if len(ms) > 1 else np.zeros(0, np.int64)
    spread = np.linspace(0, len(ms) - 1, _TRIAL_ROWS).astype(np.int64)
    trial = np.unique(np.concatenate([changes, changes + 1, spread]))
    for zone in dict.fromkeys((*_PREFERRED, *sorted(zone_cities()))):
        if np.array_equal(zone_offsets(ms[trial], zone), minutes[trial]) and np.array_equal(
            zone_offsets(ms, zone), minutes
        ):
            return zone
    return None


def zone_offsets(ms: Integers, zone: str) -> Integers:
    """Offsets [minutes] that the clocks of a zone had at times [ms, UTC]."""
    times = pl.Series(ms).cast(pl.Datetime("ms", "UTC"))
    wall = times.dt.convert_time_zone(zone).dt.replace_time_zone(None).cast(pl.Int64)
    return (wall - times.cast(pl.Int64)).to_numpy() // 60_000
