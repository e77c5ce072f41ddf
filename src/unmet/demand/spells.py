"""Spells: the history of every site, cut into periods without change in one sweep over all visits.

Arrivals while a plug is free are recorded, arrivals while none is free are lost. In every spell the number of taken
plugs is constant, and the site is in one of three states:

- `FREE`: a plug is free. Arrivals are observed.
- `FULL`: no plug is free. Arrivals are lost.
- `RELEASED`: a plug is free, but the site was full less than `RELEASED_MS` ago. An arrival now may have waited, so
  neither the time nor the arrival is used to learn arrival rates.

The state depends on the past alone. The likelihood of the arrivals in `FREE` time is therefore valid even though a site
is full *because* many drivers came (Andersen, Borgan, Gill and Keiding, *Statistical Models Based on Counting
Processes*, 1993, chapter III).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Integers
from unmet.compiled import compiled
from unmet.demand.parallel import over_sites

__all__ = [
    "FREE",
    "FULL",
    "RELEASED",
    "RELEASED_MS",
    "Arrivals",
    "History",
    "Spells",
    "Visits",
    "group_visits",
    "pieces",
    "sweep",
]


FREE, RELEASED, FULL = 0, 1, 2

RELEASED_MS = 300_000
"""Time after a plug of a full site becomes free in which the next arrival may have been waiting for it."""

LONG_AGO = np.iinfo(np.int64).min  # before any time


@compiled(cached=False)
def pieces(begin_ms: int, end_ms: int, length_ms: int) -> Iterator[tuple[int, float]]:
    """Cut a span of time at the boundaries of bins: each bin that it touches, and the share of the bin that it covers.

    Times count from the start of bin 0.
    """
    at = begin_ms
    while at < end_ms:
        bin_ = at // length_ms
        until = min(end_ms, (bin_ + 1) * length_ms)
        yield bin_, (until - at) / length_ms
        at = until


class Visits(NamedTuple):
    """Visits to sites, grouped by site: the visits of site s are at positions first[s], ..., first[s + 1] - 1.

    Starts and ends are sorted separately, which is sufficient for counting cars.
    """

    first: Integers  # (sites + 1,)
    start_ms: Integers
    row: Integers  # row of the session that starts; -1 for an outage
    end_ms: Integers


class Spells(NamedTuple):
    """Spells of all sites in order of time; the spells of site s are at positions first[s], ..., first[s + 1] - 1."""

    first: Integers  # (sites + 1,)
    begin_ms: Integers
    end_ms: Integers
    taken: NDArray[np.int32]  # plugs in use or out of order
    state: NDArray[np.int8]


class Arrivals(NamedTuple):
    """The state that every recorded arrival found, by site and time."""

    site: Integers
    at_ms: Integers
    row: Integers  # row of its session
    taken: NDArray[np.int32]  # plugs taken before it
    state: NDArray[np.int8]


class History(NamedTuple):
    """The history of all sites, as the estimator reads it."""

    spells: Spells
    arrivals: Arrivals


def group_visits(site: Integers, start_ms: Integers, end_ms: Integers, row: Integers, sites: int) -> Visits:
    """Group visits by site."""
    visits = _by_site(site, start_ms, end_ms, row, sites)
    over_sites(_sort_visits, sites, visits)
    return visits


@compiled()
def _by_site(site: Integers, start_ms: Integers, end_ms: Integers, row: Integers, sites: int) -> Visits:
    first = np.zeros(sites + 1, np.int64)
    for s in site:
        first[s + 1] += 1
    first = np.cumsum(first)
    place = first[:-1].copy()
    starts, ends, rows = np.empty(len(site), np.int64), np.empty(len(site), np.int64), np.empty(len(site), np.int64)
    for i in range(len(site)):
        at = place[site[i]]
        # A visit without duration lasts a millisecond: ends are sorted separately, and none may precede its start.
        starts[at], ends[at], rows[at] = start_ms[i], max(end_ms[i], start_ms[i] + 1), row[i]
        place[site[i]] += 1
    return Visits(first, starts, rows, ends)


@compiled()
def _sort_visits(visits: Visits, begin: int, end: int) -> None:
    """Sort the starts and the ends of the visits of some sites in place."""
    for s in range(begin, end):
        part = slice(visits.first[s], visits.first[s + 1])
        order = np.argsort(visits.start_ms[part], kind="mergesort")
        visits.start_ms[part], visits.row[part] = visits.start_ms[part][order], visits.row[part][order]
        visits.end_ms[part].sort()


def sweep(visits: Visits, capacity: Integers, opened_ms: Integers, closed_ms: Integers) -> History:
    """Walk through the visits of every site once.

    Args:
        visits: visits of cars, and outages, which take a plug but are not arrivals.
        capacity: number of cars that each site can charge at once, (sites,).
        opened_ms: when each site opened, (sites,).
        closed_ms: when each site closed, (sites,).

    Returns:
        Spells between opening and closing, and the state that each arrival found. If one car leaves at the moment when
        another arrives, it leaves first.
    """
    sites = len(capacity)
    parts = over_sites(_sweep, sites, visits, capacity, opened_ms, closed_ms)
    spells, arrivals = zip(*parts, strict=True)
    first = np.concatenate([[0], np.cumsum(np.concatenate([part.first for part in spells]))])
    return History(
        Spells(first, *(np.concatenate(columns) for columns in list(zip(*spells, strict=True))[1:])),
        Arrivals(*(np.concatenate(columns) for columns in zip(*arrivals, strict=True))),
    )


@compiled()
def _sweep(
    visits: Visits, capacity: Integers, opened_ms: Integers, closed_ms: Integers, first_site: int, last_site: int
) -> History:
    """The history of a range of sites; in its spells, `first` holds the number of spells of each site."""
    before = visits.first[first_site]
    visit_count = visits.first[last_site] - before
    # One spell ends at each arrival, departure and closing, and one more at most after each release of a plug.
    max_spells = 3 * visit_count + last_site - first_site
    begin, end = np.empty(max_spells, np.int64), np.empty(max_spells, np.int64)
    taken, state = np.empty(max_spells, np.int32), np.empty(max_spells, np.int8)
    found_taken, found_state = np.empty(visit_count, np.int32), np.empty(visit_count, np.int8)
    spell_count, arrived = np.zeros(last_site - first_site, np.int64), np.zeros(visit_count, np.bool_)
    n = 0  # spells so far
    site = np.empty(visit_count, np.int64)
    for s in range(first_site, last_site):
        earlier = n
        next_in = next_out = visits.first[s]
        stop = visits.first[s + 1]
        now, released = opened_ms[s], LONG_AGO  # `released`: until when a free plug counts as just released
        while now < closed_ms[s]:
            leaves = next_out < next_in and (next_in == stop or visits.end_ms[next_out] <= visits.start_ms[next_in])
            then = closed_ms[s]
            if leaves:
                then = visits.end_ms[next_out]
            elif next_in < stop:
                then = visits.start_ms[next_in]
            cars, until = next_in - next_out, min(then, closed_ms[s])
            if now < min(released, until) and cars < capacity[s]:
                begin[n], end[n], taken[n], state[n] = now, min(released, until), cars, RELEASED
                now = end[n]
                n += 1
            if now < until:
                begin[n], end[n], taken[n] = now, until, cars
                state[n] = FULL if cars >= capacity[s] else FREE
                now = until
                n += 1
            if leaves:
                next_out += 1
                if cars == capacity[s]:
                    released = then + RELEASED_MS
            elif next_in < stop:
                if visits.row[next_in] >= 0 and opened_ms[s] <= then < closed_ms[s]:
                    at = next_in - before
                    arrived[at], site[at], found_taken[at] = True, s, cars
                    found_state[at] = FULL if cars >= capacity[s] else (RELEASED if then < released else FREE)
                next_in += 1
        spell_count[s - first_site] = n - earlier
    spells = Spells(spell_count, begin[:n].copy(), end[:n].copy(), taken[:n].copy(), state[:n].copy())
    start_ms, row = visits.start_ms[before : before + visit_count], visits.row[before : before + visit_count]
    arrivals = Arrivals(site[arrived], start_ms[arrived], row[arrived], found_taken[arrived], found_state[arrived])
    return History(spells, arrivals)
