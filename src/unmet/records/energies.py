"""Energies of sessions in kWh: from a column of energies, or as differences of meter readings."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from unmet.records.energy_numbers import read_numbers
from unmet.records.evidence import Finding
from unmet.records.grouped_digits import without_grouping_points
from unmet.records.id_cells import as_text
from unmet.records.mapping import Mapping
from unmet.records.units import choose_unit

__all__ = ["Energies", "energy_cells", "has_energy", "read_energies"]

_HOUR = 3_600_000
_TWO_GROUPS = r"^\s*\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?\D*$"  # 1.234.567: points that can only group digits


@dataclass(frozen=True, slots=True)
class Energies:
    """Energies of the rows of a file."""

    kwh: pl.Series
    readings: list[Finding]
    notes: list[str]


def read_energies(cells: pl.Series, typed: pl.DataFrame, mapping: Mapping, *, is_settled: bool) -> Energies:
    """Energies in kWh, with the unit that the rows support.

    Args:
        cells: see `energy_cells`.
        typed: `station_id, start, end` [ms], and `plug_id` if the file has it.
        mapping: gives the suggested unit.
        is_settled: whether the user gave that unit.
    """
    hours = (typed["end"] - typed["start"]) / _HOUR
    cells, grouped = without_grouping_points(cells, hours, mapping.energy_factor)
    numbers, are_kwh, note = read_numbers(cells)
    chargers = [typed["station_id"]]
    if "plug_id" in typed.columns:
        chargers.append(
            typed.select(pl.concat_str("station_id", "plug_id", separator="/", ignore_nulls=True))["station_id"]
        )
    unit = choose_unit(
        numbers.set(are_kwh, None), hours, mapping.energy_factor, is_settled=is_settled, chargers=chargers
    )
    is_plain = isinstance(unit.factor, float) and unit.factor == 1
    kwh = numbers if is_plain else numbers.zip_with(are_kwh, numbers * unit.factor)
    readings = [unit.reading]
    if mapping.meter_start is not None and mapping.meter_end is not None:
        what = f"Energies are the differences of {mapping.meter_end!r} and {mapping.meter_start!r}."
        readings.insert(0, Finding(what.replace("{}", "")))  # {} in a column's name would stand for a count
    return Energies(kwh, readings, [sentence for sentence in (grouped, note, unit.note) if sentence])


def energy_cells(raw: pl.DataFrame, mapping: Mapping) -> pl.Series:
    """Energies as written, or the differences of meter readings, null where one of them cannot be read."""
    if mapping.meter_start is None or mapping.meter_end is None:
        return raw[mapping.energy_kwh]
    first, last = (_meter_readings(raw[name], mapping) for name in (mapping.meter_start, mapping.meter_end))
    return (last - first).round(6)  # removes rounding errors of the subtraction


def has_energy(raw: pl.DataFrame, mapping: Mapping, cells: pl.Series) -> pl.Series:
    """Which rows have an energy, or both meter readings, readable or not."""
    if mapping.meter_start is None or mapping.meter_end is None:
        return (as_text(cells) if cells.dtype == pl.String else cells).is_not_null()
    first, last = (as_text(raw[name]).is_not_null() for name in (mapping.meter_start, mapping.meter_end))
    return first & last


def _meter_readings(cells: pl.Series, mapping: Mapping) -> pl.Series:
    """Meter readings in the unit of the mapping; those that name another unit are converted."""
    if cells.dtype == pl.String and cells.str.contains(_TWO_GROUPS).any():
        cells = cells.str.replace_all(".", "", literal=True)
    numbers, are_kwh, _ = read_numbers(cells)
    return (numbers / mapping.energy_factor).zip_with(are_kwh, numbers)
