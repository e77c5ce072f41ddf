"""The input of a model: the table of a panel, with an estimate of unobserved demand if the model learns from it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import polars as pl

from unmet.demand.panel import Panel
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.panel_table import panel_table
from unmet.frames import frame_type_of

__all__ = ["ModelInput", "read_input"]

MIN_HISTORY = dt.timedelta(weeks=4)  # needed to estimate the lost demand of later days


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A table that models read, with the context of its source."""

    source: Any  # the argument, unchanged
    table: Any  # `unique_id, ds, y` and more: a data frame or a file
    regions: pl.DataFrame | None  # `unique_id, lat, lon`, if positions are known
    time_zone: str | None
    frame_type: str
    country: str | None = None  # country of its holidays, if known


def read_input(source: Any, *, estimates: bool, until: dt.datetime | None, seed: int = 1) -> ModelInput:
    """Read the input for a fit or a forecast.

    Args:
        source: a `Panel`, a fitted `LostDemand`, or a table (a data frame or a file), which is used as it is.
        estimates: whether the model reads an estimate of unobserved demand.
        until: the lost demand of each later day of a panel is estimated only from the days before it, so that a model
            can be tested on these days.
        seed: seed of the estimate.
    """
    if isinstance(source, LostDemand):
        source.summary()  # raises if it is not fitted
        return _of_panel(source, source.panel_, panel_table(source))
    if isinstance(source, Panel):
        table = source.table
        if estimates:
            first, last = source.period
            is_possible = until is not None and first + MIN_HISTORY <= until < last
            table = panel_table(LostDemand(seed=seed).fit(source, until if is_possible else None))
        return _of_panel(source, source, table)
    return ModelInput(source, source, None, None, frame_type_of(source))


def _of_panel(source: Any, panel: Panel, table: pl.DataFrame) -> ModelInput:
    centres = panel.regions.centres
    regions = None if centres["lat"].null_count() else centres.select("unique_id", "lat", "lon")
    return ModelInput(source, table, regions, panel.time_zone, panel.frame_type, panel.country)
