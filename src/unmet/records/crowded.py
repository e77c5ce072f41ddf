"""Stations where more cars were seen at once than a table of stations gives them plugs."""

from __future__ import annotations

import polars as pl

__all__ = ["crowded_note"]

_LEAST_MINUTES = 1.0  # clocks to the minute let the next car seem to come before the last has left


def crowded_note(sessions: pl.DataFrame, stations: pl.DataFrame) -> str | None:
    """A sentence on stations with fewer plugs than cars at once, and for how long; the table is left as it is.

    Args:
        sessions: station_id, start and end.
        stations: station_id and plugs, null where unknown.
    """
    known = stations.drop_nulls("plugs").select("station_id", "plugs")
    if known.is_empty() or sessions.is_empty():
        return None
    here = sessions.select("station_id", "start", "end").join(known, on="station_id", how="semi")
    changes = pl.concat(
        [
            here.select("station_id", pl.col("start").alias("at"), pl.lit(1, pl.Int32).alias("change")),
            here.select("station_id", pl.col("end").alias("at"), pl.lit(-1, pl.Int32).alias("change")),
        ]
    ).sort("station_id", "at", "change")
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
        .filter(pl.col("minutes") > _LEAST_MINUTES)
        .sort("minutes", "station_id", descending=True)
    )
    if over.is_empty():
        return None
    station, plugs, most, minutes = over.row(0)
    return (
        f"{over.height:,} of {known.height:,} stations had more cars at once than plugs in the table (most: {station} "
        f"with {plugs} plugs had up to {most} cars, {minutes / 60:,.1f} h in all): check plugs, or the plugs' ids."
    )
