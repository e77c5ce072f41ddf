"""Exposure: the share of an hour's would-be arrivals that could be served and seen.

An hour of a station in which no plug was free for a share f of the time hides f of its arrivals, but for those who wait
until a plug is free, and those who are seen at another station or at another time instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.demand.calendar import HOURS_A_DAY, HOURS_A_WEEK
from unmet.demand.crowding import crowding
from unmet.demand.diversion import moments_of_change, nearest_stations
from unmet.demand.intensity import Intensity, fit_intensity, nearness, rates_nearby
from unmet.demand.levels import Levels, fit_levels, no_levels
from unmet.demand.occupancy import HOUR_MS, RETAKEN_MS, FullHours, Releases, Stays

__all__ = [
    "CENSORED_FROM",
    "LEAST_EXPOSED",
    "Exposure",
    "Seen",
    "fit_exposure",
    "lost_spread",
    "region_exposure",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CENSORED_FROM = float(np.log(2))
"""Lost arrivals to be expected from which an hour counts as censored: one was lost more likely than not."""

LEAST_EXPOSED = 0.05
"""Share of its hours for which a station counts as exposed at least: what was lost beyond that cannot be known."""

LEAST_ROUNDS, MOST_ROUNDS = 3, 20  # of fitting intensities, levels and the share of those who wait in turn
SETTLED = 0.01  # by which that share may still move in the last one
LEAST_TOLD = 0.1  # share of releases that are not retaken by chance, which tell of those who wait


@dataclass(frozen=True, slots=True)
class Seen:
    """What the records of stations show, from the first hour of a panel on."""

    station: Integers  # of each arrival
    hour: Integers  # of each arrival
    full: FullHours
    releases: Releases  # times in ms from the first hour on
    stays: Stays
    first_ms: int  # of the first hour
    opened: Integers  # (stations,) first day on which each was there
    closed: Integers  # (stations,) the day after the last
    plugs: Integers
    km: Floats | None  # distances between stations, where positions are known


@dataclass(frozen=True)
class Exposure:
    """Exposure of every station-hour, and what it says about arrivals."""

    full: FullHours  # station-hours that were full for a time; all others have exposure 1
    intensity: Intensity
    levels: Levels  # by station and day
    open: NDArray[np.bool_]  # (stations, days)
    hour_of_week: Integers  # of each hour of the period, local
    crowding: Floats  # (stations,), share of the usual arrivals that come when it is full
    crowding_spread: Floats  # (stations,), standard deviation of its logarithm, of each station by itself
    common_spread: Floats  # (stations,), and of what all have in common
    waiting: float  # share of the drivers who come to a full station and wait until they are served
    spill: float  # share of the others who are seen at another station or time instead

    @cached_property
    def hidden(self) -> Floats:
        """1 - exposure of the rows of `full`."""
        return self.full.full_ms / HOUR_MS * self.crowding[self.full.station] * (1 - self.waiting) * (1 - self.spill)

    @cached_property
    def lost(self) -> Floats:
        """Arrivals to be expected in the hidden part of the rows of `full`."""
        return self.rate(self.full.station, self.full.hour) * self.hidden

    def rate(self, station: Integers, hour: Integers) -> Floats:
        """Arrivals an hour that stations would have in hours of the period."""
        day = hour // HOURS_A_DAY
        rate = self.intensity.per_hour[station, self.hour_of_week[hour]] * self.levels.level[station, day]
        return np.where(self.open[station, day], rate, 0.0)

    def mean_rate(self) -> Floats:
        """Arrivals an hour of each station over the days on which it was there."""
        _, kinds, kind = _kinds(self.hour_of_week)
        a_day = self.intensity.per_hour[:, kinds].sum(axis=2)[:, kind] * self.levels.level
        return np.asarray((a_day * self.open).sum(axis=1) / np.maximum(HOURS_A_DAY * self.open.sum(axis=1), 1))

    def region_rate(self, region: Integers, regions: int) -> Floats:
        """Arrivals an hour at all stations of each region, (regions, hours)."""
        total = np.zeros((regions, len(self.hour_of_week)))
        level = self.levels.level * self.open
        for s, r in enumerate(region):
            total[r] += self.intensity.per_hour[s, self.hour_of_week] * np.repeat(level[s], HOURS_A_DAY)
        return total


def fit_exposure(
    seen: Seen, hour_of_week: Integers, waiting: float | None = None, spill: float | None = 0.0
) -> Exposure:
    """Exposure and intensity from the arrivals seen and the hours that were full.

    `waiting` is estimated where it is not given: of the arrivals to be expected while a station is full, the share that
    takes a plug at the very moment at which one gets free. So is `spill` where it is None: of the others, the share by
    which arrivals at stations nearby rise.
    """
    stations, hours = len(seen.plugs), len(hour_of_week)
    days, kinds, kind = _kinds(hour_of_week)
    day_index = np.arange(days)
    there = (day_index >= seen.opened[:, None]) & (day_index < seen.closed[:, None])
    counts = _Counts(seen.station, seen.hour, hour_of_week, stations, days)
    full_share = seen.full.full_ms / HOUR_MS
    inside = (seen.releases.at_ms >= 0) & (seen.releases.at_ms < hours * HOUR_MS)
    releases = seen.releases.only(inside)
    release_hour, last = releases.at_ms // HOUR_MS, hours - 1
    taken_hour = np.minimum(releases.next_ms[releases.retaken] // HOUR_MS, last)
    taken = _Counts(releases.station[releases.retaken], taken_hour, hour_of_week, stations, days)
    levels = no_levels(stations, days)
    near, none = nearness(stations, seen.km), np.zeros(stations)
    waits, by_chance = waiting or 0.0, 1.0
    hides = 1 - waits  # where those who wait are not told from others, they are seen while a station is full
    for number in range(1, MOST_ROUNDS + 1):
        weekly, daily = (
            np.maximum(getattr(counts, name) - (1 - by_chance) * getattr(taken, name), 0.0)
            for name in ("weekly", "daily")
        )
        level = levels.level * there
        of_kind = np.zeros((stations, len(kinds)))
        np.add.at(of_kind.T, kind, level.T)
        open_hours = np.zeros((stations, HOURS_A_WEEK))
        for i, hours_of_week in enumerate(kinds):
            np.add.at(open_hours.T, hours_of_week, of_kind[:, i])
        full_day = seen.full.hour // HOURS_A_DAY
        hidden = np.zeros((stations, HOURS_A_WEEK))
        np.add.at(
            hidden,
            (seen.full.station, hour_of_week[seen.full.hour]),
            full_share * level[seen.full.station, full_day],
        )
        least = LEAST_EXPOSED * open_hours * (weekly.sum(axis=1) > 0)[:, None]
        exposed = np.maximum(open_hours - hides * hidden, least)
        nearby = rates_nearby(weekly.sum(axis=1), exposed.sum(axis=1), seen.plugs.astype(float), near)
        intensity = fit_intensity(weekly, exposed, nearby)
        expected = intensity.per_hour[:, kinds].sum(axis=2)[:, kind] * there
        at_full = intensity.per_hour[seen.full.station, hour_of_week[seen.full.hour]] * full_share
        shown = expected.copy()
        np.add.at(shown, (seen.full.station, full_day), -hides * at_full)
        levels = fit_levels(daily, np.maximum(shown, LEAST_EXPOSED * expected))
        fitted = Exposure(seen.full, intensity, levels, there, hour_of_week, np.ones(stations), none, none, waits, 0.0)
        before = waits
        if waiting is None:
            waits, by_chance = _waiting(fitted, releases, release_hour)
        if number >= LEAST_ROUNDS and abs(waits - before) < SETTLED:
            break
    crowded, unsure, common = crowding(
        seen.stays, seen.plugs, seen.first_ms, hour_of_week, levels.by_others * there, intensity.per_hour
    )
    fitted = replace(fitted, crowding=crowded, crowding_spread=unsure, common_spread=common, waiting=waits)
    if waits > 0 and waiting is None:  # of those who come, who are fewer
        fitted = replace(fitted, waiting=_waiting(fitted, releases, release_hour)[0])
    return replace(fitted, spill=_diverted(fitted, seen) if spill is None else spill)


class _Counts:
    """Arrivals by station and hour of the week, and by station and day."""

    def __init__(self, station: Integers, hour: Integers, week: Integers, stations: int, days: int) -> None:
        def count(bins: Integers, number: int) -> Floats:
            return (
                np.bincount(station * number + bins, minlength=stations * number)
                .reshape(stations, number)
                .astype(float)
            )

        self.weekly = count(week[hour], HOURS_A_WEEK)
        self.daily = count(hour // HOURS_A_DAY, days)


def _kinds(hour_of_week: Integers) -> tuple[int, Integers, Integers]:
    """Days, the kinds of days there are, (kinds, 24) hours of the week each, and the kind of each day."""
    days = len(hour_of_week) // HOURS_A_DAY
    kinds, kind = np.unique(hour_of_week[: days * HOURS_A_DAY].reshape(days, HOURS_A_DAY), axis=0, return_inverse=True)
    return days, kinds, kind.ravel()


def _waiting(exposure: Exposure, releases: Releases, hour: Integers) -> tuple[float, float]:
    """The share of those who come to a full station and wait, and the share of retaken plugs that are chance."""
    full, crowd = exposure.full, exposure.crowding
    chance = -np.expm1(-exposure.rate(releases.station, hour) * crowd[releases.station] * RETAKEN_MS / HOUR_MS)
    retaken = float(releases.retaken.sum())
    # Others take the plugs that those who wait leave; where somebody comes anyhow, nothing is told.
    waited = float(((releases.retaken - chance) / np.maximum(1 - chance, LEAST_TOLD)).sum())
    come = float((exposure.rate(full.station, full.hour) * full.full_ms / HOUR_MS * crowd[full.station]).sum())
    if waited <= 0 or come <= 0:
        return 0.0, 1.0
    return min(waited / come, 1.0), max(1 - waited / retaken, 0.0)


def _diverted(exposure: Exposure, seen: Seen) -> float:
    """The share of those who find a station full and do not wait that is seen at a station nearby."""
    moments = moments_of_change(seen.stays, seen.plugs, nearest_stations(seen.km))
    hour = (moments.at_ms - seen.first_ms) // HOUR_MS
    inside = (hour >= 0) & (hour < len(exposure.hour_of_week))
    station, hour, window = moments.station[inside], hour[inside], moments.window_ms[inside]
    turned_away = exposure.rate(station, hour) * window / HOUR_MS * exposure.crowding[station] * (1 - exposure.waiting)
    return float(np.clip(moments.more[inside].sum() / max(turned_away.sum(), 1e-9), 0.0, 1.0))


def lost_spread(exposure: Exposure, region: Integers, regions: int) -> Floats:
    """Standard deviation of the logarithm of what each region lost.

    It says how unsure the rates of its stations are, and how many come while these are full.
    """
    intensity, rows = exposure.intensity, exposure.full
    stations = len(region)
    lost = np.zeros((stations, HOURS_A_WEEK))
    np.add.at(lost, (rows.station, exposure.hour_of_week[rows.hour]), exposure.lost)
    of_station = 1 / intensity.weight_of_station + exposure.crowding_spread**2
    alone = (lost**2 / intensity.weight).sum(axis=1) + lost.sum(axis=1) ** 2 * of_station
    together = np.bincount(region, lost.sum(axis=1) * exposure.common_spread, minlength=regions)
    total = np.bincount(region, lost.sum(axis=1), minlength=regions)
    variance = np.bincount(region, alone, minlength=regions) + together**2
    return np.asarray(np.sqrt(variance) / np.where(total > 0, total, np.inf))


class Regional(NamedTuple):
    """What the stations of each region say together, (regions, hours)."""

    exposure: Floats
    turnout: Floats  # share of the usual arrivals that come, as full as the stations are
    lost: Floats  # arrivals that were probably lost
    rate: Floats  # usual arrivals an hour at all stations


def region_exposure(exposure: Exposure, region: Integers, regions: int, plugs: Integers) -> Regional:
    """Exposure of each region and hour, and its arrivals.

    A region's exposure weighs its stations by the arrivals that each would have at that hour; where nobody would come,
    by plugs. Fewer come to stations that are full: exposure is the share of those who come.
    """
    hours = len(exposure.hour_of_week)
    full = exposure.full
    total = exposure.region_rate(region, regions)
    cell = region[full.station] * hours + full.hour
    kept_away = exposure.rate(full.station, full.hour) * full.full_ms / HOUR_MS * (1 - exposure.crowding[full.station])
    lost, away = (
        np.bincount(cell, values, minlength=regions * hours).reshape(regions, hours)
        for values in (exposure.lost, kept_away)
    )
    by_plugs = np.bincount(region, plugs, minlength=regions)
    closed = np.bincount(cell, plugs[full.station] * exposure.hidden, minlength=regions * hours).reshape(regions, hours)
    quiet = total <= 0
    come = np.maximum(total - away, lost)
    hidden = np.where(quiet, closed / np.maximum(by_plugs, 1)[:, None], lost / np.where(come > 0, come, 1.0))
    turnout = np.where(quiet, 1.0, come / np.where(quiet, 1.0, total))
    return Regional(np.clip(1 - hidden, 0, 1), np.asarray(turnout), np.asarray(lost, float), total)
