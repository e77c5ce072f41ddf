"""Names of time zones."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

import polars as pl
from polars.exceptions import PolarsError

from unmet.errors import InputError

__all__ = ["checked_zone", "country_of_zone"]


def checked_zone(name: str) -> str:
    """The name of a time zone, if it exists; raises an `InputError` otherwise."""
    try:
        ZoneInfo(name)  # Polars accepts more, such as "*" and "", and fails later
        pl.Series([0]).cast(pl.Datetime("ms", "UTC")).dt.convert_time_zone(name)
    except (PolarsError, ValueError, KeyError, OSError):
        raise InputError(f"There is no time zone {name!r}: give a name such as Europe/Copenhagen.") from None
    return name


@cache
def country_of_zone(name: str) -> str | None:
    """The country of a time zone, such as DK for Europe/Copenhagen; None for UTC and multi-country zones."""
    table = files("tzdata") / "zoneinfo" / "zone.tab"
    if not table.is_file():
        return None
    rows = (line.split("\t") for line in table.read_text(encoding="utf-8").splitlines() if line[:1] != "#")
    return next((row[0] for row in rows if len(row) > 2 and row[2] == name), None)
