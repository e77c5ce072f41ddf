"""LightGBM's quantile regression on lags, means and the calendar: one model per level, for all regions."""

from __future__ import annotations

import warnings

import numpy as np

from unmet.arrays import Floats
from unmet.evaluation.rivals.base import Rival, RivalTask

__all__ = ["LIGHTGBM"]


TREES = 300
# Lags are counted from the last hour known at the horizon: every hour of the last day, then every day of two weeks.
DAY, LONGEST_LAG = 24, 336  # [h]
MEANS = (24, 168, 336, 672)  # windows of the running means [h]
WARM_UP = 700  # hours before the first training row, so that most of its lags and means are known
MAX_ROWS = 400_000  # highest number of training rows; if there are more, a random sample is used


def _features(task: RivalTask) -> Floats:
    """Lags, means and calendar of every hour, as known at the horizon, (hours, regions, features)."""
    demand, h = task.demand, task.horizon
    hours, regions = demand.shape
    lags = [h + i for i in range(DAY)]
    lags += [lag for lag in range(DAY, h + LONGEST_LAG + 1, DAY) if lag >= h + DAY]
    columns = []
    for lag in lags:
        column = np.full((hours, regions), np.nan)
        column[lag:] = demand[: hours - lag]
        columns.append(column)
    # Means of the last hours are differences of cumulative sums, in which missing hours count as 0.
    total = np.vstack([np.zeros((1, regions)), np.nancumsum(demand, axis=0)])
    for window in MEANS:
        column = np.full((hours, regions), np.nan)
        at = np.arange(window + h - 1, hours)
        column[at] = (total[at - h + 1] - total[at - h + 1 - window]) / window
        columns.append(column)
    week = task.week
    calendar = (week % 24, week // 24, week, week // 24 >= 5)  # hour of the day, day, hour of the week, weekend
    columns += [np.broadcast_to(part[:, None].astype(float), demand.shape) for part in calendar]
    # The region comes last: `_quantiles` declares the last feature as categorical.
    columns.append(np.broadcast_to(np.arange(regions, dtype=float)[None], demand.shape))
    return np.stack(columns, axis=-1).astype(np.float32)


def _quantiles(task: RivalTask) -> Floats:
    import lightgbm

    values = _features(task)
    first = min(WARM_UP, task.fitted // 2)
    known = np.isfinite(task.demand[first : task.fitted])
    if known.sum() > MAX_ROWS:
        known &= np.random.default_rng(1).random(known.shape) < MAX_ROWS / known.sum()
    x, y = values[first : task.fitted][known], task.demand[first : task.fitted][known]
    data = lightgbm.Dataset(x, y, categorical_feature=[x.shape[-1] - 1], free_raw_data=False, params={"verbose": -1})
    targets = values[task.hours].reshape(-1, x.shape[-1])
    quantiles = []
    for level in task.levels:
        options = {"objective": "quantile", "alpha": float(level), "learning_rate": 0.05, "num_threads": 1,
                   "deterministic": True, "force_row_wise": True, "verbose": -1, "seed": 1}  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # LightGBM warns that it copies sliced arrays
            quantiles.append(np.asarray(lightgbm.train(options, data, TREES).predict(targets, num_threads=1)))
    stacked = np.stack(quantiles, axis=-1).reshape(len(task.hours), -1, len(task.levels))
    return np.asarray(np.maximum(np.sort(stacked, axis=-1), 0.0))


LIGHTGBM = Rival("lightgbm", "LightGBM on lags", lambda tasks: [_quantiles(task) for task in tasks], "lightgbm")
