"""Crowding: how the arrival rate responds to the plugs that are already taken.

Drivers see on their phones how busy a site is, and cars that are already present have left the pool of drivers who may
still come. With n of c plugs taken, the arrival rate of site s is multiplied by

    response[s, n] = exp(beta[s] x),      x = n / (c + POOL_PLUGS),

so that one more car matters less at a large site than at a small one. At a full site, n is c plus the drivers who were
turned away shortly before, because they have left the pool as well. The response there is the share of the usual
arrivals that still come, and are lost.

Busy days must not be confused with crowding: they fill plugs and bring arrivals. The rate of a site-day is therefore
multiplied by a gamma variable of mean 1 and shape a, which is integrated out. If the i-th of n arrivals finds occupancy
x_i, and m(beta) arrivals are expected, the marginal likelihood of the day is

    exp(beta sum of x_i) * Gamma(a + n) / Gamma(a) * a^a / (a + level m(beta))^(a + n) * level^n,

which is maximised over the level of the site for every beta; the level has a weak gamma prior around the fitted rate.
Sites vary around the network, beta[s] ~ N(common, spread), truncated at 0. The common value has the prior of
`unmet.estimation.towns`: either 0 (arrivals of the network do not respond), or a value as in other towns.

Assumption: where a site's own records do not show its response, it is like that of other sites and other towns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.demand.parallel import over_sites
from unmet.estimation.towns import TownPrior

__all__ = [
    "BETAS",
    "NO_STRENGTH",
    "STEPS",
    "TYPICAL",
    "Crowding",
    "Strength",
    "fit_crowding",
    "log_likelihoods",
    "occupancy_at_full",
    "occupancy_at_steps",
    "step_of_taken",
    "strength",
]

STEPS = 12
"""Number of occupancy levels that are distinguished at large sites."""
POOL_PLUGS = 2.0
"""Extra plugs in the denominator: a judgement, made after comparing 0, 2 and 4 on the thinned records of all towns."""
TYPICAL = 0.7
"""-log(response at a full site) from which the error found in other towns applies in full: a judgement."""
BETAS = np.arange(-6.0, 0.01, 0.1875)
"""Grid of beta. A positive value would be a rush that the weekly profile misses, not crowding."""
COMMON = np.arange(-4.0, 0.01, 0.125)  # grid of the common value
SPREADS = np.array([0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0])  # standard deviations between sites
LEVEL_ROUNDS = 40  # highest number of fixed-point steps for the level of a site
PRIOR_ARRIVALS = 3.0
"""Prior arrivals of a site's level, so that a site that was hardly exposed keeps its fitted rate."""


class Crowding(NamedTuple):
    """Posterior of beta for every site."""

    site: Floats  # (hypotheses, sites, betas), posterior of each site's beta under each hypothesis about the network
    weight: Floats  # (hypotheses,), posterior probability of the hypotheses; the first one is no response
    level: Floats  # (sites, betas), factor on the weekly rate that fits the site's arrivals best under each beta
    away: Floats = np.zeros(1)  # (sites,), drivers turned away shortly before, who have left the pool as well

    @property
    def beta(self) -> Floats:
        """Posterior mean of beta, (sites,)."""
        return np.asarray(np.einsum("h,hsb,b->s", self.weight, self.site, BETAS))

    @property
    def no_response(self) -> float:
        """Posterior probability that arrivals do not respond to occupancy."""
        return float(self.weight[0])


class Strength(NamedTuple):
    """How strongly the arrivals of a network respond to full sites."""

    of_hypothesis: Floats  # (hypotheses,), relative to other towns, at most 1
    variance: float  # of the log of the share of drivers who still come to full sites


NO_STRENGTH = Strength(np.zeros(1), 0.0)


def strength(crowding: Crowding, capacity: Integers, weight: Floats) -> Strength:
    """How strongly arrivals respond to full sites, weighted by the drivers turned away at each, (sites,).

    Under each hypothesis it is the mean of -log(response at a full site) divided by `TYPICAL`, at most 1. The variance
    is that of R / E(R) over hypotheses and sites, with R the share of the drivers who still come, which is about the
    variance of log R.
    """
    log_drop = -BETAS * occupancy_at_full(crowding, capacity)[:, None]  # -log(response at a full site), (sites, betas)
    share = weight / max(float(weight.sum()), 1e-12)
    relative = np.minimum(np.einsum("hsb,sb,s->h", crowding.site, log_drop, share) / TYPICAL, 1.0)
    response = np.exp(-log_drop) * crowding.level
    of_site, squared = (np.einsum("hsb,sb->hs", crowding.site, power) for power in (response, response**2))
    mean = of_site @ share
    within = (squared - of_site**2) @ share**2
    average = float(mean @ crowding.weight)
    variance = float(((mean - average) ** 2 + within) @ crowding.weight) / max(average, 1e-9) ** 2
    return Strength(np.asarray(relative), variance)


