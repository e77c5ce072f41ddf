"""The two rivals that need no library: a table of the last eight weeks, and last week's value."""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats
from unmet.evaluation.rivals.base import Rival, RivalTask
from unmet.models.direct.climatology import WINDOWS, climatology
from unmet.models.direct.history import build_history

__all__ = ["LAST_WEEK", "TABLE"]

WEEK = 168


def _table(question: RivalTask) -> Floats:
    demand, none = question.demand, np.empty((*question.demand.shape, 0))
    history = build_history(demand, demand, none, question.week, np.ones(demand.shape[1]))
    ahead = np.full(len(question.hours), question.horizon)
    return climatology(history, question.hours, ahead, WINDOWS["climatology"], question.levels)[..., :-2]


def _last_week(question: RivalTask) -> Floats:
    back = question.hours - WEEK * -(-question.horizon // WEEK)
    values = np.where((back >= 0)[:, None], question.demand[np.maximum(back, 0)], np.nan)
    return np.repeat(values[..., None], len(question.levels), axis=-1)


TABLE = Rival("table", "table of the last 8 weeks", lambda questions: [_table(q) for q in questions])
"""Quantiles of the same hour and day type."""
LAST_WEEK = Rival("last-week", "last week's value", lambda questions: [_last_week(q) for q in questions])
"""The same hour a week before, as every quantile."""
