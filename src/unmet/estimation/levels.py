"""Slow levels: growth, seasons, and sites that become busier or quieter, on top of the weekly profile.

The level of a day is the number of arrivals on the days around it over the number that the weekly profile predicts for
their exposed time. More distant days have less weight:

    level[d] = (P + sum over e of w(|d - e|) n[e]) / (P + sum over e of w(|d - e|) m[e]),      w(x) = exp(-x / memory).

The memory is the one that best predicts every day from the days around it, without the day itself. A shorter memory
must clearly predict better. With an infinite memory the level is 1.

Assumption: slow changes affect lost arrivals in the same way as recorded ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from unmet.arrays import Floats
from unmet.compiled import compiled

__all__ = ["SlowLevel", "level_before", "slow_level"]

MEMORIES = (np.inf, 120.0, 60.0, 30.0, 15.0)
"""Memories that are compared [days]; with an infinite one the level never changes."""
PRIOR_ARRIVALS = 10.0  # P: weight of the usual level [arrivals]
MIN_GAIN = 2.0  # gain in log likelihood from which a shorter memory is chosen


class SlowLevel(NamedTuple):
    """Levels by day, and the memory that was chosen."""

    level: Floats  # (series, days), about 1
    memory: float  # days


def slow_level(count: Floats, expected: Floats) -> SlowLevel:
    """Slow levels from observed arrivals and those expected at level 1, both (series, days), with a common memory.

    Memories are compared by the Poisson log likelihood of each day, sum of n log(level m) - level m, with the level
    from all other days.
    """
    best, chosen = -np.inf, SlowLevel(np.ones_like(count), np.inf)
    for memory in MEMORIES:
        observed, usual = _around(count, memory), _around(expected, memory)
        left_out = _ratio(observed, usual, memory)
        value = float((xlogy(count, left_out) - left_out * expected).sum())
        if value > best + MIN_GAIN:
            best, chosen = value, SlowLevel(_ratio(observed + count, usual + expected, memory), memory)
    return chosen


def level_before(count: Floats, expected: Floats, memory: float) -> Floats:
    """Slow level of each day from the days before it alone, (series, days)."""
    decay = float(np.exp(-1 / memory))
    return _ratio(_before(count, decay), _before(expected, decay), memory)


def _ratio(count: Floats, expected: Floats, memory: float) -> Floats:
    """The level, from weighted sums of observed and expected arrivals."""
    if np.isinf(memory):
        return np.ones_like(count)
    return np.asarray((PRIOR_ARRIVALS + count) / (PRIOR_ARRIVALS + expected))


def _around(values: Floats, memory: float) -> Floats:
    """Weighted sums over the days around each day, without the day itself."""
    decay = float(np.exp(-1 / memory))
    forwards, backwards = _before(values, decay), _before(np.ascontiguousarray(values[:, ::-1]), decay)[:, ::-1]
    return np.asarray(forwards + backwards)


@compiled()
def _before(values: Floats, decay: float) -> Floats:
    """Sums over all earlier days e of decay^(d - e) values[e], for each day d, (series, days)."""
    total = np.zeros_like(values)
    for series in range(values.shape[0]):
        for day in range(1, values.shape[1]):
            total[series, day] = decay * (total[series, day - 1] + values[series, day - 1])
    return total
