"""Posterior of the share of drivers at full sites who wait or divert. The share may be exactly 0.

With A drivers turned away and a share of them who wait (or divert), the excess X of such arrivals over chance is

    X ~ Normal(share * A, variance).

The prior is a mixture: with probability `NOBODY` the share is 0, else it has a density proportional to (1 - share)^2.

If sites differ, this is the prior of their mean share m, and the share of each site is

    share[s] ~ Beta(m k, (1 - m) k),      k in `ALIKE`,

where an infinite k means that all sites are alike. The share of a site with many drivers follows its own records; the
others have the distribution of the network.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from unmet.arrays import Floats

__all__ = ["SHARES", "Leaving", "SiteExcess", "draw_site_shares", "leaving_drivers", "share_posterior"]

NOBODY = 0.8
"""Prior probability that the share is 0: a judgement, which matters if the records say little."""
SHARES = np.linspace(0.0, 1.0, 101)
ALIKE = (1.0, 3.0, 10.0, 30.0, np.inf)
"""Values of k, equally likely: with 1, nearly everybody waits at some sites and nearly nobody at others."""
MEANS = SHARES[1:-1]  # grid of the mean share of the network
OFFSETS, OFFSET_WEIGHTS = np.polynomial.hermite_e.hermegauss(5)  # quadrature over an error that all sites share


class SiteExcess(NamedTuple):
    """Arrivals in excess of chance, attributed to drivers who waited, all (sites,)."""

    drivers: Floats
    variance: Floats  # independent between sites
    common: Floats  # standard deviation of an error with the same sign at all sites
    turned_away: Floats  # arrivals expected while the site was full


class Leaving(NamedTuple):
    """Drivers at full sites who neither wait nor are served nearby."""

    share: Floats  # (draws, sites)
    waiting: float  # mean share who wait, over the drivers turned away
    spill: float  # mean share who are served nearby
    rate_spread: float  # standard deviation of rates that were fitted without diverted arrivals, on the log scale


def leaving_drivers(waits: Floats, spills: Floats, turned_away: Floats, *, refitted: bool) -> Leaving:
    """Share of the drivers at full sites who leave, from the shares who wait and who are served nearby.

    Args:
        waits: share who wait until they are served, (draws, sites).
        spills: share who are served nearby, (draws, sites).
        turned_away: arrivals expected while sites were full, (sites,).
        refitted: whether rates were fitted without diverted arrivals. They then depend on the share who divert, and its
            standard deviation between draws is used as theirs.
    """
    weight = turned_away if turned_away.sum() > 0 else np.ones(len(turned_away))
    waiting, spill = (np.average(shares, axis=1, weights=weight) for shares in (waits, spills))
    share = np.maximum(1 - waits - spills, 0.0)
    return Leaving(share, float(waiting.mean()), float(spill.mean()), float(spill.std()) if refitted else 0.0)


def share_posterior(excess: Floats | float, variance: Floats | float, turned_away: Floats | float) -> Floats:
    """Posterior probability of each of `SHARES`; the share is 0 if nobody was turned away.

    An argument that depends on the share itself is an array with one value for each of `SHARES`.
    """
    prior = (1 - SHARES) ** 2  # with the point mass at 0 below
    prior = (1 - NOBODY) * prior / prior.sum()
    prior[0] += NOBODY
    if np.max(turned_away) < 1 or np.min(variance) <= 0:
        return np.asarray(np.eye(len(SHARES))[0])
    log_likelihood = -((excess - SHARES * turned_away) ** 2) / (2 * variance) - np.log(variance) / 2
    posterior = prior * np.exp(log_likelihood - log_likelihood.max())
    return np.asarray(posterior / posterior.sum())


def draw_site_shares(excess: SiteExcess, draws: int, rng: np.random.Generator) -> Floats:
    """Posterior draws of the share of every site, (draws, sites); 0 if nobody was turned away.

    A draw first picks a hypothesis (the error that all sites share, and the distribution of the share between sites) by
    its posterior weight, the product over sites of their evidence. Then it picks the share of every site under it.
    """
    sites = len(excess.drivers)
    if excess.turned_away.sum() < 1:
        return np.zeros((draws, sites))
    table, prior = _populations()
    log_likelihood = [_log_likelihood(excess, offset) for offset in OFFSETS]  # (sites, shares) for each offset
    scale = np.array([each.max(axis=1) for each in log_likelihood])  # (offsets, sites), taken out against underflow
    likelihood = [np.exp(each - most[:, None]) for each, most in zip(log_likelihood, scale, strict=True)]
    evidence = np.array([np.log(np.maximum(each @ table.T, 1e-300)).sum(axis=0) for each in likelihood])
    log_weight = evidence + scale.sum(axis=1)[:, None] + np.log(prior) + np.log(OFFSET_WEIGHTS)[:, None]
    weight = np.exp(log_weight - log_weight.max()).ravel()
    result = np.empty((draws, sites))
    for i, hypothesis in enumerate(rng.choice(weight.size, draws, p=weight / weight.sum())):
        offset, population = divmod(int(hypothesis), len(table))
        cumulative = (likelihood[offset] * table[population]).cumsum(axis=1)
        at = (cumulative <= rng.random((sites, 1)) * cumulative[:, -1:]).sum(axis=1)
        result[i] = SHARES[np.minimum(at, len(SHARES) - 1)]
    return result


def _log_likelihood(excess: SiteExcess, offset: float) -> Floats:
    """Log likelihood of each of `SHARES` at every site, (sites, shares), given an error that all sites share."""
    drivers = excess.drivers + offset * excess.common
    residual = drivers[:, None] - np.outer(excess.turned_away, SHARES)
    return np.asarray(-(residual**2) / (2 * excess.variance[:, None]))


def _populations() -> tuple[Floats, Floats]:
    """Distributions of the share between sites, (populations, shares), and their prior weights.

    In the first one, the share is 0 at all sites.
    """
    edges = np.clip(np.append(SHARES - 0.005, 1.0), 0.0, 1.0)  # each share stands for half a step either way
    mean = np.repeat(MEANS, len(ALIKE))
    alike = np.tile(ALIKE, len(MEANS))
    table = np.zeros((1 + len(mean), len(SHARES)))
    table[0, 0] = 1.0
    for i, (m, k) in enumerate(zip(mean, alike, strict=True), 1):
        table[i] = np.abs(SHARES - m) < 0.005 if np.isinf(k) else np.diff(betainc(m * k, (1 - m) * k, edges))
    weight = (1 - mean) ** 2
    return table, np.concatenate([[NOBODY], (1 - NOBODY) * weight / weight.sum()])
