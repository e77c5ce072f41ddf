"""AutoETS and MSTL from statsforecast, refitted at a few origins on the last eight weeks of each region."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from unmet.arrays import Floats
from unmet.evaluation.rivals.base import Rival, RivalTask

__all__ = ["AUTO_ETS", "MSTL"]


HISTORY = 8 * 168  # training hours
FITS, MAX_ORIGINS = 24, 12  # approximate number of fits (one per region and origin), and highest number of origins
STEP = 67  # hours between origins, so that they are at different hours of the day


def _forecast(tasks: Sequence[RivalTask], model: Any) -> list[Floats]:
    """Quantiles for each task from a few origins, the same for all tasks; NaN for all other targets.

    `model` is one of statsforecast, whose `forecast` returns central intervals instead of quantiles.
    """
    shapes = [(len(task.hours), task.demand.shape[1], len(task.levels)) for task in tasks]
    quantiles = [np.full(shape, np.nan) for shape in shapes]
    one, farthest = tasks[0], max(task.horizon for task in tasks)  # all tasks have the same demand and levels
    interval_percents = sorted({round(100 * abs(1 - 2 * float(level))) for level in one.levels} - {0})
    first = max(int(task.hours[0]) - task.horizon + 1 for task in tasks)
    last = min(int(task.hours[-1]) - task.horizon + 1 for task in tasks)
    active = max(1, int((np.nan_to_num(one.demand[max(0, first - HISTORY) : last]) > 0).any(axis=0).sum()))
    for origin in range(first, last + 1, STEP)[: min(max(FITS // active, 2), MAX_ORIGINS)]:
        past = np.nan_to_num(one.demand[max(0, origin - HISTORY) : origin])
        for region in range(past.shape[1]):
            forecast = None
            if past[:, region].any():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # users cannot act on the library's warnings
                    forecast = model.forecast(y=past[:, region], h=farthest, level=interval_percents)
            for task, table in zip(tasks, quantiles, strict=True):
                row = np.searchsorted(task.hours, origin + task.horizon - 1)
                values = [
                    0.0 if forecast is None else _at(forecast, float(level), task.horizon) for level in one.levels
                ]
                table[row, region] = np.maximum(np.sort(values), 0.0)
    return quantiles


def _at(forecast: dict[str, Any], level: float, horizon: int) -> float:
    """A quantile at a horizon, which is the end of a central interval; the mean is used for the median."""
    side = "lo" if level < 0.5 else "hi"
    column = "mean" if abs(level - 0.5) < 1e-9 else f"{side}-{round(100 * abs(1 - 2 * level))}"
    return float(forecast[column][horizon - 1])


def _auto_ets(tasks: Sequence[RivalTask]) -> list[Floats]:
    from statsforecast.models import AutoETS

    return _forecast(tasks, AutoETS(season_length=24))


def _mstl(tasks: Sequence[RivalTask]) -> list[Floats]:
    from statsforecast import models

    trend = models.AutoETS(model="ZZN")
    return _forecast(tasks, models.MSTL(season_length=[24, 168], trend_forecaster=trend))


AUTO_ETS = Rival("auto-ets", "AutoETS (statsforecast)", _auto_ets, "statsforecast")
MSTL = Rival("mstl", "MSTL (statsforecast)", _mstl, "statsforecast")
