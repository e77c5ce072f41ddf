"""Levels: how busy a station or a region is on each day, beside its usual week.

Demand grows, and seasons change. A level is the arrivals seen in days around a day over those that the usual week would
have brought, days further away counting less. How much less is chosen so that the days around a day foretell it best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from unmet.compiled import compiled

__all__ = ["MEMORIES", "Levels", "fit_levels", "levels_around", "levels_before", "no_levels"]

Floats = NDArray[np.float64]

MEMORIES = (np.inf, 180.0, 90.0, 45.0, 21.0, 10.0)
"""Days after which a day counts for 1/e; infinite: the level never changes."""

PSEUDO = 5.0  # arrivals at the usual level that every day starts from
CLEARLY = 2.0  # log-likelihood by which a shorter memory must be better, so that luck alone moves no level


class Levels(NamedTuple):
    """Levels of series (stations or regions) by day, and what they rest on."""

    level: Floats  # (series, days), about 1
    by_others: Floats  # (series, days), from the days around each alone
    memory: float  # days


def fit_levels(seen: Floats, expected: Floats) -> Levels:
    """Levels from the arrivals seen and expected at level 1, each (series, days), by days before and after a day."""
    best, chosen, others = -np.inf, np.inf, np.ones_like(seen)
    for memory in MEMORIES:
        nearby, nearby_expected = (_before(part, memory) + _after(part, memory) for part in (seen, expected))
        level = (PSEUDO + nearby) / (PSEUDO + nearby_expected)
        value = float((xlogy(seen, level) - level * expected).sum())
        if value > best + CLEARLY:
            best, chosen, others = value, memory, level
    by_others = others if np.isfinite(chosen) else np.ones_like(seen)
    return Levels(levels_around(seen, expected, chosen), by_others, chosen)


def no_levels(series: int, days: int) -> Levels:
    """Levels of series that never change."""
    one = np.ones((series, days))
    return Levels(one, one, np.inf)


def levels_around(seen: Floats, expected: Floats, memory: float) -> Floats:
    """Levels of each day from the days before and after it and itself, (series, days)."""
    if np.isinf(memory):
        return np.ones_like(seen)
    total, usual = (_before(part, memory) + _after(part, memory) + part for part in (seen, expected))
    return np.asarray((PSEUDO + total) / (PSEUDO + usual))


def levels_before(seen: Floats, expected: Floats, memory: float) -> Floats:
    """Levels of each day from the days before it alone, (series, days)."""
    if np.isinf(memory):
        return np.ones_like(seen)
    return np.asarray((PSEUDO + _before(seen, memory)) / (PSEUDO + _before(expected, memory)))


def _before(values: Floats, memory: float) -> Floats:
    """Sums over the days before each, discounted."""
    return _discounted(np.ascontiguousarray(values, float), float(np.exp(-1 / memory)))


@compiled()
def _discounted(values: Floats, keep: float) -> Floats:
    total = np.zeros_like(values)
    for series in range(values.shape[0]):
        for day in range(1, values.shape[1]):
            total[series, day] = keep * (total[series, day - 1] + values[series, day - 1])
    return total


def _after(values: Floats, memory: float) -> Floats:
    return _before(values[:, ::-1], memory)[:, ::-1]
