"""Simulate trips that do not fit into memory, from Parquet files that need not be sorted.

Three passes over temporary files beside the output:

1. the input is sorted, a batch at a time, into parts by vehicle;
2. each part is validated (rules concern one row or one vehicle), gets the next start of each trip, and is sorted into
   buckets by the time of arrival;
3. the engine processes the buckets in order; the state of cars and plugs carries over from one to the next.

Random numbers are drawn in the order of arrival, so the result equals that of `simulate`, to the bit, for any sizes of
batches, parts and buckets.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from unmet.city.build import City
from unmet.city.gates import MAX_KMH, check_city_stations, check_trips
from unmet.city.stations import synthetic_stations
from unmet.errors import InputError
from unmet.geo import nearest_stations
from unmet.runs import write_json
from unmet.simulation import engine
from unmet.simulation.ahead import ahead
from unmet.simulation.lookahead import may_charge
from unmet.simulation.outcome import SESSION_COLUMNS, Outcome
from unmet.simulation.queues import queue_named
from unmet.simulation.run import summarise, write_scenario
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import (
    NEAREST,
    TRIP_STREAM,
    Itinerary,
    arrivals_table,
    draw,
    plugs_of,
    rules_of,
    vehicles_table,
)
from unmet.simulation.trip_files import BUCKET, Sizes, TripBuckets, TripParts
from unmet.tables import UTC
from unmet.zones import checked_zone

MIN_STEP = 50_000  # trips that are simulated between two searches for nearest stations

__all__ = ["Streamed", "stream_simulation", "write_streamed_run"]


@dataclass(slots=True)
class Streamed:
    """The result of a streamed simulation."""

    arrivals: Path
    vehicles: pl.DataFrame
    city: City
    """The city; its `trips` contain only the first start and the last end."""
    trips: int = 0
    """Number of trips driven by electric cars."""
    trips_in: int = 0

    def outcome(self) -> Outcome:
        """An outcome with only the columns of the arrivals that a summary needs."""
        needed = ["vehicle_id", "arrival", "outcome", "wanted_kwh", "attempt", "waited_minutes"]
        arrivals = pl.read_parquet(self.arrivals, columns=needed)
        return Outcome(arrivals, self.vehicles, self.city.stations, self.trips, self.city.time_zone)


def stream_simulation(
    files: Sequence[Path],
    stations: Any,
    scenario: Scenario,
    folder: Path,
    *,
    cars: int | None = None,
    time_zone: str = "UTC",
    sizes: Sizes = Sizes(),  # noqa: B008 (it is frozen)
    on_progress: Callable[[int], None] | None = None,
) -> Streamed:
    """Simulate the trips of Parquet files, and write `arrivals.parquet` into an existing folder.

    Args:
        files: Parquet files with the columns of trips.
        stations: a data frame or a file; by default the stations of the built-in city.
        scenario: the scenario.
        folder: folder for the output and for temporary files, which take about as much space as the unpacked input.
        cars: number of cars to which the penetration refers; by default the vehicles in the files.
        time_zone: time zone of the city.
        sizes: numbers of rows in memory.
        on_progress: called with the number of trips processed in each pass.
    """
    report = on_progress or (lambda _: None)
    checked = check_city_stations(synthetic_stations() if stations is None else stations)
    if checked.kept.is_empty():
        raise InputError("The table of stations has no valid rows: give at least one.")
    parts = TripParts(folder, files, sizes)
    parts.write(report)
    rejected = [checked.rejected.select(pl.lit("stations").alias("table"), pl.all())]
    buckets = TripBuckets(folder, parts, sizes)
    with buckets:
        for kept, rejected_trips in ahead(_validated(part) for part in parts.read()):
            if not rejected_trips.is_empty():
                rejected.append(rejected_trips.select(pl.lit("trips").alias("table"), pl.all()))
            buckets.write(kept)
            report(buckets.rows)
    if not buckets.rows:
        raise InputError("None of the rows of trips can be used: check their columns and units.")
    ids = buckets.vehicle_ids()
    period = pl.DataFrame({"start_time": [buckets.first], "end_time": [buckets.last]}).cast(UTC)
    city = City(period, checked.kept, cars or len(ids), checked_zone(time_zone), pl.concat(rejected), checked.filled)
    return _run(buckets, city, ids, scenario, folder, parts.rows, report)


def write_streamed_run(
    folder: Path, streamed: Streamed, scenario: Scenario, sources: dict[str, Path | None]
) -> dict[str, Any]:
    """Complete the run folder beside `arrivals.parquet`. Returns the summary."""
    write_scenario(folder, streamed.city, scenario, sources)
    served = pl.scan_parquet(streamed.arrivals).filter(pl.col("outcome") == "served").select(SESSION_COLUMNS)
    served.sink_parquet(folder / "sessions.parquet")
    streamed.city.stations.write_parquet(folder / "stations.parquet")
    streamed.vehicles.write_parquet(folder / "vehicles.parquet")
    if not streamed.city.rejected.is_empty():
        streamed.city.rejected.write_parquet(folder / "rejected.parquet")
    summary = summarise(streamed.city, scenario, streamed.outcome())
    write_json(folder / "summary.json", summary)
    return summary


_HASH = "__hash__"


def _validated(part: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Valid trips of a part, grouped by vehicle and sorted by start, and invalid ones with reasons.

    If all trips are valid, which is quick to check, the slower `check_trips` is not needed. The conditions here must
    not be weaker than those of `check_trips`.
    """
    # Hashes sort several times faster than names. Two trips of a car with the same start, or two cars with the same
    # hash, are left to `check_trips`.
    ordered = part.with_columns(part["vehicle_id"].hash(0).alias(_HASH)).sort(_HASH, "start_time")
    hours = (pl.col("end_time") - pl.col("start_time")).dt.total_milliseconds() / 3.6e6
    same_vehicle = pl.col("vehicle_id") == pl.col("vehicle_id").shift(1)
    years = (dt.datetime(1900, 1, 1, tzinfo=dt.UTC), dt.datetime(2200, 1, 1, tzinfo=dt.UTC))
    same_hash = pl.col(_HASH) == pl.col(_HASH).shift(1)
    unclear = same_hash & (~same_vehicle | (pl.col("start_time") == pl.col("start_time").shift(1)))
    valid = (
        (pl.col("vehicle_id") != "")
        & pl.col("start_time").is_between(*years)
        & pl.col("end_time").is_between(*years)
        & (pl.col("end_time") >= pl.col("start_time"))
        & pl.col("end_lat").is_between(-90, 90)
        & pl.col("end_lon").is_between(-180, 180)
        & pl.col("distance_km").is_between(0, 5000)
        & ((pl.col("end_lat") != 0) | (pl.col("end_lon") != 0))
        & ((pl.col("distance_km") <= 1) | (pl.col("distance_km") / (hours + 0.02) < MAX_KMH))
        & ~unclear.fill_null(value=False)
        & (~same_vehicle.fill_null(value=False) | (pl.col("start_time") >= pl.col("end_time").shift(1)))
    )
    if ordered.select(valid.fill_null(value=False).all()).item():
        return ordered.drop(_HASH), pl.DataFrame()
    checked = check_trips(part)
    return checked.kept, checked.rejected


