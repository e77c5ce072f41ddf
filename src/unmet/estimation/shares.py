"""Posterior of the share of drivers who wait or divert, which may be exactly 0.

With A drivers turned away and a share of them who wait (or divert), the excess X of such arrivals over chance is

    X ~ Normal(share * A, variance).

The prior is a mixture: with probability `NOBODY` the share is 0, else it has a density proportional to (1 - share)^2.
"""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats

__all__ = ["SHARES", "share_posterior"]

NOBODY = 0.8
"""Prior probability that the share is 0: a judgement, which matters if the records say little."""
SHARES = np.linspace(0.0, 1.0, 101)


def share_posterior(excess: Floats | float, variance: Floats | float, turned_away: Floats | float) -> Floats:
    """Posterior probability of each of `SHARES`; the share is 0 if nobody was turned away.

    An argument that depends on the share itself is an array with one value for each of `SHARES`.
    """
    prior = (1 - SHARES) ** 2
    prior = (1 - NOBODY) * prior / prior.sum()
    prior[0] += NOBODY
    if np.max(turned_away) < 1 or np.min(variance) <= 0:
        return np.asarray(np.eye(len(SHARES))[0])
    log_likelihood = -((excess - SHARES * turned_away) ** 2) / (2 * variance) - np.log(variance) / 2
    posterior = prior * np.exp(log_likelihood - log_likelihood.max())
    return np.asarray(posterior / posterior.sum())
