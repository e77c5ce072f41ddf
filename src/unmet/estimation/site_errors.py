"""Errors of single sites: how far the lost demand of a site may be from its posterior.

No site is quite like the model. Errors of sites are independent, so they matter for a station or a network with one
large site, but hardly for the total of many. Where the last free plug was hidden (`unmet.estimation.selfcheck`), site s
had n[s] arrivals, and m[s] were estimated, up to a factor c that all sites share:

    n[s] ~ Poisson(c m[s] g[s]),      g[s] ~ Gamma of mean 1 and variance v[s] + error^2,

where v[s] is the relative variance of the posterior of m[s] and log c has a flat prior. The marginal likelihood is
negative binomial; c is integrated out. The prior of the error is half-normal with the scale found in real towns
(`SCALE`). The records of a network with many sites override it; a single site says nothing about it.

Assumption: estimates err at a full site as they do at the last free plug.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from scipy.stats import nbinom

from unmet.arrays import Floats, Integers

__all__ = ["SCALE", "site_error"]

SCALE = 0.3
"""Error of single sites in real records, as a logarithm: `python -m benchmarks.site_errors` finds 0.30 in thinned
records of four towns (113 sites), and 0.00 in simulated networks in which the model is right (345 sites)."""
ERRORS = np.linspace(0.0, 1.0, 51)  # grid of the error
COMMON = np.linspace(-1.5, 1.5, 121)  # grid of log c, around the ratio of the sums


def site_error(recorded: Integers, estimated: Floats, variance: Floats) -> float:
    """Root mean square of the posterior of the error, as a logarithm.

    Args:
        recorded: arrivals at the last free plug of each site.
        estimated: arrivals estimated there with that plug hidden.
        variance: relative variance of the posterior of each estimate.
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
