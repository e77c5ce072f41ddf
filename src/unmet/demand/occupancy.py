"""Occupancy: how many cars are at a station at once, and for how long no plug is free.

Times are milliseconds, so that sums are exact. Where one car leaves as another comes, it leaves first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.compiled import compiled

__all__ = [
    "HOUR_MS",
    "RETAKEN_MS",
    "FullHours",
    "Releases",
    "Stays",
    "full_hours",
    "longest_silence",
    "peak_cars",
    "releases_from_full",
    "stays_by_station",
    "time_by_cars",
]

HOUR_MS = 3_600_000
RETAKEN_MS = 300_000
"""Who comes to a full station within this time after a plug got free was waiting for it, but for chance.

One car leaves, and the next has to be driven there and plugged in.
"""

NEVER = np.iinfo(np.int64).max

Integers = NDArray[np.int64]


class Stays(NamedTuple):
    """Stays at plugs, grouped by station: those of station s are first[s], ..., first[s + 1] - 1 in both arrays."""

    first: Integers  # (stations + 1,)
    start_ms: Integers  # sorted within each station
    end_ms: Integers  # sorted within each station, apart from the starts


class FullHours(NamedTuple):
    """Station-hours in which no plug was free for a time, by station and hour; all others were never full."""

    station: Integers
    hour: Integers  # from the beginning of the period
    full_ms: Integers


class Peaks(NamedTuple):
    """The most cars at once at each station, and how often that was so."""

    cars: Integers
    times: Integers  # how often the peak was reached


class Releases(NamedTuple):
    """Moments at which a plug of a full station got free, and whether it was taken again at once."""

    station: Integers
    at_ms: Integers
    next_ms: Integers  # when the next car came; the moment itself, where none came
    retaken: NDArray[np.bool_]

    def only(self, chosen: NDArray[np.bool_]) -> Releases:
        """Some of them."""
        return Releases(self.station[chosen], self.at_ms[chosen], self.next_ms[chosen], self.retaken[chosen])


@compiled()
def stays_by_station(station: Integers, start_ms: Integers, end_ms: Integers, stations: int) -> Stays:
    """Group stays by station; starts and ends are sorted each for themselves."""
    first = np.zeros(stations + 1, np.int64)
    for s in station:
        first[s + 1] += 1
    first = np.cumsum(first)
    place = first[:-1].copy()
    starts, ends = np.empty(len(station), np.int64), np.empty(len(station), np.int64)
    for i in range(len(station)):
        at = place[station[i]]
        starts[at], ends[at] = start_ms[i], end_ms[i]
        place[station[i]] += 1
    for s in range(stations):
        starts[first[s] : first[s + 1]].sort()
        ends[first[s] : first[s + 1]].sort()
    return Stays(first, starts, ends)


@compiled()
def peak_cars(stays: Stays) -> Peaks:
    """The most cars at once at each station."""
    stations = len(stays.first) - 1
    cars, times = np.zeros(stations, np.int64), np.zeros(stations, np.int64)
    for s in range(stations):
        gone = stays.first[s]
        for i in range(stays.first[s], stays.first[s + 1]):
            while stays.end_ms[gone] <= stays.start_ms[i] and gone < i:
                gone += 1
            there = i + 1 - gone
            if there > cars[s]:
                cars[s], times[s] = there, 1
            elif there == cars[s]:
                times[s] += 1
    return Peaks(cars, times)


@compiled()
def longest_silence(stays: Stays, first_ms: int, last_ms: int) -> Integers:
    """The longest time in which nobody came to each station, 0 where nobody ever did."""
    longest = np.zeros(len(stays.first) - 1, np.int64)
    for s in range(len(longest)):
        before = first_ms
        for i in range(stays.first[s], stays.first[s + 1]):
            longest[s] = max(longest[s], stays.start_ms[i] - before)
            before = stays.start_ms[i]
        if stays.first[s] < stays.first[s + 1]:
            longest[s] = max(longest[s], last_ms - before)
    return longest


@compiled()
def full_hours(stays: Stays, plugs: Integers, first_ms: int, hours: int) -> FullHours:
    """Where and for how long as many cars (or broken plugs) were there as the station has plugs, hour by hour."""
    last_ms = first_ms + hours * HOUR_MS
    rows = np.empty((1024, 3), np.int64)
    n = 0
    for s in range(len(stays.first) - 1):
        come = gone = stays.first[s]
        stop = stays.first[s + 1]
        own = n  # the first row of this station
        full_since = first_ms if plugs[s] <= 0 else NEVER
        over = False
        while not over:
            if gone < stop and (come == stop or stays.end_ms[gone] <= stays.start_ms[come]):
                now = stays.end_ms[gone]
                gone += 1
            elif come < stop:
                now = stays.start_ms[come]
                come += 1
            else:
                now, over = last_ms, True
            is_full = come - gone >= plugs[s] and not over
            if is_full and full_since == NEVER:
                full_since = max(now, first_ms)
            elif not is_full and full_since != NEVER:
                end = min(now, last_ms)
                while full_since < end:
                    hour = (full_since - first_ms) // HOUR_MS
                    until = min(end, first_ms + (hour + 1) * HOUR_MS)
                    if n > own and rows[n - 1, 1] == hour:
                        rows[n - 1, 2] += until - full_since
                    else:
                        if n == len(rows):
                            longer = np.empty((2 * n, 3), np.int64)
                            longer[:n] = rows
                            rows = longer
                        rows[n, 0], rows[n, 1], rows[n, 2] = s, hour, until - full_since
                        n += 1
                    full_since = until
                full_since = NEVER
    return FullHours(rows[:n, 0].copy(), rows[:n, 1].copy(), rows[:n, 2].copy())


@compiled()
def releases_from_full(stays: Stays, plugs: Integers, within_ms: int) -> Releases:
    """Every departure from a full station, and whether somebody came within so many milliseconds."""
    n = 0
    for s in range(len(stays.first) - 1):
        n += stays.first[s + 1] - stays.first[s]
    station, at_ms, next_ms = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    retaken = np.empty(n, np.bool_)
    n = 0
    for s in range(len(stays.first) - 1):
        come = gone = stays.first[s]
        stop = stays.first[s + 1]
        while gone < stop:
            if come < stop and stays.start_ms[come] < stays.end_ms[gone]:
                come += 1
                continue
            if come - gone >= plugs[s]:
                station[n], at_ms[n] = s, stays.end_ms[gone]
                next_ms[n] = stays.start_ms[come] if come < stop else stays.end_ms[gone]
                retaken[n] = come < stop and next_ms[n] <= stays.end_ms[gone] + within_ms
                n += 1
            gone += 1
    return Releases(station[:n].copy(), at_ms[:n].copy(), next_ms[:n].copy(), retaken[:n].copy())


@compiled()
def time_by_cars(stays: Stays, most: int) -> tuple[NDArray[np.float64], Integers]:
    """Hours with so many cars at each station, from its first arrival to its last, and arrivals then; up to `most`."""
    stations = len(stays.first) - 1
    hours, arrivals = np.zeros((stations, most + 1)), np.zeros((stations, most + 1), np.int64)
    for s in range(stations):
        gone = stays.first[s]
        stop = stays.first[s + 1]
        now = stays.start_ms[gone] if gone < stop else 0
        for come in range(stays.first[s], stop):
            while gone < come and stays.end_ms[gone] <= stays.start_ms[come]:
                hours[s, min(come - gone, most)] += max(stays.end_ms[gone] - now, 0) / HOUR_MS
                now = max(now, stays.end_ms[gone])
                gone += 1
            cars = min(come - gone, most)
            hours[s, cars] += max(stays.start_ms[come] - now, 0) / HOUR_MS
            now = max(now, stays.start_ms[come])
            arrivals[s, cars] += 1
    return hours, arrivals
