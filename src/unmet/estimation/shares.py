"""Posterior of a share of drivers: nobody, or some.

Of A drivers turned away, X more than expected behaved in some way (waited, diverted), give or take chance:

    X ~ Normal(share * A, variance).

The prior says that nobody does, or that the share has a density proportional to (1 - share)^2.
"""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats

__all__ = ["SHARES", "share_posterior"]

NOBODY = 0.8
"""Prior probability that nobody does; a judgement, which matters where the records say little."""
SHARES = np.linspace(0.0, 1.0, 101)


def share_posterior(excess: Floats | float, variance: Floats | float, turned_away: Floats | float) -> Floats:
    """Posterior probability of each of `SHARES`; nobody, where nobody was turned away.

    What depends on the share itself is given for each of them.
    """
    prior = (1 - SHARES) ** 2
    prior = (1 - NOBODY) * prior / prior.sum()
    prior[0] += NOBODY
    if np.max(turned_away) < 1 or np.min(variance) <= 0:
        return np.asarray(np.eye(len(SHARES))[0])
    log_likelihood = -((excess - SHARES * turned_away) ** 2) / (2 * variance) - np.log(variance) / 2
    posterior = prior * np.exp(log_likelihood - log_likelihood.max())
    return np.asarray(posterior / posterior.sum())
