"""The city of a study: its trips, stations and number of cars, built in or from one's own files."""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass
from typing import Any

import polars as pl

from unmet import __version__
from unmet.city.gates import STATIONS, check_stations, check_trips
from unmet.city.places import CARS_IN_CITY, LAND, PLACES, TIME_ZONE
from unmet.city.stations import synthetic_stations
from unmet.city.trips import VEHICLES, Habits, synthetic_trips
from unmet.errors import InputError
from unmet.runs import atomic_file, cache_folder

__all__ = ["City", "build_city", "built_in_trips"]


@dataclass(frozen=True, slots=True)
class City:
    """Trips and stations that passed their gates. `cars` is what a penetration is a share of."""

    trips: pl.DataFrame
    stations: pl.DataFrame
    cars: int
    time_zone: str
    rejected: pl.DataFrame  # table, line, column, value, reason
    filled: dict[str, int]  # station cells that took a default, by column

    @property
    def period(self) -> tuple[dt.datetime, dt.datetime]:
        """The days in UTC on which there are trips: midnight before the first, midnight after the last."""
        first, last = self.trips.select(
            pl.col("start_time").min().dt.truncate("1d"), pl.col("end_time").max().dt.truncate("1d").dt.offset_by("1d")
        ).row(0)
        return first, last

    def filled_sentences(self) -> list[str]:
        """What was assumed where station cells were empty, a sentence a column."""
        default = {column.name: column.default for column in STATIONS.columns}
        return [
            f"{cells:,} of {self.stations.height:,} stations have no {column}: {default[column]:g} was taken."
            for column, cells in self.filled.items()
            if cells
        ]


def build_city(
    trips: Any = None, stations: Any = None, cars: int | None = None, time_zone: str = TIME_ZONE, seed: int = 1
) -> City:
    """The built-in city, or one's own trips and stations (frames or files) in its place.

    `cars` is the number of cars that a penetration refers to: by default those of greater Copenhagen for the built-in
    trips, and the vehicles in the table for one's own. `time_zone` is that of the clocks in the city.
    """
    rejected, filled = [], {}
    if trips is None:
        trips_frame = built_in_trips(seed)
    else:
        checked = check_trips(trips)
        trips_frame = checked.kept
        rejected.append(checked.rejected.select(pl.lit("trips").alias("table"), pl.all()))
    if stations is None:
        stations_frame = synthetic_stations()
    else:
        checked = check_stations(stations)
        stations_frame, filled = checked.kept, checked.filled
        rejected.append(checked.rejected.select(pl.lit("stations").alias("table"), pl.all()))
    for frame, what in ((trips_frame, "trips"), (stations_frame, "stations")):
        if frame.is_empty():
            raise InputError(f"None of the rows of {what} can be used: see the rule for each column in docs/city.md.")
    if cars is None:
        cars = CARS_IN_CITY if trips is None else trips_frame["vehicle_id"].n_unique()
    return City(
        trips_frame, stations_frame, cars, time_zone, pl.concat(rejected) if rejected else pl.DataFrame(), filled
    )


def built_in_trips(seed: int) -> pl.DataFrame:
    """Trips of the built-in city, generated once and then read from the cache folder."""
    facts = repr((__version__, seed, VEHICLES, PLACES, LAND, Habits()))
    name = f"trips-{hashlib.sha256(facts.encode()).hexdigest()[:16]}.parquet"
    path = cache_folder() / name
    if path.is_file():
        try:
            return pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError):
            path.unlink(missing_ok=True)  # a damaged file: make it again
    trips = synthetic_trips(seed)
    try:
        with atomic_file(path) as draft:
            trips.write_parquet(draft)
    except OSError:
        pass  # without a cache the next run takes a few seconds longer, which is no reason to fail this one
    return trips
