"""Spill: the share of drivers who find a site full and are served at the nearest other one.

If drivers divert, arrivals at the nearest site exceed its usual rate while a site is full. Over all time in which a
site has a free plug and one whose nearest site it is has none, let N be its arrivals, E those expected there, and A the
drivers turned away from the full sites. Then

    N ~ Normal(common * E + share * A, N + spread of common * E).

A neighbourhood that is busy for an hour fills sites and brings arrivals to all of them: that is not spill. A placebo
measures it, the same sites within an hour after the others have a free plug again: common = N / E of that time. (The
hour before would not do: drivers who divert fill sites, so that the future of a site depends on its neighbours.)

Drivers who divert are also arrivals of the site that they divert to, and inflate its usual rate. An arrival at the
neighbour of full sites came from one of them with probability share * (their rates) / (own rate + share * (their
rates)). That part of such arrivals, chosen at random, is left out when rates are fitted again. E and A thus depend on
the share: they are known for the shares that rates were fitted with, and interpolated for those between.

Assumption: whoever diverts goes to the nearest site, if it is within reach and has a free plug.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.compiled import compiled
from unmet.demand.spells import FREE, FULL, History, pieces
from unmet.estimation.clock import BIN_HOURS, BIN_MS, Clock
from unmet.estimation.exposed import full_hours
from unmet.estimation.occupancy import Network
from unmet.estimation.rates import Rates, fit_rates, response_at_full, response_table
from unmet.estimation.shares import SHARES, share_posterior
from unmet.estimation.towns import TownPrior
from unmet.geo import nearest_stations

__all__ = ["Nearby", "Spill", "fit_spill", "nearest_sites", "spill_posterior", "spilled_sessions", "while_full"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

REACH_KM = 3.0
"""Distance up to which drivers divert to another site [km]."""
AFTER_MS = 3_600_000
"""Time after a full site has a free plug again that says how busy the neighbourhood is."""
COMMON_SPREAD, UNKNOWN_SPREAD, LEAST_PLACEBO = 0.04, 0.3, 0.2
"""Standard deviation of how busy the neighbourhood is beyond the placebo, and without a placebo of that size. Where
nobody diverts, it is 0.00 beyond chance on thinned real records (10 draws) and 0.03 in simulated networks (12)."""
LEAST_SHARE, ROUNDS = 0.05, 6
"""Share of diverting drivers from which their arrivals at other sites are taken out of the rates there."""


class Nearby(NamedTuple):
    """Sums over the time in which sites have a free plug and those that divert to them are full, or just were."""

    arrivals: float  # while another is full
    expected: float  # at the usual rates
    turned_away: float  # from the full sites
    reachable: float  # the same, also while a plug of the free site was released just now
    arrivals_after: float  # shortly after, while none is full
    expected_after: float

    @property
    def common(self) -> float:
        """How much busier than usual sites are at such times."""
        return self.arrivals_after / self.expected_after if self.expected_after > 0 else 1.0


class Spill(NamedTuple):
    """Who diverts, and the arrival rates without them."""

    rates: Rates
    network: Network  # that the rates are fitted to
    posterior: Floats  # of `SHARES`: drivers who divert, of those turned away with a free site within reach
    reach: float  # the part of the drivers turned away who have one


def fit_spill(
    network: Network, near: Integers, rates: Rates, share: float | None, prior: TownPrior, rng: np.random.Generator
) -> Spill:
    """Infer which share of the drivers turned away diverts, and fit rates without their arrivals elsewhere.

    Args:
        network: the sites.
        near: row of the nearest site of each, -1 for none, (sites,).
        rates: fitted to all arrivals.
        share: of all drivers turned away, where it is known.
        prior: of the rates.
        rng: random numbers.
    """
    clock, capacity = network.clock, network.capacity
    fits = [(0.0, _nearby(network, near, rates))]
    rows = full_hours(network.history.spells, clock, rates.weekly)
    turned_away = float((rates.at_rows(clock, rows) * response_at_full(rates, capacity)[rows.site]).sum())
    reach = min(fits[0][1].reachable / max(turned_away, 1e-9), 1.0)

    def without_diverted(share: float, usual: Rates) -> tuple[Rates, Network]:
        hourly = usual.weekly * usual.level.mean(axis=1, keepdims=True)
        response, at_full = response_table(usual.crowding, capacity), response_at_full(usual, capacity)
        spilled = spilled_sessions(network.history, clock, near, hourly, response, at_full, share, rng)
        without = network.without(spilled)
        return fit_rates(without.history, clock, capacity, usual.components, prior), without

    usual = rates
    for _ in range(ROUNDS if share is None else 0):
        excess = _excess_share(fits[-1][1])
        if excess < LEAST_SHARE or abs(excess - fits[-1][0]) < LEAST_SHARE / 2:
            break
        usual, _ = without_diverted(excess, usual)
        fits.append((excess, _nearby(network, near, usual)))
    posterior = spill_posterior(fits)
    diverts = float(posterior @ SHARES) if share is None else min(share / max(reach, 1e-9), 1.0)
    if diverts < LEAST_SHARE or reach == 0:
        return Spill(rates, network, posterior, reach)
    return Spill(*without_diverted(diverts, usual), posterior, reach)


def _nearby(network: Network, near: Integers, rates: Rates) -> Nearby:
    response, at_full = response_table(rates.crowding, network.capacity), response_at_full(rates, network.capacity)
    return while_full(network.history, network.clock, near, rates.weekly, rates.level, response, at_full)


def _excess_share(nearby: Nearby) -> float:
    """Arrivals beyond those expected, as a share of the drivers turned away."""
    excess = nearby.arrivals - nearby.common * nearby.expected
    return float(np.clip(excess / max(nearby.turned_away, 1e-9), 0.0, 1.0))


def spill_posterior(fits: list[tuple[float, Nearby]]) -> Floats:
    """Posterior probability of each of `SHARES`.

    Args:
        fits: shares that rates were fitted with, and the sums under these rates; the first share is 0.
    """
    at = np.array([share for share, _ in fits])
    order = np.argsort(at)
    columns = np.array([[made.expected, made.turned_away, made.common] for _, made in fits])[order]
    expected, turned_away, common = (_interpolated(at[order], values) for values in columns.T)
    near = fits[0][1]
    enough = near.expected_after >= LEAST_PLACEBO * near.expected
    variance = np.full(len(SHARES), max(near.arrivals, 1.0))
    if near.expected_after > 0:
        variance += (expected / near.expected_after) ** 2 * max(near.arrivals_after, 1.0)
    variance += ((COMMON_SPREAD if enough else UNKNOWN_SPREAD) * expected) ** 2
    return share_posterior(near.arrivals - common * expected, variance, turned_away)


def _interpolated(at: Floats, values: Floats) -> Floats:
    """Values for each of `SHARES`, on straight lines that go on beyond the last share."""
    if len(at) == 1:
        return np.full(len(SHARES), values[0])
    slope = (values[-1] - values[-2]) / max(at[-1] - at[-2], 1e-9)
    beyond = np.maximum(values[-1] + slope * (SHARES - at[-1]), 0.0)
    return np.where(at[-1] >= SHARES, np.interp(SHARES, at, values), beyond)


def nearest_sites(sites: pl.DataFrame) -> Integers:
    """The row of the nearest other site of each within reach, -1 for none, (sites,).

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
    """Arrivals at sites while those that divert to them are full, those expected there, and drivers turned away.

    Args:
        history: spells and arrivals of the sites.
        clock: of the period.
        near: row of the nearest site of each, -1 for none, (sites,).
        rate: arrivals per hour, (sites, bins of the week).
        level: how busy each site is on each day, (sites, days).
        response: factor of the rate by number of taken plugs, (sites, most + 1).
        at_full: the same at a full site, (sites,).
    """
    spells, arrivals = history.spells, history.arrivals
    first = np.searchsorted(arrivals.site, np.arange(len(near) + 1))
    most = response.shape[1] - 1
    came, expected, turned_away, reachable = np.zeros(2), np.zeros(2), 0.0, 0.0  # while another is full, and after that
    for o in range(len(near)):
        sources = np.flatnonzero(near == o)
        if len(sources) == 0:
            continue
        time, change, source = _changes(history, sources)
        full, after, is_full = 0, 0, np.zeros(len(sources), np.bool_)
        k, a = spells.first[o], first[o]
        for e in range(len(time) - 1):
            if change[e] in (BEGINS, ENDS):
                is_full[source[e]] = change[e] == BEGINS
                full += 1 if change[e] == BEGINS else -1
            else:
                after += 1 if change[e] == BEGINS_AFTER else -1
            if full == 0 and after == 0:
                continue
            kind = 0 if full > 0 else 1
            while k < spells.first[o + 1] and spells.end_ms[k] <= time[e]:
                k += 1
            j = k
            while j < spells.first[o + 1] and spells.begin_ms[j] < time[e + 1]:
                begin, end = max(spells.begin_ms[j], time[e]), min(spells.end_ms[j], time[e + 1])
                if spells.state[j] == FREE:
                    while a < first[o + 1] and arrivals.at_ms[a] <= begin:
                        a += 1
                    while a < first[o + 1] and arrivals.at_ms[a] <= end:
                        came[kind] += 1
                        a += 1
                if spells.state[j] != FULL:
                    for bin_, share in pieces(begin - clock.first_ms, end - clock.first_ms, BIN_MS):
                        hours, week, day = share * BIN_HOURS, clock.week[bin_], clock.day[bin_]
                        source_arrivals = 0.0
                        for i in range(len(sources)):
                            if is_full[i]:
                                s = sources[i]
                                source_arrivals += hours * rate[s, week] * level[s, day] * at_full[s]
                        reachable += source_arrivals
                        if spells.state[j] == FREE:
                            turned_away += source_arrivals
                            usual = hours * rate[o, week] * level[o, day]
                            expected[kind] += usual * response[o, min(spells.taken[j], most)]
                j += 1
    return Nearby(came[0], expected[0], turned_away, reachable, came[1], expected[1])


