"""The unit of energies, kWh or Wh: the one that makes the charging powers plausible.

A column's name or a format suggests a unit. It is discarded if the rows contradict it, with energies that no car can
take in the time it was plugged in, or that are close to zero. If rows of both units are mixed, the unit may change
between blocks of rows, or between chargers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from unmet.arrays import Floats
from unmet.records.evidence import Finding
from unmet.records.mixed_units import (
    MAX_KW,
    MAX_KWH,
    SMALL_KWH,
    WATT_HOURS,
    MixedUnits,
    are_impossible,
    mixed_units,
)

__all__ = ["MAX_KW", "MAX_KWH", "SMALL_KWH", "EnergyUnit", "choose_unit"]

MIN_ROWS = 3  # fewer rows do not decide a unit
_PLAUSIBLE = (0.2, 200.0)  # range of the median energy of a file [kWh]
_NEAR_ZERO_KWH = 0.1  # most sessions of a working charger are above it
_MANY_IMPOSSIBLE = 0.02  # share of impossible energies; a file in one unit has fewer
_MOSTLY_IMPOSSIBLE = 0.5  # share of impossible energies from which a unit is wrong


@dataclass(frozen=True, slots=True)
class EnergyUnit:
    """The factor that converts energies as written to kWh."""

    factor: float | pl.Series  # one for all, or one for each row
    reading: Finding
    note: str | None = None


def choose_unit(
    numbers: pl.Series, hours: pl.Series, suggested: float, *, is_settled: bool, chargers: Sequence[pl.Series] = ()
) -> EnergyUnit:
    """The unit of energies, from numbers as written and the time plugged in [h].

    Args:
        numbers: energies as written, null where unreadable.
        hours: time plugged in, null where unknown.
        suggested: kWh per unit according to the column's name or the format: 1 for kWh, 0.001 for Wh.
        is_settled: whether the user gave the factor; then it is kept, and a note reports rows that contradict it.
        chargers: ids of each row's charger, from coarse to fine, as station, then station and plug.
    """
    telling = ((numbers > 0) & numbers.is_finite() & (hours > 0)).fill_null(value=False)
    energy, time = numbers.filter(telling).to_numpy(), hours.filter(telling).to_numpy()
    if len(energy) < MIN_ROWS:
        return EnergyUnit(suggested, _reading(suggested, 0, 0))
    wrong = are_impossible(energy * suggested, time)
    if is_settled:
        warning = f"{int(wrong.sum()):,} energies are impossible in {_unit_name(suggested)}: check energy_factor."
        reading = _reading(suggested, wrong.sum(), len(wrong))
        return EnergyUnit(suggested, reading, warning if wrong.mean() > _MOSTLY_IMPOSSIBLE else None)
    factor, note = _for_all(energy, time, suggested)
    ids = [names.filter(telling) for names in chargers]
    if suggested == 1 and (factor != 1 or wrong.sum() >= MIN_ROWS):
        mixed = mixed_units(energy, time, ids, mostly_wh=factor != 1)
        if mixed is not None:
            return _mixed(mixed, telling, None if mixed.level is None else chargers[mixed.level])
    wrong = are_impossible(energy * factor, time)
    if note is None and factor == 1 and wrong.sum() >= MIN_ROWS and wrong.mean() > _MANY_IMPOSSIBLE:
        note = (
            f"{int(wrong.sum()):,} energies are impossible in kWh, without a pattern by charger or block of rows. If "
            "some are in Wh, smaller ones may be too: export the file again with one unit."
        )
    if note is None and suggested < 1:
        note = _near_zero_note(energy, time, factor, ids)
    return EnergyUnit(factor, _reading(factor, wrong.sum(), len(wrong)), note)


def _unit_name(factor: float) -> str:
    return {1.0: "kWh", 0.001: "Wh", 1000.0: "MWh"}.get(factor, f"units of {factor:g} kWh")


def _reading(factor: float, wrong: int, rows: int) -> Finding:
    entry = ("energy_factor", factor)
    if not rows:
        return Finding(f"Energies are read in {_unit_name(factor)}.", entry=entry)
    sentence = f"Energies are read in {_unit_name(factor)} ({{}} above 0; too large for the time plugged in: {{}})."
    return Finding(sentence, (rows, int(wrong)), entry)


def _for_all(energy: Floats, hours: Floats, suggested: float) -> tuple[float, str | None]:
    """The unit of most rows, and a sentence if it is not the suggested one, or no unit fits."""
    share = float(are_impossible(energy * suggested, hours).mean())
    median_kwh = float(np.median(energy) * suggested)
    if share <= _MOSTLY_IMPOSSIBLE and not (suggested < 1 and median_kwh < _PLAUSIBLE[0] / 2):
        return suggested, None
    other = WATT_HOURS if suggested >= 1 else 1.0
    better = float(are_impossible(energy * other, hours).mean())
    # The other unit must make few energies impossible, and not clearly more than the suggested one.
    is_plausible = _PLAUSIBLE[0] <= float(np.median(energy) * other) <= _PLAUSIBLE[1]
    if is_plausible and better < min(share, 0.1) + _MANY_IMPOSSIBLE:
        usual = f"{median_kwh:,.0f}" if median_kwh >= 10 else f"{median_kwh:.2g}"
        why = f"in {_unit_name(suggested)}, {100 * share:.0f} % of them would be impossible, and the median {usual} kWh"
        return (
            other,
            f"energies are taken to be in {_unit_name(other)}: {why}. Give --map energy_factor={suggested:g} if not.",
        )
    if share <= _MOSTLY_IMPOSSIBLE:
        return suggested, None
    hint = "if they are in Wh, map energy_factor=0.001."
    return suggested, f"{100 * share:.0f} % of the energies are impossible in {_unit_name(suggested)}: {hint}"


def _mixed(mixed: MixedUnits, telling: pl.Series, charger: pl.Series | None) -> EnergyUnit:
    """The units of mixed rows; undecided rows take the unit of their charger, or of the row before."""
    n_wh, n_kwh = int(mixed.are_wh.sum()), int((~mixed.are_wh).sum())
    states = pl.Series([None], dtype=pl.Boolean).new_from_index(0, len(telling))
    states = states.scatter(telling.arg_true(), pl.Series(mixed.are_wh))
    if charger is None:
        states = states.forward_fill().backward_fill()
        where, by = f"in {_count(mixed.places, 'block')} of rows", "block of rows"
    else:
        table = pl.DataFrame({"id": charger, "wh": states})
        states = table.select(pl.col("wh").drop_nulls().first().over("id").fill_null(n_wh > n_kwh))["wh"]
        where, by = f"at {_count(mixed.places, 'charger')}", "charger"
    factor = states.to_frame("wh").select(pl.when("wh").then(WATT_HOURS).otherwise(1.0).alias("f"))["f"]
    note = (
        f"{n_wh:,} energies {where} are taken to be in Wh, and the others in kWh: no single unit makes all of them "
        "plausible. Give --map energy_factor=1 (kWh) or 0.001 (Wh) if one does."
    )
    return EnergyUnit(factor, Finding(f"{{}} energies are read in Wh and {{}} in kWh, by {by}.", (n_wh, n_kwh)), note)


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def _near_zero_note(energy: Floats, hours: Floats, factor: float, chargers: Sequence[pl.Series]) -> str | None:
    """A sentence about chargers whose energies are close to zero, unlike all others: they may be in kWh.

    If some of them would be impossible in kWh, they are in Wh, and most of their sessions failed.
    """
    if not chargers:
        return None
    rows = {"id": chargers[0], "kwh": energy * factor, "wrong": are_impossible(energy, hours)}
    by_station = pl.DataFrame(rows).group_by("id", maintain_order=True)
    medians = by_station.agg(pl.col("kwh").median(), pl.len(), pl.col("wrong").mean())
    few_wrong = pl.col("wrong") <= _MANY_IMPOSSIBLE
    near_zero = medians.filter((pl.col("kwh") < _NEAR_ZERO_KWH) & (pl.col("len") >= 3 * MIN_ROWS) & few_wrong)
    if near_zero.is_empty() or near_zero.height == medians.height:
        return None
    return (
        f"at {_count(near_zero.height, 'station')} (for example {near_zero['id'][0]}), half of the energies are below "
        f"{_NEAR_ZERO_KWH} kWh if they are in Wh like the others'. If those are in kWh, export the file again with "
        "one unit."
    )
