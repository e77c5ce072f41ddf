"""Spill: the share of drivers who find a site full and are served at the nearest other one.

If drivers divert, arrivals at the nearest site exceed its usual rate while a site is full. Over all time in which a
site is full and its nearest neighbour has a free plug, let N be the arrivals at neighbours, E those expected there, and
A the drivers turned away. Then

    N ~ Normal(common * E + share * A, N + (spread of common * E)^2).

What all sites have in common at such times (a busy hour of the town) is not spill. A placebo measures it, the same
statistic at a site too far away to divert to: common = N_far / E_far.

Drivers who divert are also arrivals of the site that they divert to, and inflate its rate. An arrival at the neighbour
of full sites came from one of them with probability share * (their rates) / (own rate + share * (their rates)). That
part of such arrivals, chosen at random, is left out when rates are fitted again, until the share settles.

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
from unmet.estimation.shares import share_posterior
from unmet.geo import haversine_km, nearest_stations

__all__ = ["Neighbours", "WhileFull", "find_neighbours", "spill_posterior", "spilled_sessions", "while_full"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

REACH_KM = 3.0
"""Distance up to which drivers divert to another site [km]; sites at more than twice that are the placebo."""
COMMON_SPREAD, UNKNOWN_SPREAD, LEAST_PLACEBO = 0.1, 0.3, 0.2
"""Standard deviation of what near sites have in common beyond the placebo, and without a placebo of that size."""
NEAREST = 50  # sites around each that are looked at
TRIED = 20  # sites that are tried as a placebo where all of these are near


class Neighbours(NamedTuple):
    """For every site, the row of the nearest other site within reach, and of one beyond it; -1 for none."""

    near: Integers
    far: Integers


class WhileFull(NamedTuple):
    """Sums over the time in which sites are full and another site has a free plug."""

    arrivals: float  # at the other sites
    expected: float  # at the other sites, at their usual rates
    turned_away: float  # from the full sites


def spill_posterior(near: WhileFull, far: WhileFull) -> Floats:
    """Posterior probability of each of `SHARES`, from the nearest sites and from those beyond reach."""
    common = far.arrivals / far.expected if far.expected > 0 else 1.0
    variance = max(near.arrivals, 1.0)
    if far.expected > 0:
        variance += (near.expected / far.expected) ** 2 * max(far.arrivals, 1.0)
    enough = far.expected >= LEAST_PLACEBO * near.expected
    variance += ((COMMON_SPREAD if enough else UNKNOWN_SPREAD) * near.expected) ** 2
    return share_posterior(near.arrivals - common * near.expected, variance, near.turned_away)


def find_neighbours(sites: pl.DataFrame) -> Neighbours | None:
    """The nearest other site of each within reach, and one beyond it; None where no site has one within reach.

    `sites` has `lat` and `lon`; sites without a position have no neighbours.
    """
    placed = np.flatnonzero((sites["lat"].is_not_null() & sites["lon"].is_not_null()).to_numpy())
    if len(placed) < 2:
        return None
    lat, lon = (sites[name].to_numpy()[placed].astype(float) for name in ("lat", "lon"))
    found = nearest_stations(lat, lon, lat, lon, NEAREST + 1)
    own = np.arange(len(placed))
    other = found.station != own[:, None]
    near = _first(found.station, other & (found.km <= REACH_KM))
    far = _first(found.station, other & (found.km > 2 * REACH_KM))
    for shift in range(1, min(TRIED, len(placed))):
        candidate = (own + shift * len(placed) // TRIED) % len(placed)
        apart = haversine_km(lat, lon, lat[candidate], lon[candidate]) > 2 * REACH_KM
        far = np.where((far < 0) & apart, candidate, far)
    made = [np.full(sites.height, -1), np.full(sites.height, -1)]
    for rows, chosen in zip(made, (near, far), strict=True):
        rows[placed] = np.where(chosen >= 0, placed[chosen], -1)
    return Neighbours(*made) if (near >= 0).any() else None


def _first(station: Integers, allowed: NDArray[np.bool_]) -> Integers:
    """The first allowed station of each row, -1 for none."""
    return np.where(allowed.any(axis=1), station[np.arange(len(station)), allowed.argmax(axis=1)], -1)


@compiled()
def while_full(
    history: History, clock: Clock, other: Integers, rate: Floats, level: Floats, response: Floats, at_full: Floats
) -> WhileFull:
    """Arrivals at other sites while a site is full, those expected there, and drivers turned away.

    Args:
        history: spells and arrivals of the sites.
        clock: of the period.
        other: row of the other site of each, -1 for none, (sites,).
        rate: arrivals per hour, (sites, bins of the week).
        level: how busy each site is on each day, (sites, days).
        response: factor of the rate by number of taken plugs, (sites, most + 1).
        at_full: the same at a full site, (sites,).
    """
    spells, arrivals = history.spells, history.arrivals
    first = np.searchsorted(arrivals.site, np.arange(len(other) + 1))
    most = response.shape[1] - 1
    came = expected = turned_away = 0.0
    for s in range(len(other)):
        o = other[s]
        if o < 0:
            continue
        k, stop, a = spells.first[o], spells.first[o + 1], first[o]
        for i in range(spells.first[s], spells.first[s + 1]):
            if spells.state[i] != FULL:
                continue
            while k < stop and spells.end_ms[k] <= spells.begin_ms[i]:
                k += 1
            j = k
            while j < stop and spells.begin_ms[j] < spells.end_ms[i]:
                if spells.state[j] == FREE:
                    at = max(spells.begin_ms[j], spells.begin_ms[i])
                    end = min(spells.end_ms[j], spells.end_ms[i])
                    while a < first[o + 1] and arrivals.at_ms[a] < at:
                        a += 1
                    while a < first[o + 1] and arrivals.at_ms[a] <= end:
                        came += 1
                        a += 1
                    for bin_, share in pieces(at - clock.first_ms, end - clock.first_ms, BIN_MS):
                        hours, week, day = share * BIN_HOURS, clock.week[bin_], clock.day[bin_]
                        expected += hours * rate[o, week] * level[o, day] * response[o, min(spells.taken[j], most)]
                        turned_away += hours * rate[s, week] * level[s, day] * at_full[s]
                j += 1
    return WhileFull(came, expected, turned_away)


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
