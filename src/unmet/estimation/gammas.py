"""Gamma effects: how much arrivals vary beyond chance, by maximum marginal likelihood.

If arrivals n are Poisson with mean m times a gamma variable of mean 1 and shape a (variance 1 / a), the marginal
likelihood of n is negative binomial, and the posterior of the variable is gamma with shape a + n and rate a + m.
Exposed time depends on the past alone, so both hold for counts over exposed time too.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, xlogy

from unmet.arrays import Floats

__all__ = ["SHAPES", "gamma_shape", "log_marginal"]

SHAPES = np.concatenate([np.geomspace(0.5, 1000.0, 45), [np.inf]])
"""Grid of shapes; the last stands for no effect."""
MOST_CELLS = 100_000
"""Number of counts from which a shape is estimated; a random sample of more gives the same result."""
CLEARLY = 2.0
"""Gain in log likelihood from which an effect is kept: Akaike's criterion asks for 1 per parameter."""


def log_marginal(count: Floats, expected: Floats, shape: float) -> float:
    """Log marginal likelihood of counts, up to a term that does not depend on the shape."""
    if np.isinf(shape):
        return float((xlogy(count, np.maximum(expected, 1e-12)) - expected).sum())
    a = shape
    return float(
        (gammaln(a + count) - gammaln(a) + xlogy(count, np.maximum(expected, 1e-12)) - count * np.log(a)
         - (a + count) * np.log1p(expected / a)).sum()
    )  # fmt: skip


def gamma_shape(count: Floats, expected: Floats) -> float:
    """Shape with the highest marginal likelihood, infinite if there is no clear effect."""
    used = (expected > 0) | (count > 0)
    n, m = count[used], expected[used]
    if len(n) > MOST_CELLS:
        sample = np.random.default_rng(0).choice(len(n), MOST_CELLS, replace=False)
        n, m = n[sample], m[sample]
    values = np.array([log_marginal(n, m, shape) for shape in SHAPES])
    best = int(values[:-1].argmax())
    return float(SHAPES[best]) if values[best] > values[-1] + CLEARLY else np.inf
