"""Return data frames of the same type that the caller passed in: pandas, Polars or Arrow.

Internally every table is a Polars frame. Objects remember which library their input came from, and narwhals converts
their public tables back to it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import polars as pl

__all__ = ["POLARS", "Frame", "frame_type_of", "to_frame_type"]

Frame: TypeAlias = Any
"""A data frame of the library that the caller uses."""

POLARS, ARROW = "polars", "pyarrow"


def frame_type_of(*given: Any) -> str:
    """The library of the first data frame among the arguments.

    Args:
        given: data frames, lists of them, or anything else, such as paths.

    Returns:
        Its name, such as `pandas`; `polars` if there is no data frame, and `pyarrow` for data that is not in memory,
        such as a DuckDB relation.

    Example:
        >>> frame_type_of("sessions.csv", pl.DataFrame({"y": [1.0]}))
        'polars'
    """
    members = [each for one in given for each in (one if isinstance(one, list | tuple) else (one,))]
    return next((found for member in members if (found := _library_of(member)) is not None), POLARS)


def _library_of(value: Any) -> str | None:
    import narwhals as nw

    frame = nw.from_native(value, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return str(frame.implementation.value)
    if isinstance(frame, nw.LazyFrame):
        return POLARS if frame.implementation.is_polars() else ARROW
    return ARROW if hasattr(value, "__arrow_c_stream__") else None


def to_frame_type(frame: pl.DataFrame, frame_type: str) -> Frame:
    """A table as a data frame of another library.

    Args:
        frame: the table.
        frame_type: name of the library, as returned by `frame_type_of`.

    Example:
        >>> type(to_frame_type(pl.DataFrame({"y": [1.0]}), "pyarrow")).__name__
        'Table'
    """
    if frame_type == POLARS:
        return frame
    import narwhals as nw

    backend: Any = frame_type
    return nw.from_arrow(frame, backend=backend).to_native()
