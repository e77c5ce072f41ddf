"""The forecaster: fit it on a panel, and it forecasts charging demand with intervals."""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from unmet.arrays import Floats
from unmet.demand.panel import Panel
from unmet.errors import InputError
from unmet.extras import needs_extra
from unmet.frames import Frame
from unmet.geo import haversine_km
from unmet.models.forecast import Forecast
from unmet.models.model_input import ModelInput, read_input
from unmet.models.quantile_levels import quantile_column
from unmet.models.series import PanelSeries, read_positions, read_series
from unmet.runs import run_folder
from unmet.shown import Shown
from unmet.zones import checked_zone

__all__ = ["Forecaster", "Split", "long_frame", "quantile_column"]

PAST_HOURS = 168  # hours to show before the first hour of a forecast
MAX_KM = 5.0  # distance by which the centre of a region may differ between the panel of the fit and a later one


@dataclass(frozen=True, slots=True)
class Split:
    """First hour of a panel, and the ends of its parts.

    A model learns from the hours before `train_end`, and is stopped and calibrated with the hours up to `fit_end`.
    Later hours are held out.
    """

    first: dt.datetime
    train_end: dt.datetime
    fit_end: dt.datetime


class Forecaster(Shown, BaseEstimator):  # type: ignore[misc]
    """Fit a model on a panel, and forecast true demand with intervals.

    `Forecaster()` is the stacked default, `Forecaster("climatology")` a table of the last weeks, and
    `Forecaster("tgcn", ...)` the paper's network. Like `pathlib.Path`, it creates an object of the class for its
    backbone, `DirectForecaster` or `NetworkForecaster`, with the other arguments.

    Args:
        backbone: the model: stacked, climatology, regression or lightgbm, which read the panel's draws of lost demand,
            or a network: tgcn (the paper's), mlp, linear, seasonal, or one that you registered.
        **options: options of the class for the backbone, such as `likelihood="exposure", levels=(0.05, 0.5, 0.95),
            horizon=168, seed=1, time_zone="Europe/London"`; the horizon is in hours.

    Example:
        >>> model = Forecaster("climatology").fit(panel)  # an unmet.Panel
        >>> model.forecast(hours=24)
        Forecast(2 regions, 2024-02-12 00:00 to 2024-02-12 23:00 UTC)
        >>> model.forecast(hours=24).table.columns
        ['unique_id', 'ds', 'horizon', 'mean', 'no_demand', 'q0.05', 'q0.5', 'q0.95']
    """

    backbone: str
    likelihood: str
    levels: Sequence[float]
    horizon: int
    features: Sequence[str]
    time_zone: str | None
    seed: int
    # Fitted values of every forecaster:
    regions_: tuple[str, ...]
    positions_: Floats | None
    split_: Split
    scale_: Floats  # largest observed demand of each region in the training hours [kWh]
    notes_: tuple[str, ...]
    set_aside_: pl.DataFrame  # rows of the panel that could not be used; not stored
    finished_: bool = True  # whether training ended without being interrupted
    time_zone_: str
    fitted_on_: ModelInput | None = None  # not stored

    def __new__(cls, backbone: str = "stacked", *args: Any, **options: Any) -> Any:
        """An object of the class for the backbone."""
        if cls is not Forecaster:
            return super().__new__(cls)
        from unmet.models.direct import DIRECT

        if backbone in DIRECT:
            from unmet.models.direct.forecaster import DirectForecaster

            return super().__new__(DirectForecaster)
        try:
            from unmet.models.network_forecaster import NetworkForecaster
        except ModuleNotFoundError as error:
            raise needs_extra(f"The backbone {backbone}", error) from None
        return super().__new__(NetworkForecaster)

    @property
    @abstractmethod
    def title(self) -> str:
        """The model in words."""

    @property
    @abstractmethod
    def forecasts_true(self) -> bool:
        """Whether the model forecasts true rather than observed demand."""

    @abstractmethod
    def fit(self, panel: Any, positions: Any = None) -> Self:
        """Fit on a panel.

        Args:
            panel: a `Panel`, whose lost demand is estimated first if the likelihood needs it; a fitted `LostDemand`;
                or a table (`unique_id, ds, y` [kWh], and the columns that the likelihood reads) as a data frame or
                file.
            positions: `unique_id, lat, lon` [degree] of the regions; by default those of the panel.
        """

    @abstractmethod
    def predict(self, panel: Any, since: dt.datetime | None = None) -> Frame:
        """Forecasts one hour ahead for every past hour from `since` on: `unique_id, ds`, the quantiles [kWh]."""

    @abstractmethod
    def backtest(self, panel: Any, since: dt.datetime | None = None, every: int = 24) -> Frame:
        """Forecasts as they would have been made every `every` hours: `unique_id, ds, cutoff, horizon`, quantiles."""

    def forecast(self, panel: Any = None, hours: int | None = None, future: Any = None) -> Forecast:
        """Forecast the hours after the end of a panel.

        Args:
            panel: the past hours: a `Panel`, a fitted `LostDemand`, or a table; by default the panel of the fit.
            hours: number of hours ahead [h]; at most, and by default, the model's horizon.
            future: table of `unique_id, ds` and the additional features, if the model has any.

        Returns:
            The forecast, with `.table` and `.plot()`.
        """
        self.check_fitted()
        given = self.read(panel)
        past = read_series(given.table, names=self.regions_, last_hours=PAST_HOURS).table()
        return Forecast(self, self._forecast(given.table, hours, future), past, given.frame_type)

    @abstractmethod
    def _forecast(self, table: Any, hours: int | None, future: Any) -> pl.DataFrame:
        """The hours after the end of a table: `unique_id, ds, horizon` [h], the quantiles [kWh]."""

    def read(self, panel: Any = None) -> ModelInput:
        """The input of the model from a panel; by default from the panel of the fit."""
        self.check_fitted()
        if panel is None and self.fitted_on_ is None:
            raise InputError("A model that was read from disk has no panel: give one to forecast from.")
        if self.fitted_on_ is not None and (panel is None or panel is self.fitted_on_.source):
            return self.fitted_on_
        return read_input(panel, estimates=self._needs_estimate(), until=self.split_.fit_end, seed=self.seed)

    def _read_training_input(self, panel: Any, shares: tuple[float, float]) -> ModelInput:
        """Read the input of the fit, and remember it.

        `shares` are those of the hours for the fit; lost demand after them is estimated day by day (`read_input`).
        """
        until = None
        if isinstance(panel, Panel) and sum(shares) < 1:
            until = panel.period[0] + dt.timedelta(hours=int(round(panel.hours * sum(shares), 6)))
        given = read_input(panel, estimates=self._needs_estimate(), until=until, seed=self.seed)
        self.fitted_on_ = given
        self.time_zone_ = checked_zone(self.time_zone or given.time_zone or "UTC")
        return given

    def _needs_estimate(self) -> bool:
        """Whether the model learns from an estimate of unobserved demand."""
        return self.forecasts_true and getattr(self, "target", "y") == "y"

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
        """Raise `NotFittedError` if the model is not fitted yet."""
        if not hasattr(self, "regions_"):
            raise NotFittedError("The forecaster is not fitted yet: call fit first.")

    def series(self, panel: Any, last_hours: int | None = None) -> PanelSeries:
        """A panel of the model's regions as arrays; only its last hours if `last_hours` is given."""
        self.check_fitted()
        return read_series(
            panel, extras=self.features, with_lost=self._reads_lost(), names=self.regions_, last_hours=last_hours
        )

    def check_places(self, regions: pl.DataFrame | None) -> None:
        """Refuse regions (`unique_id, lat, lon`) that are far from the regions of the same name in the fit."""
        self.check_fitted()
        if regions is None or self.positions_ is None or not set(self.regions_) <= set(regions["unique_id"]):
            return
        positions = read_positions(regions.filter(pl.col("unique_id").is_in(self.regions_)), self.regions_)
        km = haversine_km(*positions.T, *self.positions_.T)
        if km.max(initial=0.0) > MAX_KM:
            worst = int(km.argmax())
            raise InputError(
                f"Region {self.regions_[worst]} of the panel is {km[worst]:,.0f} km from the region of that name which "
                "the model was fitted on: fit a model on this panel, or make the panel with the model's regions."
            )

    @abstractmethod
    def _reads_lost(self) -> bool:
        """Whether the model reads the draws of lost demand in a panel."""

    def _check_hours(self, hours: int) -> None:
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
    other_columns: dict[str, Floats] | None = None,
) -> pl.DataFrame:
    """Quantiles (hours, regions, levels) and other columns (hours, regions) as a long table, region by region."""
    names = pl.Series(list(regions), dtype=pl.String)
    columns = {
        "unique_id": names.gather(np.repeat(np.arange(len(names)), len(times))),
        "ds": pl.concat([times] * len(names)),
    }
    columns |= {name: pl.Series(values.T.ravel()) for name, values in (other_columns or {}).items()}
    columns |= {quantile_column(level): pl.Series(quantiles[..., i].T.ravel()) for i, level in enumerate(levels)}
    return pl.DataFrame(columns)
