"""Intensity: arrivals an hour that each station would see if a plug were always free.

Arrivals while a plug is free are all seen, those while none is free are all lost. So the arrivals seen at station s in
an hour are Poisson(lambda_s,k e) with e the exposure and k the hour of the week, and lambda is identified from counts
even where most hours are full. Counts of one station and hour of week are few: each lambda is shrunk towards the
station's mean times the city's weekly shape, by as much as the data say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Intensity", "fit_intensity"]

Floats = NDArray[np.float64]

ROUNDS = 30
LEAST_PRIOR, MOST_PRIOR = 1.0, 1e4
PSEUDO = (
    2.0  # arrivals of the mean that each station and each hour of the week starts from, so that few counts stay tame
)


@dataclass(frozen=True, slots=True)
class Intensity:
    """Arrivals an hour by station and local hour of the week, and how firmly they hold together."""

    per_hour: Floats  # (stations, hours of week)
    prior: float  # arrivals that the common shape counts for in each estimate; large: all stations have one shape


def fit_intensity(seen: Floats, exposed_hours: Floats) -> Intensity:
    """Fit the intensity of every station and hour of the week.

    `seen` and `exposed_hours` are (stations, hours of week): arrivals seen, and hours times exposure. The estimate is
    the mean of a gamma posterior, (prior + seen) / (prior / m + exposed), where m = station mean x weekly shape is the
    Poisson fit of the two and `prior` comes from how much counts vary beyond Poisson (moments).
    """
    by_station, by_week = seen.sum(axis=1), seen.sum(axis=0)
    everywhere = seen.sum() / max(exposed_hours.sum(), 1e-9)
    station, shape = by_station / np.maximum(exposed_hours.sum(axis=1), 1e-9), np.ones(seen.shape[1])
    for _ in range(ROUNDS):
        shape = (by_week + PSEUDO) / (station @ exposed_hours + PSEUDO)
        station = (by_station + PSEUDO) / (exposed_hours @ shape + PSEUDO / max(everywhere, 1e-9))
    station = np.where(by_station > 0, station, 0.0)
    mean = station[:, None] * shape
    expected = mean * exposed_hours
    beyond = ((seen - expected) ** 2 - expected).sum()
    prior = float(np.clip((expected**2).sum() / beyond, LEAST_PRIOR, MOST_PRIOR)) if beyond > 0 else MOST_PRIOR
    with np.errstate(divide="ignore"):
        per_hour = (prior + seen) / (prior / mean + exposed_hours)
    return Intensity(np.where(mean > 0, per_hour, 0.0), prior)
