"""Energies in kWh in some rows and in Wh in others: by block of rows, or by charger.

Each way of mixing has a cost: the negative log-likelihood of its energies, plus a penalty for every change of unit. The
one with the lowest cost is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from unmet.arrays import Booleans, Floats, Integers
from unmet.compiled import compiled
from unmet.records.ordering import numbers_of

__all__ = ["MAX_KW", "MAX_KWH", "SMALL_KWH", "WATT_HOURS", "MixedUnits", "are_impossible", "mixed_units"]

MAX_KWH = 1000.0  # highest energy of a session
MAX_KW = 500.0  # highest mean power of a session
SMALL_KWH = 1.0  # below it, times to the minute say nothing about power
WATT_HOURS = 0.001  # kWh per Wh
IMPOSSIBLE = 8.0  # cost of an impossible energy [nats], as in `day_order`
MAX_MISFIT_SHARE = 0.05  # highest share of rows that the other unit would fit far better
_MISFIT = 2.0  # nats by which it does
_TYPICAL, _SPREAD = 1.0, 0.5  # mean and standard deviation of log10 kWh
_MAX_COST = 3.0  # highest cost of an unusual energy, so that one odd row does not outweigh the others [nats]
_CHANGE = 12.0  # cost of a change of unit between rows, or of a charger in another unit [nats], as in `day_order`
_BEGINS_IN_WH = 4.0  # cost of a file that begins in Wh: it is less likely [nats]


@dataclass(frozen=True, slots=True)
class MixedUnits:
    """Which energies are in Wh."""

    are_wh: Booleans
    places: int  # how many chargers or blocks of rows are in Wh
    level: int | None = None  # which id of the chargers determines the unit; None if the unit changes by block of rows


def are_impossible(kwh: Floats, hours: Floats) -> Booleans:
    """Whether energies are impossible: no car can take them in the hours that it was plugged in."""
    return np.asarray((kwh > MAX_KWH) | ((kwh > SMALL_KWH) & (kwh > MAX_KW * hours)))


def mixed_units(energy: Floats, hours: Floats, chargers: Sequence[pl.Series], *, mostly_wh: bool) -> MixedUnits | None:
    """Which rows are in Wh while the others are in kWh, or None if one unit fits all best.

    Args:
        energy: positive numbers as written, in the order of the file.
        hours: time plugged in, positive.
        chargers: ids of each row's charger, from coarse to fine, as station, then station and plug.
        mostly_wh: the unit that all rows would have otherwise.
    """
    costs = np.column_stack([_cost(energy, hours), _cost(energy * WATT_HOURS, hours)])
    lowest = float(costs[:, int(mostly_wh)].sum())
    best: MixedUnits | None = None
    path = _cheapest(np.ascontiguousarray(costs), _CHANGE)
    changes = int(np.count_nonzero(np.diff(path)))
    cost = float(costs[np.arange(len(path)), path].sum()) + _CHANGE * changes
    if changes and cost < lowest - _CHANGE:  # by a margin, so that few rows do not suffice
        blocks_in_wh = (changes + int(path[0]) + 1) // 2  # blocks alternate between the units
        best, lowest = MixedUnits(path == 1, blocks_in_wh), cost
    for level, names in enumerate(chargers):
        are_wh, cost, places = _by_charger(costs, numbers_of(names), mostly_wh=mostly_wh)
        if places and cost < lowest:
            best, lowest = MixedUnits(are_wh, places, level), cost
    return best if best is not None and _misfits(costs, best.are_wh) <= MAX_MISFIT_SHARE else None


def _misfits(costs: Floats, are_wh: Booleans) -> float:
    """Share of rows that the other unit would fit far better; it is large if units are mixed row by row."""
    chosen, other = (costs[np.arange(len(costs)), unit.astype(np.int64)] for unit in (are_wh, ~are_wh))
    return float((chosen > other + _MISFIT).mean())


def _by_charger(costs: Floats, charger: Integers, *, mostly_wh: bool) -> tuple[Booleans, float, int]:
    """Rows in Wh if the unit differs by charger, the cost of this reading, and how many chargers are in Wh."""
    number = np.unique(charger, return_inverse=True)[1]
    sums = np.column_stack([np.bincount(number, costs[:, unit]) for unit in (0, 1)])
    usual, other = sums[:, int(mostly_wh)], sums[:, int(not mostly_wh)]
    differ = other + _CHANGE < usual
    if differ.all():  # not mixed after all
        return np.zeros(len(costs), dtype=np.bool_), np.inf, 0
    cost = float(np.where(differ, other + _CHANGE, usual).sum())
    in_wh = differ ^ mostly_wh
    return in_wh[number], cost, int(in_wh.sum()) if differ.any() else 0


def _cost(kwh: Floats, hours: Floats) -> Floats:
    """Bounded negative log-likelihood of an energy: log-normal around 10 kWh, with a penalty if impossible."""
    usual = np.minimum(0.5 * ((np.log10(np.maximum(kwh, 1e-9)) - _TYPICAL) / _SPREAD) ** 2, _MAX_COST)
    return np.where(are_impossible(kwh, hours), IMPOSSIBLE, usual)


@compiled("int64[::1](float64[:, ::1], float64)")
def _cheapest(costs: Floats, change: float) -> Integers:
    """The cheapest path through the rows (Viterbi algorithm): 0 for kWh, 1 for Wh.

    Args:
        costs: cost of each row in kWh and in Wh, (rows, 2).
        change: cost of a change between rows.
    """
    rows = len(costs)
    back = np.zeros((rows, 2), dtype=np.uint8)
    kwh, wh = 0.0, _BEGINS_IN_WH  # costs so far of paths that end in this unit
    for i in range(rows):
        kwh_from_wh, wh_from_kwh = wh + change, kwh + change
        back[i, 0] = 1 if kwh_from_wh < kwh else 0
        back[i, 1] = 0 if wh_from_kwh < wh else 1
        kwh = min(kwh, kwh_from_wh) + costs[i, 0]
        wh = min(wh, wh_from_kwh) + costs[i, 1]
    path = np.empty(rows, dtype=np.int64)
    state = 1 if wh < kwh else 0
    for i in range(rows - 1, -1, -1):
        path[i] = state
        state = back[i, state]
    return path
