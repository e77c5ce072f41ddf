"""Calibrated ensembles: networks whose quantiles [kWh] are corrected with held-out hours."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats
from unmet.errors import InputError
from unmet.models.calibration import Calibration
from unmet.models.encoding import Data
from unmet.models.ensemble import Ensemble
from unmet.models.rolling_calibration import WEEK, WINDOW, blocks, calibrate
from unmet.models.series import PanelSeries, with_lost

__all__ = ["CalibratedEnsemble", "floored"]


def floored(quantiles: Floats, floor_kwh: float | None, scale: Floats) -> Floats:
    """Scaled quantiles (..., nodes, levels), cut off at the floor [kWh]; `scale` is the scale of each node [kWh]."""
    return quantiles if floor_kwh is None else np.maximum(quantiles, (floor_kwh / scale)[:, None])


@dataclass(frozen=True, slots=True)
class CalibratedEnsemble:
    """An ensemble, calibrated with held-out hours and, after the fit, with later weeks."""

    ensemble: Ensemble
    calibration: Calibration
    train_end: dt.datetime  # ends of the parts, as in `Split`
    fit_end: dt.datetime
    floor_kwh: float | None  # lower limit of forecasts
    is_rolling: bool  # whether forecasts after the fit are calibrated with the weeks before them

    def encode(self, series: PanelSeries, ahead: Floats | None = None) -> Data:
        """A series as the networks read it, perhaps with the features of future hours."""
        device = str(next(self.ensemble.networks[0].parameters()).device)
        return self.ensemble.encoding.encode(with_lost(series), ahead).to(device)

    def to_kwh(
        self, quantiles: Floats, horizon: int | NDArray[np.int64], calibration: Calibration | None = None
    ) -> Floats:
        """Scaled quantiles (..., nodes, levels), calibrated, cut off at the floor and converted to kWh."""
        chosen = calibration or self.calibration
        corrected = self.floored(chosen.apply(self.floored(quantiles), horizon))
        if not np.isfinite(corrected).all():
            raise InputError("The model gives values that are not numbers: fit it again with a lower learning rate.")
        return corrected * self.ensemble.encoding.scale[:, None]

    def floored(self, quantiles: Floats) -> Floats:
        """Scaled quantiles, cut off at the floor."""
        return floored(quantiles, self.floor_kwh, self.ensemble.encoding.scale)

    def by_week(
        self, series: PanelSeries, data: Data, first: int, horizon: int
    ) -> Iterator[tuple[int, int, Calibration]]:
        """Blocks of hours from `first` to the end of a series, and the calibration of each."""
        fitted = series.hour_from(self.fit_end)
        for begin, end in blocks(first, series.hours, fitted):
            yield begin, end, self.calibration_before(fitted + (begin - fitted) // WEEK * WEEK, series, data, horizon)

    def calibration_before(self, hour: int, series: PanelSeries, data: Data, horizon: int) -> Calibration:
        """Calibration with the last weeks before an hour that the networks were not trained on.

        Up to the end of the fit, or with less than a week, it is the calibration of the fit.
        """
        trained, fitted = map(series.hour_from, (self.train_end, self.fit_end))
        since = max(trained, hour - max(fitted - trained, WINDOW), self.ensemble.lags)
        if not self.is_rolling or hour <= fitted or hour - since < WEEK:
            return self.calibration
        return calibrate(self.ensemble, data, since, hour, horizon, self.floored, self.calibration)
