"""Points that group the digits of energies: in a column with 377 (Wh), 7.937 stands for 7,937 Wh."""

from __future__ import annotations

import polars as pl

from unmet.records.mixed_units import WATT_HOURS, are_impossible

__all__ = ["without_grouping_points"]

# If points were decimal marks and trailing zeros were left out, one number in ten would have fewer than three decimals,
# so that 30 numbers would all have three with a probability of only 0.9**30 = 4 %.
MIN_CELLS = 30
_MANY_IMPOSSIBLE = 0.5  # share of energies that are impossible in kWh from which they are in Wh
_GROUPED = r"^\s*[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?\s*(?:[Ww][Hh])?\s*$"  # 7.937, 1.234.567, 7.937,5 Wh
_CERTAIN = r"\.\d{3}(?:[.,]|\s*[Ww][Hh])"  # a second point, a comma or Wh after three digits
_BELOW_1000 = r"^\s*\d{1,3}(?:,\d+)?\s*(?:[Ww][Hh])?\s*$"


def without_grouping_points(cells: pl.Series, hours: pl.Series, suggested: float) -> tuple[pl.Series, str | None]:
    """Energies without points that group digits, and a sentence; unchanged, and None, if points are decimal marks.

    All points must be followed by groups of three digits, and all numbers without a point must be below 1000. Then
    points group digits if a cell has several points, or a comma after a point, or if the column is in Wh. Otherwise,
    they do if there are whole numbers without a point, unless these can be kWh that lost three zeros after the point.

    Args:
        cells: energies as written.
        hours: time plugged in, null where unknown.
        suggested: kWh per unit according to the column's name or the format: 1 for kWh, 0.001 for Wh.
    """
    if cells.dtype != pl.String:
        return cells, None
    given = cells.drop_nulls()
    pointed = given.filter(given.str.contains(".", literal=True))
    if pointed.is_empty() or not pointed.str.contains(_GROUPED).all():
        return cells, None
    plain = given.filter(~given.str.contains(".", literal=True) & given.str.contains(r"\d"))
    if not plain.str.contains(_BELOW_1000).all():
        return cells, None
    if not pointed.str.contains(_CERTAIN).any() and suggested != WATT_HOURS and not _are_wh(cells, hours, pointed):
        return cells, None
    note = f"the points in {len(pointed):,} energies group digits: {pointed[0].strip()} is not a fraction."
    return cells.str.replace_all(".", "", literal=True), note


def _are_wh(cells: pl.Series, hours: pl.Series, pointed: pl.Series) -> bool:
    """Whether numbers without a point are in Wh rather than kWh."""
    whole = cells.str.extract(r"^\s*(\d+)\s*$").cast(pl.Float64)
    telling = (whole > 0).fill_null(value=False)
    if not telling.any():
        return False
    numbers = whole.filter(telling).to_numpy()
    if are_impossible(numbers, hours.filter(telling).fill_null(float("inf")).to_numpy()).mean() >= _MANY_IMPOSSIBLE:
        return True
    if "kwh" in cells.name.lower():  # rows typed by hand may be whole numbers of kWh, as large as the others
        return bool(
            len(pointed) >= MIN_CELLS and numbers.max() > pointed.cast(pl.Float64, strict=False).to_numpy().max()
        )
    return len(pointed) >= MIN_CELLS
