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
from unmet.demand.occupancy import HOUR_MS, RETAKEN_MS, Stays

__all__ = ["crowding"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEPS = 12  # of the share of plugs taken
SPREADS = np.geomspace(0.01, 1.5, 30)  # of beta among stations that are thought possible
USUAL_SPREAD = 0.5  # which of them are likely before the data say more
COMMON_SPREAD = 0.5  # of the beta that they have in common, around none
WIDE = 5.0
NODES = 9  # of the mean over what a station's beta may be
ROUNDS = 40


def crowding(
    stays: Stays, plugs: Integers, first_ms: int, hour_of_week: Integers, level: Floats, per_hour: Floats
) -> tuple[Floats, Floats, Floats]:
    """Share of the usual arrivals that come to each station when it is full, at most 1, and how unsure that is.

    The other two are standard deviations of its logarithm: of each station by itself, and of what all have in common.

    `level` is how busy each station is on each day, (stations, days), 0 where it is closed, `per_hour` the usual
    arrivals, (stations, hours of week). Stations have betas around a common one, as far apart as the data say; what is
    told is the mean over what each one's may be.
    """
    hours, arrivals = _by_taken(stays, plugs, first_ms, hour_of_week, level)
    time, came = (hours * per_hour[..., None]).sum(axis=1), arrivals.sum(axis=1)
    total, taken = time.sum(axis=1), np.arange(STEPS) / STEPS
    beta, own, common = _pooled(*_betas(time, came))
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    possible = beta + nodes[:, None] * np.sqrt(own + common)
    usual = np.einsum("st,nst->ns", time, np.exp(possible[..., None] * taken)) / np.where(total > 0, total, 1.0)
    share = weights / weights.sum() @ (np.exp(possible) / np.where(total > 0, usual, 1.0))
    room = 1 - (time @ taken) / np.where(total > 0, total, 1.0)  # from the usual share of plugs taken to all
    alone, together = (np.where(total > 0, np.sqrt(variance) * room, 0.0) for variance in (own, common))
    return np.where(total > 0, np.minimum(share, 1.0), 1.0), alone, together


def _pooled(alone: Floats, information: Floats) -> tuple[Floats, Floats, Floats]:
    """Betas of stations around a common one: their means, and variances of their own and of what they have in common.

    `alone` is what each station says by itself, and `information` the inverse of its variance. How far stations are
    apart is averaged over, by its likelihood.
    """
    spread = SPREADS[:, None]
    borrowed = 1 / (1 + information * spread**2)
    weight = information * borrowed
    of_common = weight.sum(axis=1, keepdims=True) + 1 / COMMON_SPREAD**2
    common = (weight * alone).sum(axis=1, keepdims=True) / of_common
    deviance = (weight * alone**2 - np.log(borrowed)).sum(axis=1) + (np.log(of_common) - of_common * common**2)[:, 0]
    log_likely = np.log(SPREADS) - (deviance + (SPREADS / USUAL_SPREAD) ** 2) / 2  # the grid is geometric
    likely = np.exp(log_likely - log_likely.max())
    likely /= likely.sum()
    means = (1 - borrowed) * alone + borrowed * common
    mean = likely @ means
    own = likely @ (borrowed * spread**2 + (means - mean) ** 2)
    return mean, own, likely @ (borrowed**2 / of_common)


def _betas(time: Floats, came: Floats) -> tuple[Floats, Floats]:
    """Beta of each station by its own arrivals, (stations, steps), by Newton's method, and the inverse of its variance.

    A normal prior that is too wide to matter keeps it finite, and is taken out again.
    """
    taken = np.arange(STEPS) / STEPS
    number = came.sum(axis=1) * (time.sum(axis=1) > 0)
    sums = (came * taken).sum(axis=1) * (number > 0)
    beta, information = np.zeros(len(time)), np.zeros(len(time))
    going = np.ones(len(time), bool)
    for _ in range(ROUNDS):
        weight = time * np.exp(beta[:, None] * taken)
        weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-12)
        mean = (weight * taken).sum(axis=1)
        within = np.maximum((weight * taken**2).sum(axis=1) - mean**2, 0.0)
        information = np.where(going, number * within, information)
        step = (sums - number * mean - beta / WIDE**2) / (information + 1 / WIDE**2)
        beta = np.where(going, beta + np.clip(step, -1.0, 1.0), beta)
        going &= np.abs(step) >= 1e-6
        if not going.any():
            break
    known = information > 1e-6
    free = beta * (1 + 1 / WIDE**2 / np.where(known, information, 1.0))
    return np.where(known, free, 0.0), np.where(known, information, 0.0)


@compiled()
def _by_taken(
    stays: Stays, plugs: Integers, first_ms: int, hour_of_week: Integers, level: Floats
) -> tuple[Floats, Floats]:
    """Hours and arrivals by station, hour of the week and share of the plugs taken, while not all are.

    The minutes after a plug of a full station got free are left out: who comes then may have waited.
    """
    stations, hours = len(plugs), len(hour_of_week)
    last_ms = first_ms + hours * HOUR_MS
    time = np.zeros((stations, HOURS_A_WEEK, STEPS))
    came = np.zeros((stations, HOURS_A_WEEK, STEPS))
    for s in range(stations):
        come = gone = stays.first[s]
        stop = stays.first[s + 1]
        now = waited = first_ms
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
                begin, end = max(now, waited), min(then, last_ms)
                while begin < end:
                    hour = (begin - first_ms) // HOUR_MS
                    until = min(end, first_ms + (hour + 1) * HOUR_MS)
                    time[s, hour_of_week[hour], step] += (until - begin) / HOUR_MS * level[s, hour // HOURS_A_DAY]
                    begin = until
                if not leaves and come < stop and max(first_ms, waited) <= then < last_ms:
                    hour = (then - first_ms) // HOUR_MS
                    if level[s, hour // HOURS_A_DAY] > 0:
                        came[s, hour_of_week[hour], step] += 1
            now = max(now, then)
            if leaves:
                gone += 1
                if cars >= plugs[s]:
                    waited = then + RETAKEN_MS
            elif come < stop:
                come += 1
    return time, came
