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

__all__ = ["Hidden", "Redraw", "Unseen", "fit_unseen"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_EXPOSED = 0.05  # share of its hours for which a region counts as exposed at least when its rate is fitted
MOST_SHAPE = 1e4  # r beyond which hours vary as Poisson's
BLOCK = 6  # hours of the day that share a pool of energies
POOL = 10.0  # sessions of the mean around it that each mean starts from


@dataclass(frozen=True, slots=True)
class Hidden:
    """The distribution of what was not seen in every region-hour; arrays are (hours, nodes)."""

    arrivals: Floats  # to be expected, given those seen
    shape: Floats  # r + n
    session_kwh: Floats  # mean energy of a session
    session_spread: Floats  # and its standard deviation

    def expected_kwh(self) -> Floats:
        """Energy that was not seen, to be expected."""
        return self.arrivals * self.session_kwh

    def draw_arrivals(self, rng: np.random.Generator) -> Floats:
        """One draw of the arrivals that were not seen."""
        frailty = rng.standard_gamma(self.shape) / self.shape
        return rng.poisson(self.arrivals * frailty).astype(float)

    def draw(self, rng: np.random.Generator) -> Floats:
        """One draw of the energy that was not seen [kWh]."""
        arrivals = self.draw_arrivals(rng)
        # Energies of single sessions are gamma distributed, so that those of several add up to one with more shape.
        shape = (self.session_kwh / self.session_spread) ** 2
        scale = self.session_spread**2 / self.session_kwh
        return np.asarray(rng.standard_gamma(np.maximum(arrivals * shape, 1e-300)) * scale * (arrivals > 0))


@dataclass(frozen=True, slots=True)
class Unseen:
    """What a panel says of arrivals and energies, from which the unseen part of any hour follows."""

    rate: Floats  # (168, nodes), arrivals an hour that want to charge
    shape: Floats  # (nodes,), r
    session_kwh: Floats  # (blocks of the day, nodes), mean energy of a session
    session_spread: Floats  # (blocks, nodes), its standard deviation

    def hidden(self, arrivals: Floats, exposure: Floats, week: Integers) -> Hidden:
        """What was not seen in hours with these arrivals seen and this exposure, (hours, nodes), NaN where missing."""
        known = np.isfinite(arrivals)
        exposed = np.where(np.isfinite(exposure), exposure, 1.0)
        seen = np.where(known, arrivals, 0.0)
        rate = self.rate[week]
        expected = np.where(known, rate * exposed, 0.0)
        block = (week % 24) // BLOCK
        return Hidden(
            (1 - exposed) * rate * (self.shape + seen) / (self.shape + expected),
            self.shape + seen,
            self.session_kwh[block],
            self.session_spread[block],
        )


@dataclass(frozen=True, slots=True)
class Redraw:
    """Observed demand with a fresh draw of the unseen part, in units of each region's scale."""

    demand: Floats  # (hours, nodes) [kWh], 0 where missing
    hidden: Hidden
    scale: Floats  # (nodes,)

    def __call__(self, rng: np.random.Generator) -> Floats:
        """A draw of true demand, (hours, nodes)."""
        return np.asarray((self.demand + self.hidden.draw(rng)) / self.scale)


def fit_unseen(demand: Floats, arrivals: Floats, exposure: Floats, week: Integers) -> Unseen:
    """Learn rates and energies from demand [kWh], arrivals and exposure, each (hours, nodes), NaN where missing."""
    known = np.isfinite(demand) & np.isfinite(arrivals)
    exposed = np.where(known & np.isfinite(exposure), exposure, np.where(known, 1.0, 0.0))
    seen = np.where(known, arrivals, 0.0)
    hours = _by_week(known.astype(float), week)
    # What a small market share hides is known, what full stations hide beyond that is not.
    least = LEAST_EXPOSED * hours * exposed.max(axis=0, initial=0.0)
    counts, exposed_hours = _by_week(seen, week), np.maximum(_by_week(exposed, week), least)
    if not counts.sum() > 0:
        raise InputError(
            "No arrival was seen in the part of the panel to learn from: nothing can be estimated from it."
        )
    rate = fit_intensity(counts.T, exposed_hours.T).per_hour.T
    return Unseen(rate, _shape(seen, rate[week] * exposed, known), *_energies(demand, seen, known, week))


def _by_week(values: Floats, week: Integers) -> Floats:
    total = np.zeros((HOURS_A_WEEK, values.shape[1]))
    np.add.at(total, week, values)
    return total


def _shape(seen: Floats, expected: Floats, known: NDArray[np.bool_]) -> Floats:
    """R of each region by moments: counts vary by m + m^2 / r."""
    beyond = np.where(known, (seen - expected) ** 2 - expected, 0.0).sum(axis=0)
    squares = np.where(known, expected**2, 0.0).sum(axis=0)
    return np.asarray(np.clip(squares / np.maximum(beyond, squares / MOST_SHAPE + 1e-12), 0.5, MOST_SHAPE))


def _energies(demand: Floats, seen: Floats, known: NDArray[np.bool_], week: Integers) -> tuple[Floats, Floats]:
    """Mean and spread of a session's energy by block of the day: demand of n sessions has mean n m, variance n s^2."""
    block, blocks = (week % 24) // BLOCK, 24 // BLOCK
    used = known & (seen > 0)
    energy, number = np.where(used, demand, 0.0), np.where(used, seen, 0.0)
    overall = energy.sum() / max(number.sum(), 1.0)
    region = (energy.sum(axis=0) + POOL * overall) / (number.sum(axis=0) + POOL)
    mean, variance = np.empty((blocks, demand.shape[1])), np.empty((blocks, demand.shape[1]))
    for i in range(blocks):
        rows = block == i
        mean[i] = (energy[rows].sum(axis=0) + POOL * region) / (number[rows].sum(axis=0) + POOL)
        off = np.where(used[rows], (energy[rows] - number[rows] * mean[i]) ** 2 / np.maximum(number[rows], 1), 0.0)
        variance[i] = (off.sum(axis=0) + POOL * mean[i] ** 2 / 4) / (used[rows].sum(axis=0) + POOL)
    mean = np.maximum(mean, 1e-3)
    return mean, np.maximum(np.sqrt(variance), 0.05 * mean)
