"""Waiting: the share of drivers at a full site who wait until they are served, and are therefore recorded.

If drivers wait, a released plug of a full site is taken at once. But plugs are also retaken at once if nobody can have
waited: a driver unplugs and plugs in again. The placebo is the same statistic after departures from sites with another
free plug. With D departures, N arrivals within `RELEASED_MS` of them, of which E are expected by chance,

    restarts = (N_free - E_free) / D_free          per departure,
    waited   = N_full - E_full - restarts * D_full.

Arrivals that are recorded while a site is full (clocks and capacities are never exact) were served, too. The posterior
of the share (`unmet.estimation.shares`) is that of both over the arrivals expected while sites were full.

Assumption: restarts are as frequent at a full site as at one with a free plug.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unmet.arrays import Floats
from unmet.compiled import compiled
from unmet.demand.spells import FULL, RELEASED_MS, History
from unmet.estimation.clock import BIN_MS, Clock

__all__ = ["Departures", "Waiting", "after_departures", "waiting_drivers"]

RESTARTS, RESTARTS_SPREAD = 0.08, 0.05
"""Prior mean and standard deviation of restarts per departure: a judgement, for networks without a placebo."""


class Departures(NamedTuple):
    """Departures and the arrivals that follow them: first from full sites, then from sites with another free plug."""

    number: Floats  # (2,)
    arrivals: Floats  # (2,), within `RELEASED_MS`
    by_chance: Floats  # (2,), arrivals expected at the usual rate


class Waiting(NamedTuple):
    """Drivers who waited at full sites until they were served."""

    drivers: float
    spread: float  # its standard deviation
    restarts: float  # per departure
    retaken: float  # arrivals soon after a departure from a full site: an upper bound of those who waited


def waiting_drivers(departures: Departures, at_full: float = 0.0) -> Waiting:
    """Estimate how many drivers at full sites waited and were served, from the arrivals after departures.

    `at_full` is the number of arrivals that are recorded although no plug was free.
    """
    (full, free), (n_full, n_free), (e_full, e_free) = departures
    precision = 1 / RESTARTS_SPREAD**2
    data = free**2 / max(n_free, 1.0)
    restarts = (data * (n_free - e_free) / max(free, 1.0) + precision * RESTARTS) / (data + precision)
    restarts = float(np.clip(restarts, 0.0, 1.0))
    waited = n_full - e_full - restarts * full + at_full
    spread = np.sqrt(max(n_full + at_full, 1.0) + full**2 / (data + precision))
    return Waiting(float(waited), float(spread), restarts, float(n_full))


@compiled()
def after_departures(history: History, clock: Clock, rate: Floats, level: Floats, response: Floats) -> Departures:
    """Count departures, the arrivals soon after them, and those expected by chance.

    Args:
        history: spells and arrivals of the sites.
        clock: clock of the period.
        rate: arrivals per hour, (sites, bins of the week).
        level: level of each site and day, (sites, days).
        response: factor on the rate by number of taken plugs, (sites, most + 1).
    """
    spells, arrivals = history.spells, history.arrivals
    number, retaken, chance = np.zeros(2), np.zeros(2), np.zeros(2)
    most, next_arrival = response.shape[1] - 1, 0
    for s in range(len(rate)):
        for i in range(spells.first[s] + 1, spells.first[s + 1]):
            if spells.begin_ms[i] != spells.end_ms[i - 1]:
                continue
            at = spells.begin_ms[i]
            kind = 0 if spells.state[i - 1] == FULL else 1
            if spells.taken[i] == spells.taken[i - 1] and spells.state[i] == spells.state[i - 1]:
                number[kind] += 1  # one car left and another arrived at the same moment
                retaken[kind] += 1
                continue
            if spells.taken[i] != spells.taken[i - 1] - 1:
                continue
            while next_arrival < len(arrivals.site) and (
                arrivals.site[next_arrival] < s
                or (arrivals.site[next_arrival] == s and arrivals.at_ms[next_arrival] < at)
            ):
                next_arrival += 1
            until = at + RELEASED_MS
            number[kind] += 1
            if (
                next_arrival < len(arrivals.site)
                and arrivals.site[next_arrival] == s
                and arrivals.at_ms[next_arrival] < until
            ):
                retaken[kind] += arrivals.state[next_arrival] != FULL  # those at a full site are counted as `at_full`
                until = arrivals.at_ms[next_arrival]
            bin_ = min((at - clock.first_ms) // BIN_MS, len(clock.week) - 1)
            hourly = rate[s, clock.week[bin_]] * level[s, clock.day[bin_]] * response[s, min(spells.taken[i], most)]
            chance[kind] += hourly * (until - at) / 3_600_000
    return Departures(number, retaken, chance)
