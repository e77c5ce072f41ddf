"""Sums over exposed time: how long each site was exposed, and how many arrivals a rate predicts for that time.

Both are integrals over spells in state `FREE`, computed by quarter hours of the clock,

    T[s, k] = integral of level[s, day] * response[s, taken] dt         over time in week bin k,
    E[s, d] = integral of rate[s, week bin] * response[s, taken] dt     over time on day d,
    E[s, d, n] = integral of rate[s, week bin] dt                       over time on day d in step n of occupancy.

The functions with a leading underscore run over the sites from `begin` to `end` and add to their last array.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.demand.calendar import HOUR_MS
from unmet.demand.parallel import over_sites
from unmet.demand.spells import FREE, FULL, Spells, pieces
from unmet.estimation.clock import BIN_HOURS, BIN_MS, BINS_A_WEEK, BINS_AN_HOUR, Clock

__all__ = [
    "BLOCK_BINS",
    "FullHours",
    "TimeSums",
    "expected_by_day",
    "expected_by_step",
    "exposed_by_week",
    "exposed_by_week_weighted",
    "full_hours",
    "time_sums",
    "usual_of_rows",
]

BLOCK_BINS = 12
"""Bins of a block of three hours: models are compared on held-out blocks."""


def exposed_by_week(spells: Spells, clock: Clock, level: Floats, response: Floats, held: NDArray[np.bool_]) -> Floats:
    """Exposed hours by site and bin of the week, weighted by the level of the day and the response to occupancy.

    Args:
        spells: spells of all sites.
        clock: clock of the period.
        level: level of each site and day, (sites, days).
        response: factor on the arrival rate by number of taken plugs, (sites, max_taken + 1).
            The last column also holds for more plugs.
        held: blocks to leave out, (sites, blocks), or (0, 0) to leave out none.

    Returns:
        Hours, (sites, bins of the week).
    """
    return np.asarray(exposed_by_week_weighted(spells, clock, level, response, held, np.ones((1, clock.days)))[0])


def exposed_by_week_weighted(
    spells: Spells, clock: Clock, level: Floats, response: Floats, held: NDArray[np.bool_], weight: Floats
) -> Floats:
    """`exposed_by_week` for several weightings of days at once.

    `weight` is (weightings, days); the result is (weightings, sites, bins of the week).
    """
    hours = np.zeros((len(level), BINS_A_WEEK, len(weight)))
    by_day = np.ascontiguousarray(weight.T)
    over_sites(_exposed_by_week, len(level), spells, clock, level, response, held, by_day, hours)
    return np.ascontiguousarray(np.moveaxis(hours, -1, 0))


@compiled()
def _exposed_by_week(
    spells: Spells,
    clock: Clock,
    level: Floats,
    response: Floats,
    held: NDArray[np.bool_],
    weight: Floats,
    hours: Floats,
    begin: int,
    end: int,
) -> None:
    weightings = weight.shape[1]
    last = response.shape[1] - 1
    for s in range(begin, end):
        for i in range(spells.first[s], spells.first[s + 1]):
            if spells.state[i] != FREE:
                continue
            factor = response[s, min(spells.taken[i], last)] * BIN_HOURS
            begin_ms, end_ms = spells.begin_ms[i] - clock.first_ms, spells.end_ms[i] - clock.first_ms
            for bin_, share in pieces(begin_ms, end_ms, BIN_MS):
                if len(held) == 0 or not held[s, bin_ // BLOCK_BINS]:
                    week, day = clock.week[bin_], clock.day[bin_]
                    part = share * factor * level[s, day]
                    for j in range(weightings):
                        hours[s, week, j] += part * weight[day, j]


def expected_by_day(
    spells: Spells, clock: Clock, rate: Floats, response: Floats, held: NDArray[np.bool_], in_held: bool
) -> Floats:
    """Arrivals that a weekly rate predicts for the exposed time of each site and day, (sites, days).

    Args:
        spells: spells of all sites.
        clock: clock of the period.
        rate: arrivals per hour, (sites, bins of the week).
        response: as in `exposed_by_week`.
        held: blocks that are held out, (sites, blocks), or (0, 0) for none.
        in_held: whether to sum over the blocks that are held out, rather than over all others.
    """
    total = np.zeros((len(rate), clock.days))
    over_sites(_expected_by_day, len(rate), spells, clock, rate, response, held, in_held, total)
    return total


@compiled()
def _expected_by_day(
    spells: Spells,
    clock: Clock,
    rate: Floats,
    response: Floats,
    held: NDArray[np.bool_],
    in_held: bool,
    total: Floats,
    begin: int,
    end: int,
) -> None:
    last = response.shape[1] - 1
    for s in range(begin, end):
        for i in range(spells.first[s], spells.first[s + 1]):
            if spells.state[i] != FREE:
                continue
            weight = response[s, min(spells.taken[i], last)]
            begin_ms, end_ms = spells.begin_ms[i] - clock.first_ms, spells.end_ms[i] - clock.first_ms
            for bin_, share in pieces(begin_ms, end_ms, BIN_MS):
                if len(held) == 0 or held[s, bin_ // BLOCK_BINS] == in_held:
                    total[s, clock.day[bin_]] += share * BIN_HOURS * weight * rate[s, clock.week[bin_]]


def expected_by_step(
    spells: Spells, clock: Clock, rate: Floats, step: Integers, steps: int, held: NDArray[np.bool_]
) -> Floats:
    """Arrivals that a weekly rate predicts for exposed time by site, day and step of occupancy, (sites, days, steps).

    Args:
        spells: spells of all sites.
        clock: clock of the period.
        rate: arrivals per hour, (sites, bins of the week).
        step: step of each number of taken plugs, (sites, max_taken + 1).
        steps: number of steps.
        held: blocks to leave out, (sites, blocks), or (0, 0) to leave out none.
    """
    total = np.zeros((len(rate), clock.days, steps))
    over_sites(_expected_by_step, len(rate), spells, clock, rate, step, held, total)
    return total


@compiled()
def _expected_by_step(
    spells: Spells,
    clock: Clock,
    rate: Floats,
    step: Integers,
    held: NDArray[np.bool_],
    total: Floats,
    begin: int,
    end: int,
) -> None:
    last = step.shape[1] - 1
    for s in range(begin, end):
        for i in range(spells.first[s], spells.first[s + 1]):
            if spells.state[i] != FREE:
                continue
            n = step[s, min(spells.taken[i], last)]
            begin_ms, end_ms = spells.begin_ms[i] - clock.first_ms, spells.end_ms[i] - clock.first_ms
            for bin_, share in pieces(begin_ms, end_ms, BIN_MS):
                if len(held) == 0 or not held[s, bin_ // BLOCK_BINS]:
                    total[s, clock.day[bin_], n] += share * BIN_HOURS * rate[s, clock.week[bin_]]


class TimeSums(NamedTuple):
    """Hours of every site, (sites,)."""

    whole: Floats  # with records
    free: Floats  # with a free plug
    full: Floats  # without one
    full_squared: Floats  # sum of the squared lengths of full periods; `RELEASED` spells do not end a period
    cars: Floats  # car-hours


@compiled()
def time_sums(spells: Spells) -> TimeSums:
    """How long each site was observed, free, full and in use."""
    sites = len(spells.first) - 1
    sums = TimeSums(np.zeros(sites), np.zeros(sites), np.zeros(sites), np.zeros(sites), np.zeros(sites))
    for s in range(sites):
        period = 0.0  # full hours of the period so far
        for i in range(spells.first[s], spells.first[s + 1]):
            hours = (spells.end_ms[i] - spells.begin_ms[i]) / HOUR_MS
            sums.whole[s] += hours
            sums.cars[s] += hours * spells.taken[i]
            if spells.state[i] == FREE:
                sums.free[s] += hours
                sums.full_squared[s] += period**2
                period = 0.0
            elif spells.state[i] == FULL:
                sums.full[s] += hours
                period += hours
        sums.full_squared[s] += period**2
    return sums


class FullHours(NamedTuple):
    """Site-hours in which a site was full for some time, sorted by site and hour."""

    site: Integers
    hour: Integers  # since the start of the period
    full: Floats  # share of the hour without a free plug
    usual: Floats  # arrivals that the weekly rate predicts for that time


def full_hours(spells: Spells, clock: Clock, rate: Floats) -> FullHours:
    """Site-hours in which sites were full, and the arrivals that a weekly rate predicts for that time."""
    parts = over_sites(_full_hours, len(rate), spells, clock, rate)
    return FullHours(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


@compiled()
def _full_hours(spells: Spells, clock: Clock, rate: Floats, begin: int, end: int) -> FullHours:
    rows, allocated = 0, 1024
    site, hour = np.empty(allocated, np.int64), np.empty(allocated, np.int64)
    full, usual = np.empty(allocated), np.empty(allocated)
    for s in range(begin, end):
        first_row = rows
        for i in range(spells.first[s], spells.first[s + 1]):
            if spells.state[i] != FULL:
                continue
            begin_ms, end_ms = spells.begin_ms[i] - clock.first_ms, spells.end_ms[i] - clock.first_ms
            for bin_, share in pieces(begin_ms, end_ms, BIN_MS):
                if rows == first_row or hour[rows - 1] != bin_ // BINS_AN_HOUR:
                    if rows == allocated:
                        site, hour = np.append(site, np.empty_like(site)), np.append(hour, np.empty_like(hour))
                        full, usual = np.append(full, np.empty_like(full)), np.append(usual, np.empty_like(usual))
                        allocated *= 2
                    site[rows], hour[rows], full[rows], usual[rows] = s, bin_ // BINS_AN_HOUR, 0.0, 0.0
                    rows += 1
                full[rows - 1] += share * BIN_HOURS
                usual[rows - 1] += share * BIN_HOURS * rate[s, clock.week[bin_]]
    return FullHours(site[:rows].copy(), hour[:rows].copy(), full[:rows].copy(), usual[:rows].copy())


def usual_of_rows(spells: Spells, clock: Clock, rows: FullHours, rates: Floats) -> Floats:
    """Arrivals that several weekly rates predict for full time, (rows, profiles).

    `rates` is (profiles, sites, bins of the week).
    """
    sites = rates.shape[1]
    usual = np.zeros((len(rows.site), len(rates)))
    first, by_site = np.searchsorted(rows.site, np.arange(sites + 1)), np.ascontiguousarray(np.moveaxis(rates, 0, -1))
    over_sites(_usual_of_rows, sites, spells, clock, rows.hour, first, by_site, usual)
    return usual


@compiled()
def _usual_of_rows(
    spells: Spells, clock: Clock, hour: Integers, first: Integers, rate: Floats, usual: Floats, begin: int, end: int
) -> None:
    profiles = rate.shape[2]
    for s in range(begin, end):
        row = first[s]
        for i in range(spells.first[s], spells.first[s + 1]):
            if spells.state[i] != FULL:
                continue
            begin_ms, end_ms = spells.begin_ms[i] - clock.first_ms, spells.end_ms[i] - clock.first_ms
            for bin_, share in pieces(begin_ms, end_ms, BIN_MS):
                while hour[row] != bin_ // BINS_AN_HOUR:
                    row += 1
                for j in range(profiles):
                    usual[row, j] += share * BIN_HOURS * rate[s, clock.week[bin_], j]
