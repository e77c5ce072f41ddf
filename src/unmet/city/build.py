"""The city of a study: its trips, stations and number of cars, built in or from the user's files."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unmet.city import places, trips
from unmet.city.gates import STATIONS, check_city_stations, check_trips
from unmet.city.places import CARS_IN_CITY, TIME_ZONE
from unmet.city.stations import synthetic_stations
from unmet.errors import InputError
from unmet.geo import nearest_stations
from unmet.parquet_files import read_parquet
from unmet.runs import atomic_file, cache_folder
from unmet.zones import checked_zone

__all__ = ["City", "build_city", "built_in_trips"]


@dataclass(frozen=True, slots=True)
class City:
    """Valid trips and stations. A penetration is a share of `cars`."""

    trips: pl.DataFrame
    stations: pl.DataFrame
    cars: int
    time_zone: str
    rejected: pl.DataFrame  # table, line, column, value, reason
    filled: dict[str, int]  # number of empty cells of stations filled with a default, by column
    is_built_in: bool = False  # whether trips and stations are built in, so that the paper's results are comparable
    zone_assumed: bool = False  # whether UTC is assumed because no time zone was given

    @property
    def period(self) -> tuple[dt.datetime, dt.datetime]:
        """The period of the trips in UTC: from midnight before the first to midnight after the last."""
        first, last = self.trips.select(
            pl.col("start_time").min().dt.truncate("1d"), pl.col("end_time").max().dt.truncate("1d").dt.offset_by("1d")
        ).row(0)
        return first, last

    def notes(self) -> list[str]:
        """Sentences about assumptions and likely mistakes."""
        default = {column.name: column.default for column in STATIONS.columns}
        notes = [
            f"{cells:,} of {self.stations.height:,} stations have no {column}: {default[column]:g} is assumed."
            for column, cells in self.filled.items()
            if cells
        ]
        if self.zone_assumed:
            notes.append("Hours of the day are in UTC because no time zone was given: give it with --time-zone.")
        first, last = self.period
        days = (last - first).days
        days_with_trips = self.trips["start_time"].dt.date().n_unique()
        if days > SPARSE_DAYS and days_with_trips < SPARSE_SHARE * days:
            notes.append(
                f"Trips are on {days_with_trips} of the {days} days from {first:%Y-%m-%d} to {last:%Y-%m-%d}: is a "
                "date wrong?"
            )
        sample = self.trips.gather_every(max(1, self.trips.height // 1000))
        near = nearest_stations(sample["end_lat"], sample["end_lon"], self.stations["lat"], self.stations["lon"], 1)
        if (median_km := float(np.median(near.km))) > FAR_KM:
            notes.append(f"Half of the trips end over {median_km:,.0f} km from any station: are they in the same city?")
        return notes


FAR_KM = 50  # a larger median distance from the ends of trips to the nearest station is likely a mistake
# One mistyped year stretches the period: trips on few days of a long period suggest a wrong date.
SPARSE_DAYS = 60
SPARSE_SHARE = 0.2


def build_city(
    trips: Any = None,
    stations: Any = None,
    cars: int | None = None,
    time_zone: str | None = None,
    seed: int = 1,
    *,
    mapped: Mapping[str, str] | None = None,
    mapped_stations: Mapping[str, str] | None = None,
) -> City:
    """The built-in city, or a city of the user's trips and stations (frames or files).

    Args:
        trips: a frame or file of trips; by default those of the built-in city.
        stations: a frame or file of stations; by default those of the built-in city.
        cars: number of cars to which a penetration refers; by default the cars of greater Copenhagen for the built-in
            trips, and the vehicles in the table for other trips.
        time_zone: local time zone; by default Europe/Copenhagen for the built-in trips, and UTC for other trips.
        seed: seed of the built-in trips.
        mapped: headings of columns of the trips, such as {"vehicle_id": "car"}.
        mapped_stations: headings of columns of the stations.
    """
    zone = checked_zone(time_zone or (TIME_ZONE if trips is None else "UTC"))
    zone_assumed = time_zone is None and trips is not None
    rejected, filled = [], {}
    if trips is None:
        trips_frame = built_in_trips(seed)
    else:
        checked = check_trips(trips, mapped)
        trips_frame = checked.kept
        rejected.append(checked.rejected.select(pl.lit("trips").alias("table"), pl.all()))
    if stations is None:
        stations_frame = synthetic_stations()
    else:
        checked = check_city_stations(stations, mapped_stations)
        stations_frame, filled = checked.kept, checked.filled
        rejected.append(checked.rejected.select(pl.lit("stations").alias("table"), pl.all()))
    rejected_rows = pl.concat(rejected) if rejected else pl.DataFrame()
    for frame, what in ((trips_frame, "trips"), (stations_frame, "stations")):
        if frame.is_empty():
            raise InputError(_no_usable_rows(what, rejected_rows.filter(pl.col("table") == what)))
    if cars is None:
        cars = CARS_IN_CITY if trips is None else trips_frame["vehicle_id"].n_unique()
    built_in = trips is None and stations is None
    return City(trips_frame, stations_frame, cars, zone, rejected_rows, filled, built_in, zone_assumed)


def _no_usable_rows(what: str, rejected: pl.DataFrame) -> str:
    """The message about a table without usable rows; it quotes the first rejected row."""
    if rejected.is_empty():
        return f"The table of {what} has no rows: give at least one."
    first = rejected.row(0, named=True)
    return (
        f"None of the {rejected.height:,} rows of {what} can be used; the first, line {first['line']}: "
        f"{first['column']} {first['value']!r} {first['reason']}."
    )


def built_in_trips(seed: int) -> pl.DataFrame:
    """Trips of the built-in city, generated once and then read from the cache folder."""
    # A change of the code that generates trips changes the name of the file, so that old trips are not used.
    sources = b"".join(Path(module.__file__ or "").read_bytes() for module in (places, trips))
    name = f"trips-{hashlib.sha256(sources).hexdigest()[:16]}-{seed}.parquet"
    path = cache_folder() / name
    if path.is_file():
        try:
            return read_parquet(path)
        except (OSError, pl.exceptions.PolarsError):
            path.unlink(missing_ok=True)  # a damaged file: generate it again
    generated = trips.synthetic_trips(seed)
    try:
        with atomic_file(path) as draft:
            generated.write_parquet(draft)
    except (OSError, InputError):
        pass  # without a cache, the next run takes a few seconds longer
    return generated
