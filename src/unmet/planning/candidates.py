"""Candidates: new sites, given or proposed, and the drivers they would attract.

A driver of a site d km away prefers the new one with probability exp(-d) / (1 + exp(-d)); see `unmet.planning.changes`.
Some of the drivers whom a candidate serves were served by its neighbours before: it takes these from them. The others
were lost, and are its gain. Drivers who would come only because the site is new appear in no record, although a new hub
of rapid chargers can attract many of them (docs/hubs.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unmet.arrays import Floats
from unmet.errors import InputError
from unmet.geo import Projection, haversine_km
from unmet.planning.changes import World, attraction, is_similar_power
from unmet.planning.drivers import DrawnDemand, in_order
from unmet.planning.gains import GainCurve, Supply, power_curve
from unmet.tables import Column, Table, check_every_row

__all__ = [
    "CANDIDATES", "Attracted", "Candidates", "given_candidates", "prefers", "proposed_candidates",
    "pulls", "score_candidates",
]  # fmt: skip


CANDIDATES = Table(
    "candidates",
    (
        Column("name", "text", "", "name of the new site"),
        Column("lat", "number", "degree", "latitude, WGS 84", minimum=-90, maximum=90),
        Column("lon", "number", "degree", "longitude, WGS 84", minimum=-180, maximum=180),
        Column(
            "max_plugs",
            "integer",
            "",
            "number of plugs that fit",
            required=False,
            aliases=("most_plugs",),
            minimum=0,
        ),
        Column(
            "power_kw",
            "number",
            "kW",
            "power of its plugs; it attracts drivers of sites of similar power",
            required=False,
            minimum=0,
        ),
    ),
)
GRID_KM = 0.25  # distance between positions that are tried
DECAY_KM = 1.0  # distance over which the weight of lost demand falls by a factor e
APART_KM = 0.5  # smallest distance between new sites
MAX_POSITIONS = 40_000  # highest number of grid positions; in a large area, the grid is coarser
CANDIDATE_STREAM = 19  # stream of random numbers


@dataclass(frozen=True, slots=True)
class Candidates:
    """Positions of possible new sites."""

    name: tuple[str, ...]
    lat: Floats
    lon: Floats
    max_plugs: tuple[int | None, ...]
    power_kw: tuple[float | None, ...]

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True)
class Attracted:
    """A candidate as a site, with the demand that it attracts and takes from its neighbours per week."""

    supply: Supply  # its gain is the lost demand that it recovers
    attracted: GainCurve
    taken: GainCurve


def given_candidates(source: Any, sites: pl.Series) -> Candidates:
    """Candidates from a file or a frame; every row must be valid."""
    table = check_every_row(source, CANDIDATES)
    if table["name"].is_duplicated().any() or set(table["name"]) & set(sites):
        raise InputError("Two candidates, or a candidate and a site, have the same name: give each its own.")
    max_plugs = table["max_plugs"].to_list() if "max_plugs" in table.columns else [None] * table.height
    power = table["power_kw"].to_list() if "power_kw" in table.columns else [None] * table.height
    lat, lon = table["lat"].to_numpy(), table["lon"].to_numpy()
    return Candidates(tuple(table["name"]), lat, lon, tuple(max_plugs), tuple(power))


def proposed_candidates(world: World, supplies: list[Supply], number: int) -> Candidates:
    """Positions with much lost demand around them and no site nearby.

    The score of a position is the sum over sites, d km away, of their lost energy times exp(-d), times 1 - exp(-2 n)
    with the nearest site n km away. The best position is taken, then the best one at least 500 m away, and so on.
    """
    sites = world.demand.panel.sites
    lat, lon = (sites[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in ("lat", "lon"))
    placed = np.isfinite(lat) & np.isfinite(lon)
    lost = np.array([supply.lost_kwh.mean() for supply in supplies])
    if placed.sum() < 2 or not lost[placed].sum() > 0:
        raise InputError(
            "No new site can be proposed: this needs the positions of at least two sites, and lost demand. Give "
            "candidates in a file with --candidates."
        )
    projection = Projection.around(lat[placed], lon[placed])
    east, north = projection.to_km(lat[placed], lon[placed])
    step = max(GRID_KM, float(np.sqrt((np.ptp(east) + 1) * (np.ptp(north) + 1) / MAX_POSITIONS)))
    x, y = (axis.ravel() for axis in np.meshgrid(*(np.arange(v.min(), v.max() + step, step) for v in (east, north))))
    score, nearest = np.zeros(len(x)), np.full(len(x), np.inf)
    for e, n, kwh in zip(east, north, lost[placed], strict=True):
        km = np.hypot(x - e, y - n)
        score += kwh * np.exp(-km / DECAY_KM)
        nearest = np.minimum(nearest, km)
    score *= 1 - np.exp(-2 * nearest)
    chosen: list[int] = []
    free = nearest >= APART_KM / 2  # an existing site may be half as close as another new one
    for _ in range(number):
        if not (free & (score > 0)).any():
            break
        best = int(np.where(free, score, -1.0).argmax())
        chosen.append(best)
        free &= np.hypot(x - x[best], y - y[best]) >= APART_KM
    if not chosen:
        raise InputError(
            "No new site can be proposed: every position is close to a site. Give candidates with --candidates."
        )
    at_lat, at_lon = projection.to_degrees(x[chosen], y[chosen])
    names = tuple(f"new site {i + 1}" for i in range(len(chosen)))
    return Candidates(names, np.asarray(at_lat), np.asarray(at_lon), (None,) * len(chosen), (None,) * len(chosen))


def pulls(world: World, candidates: Candidates, j: int) -> dict[int, float]:
    """Probability that a candidate attracts a driver of a site, by row of the site.

    Drivers who want a rapid charger do not use a slow one: if powers are known, only sites of similar power count.
    """
    sites, kw = world.demand.panel.sites, candidates.power_kw[j]
    lat, lon = (sites[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in ("lat", "lon"))
    share = attraction(np.asarray(haversine_km(candidates.lat[j], candidates.lon[j], lat, lon), float))
    if kw is not None:
        share = np.where(is_similar_power(kw, world.demand.stays.power_kw), share, 0.0)
    return {int(s): float(share[s]) for s in np.flatnonzero(np.isfinite(share) & (share > 0))}


def prefers(demand: DrawnDemand, j: int, site: int, drivers: int) -> Floats:
    """Random numbers that decide which drivers of a site prefer a candidate, (drivers,)."""
    return np.random.default_rng([demand.seed, CANDIDATE_STREAM, j, site]).random(drivers)


def score_candidates(
    world: World, candidates: Candidates, max_plugs: int, powers: tuple[float | None, ...] = (None,)
) -> list[Attracted]:
    """Demand that each candidate attracts, takes and recovers with 0, 1, ..., `max_plugs` plugs."""
    return [_score(world, candidates, j, max_plugs, powers) for j in range(len(candidates))]


def _score(world: World, candidates: Candidates, j: int, max_plugs: int, powers: tuple[float | None, ...]) -> Attracted:
    demand, parts = world.demand, []
    pull = pulls(world, candidates, j)
    for site, share in pull.items():
        drivers, served = world.outcome(site)
        cars = drivers.recorded | ~drivers.forced  # all but outages
        drivers = replace(drivers, recorded=served)  # a driver who moves is taken if served before, else recovered
        moved = drivers.where(cars & (prefers(demand, j, site, len(cars)) < share))
        parts.append((moved, np.full(len(moved.at_ms), 1 / demand.weeks[site])))
    zero = np.zeros(demand.draws)
    if not parts:
        none = GainCurve(np.zeros((demand.draws, 1)), np.zeros((demand.draws, 1)), np.zeros(1))
        return Attracted(Supply(zero, zero, zero, zero, zero, dict.fromkeys(powers, none)), none, none)
    draw = np.concatenate([part.draw for part, _ in parts])
    columns = [
        np.concatenate([getattr(part, name) for part, _ in parts])
        for name in ("at_ms", "stay_ms", "kwh", "recorded", "forced")
    ]
    weight = np.concatenate([part for _, part in parts])[np.lexsort((columns[0], draw))]
    everyone = in_order(draw, demand.draws, *columns)
    lost = ~everyone.recorded
    kw = float(np.nanmedian(demand.stays.power_kw)) if np.isfinite(demand.stays.power_kw).any() else np.nan
    per_week = 1 / float(np.mean([demand.weeks[s] for s in pull]))
    curves = {
        power: _rescaled(power_curve(everyone, weight * lost, max_plugs, kw, power, 1.0), per_week) for power in powers
    }
    all_served = power_curve(everyone, weight, max_plugs, kw, powers[0], 1.0)
    taken = power_curve(everyone, weight * ~lost, max_plugs, kw, powers[0], 1.0)
    lost_kwh, lost_drivers = everyone.per_draw(weight * lost * everyone.kwh), everyone.per_draw(weight * lost)
    return Attracted(Supply(zero, zero, zero, lost_kwh, lost_drivers, curves), all_served, taken)


def _rescaled(curve: GainCurve, per_week: float) -> GainCurve:
    """The curve with hours per week: weights apply to energy and drivers, but not to hours."""
    return GainCurve(curve.kwh, curve.drivers, curve.hours * per_week)
