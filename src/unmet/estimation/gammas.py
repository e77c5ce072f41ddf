"""Gamma effects: how much arrivals vary beyond chance, by maximum marginal likelihood.

If arrivals n are Poisson with mean m times a gamma variable of mean 1 and shape a (variance 1 / a), the marginal
likelihood of n is negative binomial, and the posterior of the variable is gamma with shape a + n and rate a + m.
Exposed time depends on the past alone, so both hold for counts over exposed time too.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, pdtr, xlogy

from unmet.arrays import Floats
from unmet.runs import available_cores

__all__ = ["SHAPES", "gamma_shape", "log_marginal", "quiet_days"]

SHAPES = np.concatenate([np.geomspace(0.5, 1000.0, 45), [np.inf]])
"""Grid of shapes; the last stands for no effect."""
COARSE = 5  # only every fifth shape is tried at first, among them the last one
MANY_CELLS = 10_000  # number of counts from which shapes are tried in threads
MAX_CELLS = 100_000
"""Highest number of counts to estimate a shape from; a random sample of more counts gives the same result."""
MIN_GAIN = 2.0
"""Gain in log likelihood from which an effect is kept: Akaike's criterion asks for 1 per parameter."""

QUIET_SHARE, QUIET_CHANCE = 1 / 3, 1e-4
"""A day with less than this share of the expected arrivals, and this unlikely by chance, is quiet."""


def quiet_days(count: Floats, expected: Floats) -> NDArray[np.bool_]:
    """Days on which nearly nobody came, (days,): public holidays, closures, missing records.

    They say nothing about how much ordinary days vary. As part of the same gamma distribution, a few of them would make
    it so wide that chance arrivals on ordinary mornings would pass for busy days.
    """
    return np.asarray((count < QUIET_SHARE * expected) & (pdtr(count, expected) < QUIET_CHANCE))


def log_marginal(count: Floats, expected: Floats, shape: float) -> float:
    """Log marginal likelihood of counts n with means m, up to a term that does not depend on the shape a.

    It is the sum of n log m + log Gamma(a + n) - log Gamma(a) - n log a - (a + n) log(1 + m / a), and of n log m - m if
    a is infinite.
    """
    return float(_log_marginals(count, expected, np.array([shape]))[0])


def _log_marginals(count: Floats, expected: Floats, shapes: Floats) -> Floats:
    """`log_marginal` for several shapes; terms that depend on the count alone are computed once per distinct count."""
    distinct, how_often = np.unique(count, return_counts=True)
    common = xlogy(count, np.maximum(expected, 1e-12)).sum()

    def of_shape(a: float) -> float:
        if np.isinf(a):
            return float(common - expected.sum())
        value = common + how_often @ (gammaln(a + distinct) - gammaln(a) - distinct * np.log(a))
        value -= (a + count) @ np.log1p(expected / a)
        return float(value)

    if len(count) < MANY_CELLS:
        return np.array([of_shape(a) for a in shapes])
    with ThreadPoolExecutor(available_cores()) as pool:
        return np.array(list(pool.map(of_shape, shapes)))


def gamma_shape(count: Floats, expected: Floats) -> float:
    """Shape with the highest marginal likelihood, infinite if there is no clear effect."""
    used = (expected > 0) | (count > 0)
    n, m = count[used], expected[used]
    if len(n) > MAX_CELLS:
        sample = np.random.default_rng(0).choice(len(n), MAX_CELLS, replace=False)
        n, m = n[sample], m[sample]
    # The likelihood nearly always has a single peak: find it on every fifth shape first.
    coarse = _log_marginals(n, m, SHAPES[::COARSE])
    near = COARSE * int(coarse[:-1].argmax())
    around = slice(max(near - COARSE + 1, 0), min(near + COARSE, len(SHAPES) - 1))
    fine = _log_marginals(n, m, SHAPES[around])
    best = int(fine.argmax())
    return float(SHAPES[around][best]) if fine[best] > coarse[-1] + MIN_GAIN else np.inf
