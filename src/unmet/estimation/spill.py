"""Spill: the share of drivers who find a site full and are served at the nearest other one.

If drivers divert, arrivals at the nearest site exceed its usual rate while a site is full, and for as long after as it
takes to drive there. Over all such time in which the nearest site has a free plug, let N be its arrivals, E the
arrivals expected there, and A the drivers turned away from the full sites meanwhile. Then

    N ~ Normal(common * E + share * A, N + variance of common * E^2).

If a neighbourhood is busy for an hour, all of its sites have more arrivals, and some of them fill up: that is not
spill. A placebo measures how busy it is: the same sites in the hour that follows. With N' arrivals where E' were
expected,

    common ~ Gamma(k + N', k + E'),        k = 1 / UNKNOWN_SPREAD^2.

The hour before cannot be the placebo: diverted drivers help to fill a site, so conditioning on its filling up selects
busy times at its neighbour. Bursts end, so the hour after is quieter than the full time it represents. Half of the
burst at full sites therefore enters the variance.

Diverted drivers also inflate the usual rate of the site that they divert to. An arrival at the neighbour of full sites
came from one of them with probability share * (their rates) / (own rate + share * (their rates)). Arrivals are left out
with this probability, and rates are fitted again, until the share converges. E, A and common thus depend on the share:
they are computed for a share of 0 and for the last estimate, and are linear in between and beyond.

Assumption: a driver who diverts goes to the nearest site within reach, takes at most `TRAVEL_MS`, and finds a free plug
or is lost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.demand.spells import FREE, FULL, History, pieces
from unmet.estimation.clock import BIN_HOURS, BIN_MS, Clock
from unmet.estimation.exposed import full_hours
from unmet.estimation.occupancy import Network
from unmet.estimation.rates import Rates, fit_rates, response_at_full, response_table
from unmet.estimation.shares import SHARES, share_posterior
from unmet.estimation.towns import TownPrior
from unmet.geo import nearest_stations

__all__ = [
    "Nearby",
    "Spill",
    "draw_spills",
    "fit_spill",
    "nearest_sites",
    "spill_posterior",
    "spilled_sessions",
    "while_full",
]

REACH_KM = 3.0
"""Distance up to which drivers divert to another site [km]."""
TRAVEL_MS = 900_000
"""Time within which diverted drivers arrive at the next site [ms]: to see that a site is full, and to drive 3 km."""
AFTER_MS = 3_600_000
"""Length of the placebo period that follows [ms]."""
COMMON_SPREAD = 0.04
"""Standard deviation of `common` beyond the placebo, without bursts. If nobody diverts, it is 0.00 beyond chance on
thinned real records (10 draws) and 0.03 in simulated networks (12)."""
UNKNOWN_SPREAD = 0.3
"""Standard deviation of `common` without a placebo: a judgement."""
BURSTS_SHARED = 0.5
"""Share of a burst at a full site that its neighbour may have too: a judgement."""
MIN_SHARE = 0.05
"""Share of diverting drivers from which their arrivals are left out of the rates of other sites."""
MAX_ROUNDS = 6  # highest number of times that rates are fitted again


class Nearby(NamedTuple):
    """Sums over the time in which a site has a free plug while its neighbours are full, or were shortly before."""

    arrivals: float  # N: while a neighbour is full, and for `TRAVEL_MS` after
    expected: float  # E: at the usual rates
    turned_away: float  # A: from the full sites
    reachable: Floats  # by full site, (sites,), including time in which a plug of the free site was just released
    arrivals_after: float  # N': in the hour that follows
    expected_after: float  # E'

    @property
    def common(self) -> float:
        """Posterior mean of how busy the neighbourhood is; 1 is as usual."""
        return (1 / UNKNOWN_SPREAD**2 + self.arrivals_after) / (1 / UNKNOWN_SPREAD**2 + self.expected_after)

    @property
    def common_variance(self) -> float:
        """Posterior variance of `common`."""
        return self.common / (1 / UNKNOWN_SPREAD**2 + self.expected_after)


class Spill(NamedTuple):
    """Share of diverting drivers, and arrival rates fitted without them."""

    rates: Rates
    network: Network  # the sites and arrivals that the rates are fitted to
    posterior: Floats  # of `SHARES`: drivers who divert among those turned away with a free site within reach
    reach: Floats  # (sites,), share of the drivers turned away at each site with a free site within reach
    near: Integers  # (sites,), row of the nearest site, -1 for none


def fit_spill(
    network: Network,
    near: Integers,
    rates: Rates,
    burst: float,
    share: float | None,
    prior: TownPrior,
    rng: np.random.Generator,
) -> Spill:
    """Infer the share of the drivers turned away who divert, and fit rates without their arrivals elsewhere.

    Args:
        network: the sites.
        near: row of the nearest site of each, -1 for none, (sites,).
        rates: rates fitted to all arrivals.
        burst: mean burst effect of the hours in which sites were full.
        share: share of the drivers turned away who divert, if it is given.
        prior: prior of crowding.
        rng: random numbers.

    Only drivers who are turned away from a site with a free site within reach can divert: each site has its own reach.
    """
    clock, capacity, history = network.clock, network.capacity, network.history
    chance = rng.random(len(history.arrivals.site))

    def nearby(rates: Rates) -> Nearby:
        response, at_full = response_table(rates.crowding, capacity), response_at_full(rates, capacity) * burst
        return while_full(history, clock, near, rates.weekly, rates.level, response, at_full)

    def without_diverted(share: float, rates: Rates) -> tuple[Rates, Network]:
        response, at_full = response_table(rates.crowding, capacity), response_at_full(rates, capacity) * burst
        without = network.without(spilled_sessions(history, clock, near, rates, response, at_full, share, chance))
        return fit_rates(without.history, clock, capacity, rates.components, prior), without

    usual = last = nearby(rates)
    rows = full_hours(history.spells, clock, rates.weekly)
    turned_away = network.by_site(rows.site, rates.at_rows(clock, rows)) * response_at_full(rates, capacity) * burst
    reach = np.minimum(usual.reachable / np.maximum(turned_away, 1e-9), 1.0)
    removed, refitted = 0.0, rates
    for _ in range(MAX_ROUNDS if share is None else 0):
        excess = _excess_share(last)
        if excess < MIN_SHARE or abs(excess - removed) < MIN_SHARE / 2:
            break
        removed, (refitted, _) = excess, without_diverted(excess, refitted)
        last = nearby(refitted)
    posterior = spill_posterior(usual, removed, last, BURSTS_SHARED * (burst - 1))
    mean_reach = float(reach @ turned_away) / max(float(turned_away.sum()), 1e-9)
    diverts = float(posterior @ SHARES) if share is None else min(share / max(mean_reach, 1e-9), 1.0)
    if diverts < MIN_SHARE or mean_reach == 0:
        return Spill(rates, network, posterior, reach, near)
    return Spill(*without_diverted(diverts, refitted), posterior, reach, near)


def draw_spills(spill: Spill, share: float | None, draws: int, rng: np.random.Generator) -> Floats:
    """Draw the share of drivers at full sites who are served nearby, (draws, sites).

    A given share applies to every site with another one within reach, and to all sites if there are no such sites.
    """
    if share is None:
        return np.asarray(rng.choice(SHARES, (draws, 1), p=spill.posterior) * spill.reach)
    return np.tile(share * ((spill.near >= 0) | (spill.near < 0).all()), (draws, 1))


def _excess_share(nearby: Nearby) -> float:
    """Arrivals beyond those expected, as a share of the drivers turned away."""
    excess = nearby.arrivals - nearby.common * nearby.expected
    return float(np.clip(excess / max(nearby.turned_away, 1e-9), 0.0, 1.0))


def spill_posterior(usual: Nearby, removed: float, without: Nearby, shared_burst: float) -> Floats:
    """Posterior probability of each of `SHARES`; sums are interpolated between `usual` and `without`.

    Args:
        usual: sums under rates fitted to all arrivals.
        removed: share of diverting drivers whose arrivals were left out to fit the other rates; 0 for none.
        without: sums under rates fitted without these arrivals.
        shared_burst: standard deviation of how busy the neighbourhood is because of bursts.
    """
    weight = SHARES / removed if removed > 0 else np.zeros(len(SHARES))
    expected, turned_away, common = (
        np.maximum((1 - weight) * before + weight * after, 0.0)
        for before, after in (
            (usual.expected, without.expected),
            (usual.turned_away, without.turned_away),
            (usual.common, without.common),
        )
    )
    common_variance = usual.common_variance + COMMON_SPREAD**2 + shared_burst**2
    variance = max(usual.arrivals, 1.0) + common_variance * expected**2
    return share_posterior(usual.arrivals - common * expected, variance, turned_away)


def nearest_sites(sites: pl.DataFrame) -> Integers:
    """Row of the nearest other site within reach, -1 for none, (sites,).

    `sites` has `lat` and `lon`; sites without a position have no neighbours.
    """
    near = np.full(sites.height, -1)
    placed = np.flatnonzero((sites["lat"].is_not_null() & sites["lon"].is_not_null()).to_numpy())
    if len(placed) < 2:
        return near
    lat, lon = (sites[name].to_numpy()[placed].astype(float) for name in ("lat", "lon"))
    found = nearest_stations(lat, lon, lat, lon, 2)
    own = found.station[:, 0] == np.arange(len(placed))
    other, km = (np.where(own, table[:, 1], table[:, 0]) for table in (found.station, found.km))
    near[placed] = np.where(km <= REACH_KM, placed[other], -1)
    return near


@compiled()
def while_full(
    history: History, clock: Clock, near: Integers, rate: Floats, level: Floats, response: Floats, at_full: Floats
) -> Nearby:
    """Arrivals at sites while their neighbours are full, the arrivals expected there, and drivers turned away.

    Args:
        history: spells and arrivals of the sites.
        clock: clock of the period.
        near: row of the nearest site of each, -1 for none, (sites,).
        rate: arrivals per hour, (sites, bins of the week).
        level: level of each site and day, (sites, days).
        response: factor on the rate by number of taken plugs, (sites, max_taken + 1).
        at_full: factor on the rate at a full site, (sites,).
    """
    spells, arrivals = history.spells, history.arrivals
    first = np.searchsorted(arrivals.site, np.arange(len(near) + 1))
    last = response.shape[1] - 1
    turned_away, reachable = 0.0, np.zeros(len(near))
    observed, expected = np.zeros(2), np.zeros(2)  # while drivers may divert, and in the hour that follows
    for o in range(len(near)):  # o is the site that drivers divert to
        sources = np.flatnonzero(near == o)
        if len(sources) == 0:
            continue
        time, change, source = _changes(history, sources)
        # Numbers of full spells: `counted` until their last drivers arrive, `after` until their placebo ends.
        counted, after, is_full = 0, 0, np.zeros(len(sources), np.bool_)
        k, a = spells.first[o], first[o]  # next spell and next arrival of the site
        for e in range(len(time) - 1):
            if change[e] == FILLS:
                is_full[source[e]] = True
                counted += 1
                after += 1
            elif change[e] == FREED:
                is_full[source[e]] = False
            elif change[e] == TRAVELLED:
                counted -= 1
            else:
                after -= 1
            if counted == 0 and after == 0:
                continue
            kind = 0 if counted > 0 else 1
            while k < spells.first[o + 1] and spells.end_ms[k] <= time[e]:
                k += 1
            j = k
            while j < spells.first[o + 1] and spells.begin_ms[j] < time[e + 1]:
                begin, end = max(spells.begin_ms[j], time[e]), min(spells.end_ms[j], time[e + 1])
                if spells.state[j] == FREE:
                    while a < first[o + 1] and arrivals.at_ms[a] <= begin:
                        a += 1
                    while a < first[o + 1] and arrivals.at_ms[a] <= end:
                        observed[kind] += arrivals.state[a] == FREE
                        a += 1
                if spells.state[j] != FULL:
                    for bin_, share in pieces(begin - clock.first_ms, end - clock.first_ms, BIN_MS):
                        hours, week, day = share * BIN_HOURS, clock.week[bin_], clock.day[bin_]
                        source_arrivals = 0.0
                        for i in range(len(sources)):
                            if is_full[i]:
                                s = sources[i]
                                arrivals_of_source = hours * rate[s, week] * level[s, day] * at_full[s]
                                reachable[s] += arrivals_of_source
                                source_arrivals += arrivals_of_source
                        if spells.state[j] == FREE:
                            turned_away += source_arrivals
                            usual = hours * rate[o, week] * level[o, day]
                            expected[kind] += usual * response[o, min(spells.taken[j], last)]
                j += 1
    return Nearby(observed[0], expected[0], turned_away, reachable, observed[1], expected[1])


FILLS, FREED, TRAVELLED, CALM = 0, 1, 2, 3  # events of `_changes`, in the order that its docstring names


@compiled()
def _changes(history: History, sources: Integers) -> tuple[Integers, Integers, Integers]:
    """Sorted times at which sites fill up and free a plug, diverted drivers have all arrived, and the placebo ends.

    Returns:
        Times [ms], what happens, and the position of the site in `sources`.
    """
    spells, number = history.spells, 0
    for s in sources:
        for i in range(spells.first[s], spells.first[s + 1]):
            number += spells.state[i] == FULL
    time = np.empty(4 * number, np.int64)
    change, source = np.empty(4 * number, np.int64), np.empty(4 * number, np.int64)
    n = 0
    for k in range(len(sources)):
        for i in range(spells.first[sources[k]], spells.first[sources[k] + 1]):
            if spells.state[i] == FULL:
                end = spells.end_ms[i]
                time[n], time[n + 1] = spells.begin_ms[i], end
                time[n + 2], time[n + 3] = end + TRAVEL_MS, end + TRAVEL_MS + AFTER_MS
                for what in range(4):
                    change[n + what], source[n + what] = what, k
                n += 4
    order = np.argsort(time, kind="mergesort")
    return time[order], change[order], source[order]


def spilled_sessions(
    history: History,
    clock: Clock,
    near: Integers,
    rates: Rates,
    response: Floats,
    at_full: Floats,
    share: float,
    chance: Floats,
) -> Integers:
    """Rows of sessions drawn as diverted: each with probability share * r / (own rate + share * r).

    Args:
        history: spells and arrivals of the sites.
        clock: clock of the period.
        near: row of the nearest site of each, -1 for none, (sites,).
        rates: arrival rates of the sites.
        response: factor on the rate by number of taken plugs, (sites, max_taken + 1).
        at_full: factor on the rate at a full site, (sites,).
        share: share of the drivers turned away who divert.
        chance: a uniform random number for each arrival, (arrivals,), the same for every share: an arrival that is
            left out at one share is also left out at higher ones.
    """
    arrivals, level = history.arrivals, rates.level
    source = share * _rate_of_full_neighbours(history, clock, near, rates.weekly * at_full[:, None], level)
    bin_ = (arrivals.at_ms - clock.first_ms) // BIN_MS
    own = rates.weekly[arrivals.site, clock.week[bin_]] * level[arrivals.site, clock.day[bin_]]
    own = own * response[arrivals.site, np.minimum(arrivals.taken, response.shape[1] - 1)]
    diverted = source / np.maximum(own + source, 1e-12)
    return np.asarray(arrivals.row[(arrivals.state == FREE) & (chance < diverted)])


@compiled()
def _rate_of_full_neighbours(history: History, clock: Clock, near: Integers, rate: Floats, level: Floats) -> Floats:
    """For each arrival, the summed arrival rate of the full sites whose nearest neighbour is the arrival's site.

    Drivers turned away during a full spell arrive evenly from its beginning to `TRAVEL_MS` after its end.
    """
    spells, arrivals = history.spells, history.arrivals
    first = np.searchsorted(arrivals.site, np.arange(len(near) + 1))
    total = np.zeros(len(arrivals.site))
    for s in range(len(near)):
        o = near[s]
        if o < 0:
            continue
        start = first[o]
        for i in range(spells.first[s], spells.first[s + 1]):
            if spells.state[i] != FULL:
                continue
            begin, end = spells.begin_ms[i], spells.end_ms[i]
            while start < first[o + 1] and arrivals.at_ms[start] < begin:
                start += 1
            at = start  # the spell after this one may begin before the last driver arrives
            while at < first[o + 1] and arrivals.at_ms[at] < end + TRAVEL_MS:
                bin_ = (arrivals.at_ms[at] - clock.first_ms) // BIN_MS
                usual = rate[s, clock.week[bin_]] * level[s, clock.day[bin_]]
                total[at] += usual * (end - begin) / (end - begin + TRAVEL_MS)
                at += 1
    return total
