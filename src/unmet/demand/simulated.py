"""The panel of a simulation, in which true demand is known."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.demand.booking import Booking, book, spread
from unmet.demand.calendar import hours_between
from unmet.demand.regions import Regions
from unmet.simulation.battery import TAPER_SHARE

__all__ = ["simulated_panel"]


def simulated_panel(
    arrivals: pl.DataFrame,
    regions: Regions,
    period: tuple[dt.datetime, dt.datetime],
    booking: Booking = Booking.ARRIVAL,
) -> pl.DataFrame:
    """The panel of a simulation, with true demand.

    Columns: `unique_id` (region), `ds` (hour, UTC), `y` (observed kWh), `y_true` (observed and lost kWh), `arrivals`
    (served), `lost` (lost arrivals), `censored` (whether any was lost). Every region has every hour. Lost demand was
    never delivered, so it is always booked at the hour of arrival.
    """
    names = regions.centres["unique_id"]
    hours = hours_between(*period)
    grid = (len(names), int(period[0].timestamp() * 1000), len(hours))  # regions, start [ms], hours
    region_of = pl.Series(regions.codes())
    served = arrivals.filter(pl.col("outcome") == "served")
    lost = arrivals.filter(pl.col("outcome") == "lost")

    def group(rows: pl.DataFrame) -> NDArray[np.int64]:
        return (
            rows["station_id"]
            .replace_strict(regions.of_station["station_id"], region_of, return_dtype=pl.Int64)
            .to_numpy(writable=True)
        )

    served_arrivals = book(group(served), _ms(served, "arrival"), np.ones(served.height), *grid)
    lost_arrivals = book(group(lost), _ms(lost, "arrival"), np.ones(lost.height), *grid)
    lost_kwh = book(group(lost), _ms(lost, "arrival"), lost["wanted_kwh"].to_numpy(writable=True), *grid)
    if booking is Booking.ARRIVAL:
        y = book(group(served), _ms(served, "arrival"), served["energy_kwh"].to_numpy(writable=True), *grid)
    else:
        start, taper, charged = (_ms(served, name) for name in ("start", "taper", "charged"))
        # Energy up to the taper flows at full power, the rest at a share of it.
        energy, tapered = served["energy_kwh"].to_numpy(), TAPER_SHARE * (charged - taper)
        at_full_power = energy * (taper - start) / np.maximum(taper - start + tapered, 1e-9)
        at_full_power = np.where(charged > start, at_full_power, energy)
        y = spread(group(served), start, taper, at_full_power, *grid)
        y += spread(group(served), taper, charged, energy - at_full_power, *grid)
    return pl.DataFrame(
        {
            "unique_id": names.gather(np.repeat(np.arange(len(names)), len(hours))),
            "ds": pl.concat([hours] * len(names)),
            "y": y.ravel(),
            "y_true": (y + lost_kwh).ravel(),
            "arrivals": served_arrivals.ravel().astype(np.int64),
            "lost": lost_arrivals.ravel().astype(np.int64),
            "censored": lost_arrivals.ravel() > 0,
        }
    )


def _ms(rows: pl.DataFrame, column: str) -> NDArray[np.int64]:
    return rows[column].dt.epoch("ms").to_numpy(writable=True)
