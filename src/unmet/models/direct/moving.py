"""Moving level: forecasts are corrected by the ratio of recent demand to its expectation.

A table of the last eight weeks lags a month behind a town that grows, and a model of expected demand may be biased by
some percent for months. The ratio of recent demand to expected demand estimates the bias:

    r = (sum w y + n s t) / (sum w m + n s),    t = (sum w y + n s) / (sum w m + n s) over all regions together,

where y is demand, m its expectation, w a weight that decays with age, s the energy of a session, and n the weight of
the prior in sessions: the posterior mean of a Poisson rate with a gamma prior around the town's ratio, which in turn
has a prior around 1. A region with few sessions thus follows its town, and a busy one follows its own ratio.

For a table, m is its present value for the last weeks: the profile stays, and the level is adjusted to these weeks. A
model that reads levels itself is compared with its past forecasts, with a long memory: a short one would correct twice.
"""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats
from unmet.compiled import compiled

__all__ = ["LEVEL_MEMORY", "MODEL_MEMORY", "decay", "moved_quantiles", "moving_ratio"]


LEVEL_MEMORY, MODEL_MEMORY = 168, 2184  # half-lives of the weights, for tables and for models [h]
PRIOR_SESSIONS = 40.0  # n: weight of the prior
MAX_RATIO = 3.0  # largest ratio; its inverse is the smallest


def decay(hours: int, half_life: float) -> Floats:
    """Weights of the last hours, the oldest first, which halve every `half_life` hours, (hours,)."""
    return np.asarray(0.5 ** (np.arange(hours)[::-1] / half_life))


def moving_ratio(expected: Floats, demand: Floats, session_kwh: Floats, half_life: float) -> Floats:
    """Recent demand over its expectation, (regions,).

    Args:
        expected: expected demand of the last hours, (hours, regions) [kWh]; NaN if unknown.
        demand: demand of these hours [kWh]; NaN if missing.
        session_kwh: energy of a session, (regions,) [kWh].
        half_life: half-life of the weights [h].
    """
    both = np.isfinite(expected) & np.isfinite(demand)
    weight = decay(len(demand), half_life)
    total, predicted = (weight @ np.where(both, part, 0.0) for part in (demand, expected))
    prior = PRIOR_SESSIONS * session_kwh
    mean_prior = float(prior.mean()) if len(prior) else 0.0
    town = (total.sum() + mean_prior) / (predicted.sum() + mean_prior)
    return np.asarray(np.clip((total + prior * town) / (predicted + prior), 1 / MAX_RATIO, MAX_RATIO))


@compiled()
def moved_quantiles(sample: Floats, ratio: float, levels: Floats) -> Floats:
    """Quantiles, mean and share of zeros of a sorted sample whose mean is multiplied by a ratio.

    The probability of no demand p becomes p^ratio, as for Poisson arrivals; positive demand is scaled so that the mean
    is right. Twice the demand of a sparse region thus means twice as many hours with sessions, and twice the demand of
    a busy one larger sums.

    Returns:
        (levels + 2,); quantiles are interpolated linearly between order statistics, as in NumPy.
    """
    n, n_levels = len(sample), len(levels)
    result = np.zeros(n_levels + 2)
    zeros = np.searchsorted(sample, 0.0, side="right") / n
    moved_zeros = zeros**ratio
    result[n_levels + 1] = moved_zeros
    if zeros == 1.0:
        return result
    size = ratio * (1.0 - zeros) / (1.0 - moved_zeros)  # factor on positive demand
    for j in range(n_levels):
        if ratio != 1.0 and levels[j] <= moved_zeros:
            continue  # within the point mass at zero; with a ratio of 1, quantiles are exactly those of NumPy
        # The level at which the original sample has the same place within its positive part.
        at = max(1.0 - (1.0 - levels[j]) * (1.0 - zeros) / (1.0 - moved_zeros), 0.0) * (n - 1)
        low = int(at)
        high = min(low + 1, n - 1)
        result[j] = size * (sample[low] + (at - low) * (sample[high] - sample[low]))
    result[n_levels] = ratio * sample.mean()
    return result
