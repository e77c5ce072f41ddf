"""Cells of ids as text: one column, or several joined."""

from __future__ import annotations

import polars as pl

__all__ = ["as_text", "columns_of", "identity_of"]


def columns_of(names: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The columns of an entry of a mapping: one, several or none."""
    return (names,) if isinstance(names, str) else names or ()


def as_text(cells: pl.Series) -> pl.Series:
    """Cells as text, null where blank; whole numbers stored as 3.0 become 3."""
    if cells.dtype.is_float():
        finite = cells.is_finite().fill_null(value=False)
        if (cells.filter(finite) % 1 == 0).all() and (cells.filter(finite).abs() < 2**53).all():  # exact
            cells = cells.set(~finite, None).cast(pl.Int64)
    text = (cells if cells.dtype == pl.String else cells.cast(pl.String, strict=False)).str.strip_chars()
    blank = text.str.len_bytes() == 0
    return text.set(blank.fill_null(value=False), None) if blank.any() else text


def identity_of(raw: pl.DataFrame, names: str | tuple[str, ...]) -> pl.Series:
    """Ids from one column, or joined from several, such as `CP1/2`; null where a part is empty."""
    columns = columns_of(names)
    if len(columns) == 1:
        return as_text(raw[columns[0]])
    parts = pl.DataFrame({str(place): as_text(raw[column]) for place, column in enumerate(columns)})
    return parts.select(pl.concat_str(pl.all(), separator="/"))["0"]
