"""Intensity: arrivals an hour that each station would see if a plug were always free.

Arrivals while a plug is free are all seen, those while none is free are all lost. So the arrivals seen at station s in
an hour are Poisson(lambda_s,k e) with e the exposure and k the hour of the week, and lambda is identified from counts
even where most hours are full. Counts of one station and hour of week are few: each lambda is shrunk towards the
station's mean times the city's weekly shape, by as much as the data say, and the station's mean towards what its
neighbours and its plugs let expect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Intensity", "fit_intensity", "gamma_shape", "nearness", "rates_nearby"]

Floats = NDArray[np.float64]

ROUNDS = 30
LEAST_PRIOR, MOST_PRIOR = 1.0, 1e4
PSEUDO = 2.0
"""Arrivals of the mean that each station and each hour of the week starts from, so that few counts stay tame."""
NEAR_KM = 3.0  # distance over which a neighbour counts for 1/e
FAR = 1e-3  # and what it counts for at least


@dataclass(frozen=True, slots=True)
class Intensity:
    """Arrivals an hour by station and local hour of the week, and what they rest on."""

    per_hour: Floats  # (stations, hours of week)
    prior: float  # arrivals that the common shape counts for in each estimate; large: all stations have one shape
    own: Floats  # (stations, hours of week), the share of each estimate that is counts of that very hour of the week
    nearby: Floats  # (stations,), the share of a station's mean that its neighbours and plugs lend
    weight: Floats  # (stations, hours of week), arrivals that each estimate rests on
    weight_of_station: Floats  # (stations,), and that the station's mean rests on


def fit_intensity(seen: Floats, exposed_hours: Floats, nearby: Floats | None = None) -> Intensity:
    """Fit the intensity of every station and hour of the week.

    `seen` and `exposed_hours` are (stations, hours of week): arrivals seen, and hours times exposure. The estimate is
    the mean of a gamma posterior, (prior + seen) / (prior / m + exposed), where m = station mean x weekly shape is the
    Poisson fit of the two and `prior` comes from how much counts vary beyond Poisson (moments). `nearby` are arrivals
    an hour that neighbours and plugs let expect of each station, by default the mean of all. A station that was open
    to be seen, and at which nobody came, has none.
    """
    by_station, by_week = seen.sum(axis=1), seen.sum(axis=0)
    everywhere = max(seen.sum() / max(exposed_hours.sum(), 1e-9), 1e-9)
    lent = np.full(len(seen), everywhere) if nearby is None else np.maximum(nearby, 1e-9)
    station, shape = by_station / np.maximum(exposed_hours.sum(axis=1), 1e-9), np.ones(seen.shape[1])
    for _ in range(ROUNDS):
        shape = (by_week + PSEUDO) / (station @ exposed_hours + PSEUDO)
        station = (by_station + PSEUDO) / (exposed_hours @ shape + PSEUDO / lent)
    at_all = exposed_hours @ shape
    hidden = (by_station == 0) & (lent * at_all < PSEUDO) if nearby is not None else np.zeros(len(seen), bool)
    station = np.where((by_station > 0) | hidden, station, 0.0)
    mean = station[:, None] * shape
    expected = mean * exposed_hours
    prior = float(gamma_shape(seen, expected, LEAST_PRIOR, MOST_PRIOR))
    with np.errstate(divide="ignore", invalid="ignore"):
        per_hour = np.where(mean > 0, (prior + seen) / (prior / mean + exposed_hours), 0.0)
        own = np.where(mean > 0, exposed_hours / (prior / mean + exposed_hours), 1.0)
    lending = (PSEUDO / lent) / (at_all + PSEUDO / lent)
    lending = np.where(mean.sum(axis=1) > 0, lending, 0.0)
    return Intensity(per_hour, prior, own, lending, prior + seen, by_station + PSEUDO)


def gamma_shape(seen: Floats, expected: Floats, least: float, most: float, axis: int | None = None) -> Floats:
    """R by moments, between two bounds: counts vary by m + m^2 / r, where their means vary by a gamma variable."""
    beyond = ((seen - expected) ** 2 - expected).sum(axis=axis)
    more = beyond > 0
    return np.clip(np.where(more, (expected**2).sum(axis=axis) / np.where(more, beyond, 1.0), most), least, most)


def nearness(stations: int, km: Floats | None) -> Floats:
    """How much each station counts for each other, by the distances between them; all alike without these."""
    near = np.full((stations, stations), FAR) if km is None else np.exp(-km / NEAR_KM) + FAR
    np.fill_diagonal(near, 0.0)
    return near


def rates_nearby(seen: Floats, exposed_hours: Floats, plugs: Floats, near: Floats) -> Floats:
    """Arrivals an hour that the others let expect of each station: their rate a plug, the nearer the more, x its plugs.

    `seen` and `exposed_hours` are (stations,) totals, `near` the nearness of stations, (stations, stations).
    """
    arrivals, exposed = near @ seen, near @ (exposed_hours * plugs)
    overall = seen.sum() / max(float((exposed_hours * plugs).sum()), 1e-9)
    # A neighbourhood that was hardly seen itself says little: it starts from the mean of all.
    least = FAR * float((exposed_hours * plugs).mean()) if len(seen) else 0.0
    return np.asarray((arrivals + least * overall) / np.maximum(exposed + least, 1e-12) * plugs)
