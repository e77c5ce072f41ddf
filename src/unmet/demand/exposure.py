"""Exposure: the share of an hour's would-be arrivals that could be served and seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unmet.demand.calendar import HOURS_A_WEEK
from unmet.demand.intensity import Intensity, fit_intensity
from unmet.demand.occupancy import HOUR_MS, FullHours

__all__ = ["CENSORED_FROM", "LEAST_EXPOSED", "Exposure", "fit_exposure", "region_exposure"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CENSORED_FROM = float(np.log(2))
"""Lost arrivals to be expected from which an hour counts as censored: one was lost more likely than not."""


LEAST_EXPOSED = 0.05
"""Share of its hours for which a station counts as exposed at least: what was lost beyond that cannot be known."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """Exposure of every station-hour, and what it says about arrivals."""

    full: FullHours  # station-hours that were full for a time: exposure 1 - full / hour; all others have 1
    intensity: Intensity
    hour_of_week: Integers  # of each hour of the period, local

    @property
    def hidden(self) -> Floats:
        """1 - exposure of the rows of `full`."""
        return self.full.full_ms / HOUR_MS

    @property
    def lost(self) -> Floats:
        """Arrivals to be expected in the hidden part of the rows of `full`."""
        week = self.hour_of_week[self.full.hour]
        return self.intensity.per_hour[self.full.station, week] * self.hidden


def fit_exposure(station: Integers, hour: Integers, stations: int, full: FullHours, hour_of_week: Integers) -> Exposure:
    """Exposure and intensity from the arrivals seen (their stations and hours) and the hours that were full."""
    cells = stations * HOURS_A_WEEK
    seen = np.bincount(station * HOURS_A_WEEK + hour_of_week[hour], minlength=cells).reshape(stations, HOURS_A_WEEK)
    hours = np.bincount(hour_of_week, minlength=HOURS_A_WEEK)
    hidden = np.bincount(
        full.station * HOURS_A_WEEK + hour_of_week[full.hour], full.full_ms / HOUR_MS, minlength=cells
    ).reshape(stations, HOURS_A_WEEK)
    exposed = np.maximum(hours - hidden.astype(float), LEAST_EXPOSED * hours)
    return Exposure(full, fit_intensity(seen.astype(float), exposed), hour_of_week)


def region_exposure(exposure: Exposure, region: Integers, regions: int, plugs: Integers) -> tuple[Floats, Floats]:
    """Exposure of each region and hour, and the arrivals that were probably lost there, both (regions, hours).

    A region's exposure weighs its stations by the arrivals that each would have at that hour of the week; where nobody
    ever came, by plugs.
    """
    hours = len(exposure.hour_of_week)
    weights = exposure.intensity.per_hour.copy()
    arrivals = np.zeros((regions, HOURS_A_WEEK))
    np.add.at(arrivals, region, weights)
    quiet = arrivals <= 0
    by_plugs = np.bincount(region, plugs, minlength=regions)
    weights = np.where(quiet[region], plugs[:, None], weights)
    total = np.where(quiet, by_plugs[:, None], arrivals)

    full = exposure.full
    week = exposure.hour_of_week[full.hour]
    cell = region[full.station] * hours + full.hour
    share = weights[full.station, week] / np.maximum(total[region[full.station], week], 1e-12)
    hidden = np.bincount(cell, share * exposure.hidden, minlength=regions * hours).reshape(regions, hours)
    lost = np.bincount(cell, exposure.lost, minlength=regions * hours).reshape(regions, hours)
    return np.clip(1 - hidden, 0, 1), np.asarray(lost, float)
