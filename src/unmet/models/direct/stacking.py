"""Stacking: weights of members that minimise the loss of past forecasts, by region and horizon.

Quantiles are averaged level by level (Vincent's average). The loss is convex in the weights, so exponentiated gradient
descent finds the minimum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats

__all__ = ["stack_weights"]


STEPS, RATE = 150, 0.4  # steps and rate of exponentiated gradient descent; the rate falls with the root of the step
SHRINKAGE = 0.1  # factor on the Kullback-Leibler divergence of a region's weights from the town's, relative to the loss


def stack_weights(quantiles: Floats, demand: Floats, levels: Floats) -> Floats:
    """Weights of members by region, (regions, members); the weights of a region sum to 1.

    Args:
        quantiles: past forecasts, (hours, regions, members, levels) [kWh].
        demand: demand of these hours, (hours, regions) [kWh]; NaN if missing.
        levels: levels of the quantiles.
    """
    members = quantiles.shape[2]
    equal = np.full((quantiles.shape[1], members), 1 / members)
    known = np.isfinite(demand)
    unit = np.array(  # loss of each region with equal weights
        [_mean_loss(quantiles[:, r], equal[r], demand[:, r], known[:, r], levels) for r in range(len(equal))]
    )
    if members == 1 or not (unit > 0).any():
        return equal
    # The town's weights minimise the loss of all regions in kWh.
    town = _descend(quantiles, demand, known, levels, equal[:1], float(unit.sum()), equal[:1])
    return np.concatenate(
        [
            _descend(quantiles[:, [r]], demand[:, [r]], known[:, [r]], levels, town, float(unit[r]), town)
            if unit[r] > 0
            else town
            for r in range(len(equal))
        ]
    )


def _descend(
    quantiles: Floats,
    demand: Floats,
    known: NDArray[np.bool_],
    levels: Floats,
    start: Floats,
    unit: float,
    prior: Floats,
) -> Floats:
    """Weights (1, members) that minimise loss / unit + SHRINKAGE x KL(weights, prior), the same for all given regions.

    `known` says which demand is not missing, and `unit` is the loss with equal weights.
    """
    weights, best, least = start.copy(), start.copy(), np.inf
    for step in range(STEPS):
        pooled = np.einsum("hrml,m->hrl", quantiles, weights[0])
        residual = np.where(known[..., None], demand[..., None] - pooled, 0.0)
        loss = np.maximum(levels * residual, (levels - 1) * residual).sum() / max(known.sum(axis=0).max(), 1)
        penalty = SHRINKAGE * float((weights * np.log(weights / prior)).sum())
        if loss / unit + penalty < least:
            least, best = loss / unit + penalty, weights.copy()
        # Gradient of the tilted loss with respect to the pooled quantile.
        side = np.where(residual > 0, -levels, np.where(residual < 0, 1 - levels, 0.0))
        slope = np.einsum("hrml,hrl->m", quantiles, side) / max(known.sum(axis=0).max(), 1) / unit
        slope = slope + SHRINKAGE * (np.log(weights[0] / prior[0]) + 1)
        weights = weights * np.exp(-RATE / np.sqrt(1 + step) * (slope - slope.mean()))
        weights = np.maximum(weights / weights.sum(), 1e-6)  # above 0, because the penalty has their logarithm
        weights = weights / weights.sum()
    return best


def _mean_loss(quantiles: Floats, weights: Floats, demand: Floats, known: NDArray[np.bool_], levels: Floats) -> float:
    """Mean over known hours of the tilted loss of a region, summed over levels [kWh]."""
    residual = (demand[:, None] - np.einsum("hml,m->hl", quantiles, weights))[known]
    return float(np.maximum(levels * residual, (levels - 1) * residual).sum() / max(known.sum(), 1))
