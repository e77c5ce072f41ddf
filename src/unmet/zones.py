"""Names of time zones."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import polars as pl
from polars.exceptions import PolarsError

from unmet.errors import InputError

__all__ = ["checked_zone"]


def checked_zone(name: str) -> str:
    """The name of a time zone, checked."""
    try:
        ZoneInfo(name)  # Polars takes more, as * and nothing, and fails later
        pl.Series([0]).cast(pl.Datetime("ms", "UTC")).dt.convert_time_zone(name)
    except (PolarsError, ValueError, KeyError, OSError):
        raise InputError(f"There is no time zone {name!r}: give a name such as Europe/Copenhagen.") from None
    return name
