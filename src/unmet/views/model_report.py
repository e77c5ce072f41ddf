"""What pages on models show: a fitted model with its evaluation, and a forecast with what came before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from unmet.evaluation.evaluate import Evaluation
from unmet.evaluation.measures import mean_of
from unmet.models.forecaster import Forecaster, quantile_column

__all__ = ["ForecastReport", "ModelReport", "expected_totals"]


@dataclass(frozen=True, slots=True)
class ModelReport:
    """A fitted model, and how good it was on hours it has not seen, where there are such."""

    model: Forecaster
    evaluation: Evaluation | None

    @property
    def unseen(self) -> Evaluation:
        """The evaluation, of a model that has one."""
        if self.evaluation is None:
            raise ValueError("the model has not been evaluated")
        return self.evaluation


@dataclass(frozen=True, slots=True)
class ForecastReport:
    """A forecast, and the hours before it."""

    model: Forecaster
    forecast: pl.DataFrame  # unique_id, ds, horizon, quantiles
    past: pl.DataFrame  # unique_id, ds, demand

    def totals(self) -> pl.DataFrame:
        """Energy expected by region over all hours forecast [kWh], most first: `unique_id, kwh, peak_kwh, peak`."""
        return expected_totals(self.forecast, self.model.levels)

    def busiest(self) -> list[str]:
        """The regions, those first in which most is expected."""
        return self.totals()["unique_id"].to_list()


def expected_totals(forecast: pl.DataFrame, levels: Sequence[float]) -> pl.DataFrame:
    """Energy expected by region over all hours of a forecast [kWh], most first: `unique_id, kwh, peak_kwh, peak`."""
    columns = [quantile_column(level) for level in levels]
    mean = mean_of(forecast.select(columns).to_numpy(), levels)
    return (
        forecast.with_columns(mean=pl.Series(mean))
        .group_by("unique_id")
        .agg(
            kwh=pl.col("mean").sum(),
            peak_kwh=pl.col("mean").max(),
            peak=pl.col("ds").sort_by("mean", descending=True).first(),
        )
        .sort("kwh", "unique_id", descending=[True, False])
    )
