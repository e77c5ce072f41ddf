"""Small panels and quick forecasters for the tests of models."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.models.backbones import BACKBONES
from unmet.models.encoding import Encoding
from unmet.models.forecaster import Forecaster
from unmet.models.graph import region_graph
from unmet.models.likelihoods import LIKELIHOODS
from unmet.models.seeds import TrainingJob
from unmet.models.series import read_series
from unmet.models.training import Task, Training

Floats = NDArray[np.float64]
MONDAY = dt.datetime(2019, 9, 2, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
LAGS = 24
PAPER = ("gaussian", "tobit", "quantile", "censored-quantile")  # likelihoods
OURS = ("tgcn", "mlp", "linear", "seasonal")  # backbones
POSITIONS = {"unique_id": ["r0", "r1", "r2"], "lat": [55.60, 55.61, 55.64], "lon": [12.50, 12.52, 12.49]}


def hours_from(first: dt.datetime, hours: int) -> pl.Series:
    return pl.datetime_range(first, first + (hours - 1) * HOUR, "1h", time_zone="UTC", eager=True).alias("ds")


def small_panel(regions: int = 3, hours: int = 400, seed: int = 0) -> pl.DataFrame:
    """Demand with a daily wave and noise, `unique_id, ds, y`, with no hour missing or censored."""
    rng = np.random.default_rng(seed)
    wave = 1.2 + np.sin(np.arange(hours) * 2 * np.pi / 24)
    rows = [
        pl.DataFrame({"ds": hours_from(MONDAY, hours), "y": (5 + r) * wave * rng.gamma(8, 1 / 8, hours)})
        for r in range(regions)
    ]
    return pl.concat(part.insert_column(0, pl.lit(f"r{r}").alias("unique_id")) for r, part in enumerate(rows))


def capped(panel: pl.DataFrame, cap: float) -> pl.DataFrame:
    """The panel as observed if no region can serve more than `cap` kWh in an hour; `truth` keeps the demand."""
    return panel.with_columns(truth="y", censored=pl.col("y") >= cap, y=pl.col("y").clip(upper_bound=cap))


def lossy_panel(hours: int = 1000, seed: int = 3, draws: int = 32) -> pl.DataFrame:
    """Two regions that lose half of their drivers in the first half of each day; `y_true` is true demand.

    `lost_draws` are draws from the distribution that the lost energy has, and `lost_kwh_before` is its mean.
    """
    rng = np.random.default_rng(seed)
    frames = []
    for name, size in (("r0", 6.0), ("r1", 10.0)):
        rate = size * (1.1 + np.sin(2 * np.pi * np.arange(hours) / 24))
        away = np.where(np.arange(hours) % 24 < 12, 0.5, 0.0)
        y = energy_of(rng.poisson(rate * (1 - away)), rng)
        lost = energy_of(rng.poisson(rate * away), rng)
        drawn = energy_of(rng.poisson((rate * away)[:, None], (hours, draws)), rng).astype(np.float32)
        columns = {"ds": hours_from(MONDAY, hours), "y": y, "y_true": y + lost, "lost_kwh_before": 20 * rate * away}
        part = pl.DataFrame({"unique_id": [name] * hours} | columns)
        frames.append(part.with_columns(pl.Series("lost_draws", drawn, dtype=pl.Array(pl.Float32, draws))))
    return pl.concat(frames)


def with_lost(panel: pl.DataFrame, share: float = 0.1, draws: int = 8) -> pl.DataFrame:
    """The panel with draws of lost energy that scatter around a share of observed demand."""
    lost = share * panel["y"].to_numpy()
    drawn = lost[:, None] * np.random.default_rng(0).gamma(4, 1 / 4, (panel.height, draws))
    values = pl.Series("lost_draws", drawn.astype(np.float32), dtype=pl.Array(pl.Float32, draws))
    return panel.with_columns(values, lost_kwh_before=pl.Series(lost))


def energy_of(drivers: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """Total energy of drivers, each gamma(4) with a mean of 20 kWh."""
    return rng.gamma(np.maximum(4.0 * drivers, 1e-9), 5.0) * (drivers > 0)


def quick(backbone: str = "tgcn", likelihood: str = "censored-quantile", **options) -> Forecaster:
    """A forecaster that is fitted quickly."""
    training = Training(epochs=options.pop("epochs", 2))
    given = {"lags": LAGS, "horizon": 24, "seeds": 1, "workers": 1, "training": training} | options
    return Forecaster(backbone, likelihood, **given)


def small_job(
    panel: pl.DataFrame | None = None,
    backbone: str = "tgcn",
    likelihood: str = "censored-quantile",
    horizon: int = 24,
    training: Training = Training(epochs=3),  # noqa: B008 (it is frozen)
) -> TrainingJob:
    """A job for `train` and `train_seeds`: 320 hours for training, 40 more for early stopping."""
    series = read_series(small_panel() if panel is None else panel)
    encoding = Encoding.of(series, 320, "UTC", marks_unknown=horizon > 1)
    task = Task(encoding.encode(series), encoding, LIKELIHOODS.named(likelihood)(), LAGS, horizon, 320, 360, training)
    return TrainingJob(task, BACKBONES.named(backbone), region_graph(None, len(series.names)))
