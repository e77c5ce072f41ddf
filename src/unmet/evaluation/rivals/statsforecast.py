"""AutoETS and MSTL of statsforecast, refitted at weekly origins on the last eight weeks of each region."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from unmet.arrays import Floats
from unmet.evaluation.rivals.base import Rival, RivalTask

__all__ = ["AUTO_ETS", "MSTL"]


HISTORY = 8 * 168  # hours that are fitted
FITS, MOST_ORIGINS = 24, 12  # fits of one region at one origin, and origins, at most
STEP = 67  # hours between origins, so that these meet all hours of the day


def _forecast(questions: Sequence[RivalTask], model: Any) -> list[Floats]:
    """Quantiles from a few origins, the same for all horizons; NaN for all other targets."""
    made = [np.full((len(q.hours), q.demand.shape[1], len(q.levels)), np.nan) for q in questions]
    one, farthest = questions[0], max(q.horizon for q in questions)
    outer = sorted({round(100 * abs(1 - 2 * float(level))) for level in one.levels} - {0})
    first = max(int(q.hours[0]) - q.horizon + 1 for q in questions)
    last = min(int(q.hours[-1]) - q.horizon + 1 for q in questions)
    active = max(1, int((np.nan_to_num(one.demand[max(0, first - HISTORY) : last]) > 0).any(axis=0).sum()))
    for origin in range(first, last + 1, STEP)[: min(max(FITS // active, 2), MOST_ORIGINS)]:
        past = np.nan_to_num(one.demand[max(0, origin - HISTORY) : origin])
        for region in range(past.shape[1]):
            told = None
            if past[:, region].any():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    told = model.forecast(y=past[:, region], h=farthest, level=outer)
            for question, table in zip(questions, made, strict=True):
                row = np.searchsorted(question.hours, origin + question.horizon - 1)
                values = [0.0 if told is None else _at(told, float(level), question.horizon) for level in one.levels]
                table[row, region] = np.maximum(np.sort(values), 0.0)
    return made


def _at(told: dict[str, Any], level: float, horizon: int) -> float:
    """A quantile so many hours ahead; the mean stands for the median."""
    side = "lo" if level < 0.5 else "hi"
    column = "mean" if abs(level - 0.5) < 1e-9 else f"{side}-{round(100 * abs(1 - 2 * level))}"
    return float(told[column][horizon - 1])


def _auto_ets(questions: Sequence[RivalTask]) -> list[Floats]:
    from statsforecast.models import AutoETS

    return _forecast(questions, AutoETS(season_length=24))


def _mstl(questions: Sequence[RivalTask]) -> list[Floats]:
    from statsforecast import models

    trend = models.AutoETS(model="ZZN")
    return _forecast(questions, models.MSTL(season_length=[24, 168], trend_forecaster=trend))


AUTO_ETS = Rival("auto-ets", "AutoETS (statsforecast)", _auto_ets, "statsforecast")
MSTL = Rival("mstl", "MSTL (statsforecast)", _mstl, "statsforecast")
