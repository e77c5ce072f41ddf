"""Scores of forecasts against actual demand, overall, by region and by horizon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from unmet.errors import InputError
from unmet.evaluation.measures import (
    bias_percent,
    coverage_with_zeros,
    covered,
    crps,
    interval_length,
    mean_of,
    tilted_loss,
)
from unmet.models.calibration import EDGES, pool_of
from unmet.models.forecaster import quantile_column

__all__ = ["by_horizon", "by_region", "score", "with_actual"]

_ACTUAL, _SCALE = "__actual__", "__scale__"


def with_actual(forecasts: pl.DataFrame, panel: pl.DataFrame, column: str, scale: dict[str, float]) -> pl.DataFrame:
    """Forecasts (`unique_id, ds`, quantiles) with actual demand and each region's scale [kWh], for known hours."""
    if column not in panel.columns:
        raise InputError(
            f"The panel has no column {column} to score against: its columns are {', '.join(panel.columns)}."
        )
    actual = panel.select("unique_id", pl.col("ds").cast(forecasts.schema["ds"]), pl.col(column).alias(_ACTUAL))
    joined = forecasts.join(actual, on=["unique_id", "ds"], how="inner", maintain_order="left")
    known = joined.filter(pl.col(_ACTUAL).is_not_null() & pl.col(_ACTUAL).is_not_nan())
    if known.is_empty():
        raise InputError("No hour that was forecast is in the panel: there is nothing to score.")
    return known.with_columns(pl.col("unique_id").replace_strict(scale, return_dtype=pl.Float64).alias(_SCALE))


def score(rows: pl.DataFrame, levels: Sequence[float]) -> dict[str, float]:
    """The measures over all rows that `with_actual` returned.

    `tilted_loss` is defined as in the paper: the mean over hours, in units of each region's scale, summed over regions
    and levels. `mil` and `crps` are means in the same unit, and `icp` is a share. `coverage` takes the forecast's
    probability of no demand into account, if it has one (`coverage_with_zeros`). Names that end in `_kwh` are in kWh
    per hour of a region.
    """
    y = rows[_ACTUAL].to_numpy()
    scale = rows[_SCALE].to_numpy()
    quantiles = rows.select(quantile_column(level) for level in levels).to_numpy()
    loss = tilted_loss(y, quantiles, levels).sum(axis=-1)
    length = interval_length(quantiles)
    mean = rows["mean"].to_numpy() if "mean" in rows.columns else mean_of(quantiles, levels)
    coverage = covered(y, quantiles).astype(float)
    if "no_demand" in rows.columns:
        ends, mass = (levels[0], levels[-1]), rows["no_demand"].to_numpy()
        coverage = coverage_with_zeros(y, quantiles[:, 0], quantiles[:, -1], mass, ends)
    return {
        "hours": rows.height,
        "tilted_loss": _sum_of_means(loss / scale, rows["unique_id"]),
        "icp": float(covered(y, quantiles).mean()),
        "coverage": float(coverage.mean()),
        "mil": float(np.mean(length / scale)),
        "crps": float(np.mean(crps(y, quantiles, levels) / scale)),
        "bias_percent": bias_percent(y, mean),
        "tilted_loss_kwh": float(np.mean(loss)),
        "mil_kwh": float(np.mean(length)),
        "crps_kwh": float(np.mean(crps(y, quantiles, levels))),
        "mean_kwh": float(np.mean(y)),
    }


def _sum_of_means(values: np.ndarray[Any, np.dtype[np.float64]], regions: pl.Series) -> float:
    """The mean of each region, summed over regions."""
    means = pl.DataFrame({"region": regions, "value": values}).group_by("region", maintain_order=True).mean()
    return float(means["value"].sum())


def by_region(rows: pl.DataFrame, levels: Sequence[float]) -> list[dict[str, Any]]:
    """The measures of each region."""
    return [
        {"unique_id": name} | score(part, levels) for (name,), part in rows.group_by("unique_id", maintain_order=True)
    ]


def by_horizon(rows: pl.DataFrame, levels: Sequence[float]) -> list[dict[str, Any]]:
    """The measures of each pool of horizons; rows have a column `horizon` [h]."""
    pools = rows.with_columns(pool=pl.Series(pool_of(rows["horizon"].to_numpy())))
    found = []
    for (pool,), part in pools.group_by("pool", maintain_order=True):
        index = int(str(pool))
        last = int(part["horizon"].max())  # type: ignore[arg-type]
        found.append({"from_hour": EDGES[index], "to_hour": last} | score(part, levels))
    return sorted(found, key=lambda row: row["from_hour"])
