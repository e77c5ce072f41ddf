"""Errors of single sites: how far lost demand may be from its posterior mean, beyond the posterior's own spread.

No site is quite like the model. Such errors matter for a station or a network with one large site, and hardly for the
total of many. Where the last free plug was hidden (`unmet.estimation.selfcheck`), site s had n[s] arrivals, and m[s]
were estimated, up to a factor c that all sites share:

    n[s] ~ Poisson(c m[s] g[s]),      g[s] ~ Gamma of mean 1 and variance v[s] + error^2,

where v[s] is the relative variance of the share of m[s] in the sum over sites, due to the uncertain response to
occupancy, and log c has a flat prior. The marginal likelihood is negative binomial; c is integrated out. The prior of
the error is half-normal with the scale found in real towns (`SCALE`). The records of a network with many sites override
it; a single site says nothing about it.

Assumptions: errors of sites are independent of each other, and as large at a full site as at the last free plug.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from scipy.stats import nbinom

from unmet.arrays import Floats, Integers

__all__ = ["SCALE", "site_error"]

SCALE = 0.3
"""Error of single sites in real records, on the log scale: `python -m benchmarks.site_errors` finds 0.30 in thinned
records of four towns (113 sites), and 0.00 in simulated networks in which the model is right (345 sites)."""
ERRORS = np.linspace(0.0, 1.0, 51)  # grid of the error
COMMON = np.linspace(-1.5, 1.5, 121)  # grid of log c, around the ratio of the sums


def site_error(recorded: Integers, estimated: Floats, variance: Floats) -> float:
    """Posterior root mean square of the error, on the log scale.

    Args:
        recorded: arrivals at the last free plug of each site.
        estimated: arrivals estimated there with that plug hidden.
        variance: relative variance of each site's share of the estimate, due to the uncertain response.
    """
    known = (estimated > 0) & np.isfinite(variance)
    log_weight = -((ERRORS / SCALE) ** 2) / 2
    if known.any() and recorded[known].sum() > 0:
        mean = estimated[known] * recorded[known].sum() / estimated[known].sum() * np.exp(COMMON)[:, None]
        shape = 1 / np.maximum(variance[known] + ERRORS[:, None, None] ** 2, 1e-6)  # (errors, common, sites)
        likelihood = np.asarray(nbinom.logpmf(recorded[known], shape, shape / (shape + mean))).sum(axis=2)
        log_weight += logsumexp(likelihood, axis=1)
    weight = np.exp(log_weight - log_weight.max())
    return float(np.sqrt(weight @ ERRORS**2 / weight.sum()))
