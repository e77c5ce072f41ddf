"""Conversion of energies as written to numbers: decimal commas, grouped digits, and units in the cells."""

from __future__ import annotations

import polars as pl

__all__ = ["read_numbers"]

_UNITS = {"": 0.001, "k": 1.0, "m": 1000.0}  # kWh per unit, in cells that name their unit


def read_numbers(cells: pl.Series) -> tuple[pl.Series, pl.Series, str | None]:
    """Energies as written, or in kWh if a cell names its unit; which cells do; and a sentence about commas."""
    no_unit = pl.repeat(False, len(cells), dtype=pl.Boolean, eager=True)
    if cells.dtype != pl.String and not cells.dtype.is_numeric():
        return pl.Series([None], dtype=pl.Float64).new_from_index(0, len(cells)), no_unit, None
    energy = cells.cast(pl.Float64, strict=False)
    if cells.dtype != pl.String or energy.null_count() == cells.null_count():
        return energy, no_unit, None
    rest = cells.set(energy.is_not_null(), None).str.strip_chars()
    named = rest.str.extract(r"(?i)([km]?)wh$").str.to_lowercase()
    unit = named.replace_strict(_UNITS, default=1.0)
    rest = rest.str.replace(r"(?i)\s*[km]?wh$", "")
    rest = rest.str.replace_all(r"[\s\x{a0}\x{202f}']", "")
    commas = rest.str.contains(",", literal=True)
    # The last of comma and point is the decimal mark; the others group digits.
    continental = rest.str.contains(r"^[^,]*,[^,.]*$")
    if _commas_group_digits(rest.filter(commas.fill_null(value=False)), energy):
        continental = continental & False
    plain = rest.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    plain = plain.zip_with(continental.fill_null(value=False), rest.str.replace_all(",", "", literal=True))
    read = plain.cast(pl.Float64, strict=False) * unit
    lone = commas & continental & ~rest.str.contains(".", literal=True) & read.is_not_null()
    note = "the commas in the energies are read as decimal marks."
    return energy.fill_null(read), named.is_not_null(), note if lone.fill_null(value=False).any() else None


def _commas_group_digits(with_commas: pl.Series, others: pl.Series) -> bool:
    """Whether 12,345 means twelve thousand: all commas are followed by three digits, and other numbers are below 1000.

    With three decimals in every number, 640 would be written 640,000; so whole numbers without a comma decide.
    """
    if with_commas.is_empty() or not with_commas.str.contains(r"^[1-9]\d{0,2}(,\d{3})+(\.\d+)?$").all():
        return False
    plain = others.drop_nulls().filter(others.drop_nulls() > 0)
    below = len(plain) > 0 and bool((plain < 1000).all())
    return bool(with_commas.str.contains(r",\d{3}[,.]").any()) or below
