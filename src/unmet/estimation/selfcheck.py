"""Self-check: hide the last free plug of every site from the estimator, and estimate the arrivals there.

Arrivals while exactly one plug was free are in the records. With that plug hidden, the estimator does not see them, as
it does not see arrivals at a full site. Its error on them can therefore be measured:

    ratio = estimated arrivals at the last free plug / recorded arrivals at the last free plug.

It is 1 if the estimator is right, and differs from 1 if arrivals are unlike what it assumes: scheduled, in batches, or
depending on occupancy in another way. Sites with one plug are left out. Bursts are not part of this estimate, so they
lower the ratio. The interval of the ratio includes counting, the response to occupancy and errors of single sites:

    var(log ratio) = 1 / recorded + var(estimated) / estimated^2 + site_error^2 * sum over sites of (their share)^2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.demand.spells import FREE, Spells, pieces
from unmet.estimation.clock import BIN_HOURS, BIN_MS, Clock
from unmet.estimation.crowding import BETAS, occupancy_at_steps
from unmet.estimation.occupancy import Network
from unmet.estimation.rates import Components, fit_rates
from unmet.estimation.site_errors import SCALE, site_error
from unmet.estimation.towns import TownPrior

__all__ = ["Z_90", "SelfCheck", "self_check"]

MIN_RECORDED = 10  # arrivals at the last free plug needed for a check
MAX_EXCESS = 0.4  # a larger distance does not widen intervals further: the warning is enough
DRAWS = 200  # draws of the response to occupancy
MAX_SITES = 400  # highest number of sites checked; every n-th site of a larger network is enough
Z_90 = 1.645  # standard deviations from the mean to an end of a 90 % interval


class SelfCheck(NamedTuple):
    """The ratio of estimated to recorded arrivals at the last free plug, with a 90 % interval."""

    ratio: float
    low: float
    high: float
    recorded: int  # arrivals at the last free plug
    spread: float  # standard deviation of the logarithm of the ratio
    site_error: float = SCALE  # error of single sites, on the log scale

    @property
    def known(self) -> bool:
        """Whether there were enough arrivals for a check."""
        return self.recorded >= MIN_RECORDED and np.isfinite(self.ratio)

    @property
    def excess(self) -> float:
        """Distance of the log ratio from 0 beyond chance, at most `MAX_EXCESS`; 0 if its 90 % interval contains 0."""
        if not self.known:
            return 0.0
        return min(float(np.sqrt(max(np.log(self.ratio) ** 2 - (Z_90 * self.spread) ** 2, 0.0))), MAX_EXCESS)


UNKNOWN = SelfCheck(np.nan, np.nan, np.nan, 0, np.nan)


def self_check(network: Network, components: Components, prior: TownPrior) -> SelfCheck:
    """Hide the last free plug of every site with two or more, estimate, and compare with the records."""
    if network.sites > MAX_SITES:
        network = network.only(np.arange(0, network.sites, -(-network.sites // MAX_SITES)))
    several = network.capacity > 1
    arrivals = network.history.arrivals
    at_last = (
        (arrivals.state == FREE) & (arrivals.taken == network.capacity[arrivals.site] - 1) & several[arrivals.site]
    )
    of_site = np.bincount(arrivals.site[at_last], minlength=network.sites)
    recorded = int(of_site.sum())
    if recorded < MIN_RECORDED:
        return UNKNOWN._replace(recorded=recorded)
    drawn = _at_last_plug(network, np.where(several, network.capacity - 1, -1), components, prior)
    total, mean = drawn.sum(axis=1), drawn.mean(axis=0)
    if not total.min() > 0:
        return UNKNOWN._replace(recorded=recorded)
    share = drawn / total[:, None]  # what all sites have in common is not an error of single sites
    share_variance = (share.std(axis=0) / np.maximum(share.mean(axis=0), 1e-12)) ** 2
    error = site_error(of_site[several], mean[several], share_variance[several])
    of_sites = error**2 * float(((mean / mean.sum()) ** 2).sum())
    spread = float(np.sqrt(1 / recorded + (total.std() / total.mean()) ** 2 + of_sites))
    ratio, either_way = float(total.mean()) / recorded, math.exp(Z_90 * spread)
    return SelfCheck(ratio, ratio / either_way, ratio * either_way, recorded, spread, error)


def _at_last_plug(network: Network, last: Integers, components: Components, prior: TownPrior) -> Floats:
    """Draws of the arrivals estimated at the last free plug of each site with that plug hidden, (draws, sites).

    Args:
        network: sites and their history.
        last: taken plugs of each site while exactly one is free; -1 if the site has a single plug.
        components: components of the rates.
        prior: prior of the response.
    """
    hidden = network.with_capacity(np.where(last > 0, last, network.capacity))
    rates = fit_rates(hidden.history, hidden.clock, hidden.capacity, components, prior)
    usual = (_expected_at(network.history.spells, network.clock, rates.weekly, last) * rates.level).sum(axis=1)
    crowding = rates.crowding
    if crowding is None:
        return np.tile(usual, (DRAWS, 1))
    full = np.exp(BETAS * occupancy_at_steps(hidden.capacity)[:, -1:]) * crowding.level  # (sites, betas)
    rng = np.random.default_rng(0)
    drawn = np.empty((DRAWS, len(usual)))
    for i, h in enumerate(rng.choice(len(crowding.weight), DRAWS, p=crowding.weight)):
        cumulative = crowding.site[h].cumsum(axis=1)  # draw each site's beta by inversion
        at = (cumulative < rng.random((len(usual), 1)) * cumulative[:, -1:]).sum(axis=1)
        drawn[i] = usual * full[np.arange(len(usual)), np.minimum(at, len(BETAS) - 1)]
    return drawn


@compiled()
def _expected_at(spells: Spells, clock: Clock, rate: Floats, taken: Integers) -> Floats:
    """Arrivals that a weekly rate predicts by site and day for exposed time with exactly `taken` plugs taken."""
    total = np.zeros((len(rate), clock.week_of_day.shape[0]))
    for s in range(len(rate)):
        for i in range(spells.first[s], spells.first[s + 1]):
            if spells.state[i] != FREE or spells.taken[i] != taken[s]:
                continue
            begin_ms, end_ms = spells.begin_ms[i] - clock.first_ms, spells.end_ms[i] - clock.first_ms
            for bin_, share in pieces(begin_ms, end_ms, BIN_MS):
                total[s, clock.day[bin_]] += share * BIN_HOURS * rate[s, clock.week[bin_]]
    return total
