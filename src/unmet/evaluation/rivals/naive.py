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
    demand, no_extras = task.demand, np.empty((*task.demand.shape, 0))
    session_kwh = np.ones(demand.shape[1])  # tables do not depend on it
    history = build_history(demand, demand, no_extras, task.week, session_kwh)
    ahead = np.full(len(task.hours), task.horizon)
    return climatology(history, task.hours, ahead, WINDOWS["climatology"], task.levels)[..., :-2]


def _last_week(task: RivalTask) -> Floats:
    weeks_back = -(-task.horizon // WEEK)  # the last week that is known at the horizon
    source = task.hours - WEEK * weeks_back
    values = np.where((source >= 0)[:, None], task.demand[np.maximum(source, 0)], np.nan)
    return np.repeat(values[..., None], len(task.levels), axis=-1)


TABLE = Rival("table", "table of the last 8 weeks", lambda tasks: [_table(task) for task in tasks])
"""Quantiles of the same hour and day type."""
LAST_WEEK = Rival("last-week", "last week's value", lambda tasks: [_last_week(task) for task in tasks])
"""The same hour in the last known week, as every quantile."""
