"""Levels: how busy a station or a region is on each day, beside its usual week.

Demand grows, and seasons change. A level is the arrivals seen in days around a day over those that the usual week would
have brought, days further away counting less. How much less is chosen so that the days around a day foretell it best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

__all__ = ["MEMORIES", "Levels", "fit_levels", "levels_around", "levels_before"]

Floats = NDArray[np.float64]

MEMORIES = (np.inf, 180.0, 90.0, 45.0, 21.0, 10.0)
"""Days after which a day counts for 1/e; infinite: the level never changes."""

PSEUDO = 5.0  # arrivals at the usual level that every day starts from
CLEARLY = 2.0  # log-likelihood by which a shorter memory must be better, so that luck alone moves no level


class Levels(NamedTuple):
    """Levels of series (stations or regions) by day, and what they rest on."""

    level: Floats  # (series, days), about 1
    weight: Floats  # (series, days), arrivals that the level rests on
    memory: float  # days


def fit_levels(seen: Floats, expected: Floats) -> Levels:
    """Levels from the arrivals seen and expected at level 1, each (series, days), by days before and after a day."""
    best = -np.inf
    found = Levels(np.ones_like(seen), np.ones_like(seen), np.inf)
    for memory in MEMORIES:
        around, around_expected = (_before(part, memory) + _after(part, memory) for part in (seen, expected))
        others = (PSEUDO + around) / (PSEUDO + around_expected)
        value = float((xlogy(seen, others) - others * expected).sum())
        if value > best + CLEARLY:
            best = value
            found = Levels(levels_around(seen, expected, memory), PSEUDO + around + seen, memory)
    return found


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
    total, keep = np.zeros_like(values, float), float(np.exp(-1 / memory))
    for day in range(1, values.shape[1]):
        total[:, day] = keep * (total[:, day - 1] + values[:, day - 1])
    return total


def _after(values: Floats, memory: float) -> Floats:
    return _before(values[:, ::-1], memory)[:, ::-1]
