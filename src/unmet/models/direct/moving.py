"""Moving level: forecasts follow how demand of the last weeks compared with what had been expected of it.

A table of the last eight weeks lags a month behind a town that grows, and a model of expected demand may be off by some
percent for months. The ratio of recent demand to what was expected says by how much:

    r = (sum w y + n s t) / (sum w m + n s),    t = (sum w y + n s) / (sum w m + n s) over all regions together,

where y is demand, m what is expected of it, w halves with age, s is the energy of a session and n so many sessions of
belief that the region does as the town, and the town as expected: the posterior mean of a gamma prior on a Poisson
rate. A region with few sessions thus moves with its town, and a busy one by itself.

Of a table, m is what it says now of the last weeks: its profile stays, and its level becomes that of the last weeks. Of
a model that reads levels itself, m is what it said beforehand, and the memory is long: a short one would correct twice.
"""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats
from unmet.compiled import compiled

__all__ = ["LEVEL_MEMORY", "MODEL_MEMORY", "moved_quantiles", "moving_ratio"]


LEVEL_MEMORY, MODEL_MEMORY = 168, 2184  # hours after which what happened counts half, for tables and for models
BELIEF = 40.0  # sessions
LARGEST = 3.0  # ratio, and its inverse the smallest


def moving_ratio(expected: Floats, came: Floats, session_kwh: Floats, half_life: float) -> Floats:
    """Recent demand over what was expected of it, (regions,).

    Args:
        expected: what was expected of the last hours, (hours, regions) [kWh]; NaN where unknown.
        came: demand [kWh]; NaN where missing.
        session_kwh: energy of a session, (regions,).
        half_life: after which an hour counts half [h].
    """
    both = np.isfinite(expected) & np.isfinite(came)
    weight = 0.5 ** (np.arange(len(came))[::-1] / half_life)
    total, should = (weight @ np.where(both, part, 0.0) for part in (came, expected))
    belief = BELIEF * session_kwh
    mean_belief = float(belief.mean()) if len(belief) else 0.0
    town = (total.sum() + mean_belief) / (should.sum() + mean_belief)
    return np.asarray(np.clip((total + belief * town) / (should + belief), 1 / LARGEST, LARGEST))


@compiled()
def moved_quantiles(sample: Floats, ratio: float, levels: Floats) -> Floats:
    """Quantiles, mean and share of zeros of a sorted sample whose mean is moved by a ratio.

    The chance of no demand p becomes p^ratio, as that of Poisson arrivals does; the sizes of what comes are scaled by
    what is left. So twice the demand of a sparse region is twice as many sessions, and that of a busy one larger sums.

    Returns:
        (levels + 2,); quantiles are linear between order statistics, as NumPy's.
    """
    n, number = len(sample), len(levels)
    made = np.zeros(number + 2)
    none = np.searchsorted(sample, 0.0, side="right") / n
    left = none**ratio
    made[number + 1] = left
    if none == 1.0:
        return made
    size = ratio * (1.0 - none) / (1.0 - left)
    for j in range(number):
        if ratio != 1.0 and levels[j] <= left:
            continue  # within the point mass at zero; as it is, a sample has the quantiles that NumPy gives
        at = max(1.0 - (1.0 - levels[j]) * (1.0 - none) / (1.0 - left), 0.0) * (n - 1)
        low = int(at)
        high = min(low + 1, n - 1)
        made[j] = size * (sample[low] + (at - low) * (sample[high] - sample[low]))
    made[number] = ratio * sample.mean()
    return made
