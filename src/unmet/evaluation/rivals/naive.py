"""The two rivals that need no library: a table of the last eight weeks, and last week's value."""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats
from unmet.evaluation.rivals.base import Rival, RivalTask
from unmet.models.direct.climatology import WINDOWS, climatology
from unmet.models.direct.history import build_history

__all__ = ["LAST_WEEK", "TABLE"]

WEEK = 168


def _table(task: RivalTask) -> Floats:
    demand, none = task.demand, np.empty((*task.demand.shape, 0))
    history = build_history(demand, demand, none, task.week, np.ones(demand.shape[1]))
    ahead = np.full(len(task.hours), task.horizon)
    return climatology(history, task.hours, ahead, WINDOWS["climatology"], task.levels)[..., :-2]


def _last_week(task: RivalTask) -> Floats:
    back = task.hours - WEEK * -(-task.horizon // WEEK)
    values = np.where((back >= 0)[:, None], task.demand[np.maximum(back, 0)], np.nan)
    return np.repeat(values[..., None], len(task.levels), axis=-1)


TABLE = Rival("table", "table of the last 8 weeks", lambda tasks: [_table(task) for task in tasks])
"""Quantiles of the same hour and day type."""
LAST_WEEK = Rival("last-week", "last week's value", lambda tasks: [_last_week(task) for task in tasks])
"""The same hour a week before, as every quantile."""
