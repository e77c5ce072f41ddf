"""Booking: energy and arrivals summed by region and hour, always in the same order, for reproducible results."""

from __future__ import annotations

from enum import Enum

import numpy as np

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.demand.calendar import HOUR_MS
from unmet.demand.spells import pieces

__all__ = ["Booking", "book", "spread"]


class Booking(str, Enum):
    """The hour to which energy is booked."""

    ARRIVAL = "arrival"  # all energy at the hour of arrival
    DELIVERY = "delivery"  # spread over the hours of charging, for load curves


@compiled("float64[:, ::1](int64[::1], int64[::1], float64[::1], int64, int64, int64)")
def book(group: Integers, at_ms: Integers, amount: Floats, groups: int, first_ms: int, hours: int) -> Floats:
    """Sum amounts by group and hour, (groups, hours); amounts outside the period are left out."""
    booked = np.zeros((groups, hours))
    for i in range(len(group)):
        hour = (at_ms[i] - first_ms) // HOUR_MS
        if 0 <= hour < hours:
            booked[group[i], hour] += amount[i]
    return booked


@compiled("float64[:, ::1](int64[::1], int64[::1], int64[::1], float64[::1], int64, int64, int64)")
def spread(
    group: Integers, start_ms: Integers, end_ms: Integers, amount: Floats, groups: int, first_ms: int, hours: int
) -> Floats:
    """Spread amounts evenly from start to end, by group and hour; without a duration, all is booked at the start."""
    booked = np.zeros((groups, hours))
    last_ms = first_ms + hours * HOUR_MS
    for i in range(len(group)):
        length = end_ms[i] - start_ms[i]
        begin, end = max(start_ms[i], first_ms), min(end_ms[i], last_ms)
        if length <= 0 and first_ms <= start_ms[i] < last_ms:
            booked[group[i], (start_ms[i] - first_ms) // HOUR_MS] += amount[i]
        for hour, share in pieces(begin - first_ms, end - first_ms, HOUR_MS):
            booked[group[i], hour] += amount[i] * share * HOUR_MS / length
    return booked
