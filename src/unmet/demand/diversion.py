"""Diversion: drivers who find a station full, and are seen at a station nearby.

Where drivers divert, arrivals at the stations around one rise when its last plug is taken, and fall when one gets free.
The minutes before such a moment and those after it are alike in all else, so that no usual rate of these stations has
to be known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.compiled import compiled
from unmet.demand.occupancy import NEVER, Stays
from unmet.errors import InputError

__all__ = ["Moments", "moments_of_change", "nearest_stations"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

WINDOW_MS = 600_000  # before and after a moment
NEAREST = 5  # stations that are looked at


class Moments(NamedTuple):
    """Moments at which stations became full, or got a free plug again."""

    station: Integers
    at_ms: Integers
    window_ms: Integers  # for which the station was full on one side, and had a free plug on the other
    more: Integers  # arrivals at the stations around in that time, beyond those in as long a time on the other side


def nearest_stations(km: Floats | None) -> Integers:
    """The nearest other stations of each, (stations, some)."""
    if km is None:
        raise InputError(
            "Whether drivers go to a station nearby cannot be told without positions: give lat and lon of all stations "
            "with --stations, or a number for --spill."
        )
    apart = km + np.where(np.eye(len(km), dtype=bool), np.inf, 0.0)
    return np.argsort(apart, axis=1, kind="stable")[:, : min(NEAREST, max(len(km) - 1, 0))]


@compiled()
def moments_of_change(stays: Stays, plugs: Integers, nearest: Integers) -> Moments:
    """Arrivals at the nearest stations beside all moments at which a station became full or got a free plug."""
    room = 2 * len(stays.start_ms)
    station, at_ms, window = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    more = np.zeros(room, np.int64)
    n = 0
    for s in range(len(plugs)):
        come = gone = stays.first[s]
        stop = stays.first[s + 1]
        full_since, own = NEVER, n
        while gone < stop:
            if come < stop and stays.start_ms[come] < stays.end_ms[gone]:
                now = stays.start_ms[come]
                come += 1
            else:
                now = stays.end_ms[gone]
                gone += 1
            is_full = come - gone >= plugs[s]
            if is_full and full_since == NEVER:
                full_since = now
            elif not is_full and full_since != NEVER:
                at_ms[n], at_ms[n + 1] = full_since, now
                n += 2
                full_since = NEVER
        for i in range(own, n):  # full and free spells take turns
            length = WINDOW_MS
            if i > own:
                length = min(length, at_ms[i] - at_ms[i - 1])
            if i + 1 < n:
                length = min(length, at_ms[i + 1] - at_ms[i])
            station[i], window[i] = s, length
            for other in nearest[s]:
                starts = stays.start_ms[stays.first[other] : stays.first[other + 1]]
                before = np.searchsorted(starts, at_ms[i]) - np.searchsorted(starts, at_ms[i] - length)
                after = np.searchsorted(starts, at_ms[i] + length + 1) - np.searchsorted(starts, at_ms[i] + 1)
                more[i] += after - before if (i - own) % 2 == 0 else before - after
    return Moments(station[:n].copy(), at_ms[:n].copy(), window[:n].copy(), more[:n].copy())
