"""The distribution of demand given its expected value, from how past forecasts of about that value turned out.

A forecast says "6 kWh are expected". What came in the hours of the last quarter for which about 6 kWh had been
expected, beforehand, is a sample of what may come now: it has the right share of zeros and the right spread, without an
assumption on either. Its mean is what is expected, times how demand of the last weeks compared with that: a few hundred
hours of sparse demand say much about its distribution, and less about its mean. The idea is that of isotonic
distributional regression on a point forecast [1], with nearest neighbours in place of isotonic fits.

[1] E.-M. Walz, A. Henzi, J. Ziegel, T. Gneiting, Easy uncertainty quantification (EasyUQ): generating predictive
distributions from single-valued model output, SIAM Review 66 (2024) 91-122.
"""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats
from unmet.compiled import compiled
from unmet.models.direct.moving import moved_quantiles

__all__ = ["NEIGHBOURS", "WINDOW", "conditional_quantiles"]


NEIGHBOURS = 200  # past forecasts that make up a distribution
WINDOW = 13 * 168  # hours before, in which these are looked for
LEAST_FACTOR = 0.2  # by which a neighbour is scaled, and its inverse the largest
POINTS = 60  # expected values at which distributions are computed; linear in between, proportional beyond


@compiled()
def conditional_quantiles(expected: Floats, came: Floats, asked: Floats, levels: Floats, ratio: Floats) -> Floats:
    """Quantiles of demand given its expected value, region by region.

    Args:
        expected: past forecasts of the mean (hours, regions) [kWh]; NaN where there is none.
        came: what came then [kWh]; NaN where missing.
        asked: expected values to give the distribution of, (targets, regions) [kWh].
        levels: of the quantiles.
        ratio: recent demand over what was expected of it, (regions,), as of `moving_ratio`.

    Returns:
        (targets, regions, levels + 2): quantiles and mean [kWh], and the probability of no demand.
    """
    targets, regions = asked.shape
    number = len(levels)
    made = np.zeros((targets, regions, number + 2))
    made[..., number + 1] = 1.0
    for r in range(regions):
        usable = ~(np.isnan(expected[:, r]) | np.isnan(came[:, r]))
        mean, value = expected[usable, r], came[usable, r]
        n = len(mean)
        if n == 0 or targets == 0:
            continue
        order = np.argsort(mean)
        mean, value = mean[order], value[order]
        k = min(NEIGHBOURS, n)
        # Points do not depend on what is asked, so that the same hour always gets the same answer.
        points = np.unique(np.quantile(mean, np.linspace(0.0, 1.0, POINTS)))
        table = np.zeros((len(points), number + 2))
        for p in range(len(points)):
            centre = np.searchsorted(mean, points[p])
            first = min(max(centre - k // 2, 0), n - k)
            sample = np.empty(k)
            for i in range(k):
                # A neighbour that expected a little more or less is scaled to this expected value. With few past
                # forecasts, as in a region that opened yesterday, what came stands as it is.
                factor = points[p] / mean[first + i] if mean[first + i] > 0 and n >= NEIGHBOURS else 1.0
                sample[i] = value[first + i] * min(max(factor, LEAST_FACTOR), 1 / LEAST_FACTOR)
            sample.sort()
            mean_of_sample = sample.mean()
            move = points[p] * ratio[r] / mean_of_sample if n >= NEIGHBOURS and mean_of_sample > 0 else 1.0
            table[p] = moved_quantiles(sample, min(max(move, LEAST_FACTOR), 1 / LEAST_FACTOR), levels)
        inside = np.minimum(np.maximum(asked[:, r], points[0]), points[-1])
        beyond = np.where(inside > 0, asked[:, r] / np.maximum(inside, 1e-300), 1.0) if n >= NEIGHBOURS else inside**0
        beyond = np.minimum(np.maximum(beyond, LEAST_FACTOR), 1 / LEAST_FACTOR)
        for j in range(number + 2):
            values = np.interp(inside, points, table[:, j])
            made[:, r, j] = values * beyond if j <= number else values
    return made
