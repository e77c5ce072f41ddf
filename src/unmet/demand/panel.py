"""Panel: the table region x hour that every model reads."""

from __future__ import annotations

import datetime as dt
from enum import Enum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.demand.regions import Regions
from unmet.simulation.battery import TAPER_SHARE
from unmet.tables import UTC

__all__ = ["Booking", "simulated_panel"]


class Booking(str, Enum):
    """The hour to which energy is booked."""

    ARRIVAL = "arrival"  # all of it at the hour of arrival
    DELIVERY = "delivery"  # spread over the hours of charging, for load curves


def simulated_panel(
    arrivals: pl.DataFrame,
    regions: Regions,
    period: tuple[dt.datetime, dt.datetime],
    booking: Booking = Booking.ARRIVAL,
) -> pl.DataFrame:
    """The panel of a simulation, in which true demand is known.

    Columns: `unique_id` (region), `ds` (hour, UTC), `y` (observed kWh), `y_true` (observed and lost kWh), `arrivals`
    (served), `lost` (lost arrivals), `censored` (whether any was lost). Every region has every hour. Demand that is
    lost was never delivered, so it is booked at the hour of arrival in any case.
    """
    first, last = period
    names = regions.centres["unique_id"]
    hours = pl.datetime_range(first, last, "1h", closed="left", time_zone="UTC", eager=True).cast(UTC)
    rank = {name: i for i, name in enumerate(names)}
    places = {station: rank[name] for station, name in regions.of_station.iter_rows()}

    def booked(rows: pl.DataFrame, hour: str, weight: str | None = None) -> NDArray[np.float64]:
        """Sums over rows by region and hour, added in the order of the rows, so that they are the same every time."""
        region = rows["station_id"].replace_strict(places, return_dtype=pl.Int64).to_numpy()
        at = ((rows[hour] - first).dt.total_milliseconds() // 3_600_000).to_numpy()
        inside = (at >= 0) & (at < len(hours))
        weights = np.ones(rows.height) if weight is None else rows[weight].to_numpy()
        cell = region * len(hours) + at
        return np.bincount(cell[inside], weights[inside], minlength=len(names) * len(hours)).astype(np.float64)

    served = arrivals.filter(pl.col("outcome") == "served")
    lost = arrivals.filter(pl.col("outcome") == "lost")
    if booking is Booking.ARRIVAL:
        y = booked(served, "arrival", "energy_kwh")
    else:
        y = booked(_delivered(served), "since", "energy_kwh")
    lost_arrivals = booked(lost, "arrival").astype(np.int64)
    return pl.DataFrame(
        {
            "unique_id": names.gather(np.repeat(np.arange(len(names)), len(hours))),
            "ds": pl.concat([hours] * len(names)),
            "y": y,
            "y_true": y + booked(lost, "arrival", "wanted_kwh"),
            "arrivals": booked(served, "arrival").astype(np.int64),
            "lost": lost_arrivals,
            "censored": lost_arrivals > 0,
        }
    )


def _delivered(served: pl.DataFrame) -> pl.DataFrame:
    """One row per session and hour with the energy that flowed in it: full power, then a quarter of it."""
    phases = [
        served.select("session_id", "station_id", "energy_kwh", since="start", until="taper", weight=pl.lit(1.0)),
        served.select("session_id", "station_id", "energy_kwh", since="taper", until="charged", weight=TAPER_SHARE),
    ]
    hour = pl.col("since").dt.truncate("1h")
    flows = (
        pl.concat(phases)
        .filter(pl.col("until") > pl.col("since"))
        .with_columns(hour=pl.datetime_ranges(hour, "until", "1h", closed="left"))
        .explode("hour")
        .with_columns(
            since=pl.max_horizontal("since", "hour"),
            until=pl.min_horizontal("until", pl.col("hour").dt.offset_by("1h")),
        )
        .with_columns(flow=pl.col("weight") * (pl.col("until") - pl.col("since")).dt.total_milliseconds())
        .sort("session_id", "since")
    )
    share = pl.col("flow") / pl.col("flow").sum().over("session_id")
    return flows.with_columns(energy_kwh=pl.col("energy_kwh") * share)
