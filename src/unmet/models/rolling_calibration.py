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
WINDOW = 4 * WEEK  # hours before a block that are used to calibrate it, except those that the model was fitted to
MAX_CELLS = 20_000_000  # highest number of region-hours of these forecasts


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

    `floored` cuts quantiles (..., nodes, levels) off at the floor, as in forecasts. If there are too few hours, the
    moves are those of the calibration `before`.
    """
    likelihood = ensemble.likelihood
    moves = (before or Calibration.none(len(likelihood.levels))).moves.copy()
    ahead = floored(ensemble.one_hour_ahead(data, first, last))
    one = _moves(likelihood, data, ahead, np.arange(first, last), moves[0])
    if before is None:
        moves[:] = one
    moves[0] = one
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
    """The hours from `first` to `last` in weeks from the end of the fit on; earlier hours are one block."""
    while first < last:
        end = min(last, fitted if first < fitted else first + WEEK - (first - fitted) % WEEK)
        yield first, end
        first = end


def _origins(first: int, last: int, reach: int, nodes: int) -> NDArray[np.int64]:
    """Hours to forecast from, spread over the held-out part and over all hours of the day."""
    number = max(4, min(ORIGINS, MAX_CELLS // (reach * nodes)))
    every = max(1, -(-(last - first - 1) // number))
    while every > 1 and math.gcd(every, 24) > 1:  # or some hours of the day would never be an origin
        every += 1
    return np.arange(first, last, every)


def _moves(likelihood: Likelihood, data: Data, quantiles: Floats, hours: NDArray[np.int64], before: Floats) -> Floats:
    """Moves for quantiles (hours, nodes, levels) of these hours; `before` if there are too few."""
    index = torch.from_numpy(hours).to(data.y.device)
    known = data.weight[index].cpu().numpy().astype(bool)
    if known.sum() < MIN_HOURS:
        return before
    bounds = (data.lower, data.upper) if likelihood.aware else (data.y, data.y)
    lower, upper = (part[index].double().cpu().numpy()[known] for part in bounds)
    return moves_of(quantiles[known], lower, upper, likelihood.levels)
