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
    window_ms: Integers  # for which the station was full after, or before
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
        full_since = NEVER
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
                length = min(now - full_since, WINDOW_MS)
                for i, moment in enumerate((full_since, now)):
                    station[n], at_ms[n], window[n] = s, moment, length
                    for other in nearest[s]:
                        starts = stays.start_ms[stays.first[other] : stays.first[other + 1]]
                        before = np.searchsorted(starts, moment) - np.searchsorted(starts, moment - length)
                        after = np.searchsorted(starts, moment + length + 1) - np.searchsorted(starts, moment + 1)
                        more[n] += after - before if i == 0 else before - after
                    n += 1
                full_since = NEVER
    return Moments(station[:n].copy(), at_ms[:n].copy(), window[:n].copy(), more[:n].copy())
