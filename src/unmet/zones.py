"""Names of time zones."""

from __future__ import annotations

import polars as pl
from polars.exceptions import PolarsError

from unmet.errors import InputError

__all__ = ["checked_zone"]


def checked_zone(name: str) -> str:
    """The name of a time zone, if times can be converted to it."""
    try:
        pl.Series([0]).cast(pl.Datetime("ms", "UTC")).dt.convert_time_zone(name)
    except (PolarsError, ValueError):
        raise InputError(f"There is no time zone {name!r}: give a name such as Europe/Copenhagen.") from None
    return name
