"""Measures of probabilistic forecasts, as pure functions of arrays.

`y` has shape (...), quantiles have shape (..., levels), both in the same unit. Functions return a value for every cell,
(...) or (..., levels), so that the caller can choose over what to average.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats

__all__ = [
    "bias_percent",
    "coverage_with_zeros",
    "covered",
    "crps",
    "gap_closed",
    "interval_length",
    "mean_of",
    "tilted_loss",
]


def tilted_loss(y: Floats, quantiles: Floats, levels: Sequence[float]) -> Floats:
    """rho_q(y - f_q) = max(q e, (q - 1) e), by level."""
    level = np.asarray(levels)
    residual = y[..., None] - quantiles
    return np.maximum(level * residual, (level - 1) * residual)


def covered(y: Floats, quantiles: Floats) -> NDArray[np.bool_]:
    """Whether y lies between the outermost quantiles, inclusive; its mean is the paper's ICP."""
    return np.asarray((quantiles[..., 0] <= y) & (y <= quantiles[..., -1]))


def coverage_with_zeros(
    y: Floats, lower: Floats, upper: Floats, no_demand: Floats, levels: tuple[float, float]
) -> Floats:
    """Probability that y lies between two quantiles of a distribution with a point mass at zero.

    A zero may be any part of the point mass: it counts as inside with the share of the mass between the two levels, so
    that a calibrated forecast covers `levels[1] - levels[0]` on average even if most hours are zero. The plain share of
    hours between the quantiles, inclusive, is larger: 0.95 instead of 0.9 if the 0.05 quantile is 0.
    """
    inside = (np.minimum(no_demand, levels[1]) - levels[0]) / np.maximum(no_demand, 1e-12)
    positive = (lower <= y) & (y <= upper)
    return np.where((y <= 0) & (no_demand > 0), np.clip(inside, 0.0, 1.0), positive.astype(float))


def interval_length(quantiles: Floats) -> Floats:
    """Distance between the outermost quantiles; its mean is the paper's MIL."""
    return np.asarray(np.abs(quantiles[..., -1] - quantiles[..., 0]))


def crps(y: Floats, quantiles: Floats, levels: Sequence[float]) -> Floats:
    """Continuous ranked probability score, approximated by twice the mean tilted loss over levels."""
    return np.asarray(2 * tilted_loss(y, quantiles, levels).mean(axis=-1))


def mean_of(quantiles: Floats, levels: Sequence[float]) -> Floats:
    """The mean of the distribution that quantiles describe.

    For the 0.05, 0.5 and 0.95 quantiles, the weights are Pearson and Tukey's 0.185, 0.63 and 0.185 [1], which are also
    accurate for skewed distributions. For other levels, it is the area under the linearly interpolated quantile
    function, constant beyond the outermost levels.

    [1] D. L. Keefer, S. E. Bodily, Three-point approximations for continuous random variables, Management Science 29
    (1983) 595-609.
    """
    if len(levels) == 3 and np.allclose(levels, (0.05, 0.5, 0.95)):
        return np.asarray(quantiles @ np.array([0.185, 0.63, 0.185]))
    edges = np.concatenate([[0.0], (np.asarray(levels[1:]) + np.asarray(levels[:-1])) / 2, [1.0]])
    return np.asarray(quantiles @ np.diff(edges))


def bias_percent(y: Floats, forecast: Floats) -> float:
    """Total forecast minus total truth, in percent of the latter; NaN if the truth is 0."""
    total = float(y.sum())
    return 100 * (float(forecast.sum()) - total) / total if total else float("nan")


def gap_closed(unaware: float, model: float, oracle: float) -> float:
    """(unaware - model) / (unaware - oracle): 0 is no better than unaware, 1 as good as the oracle."""
    return (unaware - model) / (unaware - oracle) if unaware != oracle else float("nan")
