"""Plugs: how many each station has, where that is known from, and how sure it is."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.demand.occupancy import Stays, peak_cars, time_by_cars

__all__ = ["SHARED", "SURE_TIMES", "count_plugs"]

SURE_TIMES = 20
"""How often the most cars at once must have been reached for that number to be taken as all there are."""


SHARED = "cars that it takes at once"
"""Where the number of plugs is from at a station whose connectors share a charger."""
MOST_CARS = 16  # up to which that is looked for
LEFT = 0.2  # share of the usual arrivals below which a station counts as full
LEAST_EXPECTED = 50.0  # arrivals that must be missing to say so


def count_plugs(stations: pl.DataFrame, sessions: pl.DataFrame, stays: Stays) -> pl.DataFrame:
    """The stations with the columns `plugs`, `plugs_from` and `plugs_sure`.

    Plugs are those of the table of stations; else the connectors seen in the sessions; else the most cars that were
    there at once. A station at which more cars were at once than it should have plugs has at least as many as cars. An
    inferred number is sure if that many cars were there often: then one more would have been seen at times. Where
    hardly anybody comes while c cars are there, though many would have, the connectors share chargers, and c are all it
    takes.
    """
    peaks = peak_cars(stays)
    seen = (
        sessions.drop_nulls("plug_id").group_by("station_id").agg(connectors=pl.col("plug_id").n_unique())
        if "plug_id" in sessions.columns
        else pl.DataFrame(schema={"station_id": pl.String, "connectors": pl.UInt32})
    )
    without = sessions.filter(pl.col("plug_id").is_null()) if "plug_id" in sessions.columns else sessions
    partly = without["station_id"].unique()
    counted = (
        stations.with_columns(
            pl.col("plugs").cast(pl.Int64),
            most=pl.Series(peaks.cars),
            reached=pl.Series(peaks.times),
        )
        .join(seen, on="station_id", how="left", maintain_order="left")
        .with_columns(
            # Connectors count only where every session names one.
            connectors=pl.when(~pl.col("station_id").is_in(partly.implode())).then("connectors").cast(pl.Int64)
        )
    )
    known = pl.coalesce("plugs", "connectors")
    exceeded = (pl.col("most") > known).fill_null(value=False)
    source = (
        pl.when(known.is_null() & (pl.col("most") == 0))
        .then(pl.lit("not known"))
        .when(exceeded | known.is_null())
        .then(pl.lit("most cars at once"))
        .when(pl.col("plugs").is_not_null())
        .then(pl.lit("table of stations"))
        .otherwise(pl.lit("connectors"))
    )
    made = counted.with_columns(
        plugs=pl.max_horizontal(known.fill_null(1), "most", pl.lit(1)),
        plugs_from=source,
        plugs_sure=(~exceeded & known.is_not_null()) | (pl.col("reached") >= SURE_TIMES),
    ).drop("most", "reached", "connectors")
    takes = pl.Series(_takes(stays, made["plugs"].to_numpy()))
    fewer = takes < pl.col("plugs")
    return made.with_columns(
        plugs=pl.min_horizontal("plugs", takes),
        plugs_from=pl.when(fewer).then(pl.lit(SHARED)).otherwise("plugs_from"),
        plugs_sure=pl.col("plugs_sure") | fewer,
    )


def _takes(stays: Stays, plugs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of cars with which hardly anybody comes any more, at most the number of plugs."""
    hours, arrivals = time_by_cars(stays, MOST_CARS)
    free = np.arange(MOST_CARS + 1) < plugs[:, None]  # nobody can come to a station without a free plug
    hours, arrivals = hours * free, arrivals * free
    takes = plugs.copy()
    for cars in range(MOST_CARS - 1, 0, -1):
        known = arrivals[:, :cars].sum(axis=1)
        before = known / np.maximum(hours[:, :cars].sum(axis=1), 1e-9)
        here = hours[:, cars:].sum(axis=1)
        came = arrivals[:, cars:].sum(axis=1)
        full = (np.minimum(known, before * here) >= LEAST_EXPECTED) & (came < LEFT * before * here)
        takes = np.where(full & (cars < plugs), np.minimum(takes, cars), takes)
    return takes
