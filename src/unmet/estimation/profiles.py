"""Weekly profiles: the arrival rate of every site by quarter hour of the week, from a few shared profiles.

Arrivals of site s in week bin k over exposed time T[s, k] are Poisson with mean T[s, k] rate[s, k], and

    rate[s, k] = sum over r of  load[s, r] * profile[r, k],      r = 1, ..., rank,

so that a workplace that is full by nine learns its mornings from other workplaces. Profiles are fitted by EM for
Poisson factors (Lee and Seung, Nature 401, 1999) with a smoothing step for profiles (a variant of the one by Silverman,
Jones, Wilson and Nychka, JRSS B 52, 1990). Each site's own departures from them are gamma distributed, with a spread
that is estimated from the records.

Assumption: what a site hides at a time of the week is shown by similar sites, or by the site itself on other days.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats
from unmet.compiled import compiled
from unmet.demand.parallel import over_sites
from unmet.estimation.clock import BINS_A_WEEK, BINS_AN_HOUR
from unmet.estimation.gammas import gamma_shape

__all__ = ["SMOOTH_BINS", "Profiles", "departure_shape", "fit_profiles", "own_departures"]

SMOOTH_BINS = 1.0
"""Standard deviation of the smoothing kernel [bins]: 15 minutes, less than the sharpest rush in the records."""
PRIOR_ARRIVALS = 2.0
"""Prior weight of the network's mean week for each site [arrivals], so that a few arrivals are not overinterpreted."""
PROFILE_PRIOR = 0.05
"""Prior weight of the network's mean profile in every bin [arrivals], for bins that were hardly exposed."""
MAX_ROUNDS, SETTLED = 200, 1e-4  # EM for profiles: highest number of rounds, and relative change at which it stops
LOAD_ROUNDS, LOAD_SETTLED = 60, 1e-3  # the same for loads, given profiles
MAX_SITES = 400
"""Highest number of sites to estimate profiles from, the busiest ones; more would only take longer."""
MANY_SITES = 1000  # number of sites from which loads are fitted in several threads
BLOCK = 12  # bins per block by which sites are compared when EM starts: three hours
OWN_LOAD, OTHER_WEIGHT = 0.8, 0.05
"""Start of EM: share of a site's load on the profile of its own group, and weight of other groups in that profile."""


class Profiles(NamedTuple):
    """Shared weekly profiles and the load of each site on them."""

    load: Floats  # (sites, rank), arrivals per hour
    profile: Floats  # (rank, bins of the week), mean 1

    @property
    def rate(self) -> Floats:
        """Arrivals per hour, (sites, bins of the week)."""
        return self.load @ self.profile


def fit_profiles(
    count: Floats, exposed: Floats, rank: int, start: Profiles | None = None, smooth: float = SMOOTH_BINS
) -> Profiles:
    """Fit shared profiles to arrivals and exposed hours, both (sites, bins of the week).

    `start` are profiles fitted to similar records, from which EM continues; `smooth` is the standard deviation of the
    smoothing kernel [bins].
    """
    chosen = np.argsort(-count.sum(axis=1), kind="stable")[:MAX_SITES]
    begin = None if start is None else Profiles(start.load[chosen], start.profile)
    profile = _learn(count[chosen], exposed[chosen], min(rank, len(chosen)), begin, smooth)
    arrivals, weighted = count.sum(axis=1), exposed @ profile.T
    level = _levels(arrivals, exposed.sum(axis=1))
    load = np.outer(level, np.full(len(profile), 1 / len(profile))) if start is None else start.load
    for _ in range(LOAD_ROUNDS):
        before, load = load, _update_load(load, profile, count, arrivals, weighted)
        if np.abs(load - before).sum() < LOAD_SETTLED * before.sum():
            break
    return Profiles(load, profile)


def departure_shape(count: Floats, exposed: Floats, rate: Floats) -> float:
    """Shape of the sites' own departures from the shared profiles, by maximum marginal likelihood."""
    return gamma_shape(_by_hour(count), _by_hour(rate * exposed))


def own_departures(count: Floats, exposed: Floats, rate: Floats, shape: float) -> Floats:
    """Rates with each site's own departures from the shared profiles, by hour of the week.

    A site's rate in an hour of the week is the rate of the profiles times a gamma variable of mean 1, whose shape a is
    common to all sites (`departure_shape`). With n arrivals where m were expected, the variable has the posterior mean
    (a + n) / (a + m).
    """
    n, m = _by_hour(count), _by_hour(rate * exposed)
    factor = (shape + n) / (shape + m) if np.isfinite(shape) else np.ones_like(n)
    return np.asarray(rate * np.repeat(factor, BINS_AN_HOUR, axis=1))


