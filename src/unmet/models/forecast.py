"""A forecast: quantiles of demand in future hours, by region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from unmet.frames import Frame, to_frame_type
from unmet.shown import Shown

if TYPE_CHECKING:
    from unmet.models.forecaster import Forecaster

__all__ = ["Forecast"]


@dataclass(frozen=True, slots=True, repr=False)
class Forecast(Shown):
    """Forecast of the hours after the end of a panel. `.plot()` draws it."""

    model: Forecaster
    hours: pl.DataFrame  # `unique_id, ds, horizon` [h], `mean` [kWh] and `no_demand` if known, quantiles [kWh]
    past: pl.DataFrame  # `unique_id, ds, demand` [kWh]: the last observed week
    frame_type: str

    @property
    def table(self) -> Frame:
        """One row per region and hour, as a data frame of the library that the panel came in.

        Columns: `unique_id` (region), `ds` (hour, UTC), `horizon` [h], and the quantiles as `q0.05, q0.5, q0.95` [kWh].
        Direct models also give `mean` [kWh] and `no_demand` (probability of no demand).
        """
        return to_frame_type(self.hours, self.frame_type)

    def __repr__(self) -> str:
        times = self.hours["ds"].sort()
        return (
            f"Forecast({len(self.model.regions_)} regions, {times[0]:%Y-%m-%d %H:%M} to {times[-1]:%Y-%m-%d %H:%M} UTC)"
        )
