"""Conversion of energies as written to numbers: decimal commas, grouped digits, and units in the cells."""

from __future__ import annotations

import polars as pl

__all__ = ["read_numbers"]

_UNITS = {"": 0.001, "k": 1.0, "m": 1000.0}  # kWh per unit, in cells that name their unit


def read_numbers(cells: pl.Series) -> tuple[pl.Series, pl.Series, str | None]:
    """Read energies such as `7.5`, `1,234.5`, `7,5 kWh` or `7 500 Wh`.

    Returns:
        Numbers, null where unreadable: in kWh if the cell names its unit, else as written; whether each cell names its
        unit; and a sentence if commas were read as decimal marks.
    """
    no_unit = pl.repeat(False, len(cells), dtype=pl.Boolean, eager=True)
    if cells.dtype != pl.String and not cells.dtype.is_numeric():
        return pl.Series([None], dtype=pl.Float64).new_from_index(0, len(cells)), no_unit, None
    energy = cells.cast(pl.Float64, strict=False)
    if cells.dtype != pl.String or energy.null_count() == cells.null_count():
        return energy, no_unit, None
    rest = cells.set(energy.is_not_null(), None).str.strip_chars()
    prefix = rest.str.extract(r"(?i)([km]?)wh$").str.to_lowercase()
    unit = prefix.replace_strict(_UNITS, default=1.0)
    rest = rest.str.replace(r"(?i)\s*[km]?wh$", "")
    rest = rest.str.replace_all(r"[\s\x{a0}\x{202f}']", "")
    commas = rest.str.contains(",", literal=True)
    # The last of comma and point is the decimal mark; the others group digits.
    has_decimal_comma = rest.str.contains(r"^[^,]*,[^,.]*$")
    if _commas_group_digits(rest.filter(commas.fill_null(value=False)), energy):
        has_decimal_comma = has_decimal_comma & False  # in no row
    plain = rest.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    plain = plain.zip_with(has_decimal_comma.fill_null(value=False), rest.str.replace_all(",", "", literal=True))
    read = plain.cast(pl.Float64, strict=False) * unit
    has_only_comma = commas & has_decimal_comma & ~rest.str.contains(".", literal=True) & read.is_not_null()
    note = "the commas in the energies are read as decimal marks."
    return energy.fill_null(read), prefix.is_not_null(), note if has_only_comma.fill_null(value=False).any() else None


def _commas_group_digits(with_commas: pl.Series, others: pl.Series) -> bool:
    """Whether 12,345 means twelve thousand: all commas are followed by three digits, and other numbers are below 1000.

    With three decimals in every number, 640 would be written 640,000; so whole numbers without a comma decide.
    """
    if with_commas.is_empty() or not with_commas.str.contains(r"^[1-9]\d{0,2}(,\d{3})+(\.\d+)?$").all():
        return False
    plain = others.drop_nulls().filter(others.drop_nulls() > 0)
    below = len(plain) > 0 and bool((plain < 1000).all())
    return bool(with_commas.str.contains(r",\d{3}[,.]").any()) or below
