"""The data of pages on models: a fitted model with its evaluation, and a forecast with the hours before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.evaluation.evaluate import Evaluation
from unmet.evaluation.measures import mean_of
from unmet.models.forecaster import Forecaster, quantile_column

__all__ = [
    "TABLE_BETTER",
    "ForecastReport",
    "ModelReport",
    "expected_hours",
    "expected_totals",
    "worse_first",
    "worse_sentence",
]

NAMED = 5
"""Regions that a sentence names."""
TABLE_BETTER = "a table was better"
"""Shown beside a region in which a table of past weeks forecast held-out hours better than the model."""


@dataclass(frozen=True, slots=True)
class ModelReport:
    """A fitted model, and its evaluation on held-out hours, if there are any."""

    model: Forecaster
    evaluation: Evaluation | None

    @property
    def losses(self) -> dict[int, list[tuple[float, float]]]:
        """Training and held-out losses of a network by seed, one pair per epoch; empty for other models."""
        return dict(zip(getattr(self.model, "seeds_", ()), getattr(self.model, "losses_", ()), strict=True))

    @property
    def unseen(self) -> Evaluation:
        """The evaluation on held-out hours; raises a ValueError if there is none."""
        if self.evaluation is None:
            raise ValueError("the model has not been evaluated")
        return self.evaluation


@dataclass(frozen=True, slots=True)
class ForecastReport:
    """A forecast, and observed demand in the hours before it."""

    model: Forecaster
    forecast: pl.DataFrame  # unique_id, ds, horizon, quantiles, perhaps mean
    past: pl.DataFrame  # unique_id, ds, demand
    drawn: tuple[pl.Series, NDArray[np.float64]] | None = None  # hours, and draws (draws, hours, regions) [kWh]
    keep_draws: bool = False  # whether to write the draws themselves
    worse: tuple[str, ...] = ()  # regions in which a table forecast held-out hours better, the worst first

    def expected(self) -> pl.DataFrame:
        """The forecast with its mean [kWh], which for a network is implied by its quantiles."""
        return expected_hours(self.forecast, self.model.levels)

    def totals(self) -> pl.DataFrame:
        """Expected energy by region over all forecast hours [kWh], largest first: `unique_id, kwh, peak_kwh, peak`."""
        return expected_totals(self.forecast, self.model.levels)

    def sums(self) -> pl.DataFrame | None:
        """Energy by region and local day, and over all regions (null `unique_id`) and all days (null `day`).

        Columns: `unique_id, day, mean_kwh, low_kwh, high_kwh`. Means are from the forecast, intervals from the draws.
        """
        if self.drawn is None:
            return None
        hours, draws = self.drawn
        days = hours.dt.convert_time_zone(self.model.time_zone_).dt.date()
        day_index = days.rank("dense").to_numpy().astype(int) - 1
        by_day = np.stack([draws[:, day_index == i].sum(axis=1) for i in range(day_index.max() + 1)], axis=1)
        with_sums = np.concatenate([by_day, by_day.sum(axis=1, keepdims=True)], axis=1)
        with_sums = np.concatenate(
            [with_sums, with_sums.sum(axis=2, keepdims=True)], axis=2
        )  # (draws, days + 1, regions + 1)
        low, high = np.quantile(with_sums, (self.model.levels[0], self.model.levels[-1]), axis=0)
        names, dates = [*self.model.regions_, None], [*days.unique(maintain_order=True).to_list(), None]
        frame = pl.DataFrame(
            {
                "unique_id": pl.Series([name for name in names for _ in dates], dtype=pl.String),
                "day": pl.Series([day for _ in names for day in dates], dtype=pl.Date),
                "low_kwh": low.T.ravel().astype(np.float64),
                "high_kwh": high.T.ravel().astype(np.float64),
            }
        )
        day = pl.col("ds").dt.convert_time_zone(self.model.time_zone_).dt.date()
        own = self.expected().select("unique_id", day.alias("day"), "mean")
        parts = [
            own.group_by(keys).agg(mean_kwh=pl.col("mean").sum()) if keys else own.select(mean_kwh=pl.col("mean").sum())
            for keys in (["unique_id", "day"], ["unique_id"], ["day"], [])
        ]
        means = pl.concat(parts, how="diagonal").with_columns(pl.col("day").cast(pl.Date))
        joined = frame.join(means, on=["unique_id", "day"], how="left", nulls_equal=True, maintain_order="left")
        return joined.select("unique_id", "day", "mean_kwh", "low_kwh", "high_kwh")

    def draws_table(self) -> pl.DataFrame:
        """The draws by region and hour [kWh]: `unique_id, ds, draws`. Draw i of all rows is one joint draw."""
        if self.drawn is None:
            raise ValueError("the forecast has no draws")
        hours, draws = self.drawn
        n_draws, _, regions = draws.shape
        return pl.DataFrame(
            {
                "unique_id": pl.Series(self.model.regions_).gather(np.repeat(np.arange(regions), len(hours))),
                "ds": pl.concat([hours] * regions),
                "draws": pl.Series(
                    draws.transpose(2, 1, 0).reshape(-1, n_draws).astype(np.float32),
                    dtype=pl.Array(pl.Float32, n_draws),
                ),
            }
        )

    def past_weeks(self) -> dict[str, float]:
        """Energy recorded in each region in the seven days before the forecast [kWh]."""
        last = self.past.filter(pl.col("ds") > pl.col("ds").max() - pl.duration(days=7))
        sums = last.group_by("unique_id").agg(pl.col("demand").fill_nan(0).sum())
        return dict(sums.iter_rows())

    def past_week_kwh(self) -> float:
        """Energy recorded in all regions in the seven days before the forecast [kWh]."""
        return float(sum(self.past_weeks().values()))

    def busiest(self) -> list[str]:
        """The regions by expected energy, largest first."""
        return self.totals()["unique_id"].to_list()


def worse_sentence(regions: Sequence[str]) -> str:
    """A sentence that names the regions in which the table is the better forecast; empty if there are none."""
    if not regions:
        return ""
    more = len(regions) - NAMED
    named = ", ".join(regions[:NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"In {named} a table of the last eight weeks is more than 5 % better: do not rely on the model there."


def worse_first(totals: pl.DataFrame, worse: Sequence[str]) -> pl.DataFrame:
    """A table of regions, starting with those in which a table of past weeks is the better forecast."""
    return totals.sort(~pl.col("unique_id").is_in(list(worse)), maintain_order=True)


def expected_hours(forecast: pl.DataFrame, levels: Sequence[float]) -> pl.DataFrame:
    """A forecast with its mean [kWh], which for a network is implied by its quantiles."""
    if "mean" in forecast.columns:
        return forecast
    columns = [quantile_column(level) for level in levels]
    return forecast.with_columns(mean=mean_of(forecast.select(columns).to_numpy(), levels))


def expected_totals(forecast: pl.DataFrame, levels: Sequence[float]) -> pl.DataFrame:
    """Expected energy by region over all hours of a forecast [kWh], largest first: `unique_id, kwh, peak_kwh, peak`."""
    return (
        expected_hours(forecast, levels)
        .group_by("unique_id")
        .agg(
            kwh=pl.col("mean").sum(),
            peak_kwh=pl.col("mean").max(),
            peak=pl.col("ds").sort_by("mean", descending=True).first(),
        )
        .sort("kwh", "unique_id", descending=[True, False])
    )
