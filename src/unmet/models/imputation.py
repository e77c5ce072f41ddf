"""Imputation: the part of demand that was not seen, drawn at random from what the exposure says of it.

Arrivals in a region-hour are Poisson(g lambda_k), with k the hour of the week and g a gamma variable of mean 1 and
variance 1/r that makes hours vary beyond Poisson where the data do. Those that could be seen are a share e of them, the
exposure. So given n seen arrivals, g is gamma(r + n, r + lambda e), and the arrivals that were not seen are negative
binomial with mean (1 - e) lambda (r + n) / (r + lambda e). Each wanted an energy drawn from those that were seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unmet.demand.calendar import HOURS_A_WEEK
from unmet.demand.intensity import fit_intensity
from unmet.errors import InputError

__all__ = ["Energies", "Unseen", "fit_unseen"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_EXPOSED = 0.05  # share of its hours for which a region counts as exposed at least when its rate is fitted
MOST_SHAPE = 1e4  # r beyond which hours vary as Poisson's
BLOCK = 6  # hours of the day that share a pool of energies
POOL = 2.0  # sessions of the region's mean that a pool's mean starts from


@dataclass(frozen=True, slots=True)
class Energies:
    """Energy of a session by region and time of day, as a gamma distribution: mean and standard deviation [kWh]."""

    mean: Floats  # (blocks, nodes)
    spread: Floats  # (blocks, nodes)


@dataclass(frozen=True, slots=True)
class Unseen:
    """The distribution of what was not seen in every region-hour."""

    rate: Floats  # (168, nodes), arrivals an hour that want to charge
    shape: Floats  # (nodes,), r
    mean_arrivals: Floats  # (hours, nodes), arrivals not seen, given those seen
    shape_of_hour: Floats  # (hours, nodes), r + n
    energies: Energies
    block: Integers  # (hours,), of the day

    def expected_kwh(self) -> Floats:
        """Energy not seen, to be expected in each region-hour, (hours, nodes)."""
        return self.mean_arrivals * self.energies.mean[self.block]

    def draw(self, rng: np.random.Generator) -> Floats:
        """One draw of the energy not seen in each region-hour [kWh], (hours, nodes)."""
        frailty = rng.standard_gamma(self.shape_of_hour) / self.shape_of_hour
        arrivals = rng.poisson(self.mean_arrivals * frailty)
        mean, spread = self.energies.mean[self.block], self.energies.spread[self.block]
        shape = (mean / spread) ** 2  # of one session; energies of several add up to a gamma with the sum of shapes
        return np.asarray(rng.standard_gamma(np.maximum(arrivals * shape, 1e-300)) * spread**2 / mean * (arrivals > 0))


def fit_unseen(demand: Floats, arrivals: Floats, exposure: Floats, week: Integers, learned: int) -> Unseen:
    """Fit what was not seen from demand [kWh], arrivals and exposure, each (hours, nodes), NaN where missing.

    Rates are learned from the first `learned` hours; the distribution is of all hours.
    """
    known = np.isfinite(demand) & np.isfinite(arrivals)
    exposure = np.where(np.isfinite(exposure), exposure, 1.0)
    seen = np.where(known, arrivals, 0.0)
    part = slice(0, learned)
    counts = _by_week(seen[part], week[part])
    hours = _by_week(known[part].astype(float), week[part])
    exposed = np.maximum(_by_week(np.where(known, exposure, 0.0)[part], week[part]), LEAST_EXPOSED * hours)
    if not counts.sum() > 0:
        raise InputError(
            "No arrival was seen in the part of the panel to learn from: there is nothing to estimate from."
        )
    rate = fit_intensity(counts.T, exposed.T).per_hour.T
    expected = rate[week] * exposure
    shape = _shape(seen[part], expected[part], known[part])
    posterior = shape + seen
    mean = (1 - exposure) * rate[week] * posterior / (shape + np.where(known, expected, 0.0))
    block = (week % 24) // BLOCK
    return Unseen(rate, shape, mean, posterior, _energies(demand[part], seen[part], known[part], block[part]), block)


def _by_week(values: Floats, week: Integers) -> Floats:
    total = np.zeros((HOURS_A_WEEK, values.shape[1]))
    np.add.at(total, week, values)
    return total


def _shape(seen: Floats, expected: Floats, known: NDArray[np.bool_]) -> Floats:
    """R of each region by moments: counts vary by m + m^2 / r."""
    beyond = np.where(known, (seen - expected) ** 2 - expected, 0.0).sum(axis=0)
    squares = np.where(known, expected**2, 0.0).sum(axis=0)
    return np.asarray(np.clip(squares / np.maximum(beyond, squares / MOST_SHAPE + 1e-12), 0.5, MOST_SHAPE))


def _energies(demand: Floats, seen: Floats, known: NDArray[np.bool_], block: Integers) -> Energies:
    """Mean and spread of a session's energy: demand of n sessions has mean n m and variance n s^2."""
    blocks = 24 // BLOCK
    used = known & (seen > 0)
    energy, number = np.where(used, demand, 0.0), np.where(used, seen, 0.0)
    overall = energy.sum() / max(number.sum(), 1.0)
    region = (energy.sum(axis=0) + POOL * overall) / (number.sum(axis=0) + POOL)
    mean, variance = np.empty((blocks, demand.shape[1])), np.empty((blocks, demand.shape[1]))
    for i in range(blocks):
        rows = block == i
        mean[i] = (energy[rows].sum(axis=0) + 10 * POOL * region) / (number[rows].sum(axis=0) + 10 * POOL)
        off = np.where(used[rows], (energy[rows] - number[rows] * mean[i]) ** 2 / np.maximum(number[rows], 1), 0.0)
        variance[i] = (off.sum(axis=0) + POOL * mean[i] ** 2 / 4) / (used[rows].sum(axis=0) + POOL)
    mean = np.maximum(mean, 1e-3)
    return Energies(mean, np.maximum(np.sqrt(variance), 0.05 * mean))
