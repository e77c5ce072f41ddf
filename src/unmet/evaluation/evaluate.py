"""Evaluation of a fitted model on hours that it has not seen."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import polars as pl

from unmet.errors import InputError
from unmet.evaluation.score import by_horizon, by_region, score, with_actual
from unmet.models.forecaster import Forecaster
from unmet.models.series import read_series

__all__ = ["Evaluation", "evaluate"]

EVERY = 5  # hours between the origins of forecasts that are looked back on: no divisor of a day


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How good a model's forecasts of unseen hours were."""

    since: dt.datetime
    against: str  # y, the observed demand, or y_true, the true one
    overall: dict[str, float]  # one hour ahead
    regions: list[dict[str, Any]]  # the same by region
    horizons: list[dict[str, Any]]  # by how far ahead; empty for a model that looks one hour ahead
    hours: pl.DataFrame  # unique_id, ds, quantiles, y, y_true where it is known

    def summary(self) -> dict[str, Any]:
        """For machines; what is not a number is nothing."""
        return {
            "since": self.since.isoformat(),
            "against": self.against,
            **_told(self.overall),
            "regions": [_told(row) for row in self.regions],
            "horizons": [_told(row) for row in self.horizons],
        }


def _told(measures: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value != value else value for name, value in measures.items()}


def evaluate(model: Forecaster, panel: pl.DataFrame, since: dt.datetime | None = None) -> Evaluation:
    """Score a model's forecasts on a panel from `since` on, by default the end of what it was fitted on.

    They are scored against true demand where the panel has it (`y_true`), else against observed demand.
    """
    model.check_fitted()
    since = since or model.split_.fit_end
    since = since if since.tzinfo else since.replace(tzinfo=dt.UTC)
    against = "y_true" if "y_true" in panel.columns else "y"
    actual = read_series(panel, target=against, names=model.regions_)
    if actual.first + dt.timedelta(hours=actual.hours) <= since:
        raise InputError(f"The panel ends before {since:%Y-%m-%d %H:%M}, up to which the model was fitted: nothing is "
                         "left to score it on. Give later records, or fit with a larger --test-share.")  # fmt: skip
    table = actual.table()
    levels = model.levels
    scale = dict(zip(model.regions_, model.encoding_.scale.tolist(), strict=True))
    ahead = model.predict(panel, since)
    rows = with_actual(ahead, table, "target", scale)
    horizons: list[dict[str, Any]] = []
    earliest = max(since, actual.first + dt.timedelta(hours=model.lags))
    if model.horizon > 1 and actual.first + dt.timedelta(hours=actual.hours - model.horizon) >= earliest:
        backtest = model.backtest(panel, since, every=EVERY)
        horizons = by_horizon(with_actual(backtest, table, "target", scale), levels)
        if horizons and horizons[0]["to_hour"] == 1:  # of which every hour is known, not only some
            horizons[0] |= score(rows, levels)
    shown = table.rename({"target": against}) if against == "y" else table.rename({"demand": "y", "target": "y_true"})
    columns = [name for name in ("y", "y_true") if name in shown.columns]
    hours = ahead.join(shown.select("unique_id", "ds", *columns), on=["unique_id", "ds"], how="left")
    return Evaluation(since, against, score(rows, levels), by_region(rows, levels), horizons, hours)
