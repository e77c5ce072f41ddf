"""Waiting: the share of drivers at a full site who wait until they are served, and are therefore recorded.

If drivers wait, a released plug of a full site is taken at once. But plugs are also retaken at once if nobody can have
waited: a driver unplugs and plugs in again. The placebo is the same statistic after departures from sites with another
free plug. At a site with D departures and N arrivals within `RELEASED_MS` of them, E of which are expected by chance,

    restarts = (N_free - E_free) / D_free          per departure,
    waited   = N_full - E_full - restarts * D_full,

where the restarts of a site are shrunk towards those of the network. Arrivals that are recorded while a site is full
(clocks and capacities are never exact) were served, too. Both together, divided by the arrivals expected while the site
was full, are the share who waited there. It may differ between sites: `unmet.estimation.shares` computes its posterior.

No more drivers can have waited at a site than arrived while it was full. A site with a permanent queue, whose plugs are
always retaken, shows far more than its hardly exposed time predicts. It says nothing about other sites: shares are
estimated without it. How many drivers leave that queue is unknowable.

Assumption: restarts are as frequent at a full site as at one with a free plug.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats
from unmet.compiled import compiled
from unmet.demand.spells import FULL, RELEASED_MS, History
from unmet.estimation.clock import BIN_MS, Clock
from unmet.estimation.shares import SiteExcess, draw_site_shares

__all__ = ["Departures", "Waiting", "after_departures", "draw_waits", "waiting_drivers"]

RESTARTS, RESTARTS_SPREAD = 0.08, 0.05
"""Prior mean and standard deviation of restarts per departure in a network, and their standard deviation between its
sites: a judgement, for networks and sites without a placebo."""
QUEUE_SPREADS = 2.0
"""A site has a permanent queue if its waiting drivers exceed the possible arrivals by this many standard deviations."""


class Departures(NamedTuple):
    """Departures and the arrivals that follow them, (sites, 2): from full sites, then with another free plug."""

    number: Floats
    arrivals: Floats  # within `RELEASED_MS`
    by_chance: Floats  # arrivals expected at the usual rate


class Waiting(NamedTuple):
    """Drivers who waited at full sites until they were served."""

    excess: SiteExcess  # by site; unknown for sites with a permanent queue
    restarts: float  # per departure, of the network
    retaken: float  # arrivals at full sites or soon after a departure from one: an upper bound of those who waited
    queue: NDArray[np.bool_]  # (sites,), sites with a permanent queue, which the fields above leave out
    turned_away: Floats  # (sites,), arrivals expected while sites were full


def waiting_drivers(departures: Departures, at_full: Floats, turned_away: Floats) -> Waiting:
    """Estimate how many drivers waited at each full site and were served, from the arrivals after departures.

    Args:
        departures: departures and the arrivals after them.
        at_full: arrivals recorded although no plug was free, (sites,).
        turned_away: arrivals expected while sites were full, (sites,).
    """
    d_full, n_full, e_full = (values[:, 0] for values in departures)
    d_free, n_free, e_free = (values[:, 1] for values in departures)
    restarts, precision = _restarts(d_free.sum(), n_free.sum(), e_free.sum(), RESTARTS)
    own_restarts, own_precision = _restarts(d_free, n_free, e_free, restarts)
    waited = n_full - e_full - own_restarts * d_full + at_full
    variance = np.maximum(n_full + at_full, 1.0) + d_full**2 / own_precision
    queue = waited > turned_away + QUEUE_SPREADS * np.sqrt(variance)
    # The error of the network's restarts remains in those of its sites as far as these are shrunk to it.
    common = d_full / (RESTARTS_SPREAD**2 * own_precision * np.sqrt(precision))
    excess = SiteExcess(
        np.where(queue, 0.0, waited),
        np.where(queue, np.inf, variance),
        np.where(queue, 0.0, common),
        np.where(queue, 0.0, turned_away),
    )
    return Waiting(excess, float(restarts), float((n_full + at_full)[~queue].sum()), queue, turned_away)


def draw_waits(waited: Waiting, share: float | None, draws: int, rng: np.random.Generator) -> Floats:
    """Draw the share of drivers at full sites who wait until they are served, (draws, sites), unless it is given."""
    if share is not None:
        return np.full((draws, len(waited.queue)), share)
    return draw_site_shares(waited.excess, draws, rng)


def _restarts(departures: Floats, arrivals: Floats, by_chance: Floats, prior: Floats | float) -> tuple[Floats, Floats]:
    """Posterior mean and precision of restarts per departure, after departures with another free plug.

    The estimate (N - E) / D has the variance N / D^2 of a Poisson count; the prior is Normal(prior, RESTARTS_SPREAD^2).
    """
    data_precision, prior_precision = departures**2 / np.maximum(arrivals, 1.0), 1 / RESTARTS_SPREAD**2
    precision = data_precision + prior_precision
    observed = data_precision * (arrivals - by_chance) / np.maximum(departures, 1.0)
    return np.clip((observed + prior_precision * prior) / precision, 0.0, 1.0), precision


@compiled()
def after_departures(history: History, clock: Clock, rate: Floats, level: Floats, response: Floats) -> Departures:
    """Count departures, the arrivals soon after them, and those expected by chance.

    Args:
        history: spells and arrivals of the sites.
        clock: clock of the period.
        rate: arrivals per hour, (sites, bins of the week).
        level: level of each site and day, (sites, days).
        response: factor on the rate by number of taken plugs, (sites, max_taken + 1).
    """
    spells, arrivals = history.spells, history.arrivals
    number, retaken, chance = np.zeros((len(rate), 2)), np.zeros((len(rate), 2)), np.zeros((len(rate), 2))
    last, next_arrival = response.shape[1] - 1, 0
    for s in range(len(rate)):
        for i in range(spells.first[s] + 1, spells.first[s + 1]):
            if spells.begin_ms[i] != spells.end_ms[i - 1]:
                continue  # a gap in the records
            at = spells.begin_ms[i]
            kind = 0 if spells.state[i - 1] == FULL else 1
            if spells.taken[i] == spells.taken[i - 1] and spells.state[i] == spells.state[i - 1]:
                number[s, kind] += 1  # one car left and another arrived at the same moment
                retaken[s, kind] += 1
                continue
            if spells.taken[i] != spells.taken[i - 1] - 1:
                continue  # no departure
            while next_arrival < len(arrivals.site) and (
                arrivals.site[next_arrival] < s
                or (arrivals.site[next_arrival] == s and arrivals.at_ms[next_arrival] < at)
            ):
                next_arrival += 1
            until = at + RELEASED_MS
            number[s, kind] += 1
            if (
                next_arrival < len(arrivals.site)
                and arrivals.site[next_arrival] == s
                and arrivals.at_ms[next_arrival] < until
            ):
                retaken[s, kind] += (
                    arrivals.state[next_arrival] != FULL
                )  # arrivals at a full site are counted as `at_full`
                until = arrivals.at_ms[next_arrival]
            bin_ = min((at - clock.first_ms) // BIN_MS, len(clock.week) - 1)
            hourly = rate[s, clock.week[bin_]] * level[s, clock.day[bin_]] * response[s, min(spells.taken[i], last)]
            chance[s, kind] += hourly * (until - at) / 3_600_000
    return Departures(number, retaken, chance)
