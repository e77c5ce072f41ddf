"""Paths: draws of the hours to come that hang together as past hours did, so that sums over them can be taken.

The marginal distribution of each hour and region is the forecast's. How hours and regions depend on each other is taken
from the past: where observed demand lay within its forecast distribution, hour by hour over a week, is one trajectory
of ranks. A draw follows one such trajectory, as in the Schaake shuffle [1].

[1] M. Clark, S. Gangopadhyay, L. Hay, B. Rajagopalan, R. Wilby, The Schaake shuffle, J. Hydrometeorology 5 (2004)
243-262.
"""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats
from unmet.compiled import compiled

__all__ = ["GRID", "LEAST_TRAJECTORIES", "draw_paths", "probabilities", "trajectory_ranks"]


GRID = (np.arange(100) + 0.5) / 100  # levels that stand for a whole distribution
LEAST_TRAJECTORIES = 8  # with fewer, hours are drawn independently


@compiled()
def probabilities(quantiles: Floats, came: Floats, at: Floats) -> Floats:
    """Where demand lay within its forecast distribution, in [0, 1]; (hours, regions), NaN where missing.

    Args:
        quantiles: at the levels of the grid, (hours, regions, levels) [kWh].
        came: demand, (hours, regions) [kWh].
        at: numbers in [0, 1] that say where within a point mass, such as that at zero, a value counts as lying.
    """
    hours, regions, levels = quantiles.shape
    made = np.full((hours, regions), np.nan)
    for t in range(hours):
        for r in range(regions):
            y = came[t, r]
            if np.isnan(y):
                continue
            below = np.searchsorted(quantiles[t, r], y, side="left")
            upto = np.searchsorted(quantiles[t, r], y, side="right")
            made[t, r] = (below + at[t, r] * (upto - below)) / levels
    return made


def trajectory_ranks(where: Floats, rng: np.random.Generator) -> Floats:
    """Rank of each trajectory among all, at each hour and region, in [0, 1); ties and gaps at random.

    `where` has shape (trajectories, hours, regions).
    """
    jitter = 1e-6 * rng.random(where.shape)
    filled = np.where(np.isfinite(where), where, rng.random(where.shape)) + jitter
    return np.asarray(filled.argsort(axis=0).argsort(axis=0) / len(where))


def draw_paths(quantiles: Floats, mean: Floats, ranks: Floats | None, number: int, rng: np.random.Generator) -> Floats:
    """Draws of demand, (draws, hours, regions) [kWh], whose mean is that of the forecast up to chance.

    Args:
        quantiles: of the hours to come at the levels of the grid, (hours, regions, levels) [kWh].
        mean: of each, (hours, regions) [kWh].
        ranks: of past trajectories, as of `trajectory_ranks`; None draws every hour by itself.
        number: of draws.
        rng: of every choice.
    """
    hours, regions, levels = quantiles.shape
    grid_mean = quantiles.mean(axis=-1)
    factor = np.where(grid_mean > 0, mean / np.maximum(grid_mean, 1e-12), 1.0)[..., None]
    scaled = quantiles * np.clip(factor, 0.5, 2.0)
    made = np.empty((number, hours, regions))
    if ranks is None:
        order = None
    else:  # every trajectory as often as any other, in random order
        order = np.concatenate([rng.permutation(len(ranks)) for _ in range(-(-number // len(ranks)))])[:number]
    for i in range(number):
        within = rng.random((hours, regions))
        u = within if order is None or ranks is None else ranks[order[i]] + within / len(ranks)
        place = np.clip(u * levels - 0.5, 0, levels - 1)
        low = place.astype(np.int64)
        high = np.minimum(low + 1, levels - 1)
        bottom = np.take_along_axis(scaled, low[..., None], axis=-1)[..., 0]
        top = np.take_along_axis(scaled, high[..., None], axis=-1)[..., 0]
        made[i] = bottom + (place - low) * (top - bottom)
    return made
