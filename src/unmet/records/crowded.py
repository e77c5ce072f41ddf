"""Stations with more cars at once than plugs in the table of stations."""

from __future__ import annotations

import numpy as np
import polars as pl

from unmet.records.ordering import numbers_of
from unmet.tables import UTC

__all__ = ["crowded_note"]

_MIN_MINUTES = 1.0  # of crowding in all; with times to the minute, a car may seem to arrive before the last has left


def crowded_note(sessions: pl.DataFrame, stations: pl.DataFrame) -> str | None:
    """A sentence about stations that had more cars at once than plugs, and for how long; None if there are none.

    Args:
        sessions: station_id, start and end.
        stations: station_id and plugs, null where unknown.
    """
    known = stations.drop_nulls("plugs").select("station_id", "plugs")
    if known.is_empty() or sessions.is_empty():
        return None
    crowded = _crowded(sessions, known)
    if crowded.is_empty():
        return None
    at_crowded = sessions.select("station_id", "start", "end").join(crowded, on="station_id", how="semi")
    changes = pl.concat(
        [
            at_crowded.select("station_id", pl.col("start").alias("at"), pl.lit(1, pl.Int32).alias("change")),
            at_crowded.select("station_id", pl.col("end").alias("at"), pl.lit(-1, pl.Int32).alias("change")),
        ]
    ).sort("station_id", "at", "change")  # at equal times, departures come first
    cars = changes.select(
        "station_id",
        pl.col("change").cum_sum().over("station_id").alias("cars"),
        ((pl.col("at").shift(-1).over("station_id") - pl.col("at")).dt.total_milliseconds() / 60_000).alias("minutes"),
    )
    over = (
        cars.join(known, on="station_id")
        .filter(pl.col("cars") > pl.col("plugs"), pl.col("minutes") > 0)
        .group_by("station_id", "plugs")
        .agg(pl.col("cars").max(), pl.col("minutes").sum())
        .filter(pl.col("minutes") > _MIN_MINUTES)
        .sort("minutes", "station_id", descending=True)
    )
    if over.is_empty():
        return None
    station, plugs, max_cars, minutes = over.row(0)
    return (
        f"{over.height:,} of {known.height:,} stations had more cars at once than plugs in the table (most: {station} "
        f"with {plugs} plugs had up to {max_cars} cars, {minutes / 60:,.1f} h in all): check plugs and plug ids."
    )


def _crowded(sessions: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Stations with more cars than plugs at some start: arrivals so far minus departures so far.

    Station and time form one sort key, so that one search counts the departures of all stations.
    """
    station = numbers_of(sessions["station_id"])
    start, end = (sessions[column].cast(UTC).to_physical().to_numpy() for column in ("start", "end"))
    first = int(start.min())
    span = int(end.max()) - first + 1
    arrivals = pl.Series(station * span + (start - first)).sort().to_numpy()
    departures = pl.Series(station * span + (end - first)).sort().to_numpy()
    # Stations earlier in the order cancel out, since all their cars have left.
    cars = np.arange(1, len(arrivals) + 1) - np.searchsorted(departures, arrivals, side="right")
    max_cars = np.zeros(int(station.max()) + 1, dtype=np.int64)
    np.maximum.at(max_cars, arrivals // span, cars)
    named = sessions.select("station_id").with_columns(pl.Series("number", station)).unique("number")
    peaks = named.select("station_id", pl.Series("most", max_cars[named["number"].to_numpy()]))
    return known.join(peaks, on="station_id").filter(pl.col("most") > pl.col("plugs"))
