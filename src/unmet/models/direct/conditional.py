"""The distribution of demand given its expected value, from the demand that followed past forecasts of that value.

Suppose that a model expects 6 kWh. Demand in those hours of the last quarter for which it had forecast about 6 kWh is a
sample of the distribution to be forecast: it has the right share of zeros and the right spread, without assumptions
about either. The mean of the sample is scaled to the expected value, times the ratio of recent demand to its forecasts,
because a few hundred hours of sparse demand say much about its distribution but less about its mean. The idea comes
from isotonic distributional regression on a point forecast [1], with nearest neighbours in place of isotonic fits.

[1] E.-M. Walz, A. Henzi, J. Ziegel, T. Gneiting, Easy uncertainty quantification (EasyUQ): generating predictive
distributions from single-valued model output, SIAM Review 66 (2024) 91-122.
"""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats
from unmet.compiled import compiled
from unmet.models.direct.moving import moved_quantiles

__all__ = ["NEIGHBOURS", "WINDOW", "conditional_quantiles"]


NEIGHBOURS = 200  # past forecasts in a sample
WINDOW = 13 * 168  # number of past hours that are searched for them
MIN_FACTOR = 0.2  # smallest factor by which a neighbour is scaled; its inverse is the largest
POINTS = 60  # expected values at which distributions are computed: interpolated in between, scaled beyond


def conditional_quantiles(expected: Floats, demand: Floats, wanted: Floats, levels: Floats, ratio: Floats) -> Floats:
    """Quantiles of demand given its expected value, region by region.

    Args:
        expected: past forecasts of the mean (hours, regions) [kWh]; NaN if there is none.
        demand: demand in those hours [kWh]; NaN if missing.
        wanted: expected values to return distributions for, (targets, regions) [kWh].
        levels: levels of the quantiles.
        ratio: recent demand over its forecasts, (regions,), from `moving_ratio`; a factor on the mean.

    Returns:
        (targets, regions, levels + 2): quantiles and mean [kWh], and the probability of no demand.
    """
    targets, regions = wanted.shape
    n_levels = len(levels)
    result = np.zeros((targets, regions, n_levels + 2))
    result[..., n_levels + 1] = 1.0
    for r in range(regions):
        usable = ~(np.isnan(expected[:, r]) | np.isnan(demand[:, r]))
        mean, value = expected[usable, r], demand[usable, r]
        if len(mean) == 0 or targets == 0:
            continue
        order = np.argsort(mean, kind="stable")
        mean, value = mean[order], value[order]
        # Points do not depend on `wanted`, so that an hour always has the same forecast.
        points = np.unique(np.quantile(mean, np.linspace(0.0, 1.0, POINTS)))
        table = _distributions(mean, value, points, levels, ratio[r])
        # Beyond the points, the nearest distribution is scaled; with few past forecasts it is not.
        inside = np.clip(wanted[:, r], points[0], points[-1])
        beyond = np.divide(wanted[:, r], inside, out=np.ones(targets), where=inside > 0)
        beyond = np.clip(beyond, MIN_FACTOR, 1 / MIN_FACTOR) if len(mean) >= NEIGHBOURS else np.ones(targets)
        for j in range(n_levels + 2):
            values = np.interp(inside, points, table[:, j])
            result[:, r, j] = values * beyond if j <= n_levels else values  # the last column is a probability
    return result


@compiled()
def _distributions(mean: Floats, value: Floats, points: Floats, levels: Floats, ratio: float) -> Floats:
    """Quantiles, mean and probability of no demand at each of the expected values `points`, (points, levels + 2).

    `mean` are past forecasts in ascending order, `value` the demand that followed.
    """
    n = len(mean)
    k = min(NEIGHBOURS, n)
    table = np.zeros((len(points), len(levels) + 2))
    sample = np.empty(k)
    for p in range(len(points)):
        centre = np.searchsorted(mean, points[p])
        first = min(max(centre - k // 2, 0), n - k)
        for i in range(k):
            # A neighbour with a slightly different forecast is scaled to this expected value. With few past
            # forecasts, as in a region that opened yesterday, demand is used unscaled.
            factor = points[p] / mean[first + i] if mean[first + i] > 0 and n >= NEIGHBOURS else 1.0
            sample[i] = value[first + i] * min(max(factor, MIN_FACTOR), 1 / MIN_FACTOR)
        sample.sort()
        mean_of_sample = sample.mean()
        move = points[p] * ratio / mean_of_sample if n >= NEIGHBOURS and mean_of_sample > 0 else 1.0
        table[p] = moved_quantiles(sample, min(max(move, MIN_FACTOR), 1 / MIN_FACTOR), levels)
    return table