BEGINS, ENDS, BEGINS_AFTER, ENDS_AFTER = 0, 1, 2, 3


@compiled()
def _changes(history: History, sources: Integers) -> tuple[Integers, Integers, Integers]:
    """When full spells of some sites begin and end, and the time after them: times in order, what, and which site."""
    spells, number = history.spells, 0
    for s in sources:
        for i in range(spells.first[s], spells.first[s + 1]):
            number += spells.state[i] == FULL
    time, change, source = (
        np.empty(4 * number, np.int64),
        np.empty(4 * number, np.int64),
        np.empty(4 * number, np.int64),
    )
    n = 0
    for k in range(len(sources)):
        for i in range(spells.first[sources[k]], spells.first[sources[k] + 1]):
            if spells.state[i] == FULL:
                begin, end = spells.begin_ms[i], spells.end_ms[i]
                time[n], time[n + 1], time[n + 2], time[n + 3] = begin, end, begin, end + AFTER_MS
                for what in range(4):
                    change[n + what], source[n + what] = what, k
                n += 4
    order = np.argsort(time, kind="mergesort")
    return time[order], change[order], source[order]


def spilled_sessions(
    history: History,
    clock: Clock,
    near: Integers,
    hourly: Floats,
    response: Floats,
    at_full: Floats,
    share: float,
    rng: np.random.Generator,
) -> Integers:
    """Rows of sessions whose drivers probably came from a full site nearby, chosen at random.

    Args:
        history: spells and arrivals of the sites.
        clock: of the period.
        near: row of the nearest site of each, -1 for none, (sites,).
        hourly: arrivals per hour of each site and bin of the week, (sites, bins of the week).
        response: factor of the rate by number of taken plugs, (sites, most + 1).
        at_full: the same at a full site, (sites,).
        share: of the drivers turned away who divert.
        rng: random numbers.
    """
    source = share * _rate_of_full_neighbours(history, clock, near, hourly * at_full[:, None])
    arrivals = history.arrivals
    own = hourly[arrivals.site, clock.week[(arrivals.at_ms - clock.first_ms) // BIN_MS]]
    own = own * response[arrivals.site, np.minimum(arrivals.taken, response.shape[1] - 1)]
    spilled = source / np.maximum(own + source, 1e-12)
    return np.asarray(arrivals.row[(arrivals.state == FREE) & (rng.random(len(spilled)) < spilled)])


@compiled()
def _rate_of_full_neighbours(history: History, clock: Clock, near: Integers, hourly: Floats) -> Floats:
    """Arrivals per hour at sites that are full at the time of each arrival, and whose nearest site it is at."""
    spells, arrivals = history.spells, history.arrivals
    first = np.searchsorted(arrivals.site, np.arange(len(near) + 1))
    rate = np.zeros(len(arrivals.site))
    for s in range(len(near)):
        o = near[s]
        if o < 0:
            continue
        at = first[o]
        for i in range(spells.first[s], spells.first[s + 1]):
            if spells.state[i] != FULL:
                continue
            while at < first[o + 1] and arrivals.at_ms[at] < spells.begin_ms[i]:
                at += 1
            while at < first[o + 1] and arrivals.at_ms[at] < spells.end_ms[i]:
                rate[at] += hourly[s, clock.week[(arrivals.at_ms[at] - clock.first_ms) // BIN_MS]]
                at += 1
    return rate
