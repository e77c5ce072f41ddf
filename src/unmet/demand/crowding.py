"""Crowding: whether fewer drivers come the fewer plugs are free.

Connectors may share a charger, drivers see on their phones how full a station is, and the rush may be over by the time
it is full. Then those who would have come to a full station are fewer than usual at that hour. How arrivals fall with
the share of plugs that are taken can be seen while some are still free; taken on to a full station, it says what share
of the usual arrivals to expect there. Busy stations and busy hours must not look like crowding: given the arrivals of a
station, where they fall is multinomial with weights lambda T exp(beta x), lambda the usual arrivals at that hour of the
week and T the time with a share x of the plugs taken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unmet.compiled import compiled
from unmet.demand.calendar import HOURS_A_DAY, HOURS_A_WEEK
from unmet.demand.occupancy import HOUR_MS, Stays

__all__ = ["crowding"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEPS = 12  # of the share of plugs taken
LEAST_SPREAD, MOST_SPREAD = 0.01, 1.0  # of beta among stations
COMMON_SPREAD = 0.5  # of the beta that they have in common, around none
ROUNDS = 40


def crowding(
    stays: Stays, plugs: Integers, first_ms: int, hour_of_week: Integers, level: Floats, per_hour: Floats
) -> Floats:
    """Share of the usual arrivals that come to each station when it is full, at most 1.

    `level` is how busy each station is on each day, (stations, days), 0 where it is closed, `per_hour` the usual
    arrivals, (stations, hours of week). Stations have betas around a common one, as far apart as the data say; what is
    told is the mean over what each one's may be.
    """
    hours, arrivals = _by_taken(stays, plugs, first_ms, hour_of_week, level)
    time, came = (hours * per_hour[..., None]).sum(axis=1), arrivals.sum(axis=1)
    common = _betas(time, came, 0.0, COMMON_SPREAD, together=True)[0][0]
    alone, unsure = _betas(time, came, common, 2.0)
    spread = _spread(alone - common, unsure)
    beta, variance = _betas(time, came, common, spread)
    total = time.sum(axis=1)
    usual = (time * np.exp(beta[:, None] * np.arange(STEPS) / STEPS)).sum(axis=1) / np.where(total > 0, total, 1.0)
    share = np.exp(beta + variance / 2) / np.where(total > 0, usual, 1.0)
    return np.where(total > 0, np.minimum(share, 1.0), 1.0)


def _spread(off: Floats, variance: Floats) -> float:
    """Standard deviation of beta among stations, by moments: estimates vary by it and by their own variance."""
    weight = 1 / variance**2
    beyond = float((weight * (off**2 - variance)).sum() / weight.sum()) if len(off) else 0.0
    return float(np.sqrt(np.clip(beyond, LEAST_SPREAD**2, MOST_SPREAD**2)))


def _betas(time: Floats, came: Floats, prior: float, spread: float, *, together: bool = False) -> tuple[Floats, Floats]:
    """The most probable beta of each station, (stations, steps), and its variance; or of all stations together.

    The prior is normal, the method Newton's.
    """
    taken = np.arange(STEPS) / STEPS
    number = came.sum(axis=1) * (time.sum(axis=1) > 0)
    sums = (came * taken).sum(axis=1) * (number > 0)

    def add(values: Floats) -> Floats:
        return np.full(len(values), values.sum()) if together else values

    beta, variance = np.full(len(time), prior), np.full(len(time), spread**2)
    going = np.ones(len(time), bool)
    for _ in range(ROUNDS):
        weight = time * np.exp(beta[:, None] * taken)
        weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-12)
        mean = (weight * taken).sum(axis=1)
        within = (weight * taken**2).sum(axis=1) - mean**2
        variance = np.where(going, 1 / (add(number * within) + 1 / spread**2), variance)
        step = variance * (add(sums) - add(number * mean) - (beta - prior) / spread**2)
        beta = np.where(going, beta + np.clip(step, -1.0, 1.0), beta)
        going &= np.abs(step) >= 1e-6
        if not going.any():
            break
    return beta, variance


@compiled()
def _by_taken(
    stays: Stays, plugs: Integers, first_ms: int, hour_of_week: Integers, level: Floats
) -> tuple[Floats, Floats]:
    """Hours and arrivals by station, hour of the week and share of the plugs taken, while not all are."""
    stations, hours = len(plugs), len(hour_of_week)
    last_ms = first_ms + hours * HOUR_MS
    time = np.zeros((stations, HOURS_A_WEEK, STEPS))
    came = np.zeros((stations, HOURS_A_WEEK, STEPS))
    for s in range(stations):
        come = gone = stays.first[s]
        stop = stays.first[s + 1]
        now = first_ms
        while now < last_ms:
            leaves = gone < stop and (come == stop or stays.end_ms[gone] <= stays.start_ms[come])
            then = last_ms
            if leaves:
                then = stays.end_ms[gone]
            elif come < stop:
                then = stays.start_ms[come]
            cars = come - gone
            step = STEPS * cars // max(plugs[s], 1)
            if 0 <= cars < plugs[s]:
                begin, end = now, min(then, last_ms)
                while begin < end:
                    hour = (begin - first_ms) // HOUR_MS
                    until = min(end, first_ms + (hour + 1) * HOUR_MS)
                    time[s, hour_of_week[hour], step] += (until - begin) / HOUR_MS * level[s, hour // HOURS_A_DAY]
                    begin = until
                if not leaves and come < stop and first_ms <= then < last_ms:
                    hour = (then - first_ms) // HOUR_MS
                    if level[s, hour // HOURS_A_DAY] > 0:
                        came[s, hour_of_week[hour], step] += 1
            now = max(now, then)
            if leaves:
                gone += 1
            elif come < stop:
                come += 1
    return time, came
