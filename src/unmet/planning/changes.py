"""Changes: what if demand grew, stays were limited, a station closed, or a competitor opened?

A change modifies the drivers of every site, one by one, and the result is called a world. All worlds share the same
random numbers, so they differ by their rules and not by chance.

- Growth multiplies drivers: each is copied according to the factor, at about the same time of a random other week.
- A limit shortens stays, and reduces the energy of cars that charge for longer. An idle fee shortens idle time.
- A driver whose site is closed goes to the nearest open site of similar power, d km away, with probability exp(-d), and
  is lost otherwise. A competitor, or a new site, attracts a driver of a site d km away with probability exp(-d) / (1 +
  exp(-d)): the choice model of `unmet.simulation.choice` for two sites, one of them at distance 0. Sites more than
  `REACH_KM` away do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from unmet.arrays import Booleans, Floats, Integers
from unmet.demand.sites import SIMILAR_POWER
from unmet.errors import InputError
from unmet.estimation.spill import REACH_KM
from unmet.geo import haversine_km
from unmet.memory import require_bytes
from unmet.planning.drivers import MOVE_STREAM, WEEK_MS, DrawnDemand, Drivers, in_order
from unmet.planning.replay import served_by
from unmet.runs import available_cores

__all__ = [
    "NO_CHANGE",
    "Change",
    "ServedSplit",
    "World",
    "attraction",
    "changed_world",
    "is_similar_power",
    "require_memory",
]


HOUR_MS = 3_600_000
JITTER_MS = HOUR_MS  # width of the window around the same time of the week in which copies arrive
GROWTH_STREAM = 18  # stream of random numbers
BYTES_PER_DRIVER = 150  # memory to copy, sort and replay a driver


@dataclass(frozen=True, slots=True)
class Change:
    """How a world differs from the records."""

    growth: float = 1.0  # factor on all arrivals: more electric cars
    stay_hours: float | None = None  # longest stay allowed
    idle_cut: float = 0.0  # share of idle time that a fee ends
    closed: tuple[str, ...] = ()  # stations that are closed or out of order
    competitors: tuple[tuple[float, float], ...] = ()  # latitude and longitude of competing sites

    def check(self, demand: DrawnDemand) -> None:
        """Raise InputError for invalid values."""
        if not (np.isfinite(self.growth) and self.growth > 0):
            raise InputError(f"Demand times {self.growth:g} makes no sense: give a factor above 0, such as 1.2.")
        if self.stay_hours is not None and not self.stay_hours > 0:
            raise InputError(f"A limit of {self.stay_hours:g} hours makes no sense: give one above 0, such as 3.")
        if not 0 <= self.idle_cut <= 1:
            raise InputError(f"A share {self.idle_cut:g} of idle time makes no sense: choose from 0 to 1, such as 0.5.")
        known = set(demand.panel.stations["station_id"])
        if unknown := [name for name in self.closed if name not in known]:
            raise InputError(
                f"There is no station {unknown[0]!r} to close: station ids are listed in stations.csv, such as "
                f"{demand.panel.stations['station_id'][0]!r}."
            )
        for lat, lon in self.competitors:
            if not (-90 <= lat <= 90 and -180 <= lon <= 180):
                raise InputError(
                    f"A competitor at {lat:g}, {lon:g} makes no sense: give latitude,longitude in degrees."
                )

    def words(self) -> str:
        """The change in a few words, such as "+20 % drivers"; empty if nothing changes."""
        phrases = []
        if self.growth != 1:
            phrases.append(f"{100 * (self.growth - 1):+.0f} % drivers")
        if self.stay_hours is not None:
            phrases.append(f"stays of at most {self.stay_hours:g} h")
        if self.idle_cut:
            phrases.append(f"{100 * self.idle_cut:.0f} % less idle time")
        if self.closed:
            phrases.append(f"{', '.join(self.closed)} closed")
        if self.competitors:
            phrases.append(f"{len(self.competitors)} competing site{'s' if len(self.competitors) > 1 else ''}")
        return ", ".join(phrases)


NO_CHANGE = Change()


class ServedSplit(NamedTuple):
    """Demand that the existing plugs of a site serve over the period of the records, (draws,), and unserved drivers."""

    kwh: Floats
    drivers: Floats
    hours: Floats  # plug-hours in use
    rest: Drivers  # drivers who find no plug
    leaves: Floats  # probability that each of these is lost


@dataclass(frozen=True, slots=True)
class World:
    """Drivers of all sites after a change."""

    demand: DrawnDemand
    change: Change
    capacity: Integers  # (sites,)
    leaving: tuple[tuple[tuple[int, float], ...], ...]  # per site: where its drivers go (-1: away), with probabilities
    coming: tuple[tuple[int, ...], ...]  # per site: the sites whose drivers may come to it

    @property
    def is_changed(self) -> bool:
        """Whether anything differs from the records."""
        return self.change != NO_CHANGE

    def leaves(self, site: int) -> float:
        """Probability that a recorded driver (or a copy) who finds no plug is lost: neither waits nor diverts."""
        if not self.capacity[site]:  # nobody waits at a closed site, and drivers who divert have already been moved
            return 1.0
        return max(1 - self.demand.waiting - self.demand.spill, 0.0)

    def drivers(self, site: int) -> Drivers:
        """Everyone who wants to charge at a site."""
        parts = [self._part(site, site)]
        parts += [self._part(other, site) for other in self.coming[site]]
        if len(parts) == 1:
            return parts[0]
        draw = np.concatenate([part.draw for part in parts])
        columns = [
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("at_ms", "stay_ms", "kwh", "recorded", "forced")
        ]
        return in_order(draw, self.demand.draws, *columns)

    def _part(self, origin: int, target: int) -> Drivers:
        """Drivers of the origin who go to the target, which may be the origin itself."""
        everyone = self._grown(origin, self.demand.everyone(origin))
        if self.leaving[origin]:
            uniform = np.random.default_rng([self.demand.seed, MOVE_STREAM, origin]).random(len(everyone.at_ms))
            everyone = everyone.where(_going(self.leaving[origin], uniform, origin, target) & self._is_car(everyone))
        return self._stays(origin, everyone)

    @staticmethod
    def _is_car(drivers: Drivers) -> Booleans:
        """Which of the drivers are cars; the others are outages."""
        return drivers.recorded | ~drivers.forced

    def _grown(self, site: int, drivers: Drivers) -> Drivers:
        """Drivers multiplied by the growth factor: with copies, or thinned if it is below 1."""
        factor = self.change.growth
        if factor == 1:
            return drivers
        rng = np.random.default_rng([self.demand.seed, GROWTH_STREAM, site])
        uniform, cars = rng.random((len(drivers.at_ms), 2)), self._is_car(drivers)
        if factor < 1:
            return drivers.where(~cars | (uniform[:, 0] < factor))
        copies = np.where(cars, np.floor(factor) - 1 + (uniform[:, 0] < factor % 1), 0).astype(np.int64)
        row = np.repeat(np.arange(len(copies)), copies)
        at = np.concatenate([drivers.at_ms, self._other_moments(site, drivers.at_ms[row])])
        columns = [np.concatenate([values, values[row]]) for values in (drivers.stay_ms, drivers.kwh, drivers.recorded)]
        forced = np.concatenate([drivers.forced, np.zeros(len(row), bool)])
        return in_order(np.concatenate([drivers.draw, drivers.draw[row]]), drivers.draws, at, *columns, forced)

    def _other_moments(self, site: int, at_ms: Integers) -> Integers:
        """About the same time of another week, so that copies do not arrive together with their originals."""
        uniform = np.random.default_rng([self.demand.seed, GROWTH_STREAM, site, 1]).random((len(at_ms), 2))
        opened = int(self.demand.network.opened_ms[site])
        weeks = max((int(self.demand.network.closed_ms[site]) - opened) // WEEK_MS, 1)
        later = at_ms - opened + (uniform[:, 0] * weeks).astype(np.int64) * WEEK_MS
        later += ((uniform[:, 1] - 0.5) * JITTER_MS).astype(np.int64)
        return np.asarray(opened + later % (weeks * WEEK_MS))

    def _stays(self, site: int, drivers: Drivers) -> Drivers:
        """Drivers with stays under a limit or a fee; outages are unchanged."""
        limit, cut = self.change.stay_hours, self.change.idle_cut
        if limit is None and not cut:
            return drivers
        power, cars = self.demand.stays.power_kw[site], self._is_car(drivers)
        stay, kwh = drivers.stay_ms / HOUR_MS, drivers.kwh
        charging = np.minimum(kwh / power, stay) if np.isfinite(power) else stay
        shorter = stay - cut * (stay - charging)
        if limit is not None:
            kwh = np.where(cars, kwh * np.minimum(limit / np.maximum(charging, 1e-9), 1.0), kwh)
            shorter = np.minimum(shorter, limit)
        stay_ms = np.where(cars, np.maximum(shorter * HOUR_MS, 1), drivers.stay_ms).astype(np.int64)
        return drivers.staying(stay_ms, kwh)

    def outcome(self, site: int) -> tuple[Drivers, Booleans]:
        """Everyone who wants to charge at a site, and whether its existing plugs serve them."""
        drivers, plugs = self.drivers(site), int(self.capacity[site])
        if not self.is_changed:
            return drivers, drivers.recorded | drivers.forced
        return drivers, served_by(drivers.first, drivers.at_ms, drivers.stay_ms, drivers.forced, plugs)

    def split(self, site: int) -> ServedSplit:
        """Demand that the existing plugs of a site serve, and the drivers they do not serve."""
        demand = self.demand
        if not self.is_changed:
            seen, lost = demand.recorded(site), demand.lost(site)
            cars = seen.recorded
            kwh, number, hours = seen.kwh[cars].sum(), float(cars.sum()), seen.stay_ms[cars].sum() / HOUR_MS
            same = np.ones(demand.draws)
            return ServedSplit(kwh * same, number * same, hours * same, lost, np.ones(len(lost.at_ms)))
        drivers, served = self.outcome(site)
        rest = drivers.where(~served)
        served &= self._is_car(drivers)
        # Some of the recorded drivers who find no plug wait, or are served nearby.
        weight = served + (~served & drivers.recorded) * (1 - self.leaves(site))
        return ServedSplit(
            drivers.per_draw(weight * drivers.kwh),
            drivers.per_draw(weight),
            drivers.per_draw(served * drivers.stay_ms / HOUR_MS),
            rest,
            np.where(rest.recorded, self.leaves(site), 1.0),
        )


def _going(leaving: tuple[tuple[int, float], ...], uniform: Floats, origin: int, target: int) -> Booleans:
    """Which drivers of a site go to a target: each target has a part of the unit interval, the rest means staying."""
    below = 0.0
    for where, probability in leaving:
        if where == target:
            return np.asarray((uniform >= below) & (uniform < below + probability))
        below += probability
    return np.asarray(uniform >= below) if target == origin else np.zeros(len(uniform), bool)


def is_similar_power(kw: float, others_kw: Floats) -> Booleans:
    """Whether drivers who use plugs of one power would use plugs of the others; unknown powers count as similar."""
    apart = np.abs(np.log(others_kw / kw)) > np.log(SIMILAR_POWER) + 1e-9
    return np.asarray(~(np.isfinite(others_kw) & np.isfinite(kw) & apart))


def attraction(km: Floats) -> Floats:
    """Probability that a driver prefers another site at this distance [km] from their own."""
    return np.asarray(np.where(km <= REACH_KM, np.exp(-km) / (1 + np.exp(-km)), 0.0))


def require_memory(demand: DrawnDemand, change: Change) -> None:
    """Refuse growth beyond what fits into memory; every thread replays all draws of a site at once."""
    if change == NO_CHANGE:
        return
    lost = np.bincount(demand.hidden.site, demand.hidden.drivers.mean(axis=0), minlength=demand.sites)
    per_draw = np.sort(np.diff(demand.network.visits.first) + lost)[-available_cores() :].sum()
    drivers = change.growth * demand.draws * float(per_draw)
    require_bytes(
        drivers * BYTES_PER_DRIVER,
        f"A replay of {drivers:,.0f} drivers at the busiest sites, in {demand.draws:,} draws,",
        "assume less growth, or plan from fewer draws (`unmet recover --draws`)",
    )


def changed_world(demand: DrawnDemand, change: Change = NO_CHANGE) -> World:
    """The world after a change."""
    change.check(demand)
    sites, capacity = demand.panel.sites, demand.network.capacity.copy()
    leaving: list[list[tuple[int, float]]] = [[] for _ in range(sites.height)]
    lat, lon = (sites[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in ("lat", "lon"))
    closed = demand.panel.stations.with_row_index("row").filter(pl.col("station_id").is_in(list(change.closed)))
    for row, plugs in closed.select("row", "capacity").iter_rows():
        capacity[demand.network.site_of_station[row]] -= plugs
    capacity = np.maximum(capacity, 0)
    shut = np.unique(demand.network.site_of_station[closed["row"].to_numpy()])
    shut, power = shut[capacity[shut] == 0], demand.stays.power_kw
    for s in shut:
        km = np.asarray(haversine_km(lat[s], lon[s], lat, lon), float)
        km[(capacity == 0) | ~demand.is_open | ~is_similar_power(power[s], power)] = np.nan
        near = int(np.nanargmin(km)) if np.isfinite(km).any() else -1
        share = float(np.exp(-km[near])) if near >= 0 and km[near] <= REACH_KM else 0.0
        leaving[s] = [(near if share else -1, share)]  # the others find the site closed, and are lost
    for other_lat, other_lon in change.competitors:
        share_of = attraction(np.asarray(haversine_km(other_lat, other_lon, lat, lon), float))
        for s in np.flatnonzero(np.isfinite(share_of) & (share_of > 0)):
            if s not in shut:
                staying = 1 - sum(p for _, p in leaving[s])
                leaving[s].append((-1, staying * float(share_of[s])))
    coming: list[list[int]] = [[] for _ in range(sites.height)]
    for s, targets in enumerate(leaving):
        for target, _ in targets:
            if target >= 0:
                coming[target].append(s)
    return World(demand, change, capacity, tuple(map(tuple, leaving)), tuple(map(tuple, coming)))
