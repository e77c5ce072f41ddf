"""The interface of baselines: simpler forecasts of the test part than those of a network that models censoring."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Floats
from unmet.demand.calendar import hour_of_week
from unmet.models.forecaster import quantile_column
from unmet.models.training import Training
from unmet.study.scenes import Scene

__all__ = ["Baseline", "RegionHours", "frame_of", "parts_of"]

TRAIN_SHARE, FIT_SHARE = 0.8, 0.9  # ends of the training part and of the validation part, as for networks
WEEKEND = 5 * 24  # the first hour of the week that is on a Saturday


class Baseline(ABC):
    """A baseline. A new one is a subclass with a name, a title and `forecast`, registered in `BASELINES`."""

    name: ClassVar[str]
    title: ClassVar[str]
    trains_network: ClassVar[bool] = False  # if so, a run takes as long as that of a network
    reads_exposure: ClassVar[bool] = True  # if so, scenes need an estimate of lost demand

    @abstractmethod
    def forecast(self, scene: Scene, levels: tuple[float, ...], seed: int, training: Training) -> pl.DataFrame:
        """Quantiles of true demand in the test part: `unique_id, ds, q0.05, ...` [kWh]."""


@dataclass(frozen=True, slots=True)
class RegionHours:
    """One region of a scene as arrays over its hours."""

    name: str
    hours: pl.Series
    seen_kwh: Floats
    arrivals: Floats  # served arrivals
    exposure: Floats  # share of would-be arrivals that could be served and recorded
    kind: NDArray[np.int64]  # hour of the day, plus 24 at weekends
    train: int  # number of hours in the training part
    fit: int  # first hour of the test part


def parts_of(scene: Scene) -> list[RegionHours]:
    """The regions of a scene."""
    found = []
    for (name,), rows in scene.panel.group_by("unique_id", maintain_order=True):
        rows = rows.sort("ds")
        week = hour_of_week(rows["ds"], scene.time_zone).to_numpy()
        exposure = rows["exposure"].to_numpy() if "exposure" in rows.columns else np.ones(rows.height)
        found.append(
            RegionHours(
                name=str(name),
                hours=rows["ds"],
                seen_kwh=rows["y"].to_numpy().astype(np.float64),
                arrivals=rows["arrivals"].to_numpy().astype(np.float64),
                exposure=np.asarray(exposure, np.float64),
                kind=week % 24 + 24 * (week >= WEEKEND),
                train=int(rows.height * TRAIN_SHARE),
                fit=int(round(rows.height * FIT_SHARE, 6)),  # 0.9 x hours may be just below a whole number
            )
        )
    return found


def frame_of(part: RegionHours, quantiles: Floats, levels: tuple[float, ...]) -> pl.DataFrame:
    """Forecasts of a region's test part, (hours, levels) [kWh], as a table."""
    columns = {quantile_column(level): quantiles[:, i] for i, level in enumerate(levels)}
    return pl.DataFrame({"unique_id": [part.name] * len(quantiles), "ds": part.hours[part.fit :], **columns})
