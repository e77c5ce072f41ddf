"""Whether energies are in kWh or Wh: the unit under which powers are possible.

A column's name or a format suggests the unit. It is dropped where the rows contradict it: energies that no car can
take in the time it was plugged in, or that are next to nothing. Where a spreadsheet put rows of both units together,
the unit may change from block to block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.compiled import compiled

__all__ = ["MOST_KW", "MOST_KWH", "SMALL_KWH", "EnergyUnit", "choose_unit"]

MOST_KWH = 1000.0
MOST_KW = 500.0
SMALL_KWH = 1.0  # below it, times to the minute say nothing about power
WATT_HOURS = 0.001
LEAST_ROWS = 3
_PLAUSIBLE = (0.2, 200.0)  # median energy of a file [kWh]
_TYPICAL, _SPREAD, _FLOOR = 1.0, 0.5, 3.0  # of log10 kWh; the floor keeps one odd row from outweighing others
_CHANGE = 12.0  # cost of another unit from one row to the next, as for the order of dates


@dataclass(frozen=True, slots=True)
class EnergyUnit:
    """What energies are multiplied by."""

    factor: float | pl.Series  # one for all, or one for each row
    reading: str
    note: str | None = None


def choose_unit(numbers: pl.Series, hours: pl.Series, suggested: float, *, is_settled: bool) -> EnergyUnit:
    """The unit of energies, from numbers as written and the time plugged in [h].

    Args:
        numbers: energies as written, null where unreadable.
        hours: time plugged in, null where unknown.
        suggested: kWh of one unit by the column's name or the format: 1, 0.001 for Wh.
        is_settled: whether the user gave the factor; then it stays, and the note says where rows contradict it.
    """
    telling = ((numbers > 0) & numbers.is_finite() & (hours > 0)).fill_null(value=False)
    energy, time = numbers.filter(telling).to_numpy(), hours.filter(telling).to_numpy()
    said = f"energies are read in {_name(suggested)}."
    if len(energy) < LEAST_ROWS:
        return EnergyUnit(suggested, said)
    wrong = _impossible(energy * suggested, time)
    share, middle = float(wrong.mean()), float(np.median(energy) * suggested)
    if is_settled:
        note = f"{int(wrong.sum()):,} energies are impossible in {_name(suggested)}: check energy_factor."
        return EnergyUnit(suggested, said, note if share > 0.5 else None)
    other = WATT_HOURS if suggested >= 1 else 1.0
    if share > 0.5 or (suggested < 1 and middle < _PLAUSIBLE[0] / 2):
        better = float(_impossible(energy * other, time).mean())
        if better < min(share, 0.1) + 0.02 and _PLAUSIBLE[0] <= float(np.median(energy) * other) <= _PLAUSIBLE[1]:
            why = f"in {_name(suggested)}, {share:.0%} of them would be impossible and half below {middle:.3g} kWh"
            note = f"energies are taken to be in {_name(other)}: {why}. Give --map energy_factor={suggested:g} if not."
            return EnergyUnit(other, f"energies are read in {_name(other)}.", note)
        return EnergyUnit(suggested, said, _hint(suggested, share))
    if suggested == 1 and wrong.sum() >= LEAST_ROWS:
        return _by_block(numbers, hours, telling)
    return EnergyUnit(suggested, said)


def _name(factor: float) -> str:
    return {1.0: "kWh", 0.001: "Wh", 1000.0: "MWh"}.get(factor, f"units of {factor:g} kWh")


def _hint(factor: float, share: float) -> str | None:
    if share <= 0.5:
        return None
    return f"{share:.0%} of the energies are impossible in {_name(factor)}: if they are in Wh, map energy_factor=0.001."


def _impossible(kwh: NDArray[np.float64], hours: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray((kwh > MOST_KWH) | ((kwh > SMALL_KWH) & (kwh > MOST_KW * hours)))


def _by_block(numbers: pl.Series, hours: pl.Series, telling: pl.Series) -> EnergyUnit:
    """kWh, but Wh in blocks of rows that are impossible in kWh."""
    energy, time = numbers.filter(telling).to_numpy(), hours.filter(telling).to_numpy()
    costs = np.column_stack([_cost(energy, time), _cost(energy * WATT_HOURS, time)])
    path = _cheapest(np.ascontiguousarray(costs), _CHANGE)
    rows = int(path.sum())
    if not rows:
        return EnergyUnit(1.0, "energies are read in kWh.")
    # Rows that tell nothing go with the last one that does.
    place = telling.arg_true()
    states = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(numbers)).scatter(place, pl.Series(path))
    states = states.forward_fill().backward_fill()
    factor = (states == 1).to_frame("wh").select(pl.when("wh").then(WATT_HOURS).otherwise(1.0).alias("f"))["f"]
    note = (
        f"{rows:,} energies in blocks of rows are taken to be in Wh, and the others in kWh: in kWh they are impossible."
    )
    return EnergyUnit(factor, note, note)


def _cost(kwh: NDArray[np.float64], hours: NDArray[np.float64]) -> NDArray[np.float64]:
    """Negative log-likelihood of an energy, bounded: log-normal around 10 kWh, and dear where impossible."""
    usual = np.minimum(0.5 * ((np.log10(kwh) - _TYPICAL) / _SPREAD) ** 2, _FLOOR)
    return np.where(_impossible(kwh, hours), 8.0, usual)


@compiled("int64[::1](float64[:, ::1], float64)")
def _cheapest(costs: NDArray[np.float64], change: float) -> NDArray[np.int64]:
    """The cheapest path of two states through the rows (Viterbi)."""
    rows = len(costs)
    back = np.zeros((rows, 2), dtype=np.uint8)
    first, second = 0.0, 4.0
    for i in range(rows):
        stay, leave = first, second + change
        back[i, 0] = 1 if leave < stay else 0
        other_stay, other_leave = second, first + change
        back[i, 1] = 0 if other_leave < other_stay else 1
        first = min(stay, leave) + costs[i, 0]
        second = min(other_stay, other_leave) + costs[i, 1]
    path = np.empty(rows, dtype=np.int64)
    state = 1 if second < first else 0
    for i in range(rows - 1, -1, -1):
        path[i] = state
        state = back[i, state]
    return path
