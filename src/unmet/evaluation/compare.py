"""Comparison of a model with rivals on the same past hours: loss by rival, horizon and region."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from unmet.arrays import Floats
from unmet.evaluation.measures import tilted_loss
from unmet.evaluation.rivals import LAST_WEEK, TABLE, Rival, RivalTask
from unmet.models.quantile_levels import quantile_column
from unmet.models.series import HOUR, PanelSeries

__all__ = ["HORIZONS", "Comparison", "compare"]


HORIZONS = (1, 24, 168)  # an hour, a day and a week ahead
WORSE = 1.05  # a region is named if its loss exceeds the table's by this factor


@dataclass(frozen=True, slots=True)
class Comparison:
    """Losses [kWh per hour, summed over levels] of a model and of its rivals on the same hours."""

    rows: pl.DataFrame  # rival, horizon, unique_id, hours, model_kwh, rival_kwh
    seconds: dict[str, float]  # CPU time of each rival

    def by_horizon(self) -> pl.DataFrame:
        """Sums over regions: `rival, horizon, model_kwh, rival_kwh, skill`, in the order of the rivals.

        Skill is the share of the rival's loss that the model avoids.
        """
        sums = self.rows.group_by("rival", "horizon", maintain_order=True).agg(pl.col("model_kwh", "rival_kwh").sum())
        return sums.with_columns(skill=1 - pl.col("model_kwh") / pl.col("rival_kwh"))

    def by_region(self, rival: str = TABLE.name) -> pl.DataFrame:
        """`unique_id, horizon, model_kwh, rival_kwh, skill` against one rival, the worst regions first."""
        rows = self.rows.filter(pl.col("rival") == rival, pl.col("rival_kwh") > 0)
        rows = rows.with_columns(skill=1 - pl.col("model_kwh") / pl.col("rival_kwh"))
        worst = pl.col("skill").min().over("unique_id")
        return rows.sort(worst, "unique_id", "horizon").drop("rival")

    def worse_regions(self) -> list[str]:
        """Regions whose loss exceeds the table's by more than 5 % at some horizon, the worst first."""
        rows = self.by_region().filter(pl.col("model_kwh") > WORSE * pl.col("rival_kwh"))
        return rows["unique_id"].unique(maintain_order=True).to_list()


def compare(
    forecasts: Callable[[int], pl.DataFrame],
    actual: PanelSeries,
    learned: Floats,
    since: dt.datetime,
    levels: Sequence[float],
    horizons: Sequence[int],
    time_zone: str,
    rivals: Sequence[Rival] = (TABLE, LAST_WEEK),
) -> Comparison:
    """Losses of a model and of rivals, at each horizon, over the hours that both forecast.

    Args:
        forecasts: returns the model's forecasts of past hours at a horizon [h]: `unique_id, ds`, quantiles [kWh].
        actual: the series whose `target` the forecasts are scored against.
        learned: demand that the rivals learn from, (hours, regions) [kWh].
        since: first hour to score; rivals learn from the hours before it.
        levels: levels of the quantiles.
        horizons: numbers of hours ahead [h].
        time_zone: time zone of the calendar.
        rivals: methods to compare with.
    """
    fitted = max(actual.hour_from(since), 1)
    week = actual.week(time_zone).astype(np.int64)
    by_model, tasks = [], []
    for horizon in horizons:
        by_model.append(_grid(forecasts(horizon), actual, levels))
        hours = np.arange(max(fitted, horizon), actual.hours)
        tasks.append(RivalTask(learned, week, hours, horizon, fitted, np.array(levels)))
    frames, seconds = [], {}
    for rival in rivals:
        started = time.process_time()
        by_rival = rival.forecast(tasks)
        seconds[rival.name] = time.process_time() - started
        for task, theirs, ours in zip(tasks, by_rival, by_model, strict=True):
            frames.append(_losses(rival, task, theirs, ours[task.hours], actual, levels))
    return Comparison(pl.concat(frames), seconds)


def _losses(
    rival: Rival, task: RivalTask, by_rival: Floats, by_model: Floats, actual: PanelSeries, levels: Sequence[float]
) -> pl.DataFrame:
    """Mean losses by region over the known hours that both forecast."""
    y = actual.target[task.hours]
    both = np.isfinite(by_rival).all(axis=-1) & np.isfinite(by_model).all(axis=-1) & np.isfinite(y)
    count = np.maximum(both.sum(axis=0), 1)
    model_kwh, rival_kwh = (
        np.where(both, np.nan_to_num(tilted_loss(y, quantiles, levels).sum(axis=-1)), 0.0).sum(axis=0) / count
        for quantiles in (by_model, by_rival)
    )
    return pl.DataFrame(
        {
            "rival": [rival.name] * len(actual.names),
            "horizon": [task.horizon] * len(actual.names),
            "unique_id": list(actual.names),
            "hours": both.sum(axis=0),
            "model_kwh": model_kwh,
            "rival_kwh": rival_kwh,
        }
    )


def _grid(frame: pl.DataFrame, actual: PanelSeries, levels: Sequence[float]) -> Floats:
    """Quantiles of a long table as (hours, regions, levels), NaN if there are none."""
    grid = np.full((actual.hours, len(actual.names), len(levels)), np.nan)
    region = frame["unique_id"].replace_strict(
        list(actual.names), range(len(actual.names)), return_dtype=pl.Int64
    ).to_numpy()  # fmt: skip
    hour = ((frame["ds"] - actual.first).dt.total_milliseconds() // int(HOUR.total_seconds() * 1000)).to_numpy()
    grid[hour, region] = frame.select(quantile_column(level) for level in levels).to_numpy()
    return grid
