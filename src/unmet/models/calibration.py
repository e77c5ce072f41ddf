"""Calibration: correct quantiles with held-out hours, at every horizon.

A quantile q of level p is moved by d times the width of the interval, where d is the level-p quantile of
(truth - q) / width over held-out hours. If the truth is right-censored, d is estimated by Kaplan-Meier; if it is left-
or interval-censored, by Turnbull's method. Horizons from 1 hour to a week are grouped into pools, each about twice as
wide as the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import CensoredData, ecdf

from unmet.arrays import Floats

__all__ = ["EDGES", "Calibration", "kaplan_meier_quantile", "moves_of", "pool_of", "turnbull_quantile"]


EDGES = (1, 2, 4, 7, 13, 25, 49, 97)  # first horizon of each pool [h]
MIN_WIDTH = 0.01  # smallest width of an interval, relative to a region's scale
MIN_HOURS = 100  # region-hours; a pool with fewer takes the moves of the pool before it
MAX_VALUES, POINTS, ROUNDS = 1000, 200, 200  # Turnbull's estimator: highest number of values, grid points and EM steps


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far to move each quantile in each pool of horizons, in widths of the interval."""

    moves: Floats  # (pools, levels)

    @classmethod
    def none(cls, levels: int) -> Calibration:
        """A calibration that leaves quantiles unchanged."""
        return cls(np.zeros((len(EDGES), levels)))

    def apply(self, quantiles: Floats, horizon: int | NDArray[np.int64] = 1) -> Floats:
        """Moved quantiles, (..., levels); the horizon [h] is a number, or one for each, (...)."""
        move = self.moves[pool_of(np.asarray(horizon))]
        return np.sort(quantiles + move * _width(quantiles)[..., None], axis=-1)


def pool_of(horizon: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pool of each horizon [h]."""
    return np.searchsorted(EDGES, horizon, side="right") - 1


def moves_of(quantiles: Floats, lower: Floats, upper: Floats, levels: Sequence[float]) -> Floats:
    """The moves (levels,) that calibrate quantiles (cells, levels), given the bounds of the truth (cells,).

    A cell is a forecast of one region-hour; all are in units of the region's scale.
    """
    width = _width(quantiles)
    right_censored = np.isinf(upper)
    only_right = bool((right_censored | (lower == upper)).all())
    moves = []
    for i, level in enumerate(levels):
        low, high = (lower - quantiles[:, i]) / width, (upper - quantiles[:, i]) / width
        moves.append(
            kaplan_meier_quantile(low, right_censored, level) if only_right else turnbull_quantile(low, high, level)
        )
    return np.array(moves)


def kaplan_meier_quantile(values: Floats, censored: NDArray[np.bool_], level: float) -> float:
    """Quantile of right-censored values by the Kaplan-Meier estimator.

    If so many values are censored that the level is never reached, it is the largest uncensored value, but at least 0.
    """
    cdf = ecdf(CensoredData.right_censored(values, censored)).cdf
    reached = np.flatnonzero(cdf.probabilities >= level - 1e-12)
    if len(reached):
        return float(cdf.quantiles[reached[0]])
    return max(0.0, float(values[~censored].max(initial=0.0)))


def turnbull_quantile(lower: Floats, upper: Floats, level: float) -> float:
    """Quantile of values that are known to lie in [lower, upper], by Turnbull's estimator.

    It is computed by EM on a grid of quantiles of the bounds.
    """
    step = -(-len(lower) // MAX_VALUES)
    lower, upper = lower[::step], upper[::step]
    bounds = np.concatenate([lower[np.isfinite(lower)], upper[np.isfinite(upper)]])
    points = np.unique(np.quantile(bounds, np.linspace(0, 1, POINTS)))
    # A value that is known exactly, or lies between two points, is assigned to the next point.
    first = np.minimum(np.searchsorted(points, lower), len(points) - 1)
    last = np.maximum(np.searchsorted(points, upper, side="right") - 1, first)
    place = np.arange(len(points))
    inside = ((place >= first[:, None]) & (place <= last[:, None])).astype(float)
    mass = np.full(len(points), 1 / len(points))
    for _ in range(ROUNDS):
        mass = mass * (inside / (inside @ mass)[:, None]).mean(axis=0)
    return float(points[min(int(np.searchsorted(np.cumsum(mass), level - 1e-9)), len(points) - 1)])


def _width(quantiles: Floats) -> Floats:
    """Distance between the outermost quantiles."""
    return np.asarray(np.maximum(quantiles[..., -1] - quantiles[..., 0], MIN_WIDTH))
