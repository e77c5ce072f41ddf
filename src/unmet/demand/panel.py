"""Panel: the table region x hour that every model reads."""

from __future__ import annotations

import datetime as dt
from enum import Enum

import polars as pl

from unmet.demand.regions import Regions
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
    located = arrivals.join(regions.of_station, on="station_id").with_columns(
        ds=pl.col("arrival").dt.truncate("1h"), served=pl.col("outcome") == "served"
    )
    key = ["unique_id", "ds"]
    hours = pl.DataFrame({"ds": pl.datetime_range(*period, "1h", closed="left", time_zone="UTC", eager=True).cast(UTC)})
    counted = located.group_by(key).agg(
        arrivals=pl.col("served").sum(),
        lost=(~pl.col("served")).sum(),
        y_lost=pl.col("wanted_kwh").filter(~pl.col("served")).sum(),
    )
    served = located.filter("served")
    booked = served if booking is Booking.ARRIVAL else _delivered(served)
    energy = booked.group_by(key).agg(y=pl.col("energy_kwh").sum())
    return (
        regions.centres.select("unique_id")
        .join(hours, how="cross")
        .join(counted, on=key, how="left")
        .join(energy, on=key, how="left")
        .with_columns(pl.col("arrivals", "lost", "y", "y_lost").fill_null(0))
        .select(
            *key,
            "y",
            (pl.col("y") + pl.col("y_lost")).alias("y_true"),
            "arrivals",
            "lost",
            (pl.col("lost") > 0).alias("censored"),
        )
        .sort(key)
    )


def _delivered(served: pl.DataFrame) -> pl.DataFrame:
    """One row per session and hour with the energy that flowed in it: full power, then a quarter of it."""
    from unmet.simulation.battery import TAPER_SHARE

    phases = [
        served.select("session_id", "unique_id", "energy_kwh", since="start", until="taper", weight=pl.lit(1.0)),
        served.select("session_id", "unique_id", "energy_kwh", since="taper", until="charged", weight=TAPER_SHARE),
    ]
    flows = (
        pl.concat(phases)
        .filter(pl.col("until") > pl.col("since"))
        .with_columns(ds=pl.datetime_ranges(pl.col("since").dt.truncate("1h"), "until", "1h", closed="left"))
        .explode("ds")
        .with_columns(
            flow=pl.col("weight")
            * (
                pl.min_horizontal("until", pl.col("ds").dt.offset_by("1h")) - pl.max_horizontal("since", "ds")
            ).dt.total_milliseconds()
        )
    )
    share = pl.col("flow") / pl.col("flow").sum().over("session_id")
    return flows.with_columns(energy_kwh=pl.col("energy_kwh") * share)
