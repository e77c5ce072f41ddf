"""Waiting: the share of drivers at a full site who wait until they are served, and are therefore recorded.

If drivers wait, a released plug of a full site is taken at once. But plugs are also retaken at once if nobody can have
waited: a driver unplugs and plugs in again. The placebo is the same statistic after departures from sites with another
free plug. With D departures, N arrivals within `RELEASED_MS` of them, of which E are expected by chance,

    restarts = (N_free - E_free) / D_free          per departure,
    waited   = N_full - E_full - restarts * D_full.

Arrivals that are recorded while a site is full (clocks and capacities are never exact) were served, too. The posterior
of the share (`unmet.estimation.shares`) is that of both over the arrivals expected while sites were full.

No more drivers can have waited at a site than arrived while it was full. A site with a permanent queue, whose plugs are
always retaken, shows far more than its hardly exposed time predicts. It says nothing about other sites: the share is
estimated without it. How many leave that queue cannot be known, and the page says so.

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

__all__ = ["Departures", "Waiting", "after_departures", "waiting_drivers"]

RESTARTS, RESTARTS_SPREAD = 0.08, 0.05
"""Prior mean and standard deviation of restarts per departure: a judgement, for networks without a placebo."""
QUEUE_SPREADS = 2.0
"""Standard deviations by which more drivers must have waited at a site than can have arrived for it to have a queue."""


class Departures(NamedTuple):
    """Departures and the arrivals that follow them, (sites, 2): from full sites, then with another free plug."""

    number: Floats
    arrivals: Floats  # within `RELEASED_MS`
    by_chance: Floats  # arrivals expected at the usual rate


class Waiting(NamedTuple):
    """Drivers who waited at full sites until they were served."""

    drivers: float
    spread: float  # its standard deviation
    restarts: float  # per departure
    retaken: float  # arrivals soon after a departure from a full site: an upper bound of those who waited
    queue: NDArray[np.bool_]  # (sites,), sites with a permanent queue, which do not count in the other fields


def waiting_drivers(departures: Departures, at_full: Floats, turned_away: Floats) -> Waiting:
    """Estimate how many drivers at full sites waited and were served, from the arrivals after departures.

    Args:
        departures: departures and the arrivals after them.
        at_full: arrivals recorded although no plug was free, (sites,).
        turned_away: arrivals expected while sites were full, (sites,).
    """
    (_, free), (_, n_free), (_, e_free) = (values.sum(axis=0) for values in departures)
    precision = 1 / RESTARTS_SPREAD**2
    data = free**2 / max(n_free, 1.0)
    restarts = (data * (n_free - e_free) / max(free, 1.0) + precision * RESTARTS) / (data + precision)
    restarts = float(np.clip(restarts, 0.0, 1.0))
    full, n_full, e_full = (values[:, 0] for values in departures)
    waited, variance = n_full - e_full - restarts * full + at_full, n_full + at_full
    queue = waited > turned_away + QUEUE_SPREADS * np.sqrt(variance)
    common = full[~queue].sum() ** 2 / (data + precision)  # restarts are uncertain, and the same at all sites
    spread = np.sqrt(max(float(variance[~queue].sum()), 1.0) + common)
    return Waiting(float(waited[~queue].sum()), float(spread), restarts, float(n_full[~queue].sum()), queue)


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
                continue
            at = spells.begin_ms[i]
            kind = 0 if spells.state[i - 1] == FULL else 1
            if spells.taken[i] == spells.taken[i - 1] and spells.state[i] == spells.state[i - 1]:
                number[s, kind] += 1  # one car left and another arrived at the same moment
                retaken[s, kind] += 1
                continue
            if spells.taken[i] != spells.taken[i - 1] - 1:
                continue
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
                )  # those at a full site are counted as `at_full`
                until = arrivals.at_ms[next_arrival]
            bin_ = min((at - clock.first_ms) // BIN_MS, len(clock.week) - 1)
            hourly = rate[s, clock.week[bin_]] * level[s, clock.day[bin_]] * response[s, min(spells.taken[i], last)]
            chance[s, kind] += hourly * (until - at) / 3_600_000
    return Departures(number, retaken, chance)
