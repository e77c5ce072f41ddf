"""Hour effects: arrivals that come in bursts, beyond what the week and the day explain.

The rate of a site in one hour is multiplied by a gamma variable of mean 1 and shape c. An hour in which a site fills up
tends to be a busy one, and its arrivals while a plug was free show how busy: with n arrivals in the exposed part of the
hour where m were expected, the posterior of the variable is gamma with shape c + n and rate c + m. The shape is
estimated by maximum marginal likelihood: up to a constant, the log likelihood of an hour is

    log Gamma(c + n) - log Gamma(c) - n log c - (c + n) log(1 + m / c),      and -m without bursts (infinite c).

Assumption: a burst lasts about an hour. Batches that arrive within minutes are only partly covered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.demand.parallel import over_sites
from unmet.demand.spells import FREE, History, pieces
from unmet.estimation.clock import BIN_HOURS, BIN_MS, BINS_AN_HOUR, Clock
from unmet.estimation.exposed import FullHours

__all__ = ["HourEffects", "hour_effects"]

SHAPES = np.concatenate([np.geomspace(0.5, 64.0, 15), [np.inf]])  # grid of c; the last stands for no bursts
MIN_GAIN = 4.0  # gain in log likelihood from which bursts count as more than chance; stricter than for day effects
MAX_SITES = 300  # highest number of sites to estimate the shape from


class HourEffects(NamedTuple):
    """Bursts in the hours in which sites were full; arrays have one entry per row of `FullHours`."""

    shape: float  # infinite for no bursts
    arrivals: Floats  # observed in the exposed part of the hour
    expected: Floats  # expected in the exposed part of the hour

    @property
    def mean(self) -> Floats:
        """Posterior mean of the effect of each full hour."""
        if np.isinf(self.shape):
            return np.ones_like(self.arrivals)
        return np.asarray((self.shape + self.arrivals) / (self.shape + self.expected))


def hour_effects(
    history: History, clock: Clock, rate: Floats, level: Floats, response: Floats, rows: FullHours, learned_hours: int
) -> HourEffects:
    """Effects of the hours in which sites were full.

    Args:
        history: spells and arrivals of the sites.
        clock: clock of the period.
        rate: arrivals per hour, (sites, bins of the week).
        level: level of each site and day, (sites, days).
        response: factor on the rate by number of taken plugs, (sites, max_taken + 1).
        rows: the hours in which sites were full.
        learned_hours: number of hours from the start of the period from which the shape is estimated.
    """
    sites = len(rate)
    stride = -(-sites // MAX_SITES)
    used = np.arange(sites) % stride == 0
    count, expected, value = _counts_and_likelihoods(history, clock, rate, level, response, rows, used, learned_hours)
    best = int(value[:-1].argmax())
    shape = float(SHAPES[best]) if value[best] > value[-1] + MIN_GAIN else np.inf
    return HourEffects(shape, count, expected)


def _counts_and_likelihoods(
    history: History,
    clock: Clock,
    rate: Floats,
    level: Floats,
    response: Floats,
    rows: FullHours,
    used: NDArray[np.bool_],
    learned_hours: int,
) -> tuple[Floats, Floats, Floats]:
    """Arrivals observed and expected in the exposed part of full hours, and the log likelihood of each shape."""
    sites = len(rate)
    count, expected = np.zeros(len(rows.site)), np.zeros(len(rows.site))
    first_arrival, first_row = (np.searchsorted(of.site, np.arange(sites + 1)) for of in (history.arrivals, rows))
    firsts = (rows.hour, first_arrival, first_row)
    given = (history, clock, rate, level, response, *firsts, SHAPES, used, learned_hours, count, expected)
    return count, expected, np.sum(over_sites(_hours, sites, *given), axis=0)


@compiled()
def _hours(
    history: History,
    clock: Clock,
    rate: Floats,
    level: Floats,
    response: Floats,
    row_hour: Integers,
    first_arrival: Integers,
    first_row: Integers,
    shapes: Floats,
    used: NDArray[np.bool_],
    learned_hours: int,
    count: Floats,
    expected: Floats,
    begin: int,
    end: int,
) -> Floats:
    """Write the arrivals observed and expected to `count` and `expected`; return the log likelihood of each shape."""
    spells, arrivals = history.spells, history.arrivals
    hours, last = len(clock.week) // BINS_AN_HOUR, response.shape[1] - 1
    value, n, m = np.zeros(len(shapes)), np.zeros(hours), np.zeros(hours)
    for s in range(begin, end):
        n[:], m[:] = 0.0, 0.0
        for i in range(spells.first[s], spells.first[s + 1]):
            if spells.state[i] != FREE:
                continue
            weight = response[s, min(spells.taken[i], last)]
            begin_ms, end_ms = spells.begin_ms[i] - clock.first_ms, spells.end_ms[i] - clock.first_ms
            for bin_, share in pieces(begin_ms, end_ms, BIN_MS):
                hourly = rate[s, clock.week[bin_]] * level[s, clock.day[bin_]] * weight
                m[bin_ // BINS_AN_HOUR] += share * BIN_HOURS * hourly
        for i in range(first_arrival[s], first_arrival[s + 1]):
            if arrivals.state[i] == FREE:
                n[max(arrivals.at_ms[i] - clock.first_ms - 1, 0) // BIN_MS // BINS_AN_HOUR] += 1
        for row in range(first_row[s], first_row[s + 1]):
            count[row], expected[row] = n[row_hour[row]], m[row_hour[row]]
        if used[s]:
            for h in range(min(learned_hours, hours)):
                if m[h] > 0:
                    for k in range(len(shapes)):
                        a = shapes[k]
                        if np.isinf(a):
                            value[k] -= m[h]
                            continue
                        value[k] -= (a + n[h]) * np.log1p(m[h] / a)
                        for i in range(int(n[h])):  # log Gamma(a + n) - log Gamma(a) - n log a
                            value[k] += np.log1p(i / a)
    return value
