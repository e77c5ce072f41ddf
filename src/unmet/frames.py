"""The caller's kind of data frame: what comes in as pandas, Polars or Arrow goes out as the same.

Inside, every table is a Polars frame. Objects remember which library their input came from, and their public tables
are converted on the way out, by narwhals.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import polars as pl

__all__ = ["POLARS", "Frame", "frame_type_of", "to_frame_type"]

Frame: TypeAlias = Any
"""A data frame of the library that the caller uses."""

POLARS, ARROW = "polars", "pyarrow"


def frame_type_of(*given: Any) -> str:
    """The library of the first data frame among what was given.

    Args:
        given: data frames, lists of them, or anything else, such as paths.

    Returns:
        Its name, as `pandas`; Polars where no data frame was given, and PyArrow for what is not held in memory, such
        as a relation of DuckDB.

    Example:
        >>> frame_type_of("sessions.csv", pl.DataFrame({"y": [1.0]}))
        'polars'
    """
    members = [each for one in given for each in (one if isinstance(one, list | tuple) else (one,))]
    return next((found for member in members if (found := _library_of(member)) is not None), POLARS)


def _library_of(thing: Any) -> str | None:
    import narwhals as nw

    known = nw.from_native(thing, pass_through=True)
    if isinstance(known, nw.DataFrame):
        return str(known.implementation.value)
    if isinstance(known, nw.LazyFrame):
        return POLARS if known.implementation.is_polars() else ARROW
    return ARROW if hasattr(thing, "__arrow_c_stream__") else None


def to_frame_type(frame: pl.DataFrame, frame_type: str) -> Frame:
    """A table as a data frame of another library.

    Args:
        frame: the table.
        frame_type: as `frame_type_of` names it.

    Example:
        >>> type(to_frame_type(pl.DataFrame({"y": [1.0]}), "pyarrow")).__name__
        'Table'
    """
    if frame_type == POLARS:
        return frame
    import narwhals as nw

    backend: Any = frame_type
    return nw.from_arrow(frame, backend=backend).to_native()
