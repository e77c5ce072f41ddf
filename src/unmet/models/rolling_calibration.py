"""Rolling calibration: correct the quantiles of an ensemble with held-out hours, up to its horizon."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from unmet.arrays import Floats
from unmet.demand.calendar import HOURS_A_WEEK
from unmet.models.calibration import EDGES, MIN_HOURS, Calibration, moves_of, pool_of
from unmet.models.encoding import Data
from unmet.models.ensemble import Ensemble
from unmet.models.likelihoods import Likelihood

__all__ = ["WEEK", "WINDOW", "blocks", "calibrate"]

ORIGINS = 48  # highest number of origins used for calibration
WEEK = HOURS_A_WEEK
WINDOW = 4 * WEEK  # hours before a block that are used to calibrate it, except those that the model was trained on
MAX_CELLS = 20_000_000  # highest number of region-hours to forecast for calibration


def calibrate(
    ensemble: Ensemble,
    data: Data,
    first: int,
    last: int,
    horizon: int,
    floored: Callable[[Floats], Floats],
    before: Calibration | None = None,
) -> Calibration:
    """Calibration with the held-out hours from `first` to `last`, for each pool of horizons.

    Args:
        ensemble: networks to calibrate.
        data: the series that they forecast.
        first: first held-out hour, counted from the first hour of the series.
        last: hour after the last held-out hour.
        horizon: longest horizon [h].
        floored: cuts quantiles (..., nodes, levels) off at the floor, as in forecasts.
        before: calibration whose moves are kept if there are too few hours.
    """
    likelihood = ensemble.likelihood
    moves = (before or Calibration.none(len(likelihood.levels))).moves.copy()
    ahead = floored(ensemble.one_hour_ahead(data, first, last))
    one_hour_moves = _moves(likelihood, data, ahead, np.arange(first, last), moves[0])
    if before is None:
        moves[:] = one_hour_moves
    moves[0] = one_hour_moves
    reach = min(horizon, last - first)
    if reach == 1:
        return Calibration(moves)
    origins = _origins(first, last, reach, data.y.shape[1])
    hours_of = origins[:, None] + np.arange(reach)
    # Forecasts from late origins extend beyond the held-out part: those hours are not used.
    forecasts = ensemble.from_origins(data.longer(reach), origins, reach)
    for pool in range(1, len(EDGES)):
        steps = np.flatnonzero(pool_of(np.arange(1, reach + 1)) == pool)
        inside = hours_of[:, steps] < last
        chosen = floored(forecasts[:, steps][inside])
        fallback = moves[pool - 1] if before is None else moves[pool]
        moves[pool] = _moves(likelihood, data, chosen, hours_of[:, steps][inside], fallback)
    return Calibration(moves)


def blocks(first: int, last: int, fitted: int) -> Iterator[tuple[int, int]]:
    """Blocks of the hours from `first` to `last`: weeks from `fitted`, the end of the fit, on, and one block before."""
    while first < last:
        end = min(last, fitted if first < fitted else first + WEEK - (first - fitted) % WEEK)
        yield first, end
        first = end


def _origins(first: int, last: int, reach: int, nodes: int) -> NDArray[np.int64]:
    """Hours to forecast from, spread over the held-out part and over all hours of the day."""
    number = max(4, min(ORIGINS, MAX_CELLS // (reach * nodes)))
    spacing = max(1, -(-(last - first - 1) // number))
    while spacing > 1 and math.gcd(spacing, 24) > 1:  # or some hours of the day would never be an origin
        spacing += 1
    return np.arange(first, last, spacing)


def _moves(likelihood: Likelihood, data: Data, quantiles: Floats, hours: NDArray[np.int64], before: Floats) -> Floats:
    """Moves for quantiles (hours, nodes, levels) of these hours; `before` if there are too few."""
    index = torch.from_numpy(hours).to(data.y.device)
    known = data.weight[index].cpu().numpy().astype(bool)
    if known.sum() < MIN_HOURS:
        return before
    bounds = (data.lower, data.upper) if likelihood.aware else (data.y, data.y)
    lower, upper = (part[index].double().cpu().numpy()[known] for part in bounds)
    return moves_of(quantiles[known], lower, upper, likelihood.levels)