def _run(
    buckets: TripBuckets,
    city: City,
    ids: pl.Series,
    scenario: Scenario,
    folder: Path,
    trips_in: int,
    report: Callable[[int], None],
) -> Streamed:
    """Simulate the buckets in order; cars and plugs keep their state from bucket to bucket."""
    drawn = draw(Itinerary(city, ids, _arrays(pl.DataFrame(schema=dict.fromkeys(BUCKET, pl.Float64)))), scenario)
    rng = np.random.default_rng([scenario.seed, TRIP_STREAM])
    if drawn.home_kw.any():
        raise InputError(
            "The home of a car is inferred from all of its trips, which a streamed simulation does not hold: give the "
            "trips in one file, or a fleet without home charging."
        )
    tries = np.zeros(len(drawn.soc), np.int64)
    cars = engine.Cars(drawn.soc.copy(), tries, drawn.capacity_kwh, drawn.range_km, drawn.home_kw)
    plugs, rules, admit = plugs_of(city.stations), rules_of(scenario), queue_named(scenario.queue).admit
    streamed = Streamed(folder / "arrivals.parquet", vehicles_table(ids, drawn), city, 0, trips_in)
    step = max(MIN_STEP, len(ids))  # about one trip per car, so that `may_charge` leaves out most trips
    writer, arrivals, done = None, 0, 0
    try:
        for bucket in ahead(buckets.read()):
            uniform = rng.random((bucket.height, 3))
            electric, driven = drawn.electric[bucket["vehicle"].to_numpy()], bucket
            if not electric.all():
                driven, uniform = bucket.filter(electric), uniform[electric]
            tables = []
            for first in range(0, max(driven.height, 1), step):  # once at least, for a table with the right columns
                trips = _arrays(driven.slice(first, step))._replace(uniform=uniform[first : first + step])
                trips = _with_nearest(trips, driven.slice(first, step), city, cars, rules)
                log = engine.run(admit, np.arange(len(trips.vehicle)), trips, cars, plugs, rules)
                tables.append(
                    arrivals_table(log, Itinerary(city, ids, trips), trips, drawn.capacity_kwh, plugs, arrivals)
                )
                arrivals += tables[-1].height
            arrow = pl.concat(tables).to_arrow(compat_level=pl.CompatLevel.oldest())
            if writer is None:
                writer = pq.ParquetWriter(streamed.arrivals, arrow.schema, compression="zstd")
            writer.write_table(arrow)
            done += bucket.height
            streamed.trips += driven.height
            report(done)
    finally:
        if writer is not None:
            writer.close()
    return streamed


def _arrays(trips: pl.DataFrame) -> engine.Trips:
    """Trips as the engine reads them; nearest stations and random numbers are filled in later."""
    return engine.Trips(
        vehicle=trips["vehicle"].cast(pl.Int64).to_numpy(writable=True),
        end_s=trips["end_s"].to_numpy(writable=True),
        next_start_s=trips["next_start_s"].to_numpy(writable=True),
        distance_km=trips["distance_km"].to_numpy(writable=True),
        nearest=np.empty((0, 0), np.int64),
        nearest_km=np.empty((0, 0)),
        uniform=np.empty((0, 3)),
        at_home=np.empty(0, np.bool_),
    )


def _with_nearest(
    trips: engine.Trips, rows: pl.DataFrame, city: City, cars: engine.Cars, rules: engine.Rules
) -> engine.Trips:
    """Look up the nearest stations of trips that may end at one; the engine does not need them for other trips."""
    flagged = may_charge(
        trips.vehicle, trips.distance_km, trips.uniform, cars.soc, cars.tries, cars.range_km, rules.beta_table
    )
    lat, lon = (rows[name].to_numpy()[flagged] for name in ("end_lat", "end_lon"))
    near = nearest_stations(lat, lon, city.stations["lat"], city.stations["lon"], NEAREST)
    station = np.zeros((len(flagged), near.station.shape[1]), np.int64)
    km = np.zeros(station.shape)
    station[flagged], km[flagged] = near
    return trips._replace(nearest=station, nearest_km=km)
