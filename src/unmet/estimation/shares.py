"""Posterior of a share of drivers: nobody, or some.

Of A drivers turned away, X more than expected behaved in some way (waited, diverted), give or take chance:

    X ~ Normal(share * A, variance).

The prior says that nobody does, or that the share has a density proportional to (1 - share)^2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["SHARES", "share_posterior"]

Floats = NDArray[np.float64]

NOBODY = 0.8
"""Prior probability that nobody does; a judgement, which matters where the records say little."""
SHARES = np.linspace(0.0, 1.0, 101)


def share_posterior(excess: float, variance: float, turned_away: float) -> Floats:
    """Posterior probability of each of `SHARES`; the prior, where nobody was turned away."""
    prior = (1 - SHARES) ** 2
    prior = (1 - NOBODY) * prior / prior.sum()
    prior[0] += NOBODY
    if turned_away < 1 or variance <= 0:
        return np.asarray(np.eye(len(SHARES))[0])
    log_likelihood = -((excess - SHARES * turned_away) ** 2) / (2 * variance)
    posterior = prior * np.exp(log_likelihood - log_likelihood.max())
    return np.asarray(posterior / posterior.sum())
