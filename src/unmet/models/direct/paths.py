"""Paths: joint draws of future hours that depend on each other as past hours did, so that they can be summed.

The marginal distribution of each hour and region is the forecast distribution. The dependence between hours and regions
is taken from the past: the ranks of past demand within its forecast distributions, hour by hour over a week, form one
trajectory. A draw follows one such trajectory, as in the Schaake shuffle [1].

[1] M. Clark, S. Gangopadhyay, L. Hay, B. Rajagopalan, R. Wilby, The Schaake shuffle, J. Hydrometeorology 5 (2004)
243-262.
"""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats
from unmet.compiled import compiled

__all__ = ["GRID", "MIN_TRAJECTORIES", "draw_paths", "probabilities", "trajectory_ranks"]


GRID = (np.arange(100) + 0.5) / 100  # levels of the quantiles that represent a distribution
MIN_TRAJECTORIES = 8  # with fewer, hours are drawn independently


@compiled()
def probabilities(quantiles: Floats, demand: Floats, uniform: Floats) -> Floats:
    """Rank of demand within its forecast distribution, in [0, 1]; (hours, regions), NaN if missing.

    Args:
        quantiles: quantiles at the levels of the grid, (hours, regions, levels) [kWh].
        demand: demand, (hours, regions) [kWh].
        uniform: random numbers in [0, 1], (hours, regions), that place a value within a point mass, such as zero.
    """
    hours, regions, levels = quantiles.shape
    result = np.full((hours, regions), np.nan)
    for t in range(hours):
        for r in range(regions):
            y = demand[t, r]
            if np.isnan(y):
                continue
            below = np.searchsorted(quantiles[t, r], y, side="left")
            not_above = np.searchsorted(quantiles[t, r], y, side="right")
            result[t, r] = (below + uniform[t, r] * (not_above - below)) / levels
    return result


def trajectory_ranks(probability: Floats, rng: np.random.Generator) -> Floats:
    """Rank of each trajectory among all, at each hour and region, in [0, 1).

    `probability` is from `probabilities`, (trajectories, hours, regions). Ties are ordered, and missing values are
    filled, at random.
    """
    jitter = 1e-6 * rng.random(probability.shape)
    filled = np.where(np.isfinite(probability), probability, rng.random(probability.shape)) + jitter
    return np.asarray(filled.argsort(axis=0).argsort(axis=0) / len(probability))


def draw_paths(quantiles: Floats, mean: Floats, ranks: Floats | None, number: int, rng: np.random.Generator) -> Floats:
    """Draws of demand, (draws, hours, regions) [kWh], whose mean is the forecast mean up to sampling error.

    Args:
        quantiles: quantiles of future hours at the levels of the grid, (hours, regions, levels) [kWh].
        mean: forecast mean, (hours, regions) [kWh].
        ranks: ranks of past trajectories, from `trajectory_ranks`; with None, hours are drawn independently.
        number: number of draws.
        rng: random numbers.
    """
    hours, regions, levels = quantiles.shape
    grid_mean = quantiles.mean(axis=-1)
    factor = np.where(grid_mean > 0, mean / np.maximum(grid_mean, 1e-12), 1.0)[..., None]
    scaled = quantiles * np.clip(factor, 0.5, 2.0)  # a mean far from its quantiles is not trusted
    result = np.empty((number, hours, regions))
    if ranks is None:
        order = None
    else:  # all trajectories equally often, in random order
        order = np.concatenate([rng.permutation(len(ranks)) for _ in range(-(-number // len(ranks)))])[:number]
    for i in range(number):
        within = rng.random((hours, regions))
        u = within if order is None or ranks is None else ranks[order[i]] + within / len(ranks)
        place = np.clip(u * levels - 0.5, 0, levels - 1)  # position of the level u in the grid
        low = place.astype(np.int64)
        high = np.minimum(low + 1, levels - 1)
        bottom = np.take_along_axis(scaled, low[..., None], axis=-1)[..., 0]
        top = np.take_along_axis(scaled, high[..., None], axis=-1)[..., 0]
        result[i] = bottom + (place - low) * (top - bottom)
    return result
