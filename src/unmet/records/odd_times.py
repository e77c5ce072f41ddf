"""Times outside the calendar: Parquet can hold the year 300000, and printing it makes Polars panic."""

from __future__ import annotations

import polars as pl
import polars.selectors as cs

__all__ = ["printable_times", "with_printable_times"]

_SECONDS = -62_167_219_200, 253_402_300_800  # start of the years 0 and 10000 [s since 1970]
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}


def printable_times(cells: pl.Series) -> pl.Series:
    """The cells unchanged; or all as text if some lie outside the years 0 to 9999, which are written as numbers.

    Example:
        >>> printable_times(pl.Series([0, 2**62]).cast(pl.Datetime("ms"))).to_list()
        ['1970-01-01 00:00:00.000', '4611686018427387904']
    """
    if isinstance(cells.dtype, pl.Datetime):
        first, last = (seconds * _PER_SECOND[cells.dtype.time_unit] for seconds in _SECONDS)
    elif cells.dtype == pl.Date:
        first, last = (seconds // 86_400 for seconds in _SECONDS)
    else:
        return cells
    number = cells.to_physical().cast(pl.Int64)
    # Nanoseconds since 1970 end in 2262, within the years that can be printed.
    unprintable = ~number.is_between(max(first, -(2**63)), min(last, 2**63 - 1), closed="left").fill_null(value=True)
    if not unprintable.any():
        return cells
    return cells.set(unprintable, None).cast(pl.String).fill_null(number.cast(pl.String))


def with_printable_times(frame: pl.DataFrame) -> pl.DataFrame:
    """A table whose columns of times can all be printed."""
    return frame.with_columns(map(printable_times, frame.select(cs.temporal())))