def step_of_taken(capacity: Integers) -> Integers:
    """Step of occupancy of each number of taken plugs, (sites, largest capacity + 1)."""
    taken = np.arange(int(capacity.max(initial=1)) + 1)
    size = np.maximum(capacity, 1)[:, None]
    return np.minimum(np.where(size > STEPS, STEPS * taken // size, taken), STEPS)


def occupancy_at_steps(capacity: Integers) -> Floats:
    """Occupancy x = n / (c + POOL_PLUGS) of a site at each step, (sites, steps + 1); in the last step it is full."""
    size = np.maximum(capacity, 1)[:, None].astype(float)
    step = np.arange(STEPS + 1)
    middle = np.minimum((step + 0.5) / STEPS * size - 0.5, size)  # number of taken plugs in a step of a large site
    taken = np.where(size > STEPS, np.where(step == STEPS, size, middle), np.minimum(step, size))
    return np.asarray(taken / (size + POOL_PLUGS))


def occupancy_at_full(crowding: Crowding, capacity: Integers) -> Floats:
    """Occupancy x of full sites, including the drivers turned away shortly before, (sites,)."""
    size = np.maximum(capacity, 1)
    return np.asarray((size + crowding.away) / (size + POOL_PLUGS))


def fit_crowding(likelihood: Floats, level: Floats, prior: TownPrior) -> Crowding:
    """Posterior of beta from the log likelihoods of sites and their best levels, both (sites, betas).

    The weight of a hypothesis about the network is its prior times the product over sites of their evidence, the
    likelihood averaged over the distribution of beta under that hypothesis.
    """
    relative = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    table, prior_weight = _hypotheses(prior)
    evidence = np.maximum(relative @ table.T, 1e-300)  # (sites, hypotheses)
    log_weight = np.log(evidence).sum(axis=0) + prior_weight
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    kept = np.concatenate([[0], 1 + np.flatnonzero(weight[1:] > 1e-4)])  # to save memory; always with no response
    site = relative[None] * table[kept][:, None, :]
    site /= np.maximum(site.sum(axis=2, keepdims=True), 1e-300)
    return Crowding(site, weight[kept] / weight[kept].sum(), level)


def _hypotheses(prior: TownPrior) -> tuple[Floats, Floats]:
    """Distributions of beta between sites, (hypotheses, betas), and the log of their prior weights, (hypotheses,).

    The first hypothesis is that no site responds.
    """
    no_response = (np.arange(len(BETAS)) == np.abs(BETAS).argmin()).astype(float)
    common = np.exp(-(((COMMON - prior.crowding) / prior.crowding_spread) ** 2) / 2)
    spread = np.exp(-((SPREADS / prior.site_spread) ** 2) / 2)
    responding = np.exp(-(((BETAS - COMMON[:, None, None]) / SPREADS[:, None]) ** 2) / 2)  # (common, spreads, betas)
    responding /= responding.sum(axis=2, keepdims=True)
    weight = (1 - prior.no_crowding) * np.outer(common / common.sum(), spread / spread.sum())
    table = np.concatenate([no_response[None], responding.reshape(-1, len(BETAS))])
    return table, np.log(np.concatenate([[prior.no_crowding], weight.ravel()]))


def log_likelihoods(expected: Floats, count: Floats, found: Floats, x: Floats, shape: float) -> tuple[Floats, Floats]:
    """Log marginal likelihood of every site and beta, and the site's best level under each, both (sites, betas).

    With N arrivals of the site, n[d] of them on day d, and P = `PRIOR_ARRIVALS`, the best level is the fixed point of

        level = (N + P) / (sum over d of (a + n[d]) m[d] / (a + level m[d]) + P).

    Args:
        expected: arrivals predicted for exposed time, (sites, days, steps).
        count: arrivals observed, (sites, days).
        found: sum over arrivals of the occupancy x that they found, (sites,).
        x: occupancy at each step, (sites, steps).
        shape: shape of the gamma effects of site-days; infinite for none.
    """
    log_gamma = gammaln(shape + np.arange(int(count.max(initial=0)) + 1)) if np.isfinite(shape) else np.zeros(1)
    parts = over_sites(_log_likelihoods, len(count), expected, count, found, x, BETAS, shape, log_gamma)
    values, levels = (np.concatenate(part) for part in zip(*parts, strict=True))
    return values, levels


@compiled()
def _log_likelihoods(
    expected: Floats,
    count: Floats,
    found: Floats,
    x: Floats,
    betas: Floats,
    shape: float,
    log_gamma: Floats,
    begin: int,
    end: int,
) -> tuple[Floats, Floats]:
    _, days, steps = expected.shape
    values, levels = np.zeros((end - begin, len(betas))), np.ones((end - begin, len(betas)))
    poisson = np.isinf(shape)
    for s in range(begin, end):
        total = count[s].sum()
        for j in range(len(betas)):
            factor, mean = np.exp(betas[j] * x[s]), np.zeros(days)
            for d in range(days):
                for n in range(steps):
                    mean[d] += expected[s, d, n] * factor[n]
            whole = mean.sum()
            if whole <= 0:
                continue
            level = (total + PRIOR_ARRIVALS) / (whole + PRIOR_ARRIVALS)
            for _ in range(0 if poisson else LEVEL_ROUNDS):
                pull = 0.0
                for d in range(days):
                    pull += (shape + count[s, d]) * mean[d] / (shape + level * mean[d])
                better = (total + PRIOR_ARRIVALS) / (pull + PRIOR_ARRIVALS)
                settled = abs(better - level) <= 1e-6 * level
                level = better
                if settled:
                    break
            value = betas[j] * found[s] + (total + PRIOR_ARRIVALS) * np.log(level) - PRIOR_ARRIVALS * level
            if poisson:
                value -= level * whole
            else:
                for d in range(days):
                    n = count[s, d]
                    value += log_gamma[int(n)] - log_gamma[0] - n * np.log(shape)
                    value -= (shape + n) * np.log1p(level * mean[d] / shape)
            values[s - begin, j], levels[s - begin, j] = value, level
    return values, levels
