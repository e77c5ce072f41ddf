"""The forecaster: fitted on a panel, it says what charging demand is to come, with intervals."""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from unmet.errors import InputError
from unmet.geo import haversine_km
from unmet.models.levels import quantile_column
from unmet.models.series import Series, read_positions, read_series
from unmet.runs import run_folder
from unmet.shown import Shown

__all__ = ["Forecaster", "Split", "long_frame", "quantile_column"]

Floats = NDArray[np.float64]
MOST_KM = 5.0  # by which a region may move between the panel of the fit and a later one


@dataclass(frozen=True, slots=True)
class Split:
    """When the parts of a panel end.

    Hours before `train_end` are learned from, those up to `fit_end` say when to stop and calibrate, and those after it
    no part of the model has seen.
    """

    first: dt.datetime
    train_end: dt.datetime
    fit_end: dt.datetime


class Forecaster(Shown, BaseEstimator):  # type: ignore[misc]
    """Fit a model on a panel, and forecast true demand with intervals.

    `Forecaster()` is the stacked default, `Forecaster("climatology")` a table of the last weeks, and
    `Forecaster("tgcn", ...)` the paper's network: as `pathlib.Path` does, it makes an object of the class that serves
    its backbone, `DirectForecaster` or `NetworkForecaster`, which take the further arguments.

    Example:
        >>> model = Forecaster(time_zone="Europe/London").fit(panel)  # doctest: +SKIP
        >>> model.forecast(panel, hours=168)  # doctest: +SKIP
    """

    backbone: str
    likelihood: str
    levels: Sequence[float]
    horizon: int
    features: Sequence[str]
    time_zone: str
    seed: int
    # Fitted, by every kind of forecaster:
    regions_: tuple[str, ...]
    positions_: Floats | None
    split_: Split
    scale_: Floats  # largest observed demand of each region in the hours learned from [kWh]
    notes_: tuple[str, ...]
    set_aside_: pl.DataFrame  # rows of the panel that could not be used; not stored
    finished_: bool = True  # whether training ended by itself

    def __new__(cls, backbone: str = "stacked", *args: Any, **options: Any) -> Any:
        """An object of the class that serves the backbone."""
        if cls is not Forecaster:
            return super().__new__(cls)
        from unmet.models.direct import DIRECT

        if backbone in DIRECT:
            from unmet.models.direct.forecaster import DirectForecaster

            return super().__new__(DirectForecaster)
        from unmet.models.network_forecaster import NetworkForecaster

        return super().__new__(NetworkForecaster)

    @property
    @abstractmethod
    def title(self) -> str:
        """The model in words."""

    @property
    @abstractmethod
    def forecasts_true(self) -> bool:
        """Whether it forecasts more than what is observed."""

    @abstractmethod
    def fit(self, panel: Any, positions: Any = None) -> Self:
        """Fit on a panel (`unique_id, ds, y`, and what the likelihood reads), any frame or a file."""

    @abstractmethod
    def predict(self, panel: Any, since: dt.datetime | None = None) -> pl.DataFrame:
        """Forecasts one hour ahead for every past hour from `since` on: `unique_id, ds`, the quantiles [kWh]."""

    @abstractmethod
    def forecast(self, panel: Any, hours: int | None = None, future: Any = None) -> pl.DataFrame:
        """Forecast the hours after the end of a panel: `unique_id, ds, horizon` [h], the quantiles [kWh]."""

    @abstractmethod
    def backtest(self, panel: Any, since: dt.datetime | None = None, every: int = 24) -> pl.DataFrame:
        """Forecasts as they would have been made every so many hours: `unique_id, ds, cutoff, horizon`, quantiles."""

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the fitted model into a folder."""
        from unmet.models.storage import write_model

        with run_folder(Path(folder), overwrite=overwrite) as draft:
            write_model(self, draft)
        return Path(folder)

    @staticmethod
    def load(folder: str | Path) -> Forecaster:
        """Read a fitted model from a folder."""
        from unmet.models.storage import load_model

        return load_model(Path(folder))

    def check_fitted(self) -> None:
        """Raise a clear error if there is nothing fitted yet."""
        if not hasattr(self, "regions_"):
            raise InputError("The forecaster is not fitted yet: call fit first.")

    def series(self, panel: Any, last_hours: int | None = None) -> Series:
        """A panel of the model's regions as arrays; of its last hours only, if so many are asked for."""
        self.check_fitted()
        return read_series(
            panel, extras=self.features, with_lost=self._reads_lost(), names=self.regions_, last_hours=last_hours
        )

    def check_places(self, regions: pl.DataFrame | None) -> None:
        """Refuse regions (`unique_id, lat, lon`) of the same names that are elsewhere than those of the fit."""
        self.check_fitted()
        if regions is None or self.positions_ is None or not set(self.regions_) <= set(regions["unique_id"]):
            return
        there = read_positions(regions.filter(pl.col("unique_id").is_in(self.regions_)), self.regions_)
        km = haversine_km(*there.T, *self.positions_.T)
        if km.max(initial=0.0) > MOST_KM:
            worst = int(km.argmax())
            raise InputError(
                f"Region {self.regions_[worst]} of the panel lies {km[worst]:,.0f} km from the one of that name which "
                "the model was fitted on: fit a model on this panel, or make the panel with the model's regions."
            )

    @abstractmethod
    def _reads_lost(self) -> bool:
        """Whether it reads the draws of lost demand in a panel."""

    def _may_look(self, hours: int) -> None:
        self.check_fitted()
        if hours < 1:
            raise InputError(f"A forecast of {hours} hours makes no sense: ask for at least one.")
        if hours > self.horizon:
            raise InputError(
                f"The model looks {self.horizon} hours ahead, not {hours}: ask for fewer, or fit with a longer horizon."
            )


def long_frame(
    regions: Sequence[str],
    times: pl.Series,
    quantiles: Floats,
    levels: Sequence[float],
    more: dict[str, Floats] | None = None,
) -> pl.DataFrame:
    """Quantiles (hours, regions, levels), and more columns (hours, regions), as a table, region by region."""
    names = pl.Series(list(regions), dtype=pl.String)
    columns = {
        "unique_id": names.gather(np.repeat(np.arange(len(names)), len(times))),
        "ds": pl.concat([times] * len(names)),
    }
    columns |= {name: pl.Series(values.T.ravel()) for name, values in (more or {}).items()}
    columns |= {quantile_column(level): pl.Series(quantiles[..., i].T.ravel()) for i, level in enumerate(levels)}
    return pl.DataFrame(columns)
