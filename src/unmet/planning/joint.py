"""Joint evaluation: simulate a plan at all affected sites together, because gains are not additive.

Some drivers who find a site full go to the nearest other one. If they were served there, its records contain them
without a mark, so they are chosen at random in every draw: an arrival at a site while its neighbour is full came from
there with probability

    share * r / (own rate + share * r),      r: the rate at which the neighbour turns drivers away.

With new plugs these drivers are served at their own site, and leave a plug free next door. Lost drivers whose nearest
site was full too would have gone there with the same share. A new site takes drivers from its neighbours, and frees
their plugs. Every driver tries one site, then another if there is one, and is lost if both are full.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Booleans, Floats, Integers
from unmet.compiled import compiled
from unmet.demand.spells import FULL
from unmet.estimation.clock import BIN_MS, BINS_AN_HOUR
from unmet.estimation.spill import nearest_sites
from unmet.planning.candidates import Candidates, prefers, pulls
from unmet.planning.changes import World
from unmet.planning.drivers import DrawnDemand, Drivers
from unmet.planning.gains import stays_at_power

__all__ = ["Built", "Joint", "simulate_jointly"]


MIN_SPILL = 0.005  # smaller shares of diverting drivers count as 0
MAX_DRIVERS = 4_000_000  # highest number of drivers over all draws; a larger network uses fewer draws
MIN_DRAWS = 10
SPARE = 8  # places beyond the plugs of a site, for records that overlap
DIVERT_STREAM = 20  # stream of random numbers
LOST, SERVED, AT_NEW_PLUG = 0, 1, 2  # outcomes of a driver

Outcomes = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Built:
    """Plugs that a plan adds, at sites first and then at candidates."""

    plugs: Integers  # (sites + candidates,)
    power: Floats  # (sites + candidates,) [kW], NaN for the power of the existing plugs


@dataclass(frozen=True, slots=True)
class Joint:
    """Lost demand per week of the sites that a plan affects, before and after, (draws,) each."""

    before_kwh: Floats
    after_kwh: Floats
    before_drivers: Floats
    after_drivers: Floats

    @property
    def gain_kwh(self) -> Floats:
        """Energy per week that the plan recovers, (draws,)."""
        return np.asarray(self.before_kwh - self.after_kwh)


@dataclass(frozen=True, slots=True)
class _Stream:
    """All drivers of some sites, in order of time within each draw."""

    first: Integers
    at_ms: Integers
    stay_ms: Integers
    stay_new_ms: Integers  # stay at a plug of the plan
    forced: Booleans
    site: Integers  # site that is tried first
    other: Integers  # site that is tried next; -1 for none
    less_kwh: Floats  # energy per week that a plug of the plan delivers less than an existing one
    lost_kwh: Floats  # energy per week that is lost if the driver is not served
    lost_drivers: Floats  # drivers per week, likewise


def simulate_jointly(world: World, built: Built, candidates: Candidates | None = None) -> Joint:
    """Simulate all affected sites with and without the plan, with the same drivers."""
    demand = world.demand
    near, share = _neighbours(demand)
    affected = _affected(world, built, near, candidates)
    visits = sum(int(demand.network.visits.first[s + 1] - demand.network.visits.first[s]) for s in affected)
    draws = min(max(MAX_DRIVERS // max(visits, 1), MIN_DRAWS), demand.draws)
    world = replace(world, demand=demand.first_draws(draws))  # with the same drivers as in all draws
    stream = _stream(world, built, affected, near, share, candidates)
    capacity = np.concatenate([world.capacity, np.zeros(len(built.plugs) - demand.sites, np.int64)])
    before = _outcomes(stream, capacity, capacity)
    after = _outcomes(stream, capacity, capacity + built.plugs)
    draw = np.repeat(np.arange(len(stream.first) - 1), np.diff(stream.first))

    def per_draw(outcome: Outcomes, which: int, values: Floats) -> Floats:
        rows = outcome == which
        return np.bincount(draw[rows], values[rows], minlength=len(stream.first) - 1).astype(float)

    return Joint(
        per_draw(before, LOST, stream.lost_kwh),
        per_draw(after, LOST, stream.lost_kwh) + per_draw(after, AT_NEW_PLUG, stream.less_kwh),
        per_draw(before, LOST, stream.lost_drivers), per_draw(after, LOST, stream.lost_drivers),
    )  # fmt: skip


def _neighbours(demand: DrawnDemand) -> tuple[Integers, float]:
    """Nearest other site within reach of each site (-1 for none), and the share of drivers who divert to it."""
    near = nearest_sites(demand.panel.sites)
    if (near < 0).all() or demand.spill < MIN_SPILL:
        return np.full(demand.sites, -1), 0.0
    # The estimator's share refers to all drivers turned away; among drivers with a site nearby, it is larger.
    hidden = demand.hidden
    mean = hidden.drivers.mean(axis=0)
    has_near = near[hidden.site] >= 0
    reach = float((mean * has_near).sum() / max(mean.sum(), 1e-9))
    return near, min(demand.spill / max(reach, demand.spill), 1.0)


def _affected(world: World, built: Built, near: Integers, candidates: Candidates | None) -> list[int]:
    """Sites that the plan changes, and their neighbours."""
    sites = world.demand.sites
    affected = set(np.flatnonzero(built.plugs[:sites]).tolist())
    for j in range(len(built.plugs) - sites):
        if built.plugs[sites + j] and candidates is not None:
            affected |= set(pulls(world, candidates, j))
    linked = {int(near[s]) for s in affected if near[s] >= 0} | {
        int(s) for s in np.flatnonzero(np.isin(near, list(affected)))
    }
    return sorted(affected | linked)


def _stream(
    world: World,
    built: Built,
    affected: list[int],
    near: Integers,
    share: float,
    candidates: Candidates | None,
) -> _Stream:
    """All drivers of the affected sites, with the site that each tries first, and next."""
    demand, parts = world.demand, []
    for s in affected:
        drivers = world.drivers(s)
        site, other = np.full(len(drivers.at_ms), s), np.full(len(drivers.at_ms), -1)
        cars = drivers.recorded | ~drivers.forced  # all but outages
        if share:
            rng = np.random.default_rng([demand.seed, DIVERT_STREAM, s])
            uniform = rng.random(len(site))
            if near[s] >= 0:
                divert = ~drivers.recorded & (uniform < share) & _is_full(demand, int(near[s]), drivers.at_ms)
                other[divert] = near[s]
            for source in np.flatnonzero(near == s):
                chance = _came_from(demand, int(source), s, drivers.at_ms, share)
                diverted = drivers.recorded & ~drivers.forced & (other < 0) & (uniform < chance)
                site[diverted], other[diverted] = source, s
        stay_new, kwh_new = _at_new_plug(demand, drivers, s, built.power[s])
        for j in range(len(built.plugs) - demand.sites):
            pull = pulls(world, candidates, j) if candidates else {}
            if built.plugs[demand.sites + j] and s in pull:
                moves = cars & (prefers(demand, j, s, len(cars)) < pull[s]) & (site < demand.sites)
                other[moves], site[moves] = s, demand.sites + j
                at_candidate = _at_new_plug(demand, drivers, s, built.power[demand.sites + j])
                stay_new = np.where(moves, at_candidate[0], stay_new)
                kwh_new = np.where(moves, at_candidate[1], kwh_new)
        leaves = np.where(drivers.recorded, world.leaves(s), 1.0) * cars / demand.weeks[s]
        parts.append(
            (  # the draw, then the columns of `_Stream`
                drivers.draw,
                drivers.at_ms,
                drivers.stay_ms,
                stay_new,
                drivers.forced,
                site,
                other,
                cars * (drivers.kwh - kwh_new) / demand.weeks[s],
                leaves * drivers.kwh,
                leaves,
            )
        )
    draw, *columns = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((columns[0], draw))
    first = np.concatenate([[0], np.cumsum(np.bincount(draw, minlength=demand.draws))])
    return _Stream(first, *(column[order] for column in columns))


def _at_new_plug(demand: DrawnDemand, drivers: Drivers, site: int, power: float) -> tuple[Integers, Floats]:
    """Stays [ms] and energies [kWh] at plugs of the plan."""
    own_kw = float(demand.stays.power_kw[site])
    return stays_at_power(drivers.stay_ms, drivers.kwh, own_kw, None if np.isnan(power) else float(power))


def _is_full(demand: DrawnDemand, site: int, at_ms: Integers) -> Booleans:
    """Whether a site was full at given times, by its records."""
    spells = demand.network.history.spells
    part = slice(int(spells.first[site]), int(spells.first[site + 1]))
    begin = spells.begin_ms[part]
    if not len(begin):
        return np.zeros(len(at_ms), bool)
    i = np.clip(np.searchsorted(begin, at_ms, side="right") - 1, 0, len(begin) - 1)
    return np.asarray((spells.state[part][i] == FULL) & (at_ms >= begin[i]) & (at_ms < spells.end_ms[part][i]))


def _came_from(demand: DrawnDemand, source: int, site: int, at_ms: Integers, share: float) -> Floats:
    """Probability that a driver recorded at a site came from a full one nearby, as in the module's equation."""
    hidden, clock = demand.hidden, demand.network.clock
    rows = hidden.rows_of(source)
    hour = np.clip((at_ms - clock.first_ms) // (BIN_MS * BINS_AN_HOUR), 0, clock.hours - 1)
    turned_away = np.zeros(clock.hours)  # hidden drivers are only those who neither wait nor divert
    turned_away[hidden.hour[rows]] = hidden.drivers[:, rows].mean(axis=0) / max(1 - demand.waiting - demand.spill, 0.1)
    arrivals = demand.network.history.arrivals
    own = arrivals.at_ms[slice(*np.searchsorted(arrivals.site, [site, site + 1]))]
    of_week = clock.week[::BINS_AN_HOUR] // BINS_AN_HOUR
    arrived = np.bincount(
        of_week[np.clip((own - clock.first_ms) // (BIN_MS * BINS_AN_HOUR), 0, clock.hours - 1)], minlength=168
    )
    rate = arrived / np.maximum(np.bincount(of_week, minlength=168), 1)
    spilled = share * turned_away[hour]
    return np.asarray(_is_full(demand, source, at_ms) * spilled / np.maximum(rate[of_week[hour]] + spilled, 1e-9))


def _outcomes(stream: _Stream, before: Integers, plugs: Integers) -> Outcomes:
    """Who is served by `plugs` plugs at each site, and where; plugs beyond `before` are new."""
    return _serve(
        stream.first, stream.at_ms, stream.stay_ms, stream.stay_new_ms, stream.forced, stream.site, stream.other,
        before.astype(np.int64), plugs.astype(np.int64),
    )  # fmt: skip


@compiled()
def _serve(
    first: Integers,
    at_ms: Integers,
    stay_ms: Integers,
    stay_new_ms: Integers,
    forced: Booleans,
    site: Integers,
    other: Integers,
    before: Integers,
    plugs: Integers,
) -> Outcomes:
    """Outcome of each driver, as in `_outcomes`; a site has `SPARE` places beyond its plugs for forced drivers."""
    offset = np.zeros(len(plugs) + 1, np.int64)
    for s in range(len(plugs)):
        offset[s + 1] = offset[s] + plugs[s] + SPARE
    free_at = np.empty(offset[-1], np.int64)
    outcome = np.full(len(at_ms), LOST, np.int8)
    for draw in range(len(first) - 1):
        free_at[:] = np.iinfo(np.int64).min
        for i in range(first[draw], first[draw + 1]):
            for attempt in range(2):
                s = site[i] if attempt == 0 else other[i]
                if s < 0:
                    break
                taken, free = 0, -1
                for k in range(offset[s], offset[s + 1]):
                    if free_at[k] > at_ms[i]:
                        taken += 1
                    elif free < 0:
                        free = k
                if taken < plugs[s] or (forced[i] and free >= 0):
                    is_new = free - offset[s] >= before[s]
                    free_at[free] = at_ms[i] + (stay_new_ms[i] if is_new else stay_ms[i])
                    outcome[i] = AT_NEW_PLUG if is_new else SERVED
                    break
            if forced[i] and outcome[i] == LOST:
                outcome[i] = SERVED
    return outcome