def _by_hour(values: Floats) -> Floats:
    """Sums by hour of the week, (sites, hours of the week)."""
    return np.asarray(values.reshape(len(values), BINS_A_WEEK // BINS_AN_HOUR, BINS_AN_HOUR).sum(axis=2))


def _levels(arrivals: Floats, hours: Floats) -> Floats:
    """Arrivals per hour of each site, shrunk towards the mean of the network."""
    mean = max(arrivals.sum(), 1.0) / max(hours.sum(), 1e-9)
    return np.asarray((arrivals + PRIOR_ARRIVALS) / (hours + PRIOR_ARRIVALS / mean))


def _smooth(values: Floats, bins: float) -> Floats:
    """Values by bin of the week, in one row or several, smoothed around the week."""
    rows = np.ascontiguousarray(np.atleast_2d(values))
    return _smooth_rows(rows, _kernel(bins)).reshape(values.shape)


@cache
def _kernel(bins: float) -> Floats:
    """Weights of the bins up to four standard deviations before and after, which sum to one."""
    far = int(4 * bins + 0.5)
    weight = np.exp(-0.5 * (np.arange(-far, far + 1) / bins) ** 2)
    return np.asarray(weight / weight.sum())


@compiled()
def _smooth_rows(values: Floats, kernel: Floats) -> Floats:
    """Circular convolution of each row. SciPy's filters check and convert more than they compute for one week."""
    bins, far = values.shape[1], len(kernel) // 2
    smooth = np.zeros_like(values)
    for r in range(len(values)):
        for j in range(len(kernel)):
            first = (j - far) % bins  # the bin whose value this weight brings to bin 0
            for k in range(bins - first):
                smooth[r, k] += kernel[j] * values[r, first + k]
            for k in range(bins - first, bins):
                smooth[r, k] += kernel[j] * values[r, first + k - bins]
    return smooth


def _learn(count: Floats, exposed: Floats, rank: int, start: Profiles | None, smooth: float) -> Floats:
    """Profiles by EM, (rank, bins of the week).

    With N arrivals in T exposed hours and the smoothing S around the week, a step for profiles is

        profile[r, k] <- S(profile[r, k] sum over s of load[s, r] N[s, k] / rate[s, k] + prior)
                         / S(sum over s of load[s, r] T[s, k] + prior).
    """
    arrivals = count.sum(axis=1)
    level = _levels(arrivals, exposed.sum(axis=1))
    common = _smooth(count.sum(axis=0) + 1.0, smooth) / _smooth(level @ exposed + 1.0, smooth)
    load, profile = start or _begin(count, exposed, level, common, rank, smooth)
    for _ in range(MAX_ROUNDS):
        before = profile
        ratio = count / np.maximum(load @ profile, 1e-12)
        profile = _smooth(profile * (load.T @ ratio) + PROFILE_PRIOR * common, smooth)
        profile /= _smooth(load.T @ exposed + PROFILE_PRIOR, smooth)
        load = _update_load(load, profile, count, arrivals, exposed @ profile.T)
        mean = profile.mean(axis=1, keepdims=True)
        profile, load = profile / mean, load * mean.T
        if np.abs(profile - before).sum() < SETTLED * profile.sum():
            break
    return profile


def _begin(count: Floats, exposed: Floats, level: Floats, common: Floats, rank: int, smooth: float) -> Profiles:
    """Loads and profiles to start EM from: one profile, or one for each group of sites with similar weeks."""
    if rank == 1:
        return Profiles(level[:, None] * common.mean(), common[None] / common.mean())
    group = _groups(count, level[:, None] * common * exposed, rank)
    member = np.arange(rank) == group[:, None]
    weight = np.where(member, 1.0, OTHER_WEIGHT)
    profile = _smooth(weight.T @ count + common, smooth) / _smooth((weight * level[:, None]).T @ exposed + 1.0, smooth)
    return Profiles(level[:, None] * np.where(member, OWN_LOAD, (1 - OWN_LOAD) / (rank - 1)), profile)


def _update_load(load: Floats, profile: Floats, count: Floats, arrivals: Floats, weighted: Floats) -> Floats:
    """One EM step for the loads, with a gamma prior around the network's mix of profiles.

        load[s, r] <- (load[s, r] sum over k of profile[r, k] N[s, k] / rate[s, k] + P mix[r])
                      / (sum over k of profile[r, k] T[s, k] + P / level[s]),      P = `PRIOR_ARRIVALS`.

    `arrivals` are sums of `count` by site; `weighted` are exposed hours weighted by each profile, (sites, rank).
    """
    ratio = np.zeros_like(load)
    over_sites(_add_ratios, len(load), load, np.ascontiguousarray(profile.T), count, ratio, few=MANY_SITES)
    mix = load.sum(axis=0) / load.sum()
    # The prior's level comes from the counts, not from the last step: a site that is hardly exposed would diverge.
    level = _levels(arrivals, weighted @ mix)[:, None]
    events = load * ratio + PRIOR_ARRIVALS * mix
    return np.asarray(events / (weighted + PRIOR_ARRIVALS / np.maximum(level, 1e-12)))


@compiled()
def _add_ratios(load: Floats, profile: Floats, count: Floats, ratio: Floats, begin: int, end: int) -> None:
    """Arrivals over their fitted rate, weighted by each profile, (sites, rank); here `profile` is (bins, rank)."""
    rank = profile.shape[1]
    for s in range(begin, end):
        for k in range(len(profile)):
            if count[s, k] == 0:
                continue
            rate = 0.0
            for r in range(rank):
                rate += load[s, r] * profile[k, r]
            per_rate = count[s, k] / max(rate, 1e-12)
            for r in range(rank):
                ratio[s, r] += per_rate * profile[k, r]


def _groups(count: Floats, expected: Floats, groups: int) -> NDArray[np.int64]:
    """Groups of sites with similar weeks, to start EM from: k-means on their leading singular vectors."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    excess = (count - expected).reshape(len(count), -1, BLOCK).sum(axis=2)
    scaled = excess / np.sqrt(expected.sum(axis=1, keepdims=True) + 1.0)
    vectors, values, _ = np.linalg.svd(scaled, full_matrices=False)
    points = np.round(vectors[:, : groups - 1] * values[: groups - 1], 9)
    distinct = len(np.unique(points, axis=0))
    with threadpool_limits(1):
        fitted = KMeans(min(groups, distinct), n_init=5, random_state=0).fit(points)
    return np.asarray(fitted.labels_, np.int64)
