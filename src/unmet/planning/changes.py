"""Changes: what if demand grew, stays were limited, a station closed, or a competitor opened?

A change turns the drivers of every site into those of another world, driver by driver, with the same random numbers in
every world: worlds differ by their rules, not by luck.

- Growth multiplies drivers: each is copied as often as the factor says, at about the same time of a random other week.
- A limit cuts stays, and the energy with them where a car charges for longer. An idle fee cuts the idle part of stays.
- Whoever finds the own site closed goes to the nearest open one, d km away, with probability exp(-d); a competitor, or
  a new site of one's own, attracts a driver of a site with probability exp(-d) / (1 + exp(-d)), as in the choice of
  `unmet.simulation.choice` between two sites, one of which is at hand. Sites over `REACH_KM` away do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from unmet.arrays import Booleans, Floats, Integers
from unmet.errors import InputError
from unmet.estimation.spill import REACH_KM
from unmet.geo import haversine_km
from unmet.planning.drivers import MOVE_STREAM, WEEK_MS, Drivers, Truth, in_order
from unmet.planning.replay import served_by

__all__ = ["NOTHING", "Change", "ServedSplit", "World", "attraction", "changed_world"]


HOUR_MS = 3_600_000
JITTER_MS = HOUR_MS  # width of the window around the time of the week in which copies come
GROWTH_STREAM = 18


@dataclass(frozen=True, slots=True)
class Change:
    """How a world differs from that of the records."""

    growth: float = 1.0  # factor on all arrivals: more electric cars
    stay_hours: float | None = None  # longest stay that is allowed
    idle_cut: float = 0.0  # share of idle time that a fee ends
    closed: tuple[str, ...] = ()  # stations that are closed or out of order
    competitors: tuple[tuple[float, float], ...] = ()  # latitude and longitude of sites of others

    def check(self, truth: Truth) -> None:
        """Refuse what makes no sense."""
        if not (np.isfinite(self.growth) and self.growth > 0):
            raise InputError(f"Demand times {self.growth:g} makes no sense: give a factor over 0, such as 1.2.")
        if self.stay_hours is not None and not self.stay_hours > 0:
            raise InputError(f"A limit of {self.stay_hours:g} hours makes no sense: give one over 0, such as 3.")
        if not 0 <= self.idle_cut <= 1:
            raise InputError(f"A share {self.idle_cut:g} of idle time makes no sense: choose from 0 to 1, such as 0.5.")
        known = set(truth.panel.stations["station_id"])
        if unknown := [name for name in self.closed if name not in known]:
            raise InputError(
                f"There is no station {unknown[0]!r} to close: the ids of stations are in stations.parquet, as "
                f"{truth.panel.stations['station_id'][0]!r}."
            )
        for lat, lon in self.competitors:
            if not (-90 <= lat <= 90 and -180 <= lon <= 180):
                raise InputError(
                    f"A competitor at {lat:g}, {lon:g} makes no sense: give latitude,longitude in degrees."
                )

    def words(self) -> str:
        """The change in a few words; empty for none."""
        said = []
        if self.growth != 1:
            said.append(f"{100 * (self.growth - 1):+.0f} % drivers")
        if self.stay_hours is not None:
            said.append(f"stays of at most {self.stay_hours:g} h")
        if self.idle_cut:
            said.append(f"{100 * self.idle_cut:.0f} % less idle time")
        if self.closed:
            said.append(f"{', '.join(self.closed)} closed")
        if self.competitors:
            said.append(f"{len(self.competitors)} competing site{'s' if len(self.competitors) > 1 else ''}")
        return ", ".join(said)


NOTHING = Change()


class ServedSplit(NamedTuple):
    """What the present plugs of a site serve in the time of the records, (draws,), and who is left over."""

    kwh: Floats
    drivers: Floats
    hours: Floats  # for which plugs are taken
    rest: Drivers
    leaves: Floats  # probability that each of these is lost


@dataclass(frozen=True, slots=True)
class World:
    """Drivers of all sites after a change."""

    truth: Truth
    change: Change
    capacity: Integers  # (sites,)
    leaving: tuple[
        tuple[tuple[int, float], ...], ...
    ]  # for each site, where its drivers go (-1: elsewhere), how likely
    coming: tuple[tuple[int, ...], ...]  # for each site, those whose drivers may come to it

    @property
    def is_changed(self) -> bool:
        """Whether anything differs from the records."""
        return self.change != NOTHING

    @property
    def leaves(self) -> float:
        """Probability that a driver of the recorded kind who finds no plug is lost."""
        return max(1 - self.truth.waiting - self.truth.spill, 0.0)

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
        return in_order(draw, self.truth.draws, *columns)

    def _part(self, origin: int, target: int) -> Drivers:
        """Those drivers of a site who go to another one, or stay with it."""
        everyone = self._grown(origin, self.truth.everyone(origin))
        if self.leaving[origin]:
            uniform = np.random.default_rng([self.truth.seed, MOVE_STREAM, origin]).random(len(everyone.at_ms))
            everyone = everyone.where(_going(self.leaving[origin], uniform, origin, target) & self._is_car(everyone))
        return self._stays(origin, everyone)

    @staticmethod
    def _is_car(drivers: Drivers) -> Booleans:
        return drivers.recorded | ~drivers.forced

    def _grown(self, site: int, drivers: Drivers) -> Drivers:
        """Drivers multiplied by a factor: with copies, or thinned if it is below 1."""
        factor = self.change.growth
        if factor == 1:
            return drivers
        rng = np.random.default_rng([self.truth.seed, GROWTH_STREAM, site])
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
        """Moments at about the same time of another week, for drivers who are no companions of those they copy."""
        uniform = np.random.default_rng([self.truth.seed, GROWTH_STREAM, site, 1]).random((len(at_ms), 2))
        opened = int(self.truth.network.opened_ms[site])
        whole = max((int(self.truth.network.closed_ms[site]) - opened) // WEEK_MS, 1)
        later = at_ms - opened + (uniform[:, 0] * whole).astype(np.int64) * WEEK_MS
        later += ((uniform[:, 1] - 0.5) * JITTER_MS).astype(np.int64)
        return np.asarray(opened + later % (whole * WEEK_MS))

    def _stays(self, site: int, drivers: Drivers) -> Drivers:
        """Stays under a limit or a fee; outages last as long as they do."""
        limit, cut = self.change.stay_hours, self.change.idle_cut
        if limit is None and not cut:
            return drivers
        power, cars = self.truth.stays.power_kw[site], self._is_car(drivers)
        stay, kwh = drivers.stay_ms / HOUR_MS, drivers.kwh
        charging = np.minimum(kwh / power, stay) if np.isfinite(power) else stay
        shorter = stay - cut * (stay - charging)
        if limit is not None:
            kwh = np.where(cars, kwh * np.minimum(limit / np.maximum(charging, 1e-9), 1.0), kwh)
            shorter = np.minimum(shorter, limit)
        stay_ms = np.where(cars, np.maximum(shorter * HOUR_MS, 1), drivers.stay_ms).astype(np.int64)
        return drivers.staying(stay_ms, kwh)

    def outcome(self, site: int) -> tuple[Drivers, Booleans]:
        """Everyone who wants to charge at a site, and who is served by its present plugs."""
        drivers, plugs = self.drivers(site), int(self.capacity[site])
        if not self.is_changed:
            return drivers, drivers.recorded | drivers.forced
        return drivers, served_by(drivers.first, drivers.at_ms, drivers.stay_ms, drivers.forced, plugs)

    def split(self, site: int) -> ServedSplit:
        """What the present plugs of a site serve, and who is left over."""
        truth = self.truth
        if not self.is_changed:
            seen, lost = truth.recorded(site), truth.lost(site)
            cars = seen.recorded
            kwh, number, hours = seen.kwh[cars].sum(), float(cars.sum()), seen.stay_ms[cars].sum() / HOUR_MS
            same = np.ones(truth.draws)
            return ServedSplit(kwh * same, number * same, hours * same, lost, np.ones(len(lost.at_ms)))
        drivers, served = self.outcome(site)
        rest = drivers.where(~served)
        served &= self._is_car(drivers)
        # Of the recorded kind who find no plug, some wait or are served nearby.
        weight = served + (~served & drivers.recorded) * (1 - self.leaves)
        return ServedSplit(
            drivers.per_draw(weight * drivers.kwh),
            drivers.per_draw(weight),
            drivers.per_draw(served * drivers.stay_ms / HOUR_MS),
            rest,
            np.where(rest.recorded, self.leaves, 1.0),
        )


def _going(leaving: tuple[tuple[int, float], ...], uniform: Floats, origin: int, target: int) -> Booleans:
    """Which drivers of a site go to a target; targets divide the unit interval, and the rest stay."""
    below = 0.0
    for where, probability in leaving:
        if where == target:
            return np.asarray((uniform >= below) & (uniform < below + probability))
        below += probability
    return np.asarray(uniform >= below) if target == origin else np.zeros(len(uniform), bool)


def attraction(km: Floats) -> Floats:
    """Probability that a driver of a site prefers another one, so far away."""
    return np.asarray(np.where(km <= REACH_KM, np.exp(-km) / (1 + np.exp(-km)), 0.0))


def changed_world(truth: Truth, change: Change = NOTHING) -> World:
    """The world after a change."""
    change.check(truth)
    sites, capacity = truth.panel.sites, truth.network.capacity.copy()
    leaving: list[list[tuple[int, float]]] = [[] for _ in range(sites.height)]
    lat, lon = (sites[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in ("lat", "lon"))
    closed = truth.panel.stations.with_row_index("row").filter(pl.col("station_id").is_in(list(change.closed)))
    for row, plugs in closed.select("row", "capacity").iter_rows():
        capacity[truth.network.site_of_station[row]] -= plugs
    capacity = np.maximum(capacity, 0)
    shut = np.unique(truth.network.site_of_station[closed["row"].to_numpy()])
    shut = shut[capacity[shut] == 0]
    for s in shut:
        km = np.asarray(haversine_km(lat[s], lon[s], lat, lon), float)
        km[capacity == 0] = np.nan
        near = int(np.nanargmin(km)) if np.isfinite(km).any() else -1
        share = float(np.exp(-km[near])) if near >= 0 and km[near] <= REACH_KM else 0.0
        leaving[s] = [(near, share), (-1, 1 - share)] if share else [(-1, 1.0)]
    for other_lat, other_lon in change.competitors:
        share_of = attraction(np.asarray(haversine_km(other_lat, other_lon, lat, lon), float))
        for s in np.flatnonzero(np.isfinite(share_of) & (share_of > 0)):
            if s not in shut:
                stays = 1 - sum(p for _, p in leaving[s])
                leaving[s].append((-1, stays * float(share_of[s])))
    coming: list[list[int]] = [[] for _ in range(sites.height)]
    for s, targets in enumerate(leaving):
        for target, _ in targets:
            if target >= 0:
                coming[target].append(s)
    return World(truth, change, capacity, tuple(map(tuple, leaving)), tuple(map(tuple, coming)))
