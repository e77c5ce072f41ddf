"""Convert forecasts of true demand into forecasts of observed demand, so that real records can score them.

Records show a share of all arrivals: the exposure of the hour. A perfect forecast of true demand therefore exceeds
observed demand in hours with losses. Thinned by the exposure of each hour, it becomes comparable.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from unmet.arrays import Floats
from unmet.models.quantile_levels import quantile_column

__all__ = ["FULL_EXPOSURE", "GRID", "thin_forecast", "thin_values"]


GRID = tuple(((np.arange(100) + 0.5) / 100).tolist())  # levels of the quantiles that represent a distribution
REPEATS = 4  # thinnings of each quantile
FULL_EXPOSURE = 0.999  # exposure from which an hour counts as fully exposed
THINNING_STREAM = 5  # keeps these random numbers apart from others of the same seed
CHUNK = 20_000  # rows at a time


def thin_values(values: Floats, exposure: Floats, session_kwh: Floats, rng: np.random.Generator) -> Floats:
    """Samples of demand, (cells, samples) [kWh], in which each session is kept with probability `exposure`.

    `exposure` and `session_kwh`, the energy of a session [kWh], have one value per cell. A demand of
    x kWh represents about x / session_kwh sessions, at least one.
    """
    sessions = np.maximum(np.rint(values / session_kwh[:, None]), 1.0).astype(np.int64)
    kept = rng.binomial(sessions, np.clip(exposure, 0.0, 1.0)[:, None])
    return np.asarray(values * kept / sessions)


def thin_forecast(
    forecast: pl.DataFrame,
    exposure: pl.DataFrame,
    session_kwh: dict[str, float],
    levels: Sequence[float],
    seed: int = 0,
) -> pl.DataFrame:
    """Thin a forecast of true demand to what would be observed; the result has a column `exposure`.

    Args:
        forecast: `unique_id, ds, mean, no_demand` and the quantiles of `GRID` [kWh].
        exposure: `unique_id, ds, exposure`.
        session_kwh: energy of a session by region [kWh].
        levels: levels of the quantiles to return.
        seed: seed of the thinning.
    """
    rng = np.random.default_rng([seed, THINNING_STREAM])
    keys = exposure.select("unique_id", pl.col("ds").cast(forecast.schema["ds"]), "exposure")
    rows = forecast.join(keys, on=["unique_id", "ds"], how="left", maintain_order="left")
    share = rows["exposure"].fill_null(1.0).fill_nan(1.0).to_numpy()
    size = rows["unique_id"].replace_strict(session_kwh, return_dtype=pl.Float64).to_numpy()
    grid = rows.select(quantile_column(level) for level in GRID).to_numpy()
    quantiles, zero = np.quantile(grid, levels, axis=1).T, rows["no_demand"].to_numpy(writable=True)
    partly = np.flatnonzero(share < FULL_EXPOSURE)
    for part in np.array_split(partly, max(1, len(partly) // CHUNK)):
        if len(part):
            sample = thin_values(np.tile(grid[part], (1, REPEATS)), share[part], size[part], rng)
            quantiles[part], zero[part] = np.quantile(sample, levels, axis=1).T, (sample <= 0).mean(axis=1)
    columns = {quantile_column(level): quantiles[:, i] for i, level in enumerate(levels)}
    return rows.select("unique_id", "ds").with_columns(
        pl.Series("mean", rows["mean"].to_numpy() * share),
        pl.Series("no_demand", zero),
        *(pl.Series(name, values) for name, values in columns.items()),
        pl.Series("exposure", share),
    )
