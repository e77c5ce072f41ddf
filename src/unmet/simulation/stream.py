"""Trips that do not fit into memory: from Parquet files, sorted or not, to every arrival, in bounded memory.

Three passes over temporary files beside the output:

1. the input, a batch at a time, into parts by vehicle;
2. each part through the gate of trips (whose rules look at one row, or at one vehicle), with each trip's next start,
   into buckets by the time of arrival;
3. each bucket in order of arrival through the engine, which carries the cars and plugs from one to the next.

Random numbers are drawn in the order of arrival, so the result is that of `simulate`, to the bit, whatever the sizes of
batches, parts and buckets.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from unmet.city.build import City
from unmet.city.gates import MOST_KMH, check_city_stations, check_trips
from unmet.city.stations import synthetic_stations
from unmet.csv_files import LINE
from unmet.errors import InputError
from unmet.files import check_regular
from unmet.geo import nearest_stations
from unmet.memory import allowed_bytes
from unmet.runs import write_json
from unmet.simulation import engine
from unmet.simulation.queues import queue_named
from unmet.simulation.run import summarise, write_scenario
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import (
    NEAREST,
    SESSION_COLUMNS,
    Itinerary,
    Outcome,
    arrivals_table,
    draw,
    plugs_of,
    rules_of,
    vehicles_table,
)
from unmet.tables import UTC
from unmet.zones import checked_zone

__all__ = ["Sizes", "Streamed", "files_to_stream", "find_trip_files", "stream_simulation", "write_streamed_run"]

COLUMNS = ("vehicle_id", "start_time", "end_time", "end_lat", "end_lon", "distance_km")
BUCKET = {
    "vehicle": pa.int32(), "end_s": pa.float64(), "next_start_s": pa.float64(), "distance_km": pa.float64(),
    "end_lat": pa.float64(), "end_lon": pa.float64(),
}  # fmt: skip
MOST_PARTS = 512  # files that are open at one time
BYTES_PER_TRIP = 510  # of memory that a simulation at once takes; measured with 1.56 million trips


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is in memory at one time; none of it changes the result."""

    batch_rows: int = 1_000_000
    part_rows: int = 2_000_000
    bucket_rows: int = 2_000_000


@dataclass(slots=True)
class Streamed:
    """What a streamed simulation wrote and found."""

    arrivals: Path
    vehicles: pl.DataFrame
    city: City
    """Its `trips` hold the first start and the last end only."""
    trips: int = 0
    """Driven by electric cars."""
    trips_in: int = 0

    def outcome(self) -> Outcome:
        """The arrivals' columns that a summary needs, as the outcome of a simulation."""
        needed = ["vehicle_id", "arrival", "outcome", "wanted_kwh", "attempt", "waited_minutes"]
        arrivals = pl.read_parquet(self.arrivals, columns=needed)
        return Outcome(arrivals, self.vehicles, self.city.stations, self.trips, self.city.time_zone)


def files_to_stream(trips: Path | None) -> list[Path]:
    """The Parquet files of trips that are too many, or too large, to be read at once; none otherwise."""
    if trips is None or not trips.is_file():
        return find_trip_files(trips) if trips is not None else []
    with trips.open("rb") as file:
        if file.read(4) != b"PAR1":
            return []
    return [trips] if _rows_of(trips) * BYTES_PER_TRIP > allowed_bytes() else []


def find_trip_files(path: Path) -> list[Path]:
    """The Parquet files that a folder or a pattern names, by name; none if it is one file."""
    if path.is_file():
        return []
    pattern = ("*.parquet", path) if path.is_dir() else (path.name, path.parent)
    found = sorted(file for file in pattern[1].rglob(pattern[0]) if file.suffix == ".parquet" and file.is_file())
    if not found and path.is_dir():
        raise InputError(f"The folder {path} holds no Parquet files: give trips as Parquet, or one CSV file.")
    return found


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
    """Simulate the trips of Parquet files; `arrivals.parquet` is written into a folder that exists.

    Args:
        files: with the columns of trips, in types that Parquet has for them.
        stations: a frame or a file. [those of the built-in city]
        scenario: to play.
        folder: to write to, and for temporary files, which take about as much space as the input unpacked.
        cars: in the city, which a penetration is a share of. [the vehicles in the files]
        time_zone: of the city.
        sizes: of what is in memory.
        on_progress: told the number of trips done in each pass.
    """
    tell = on_progress or (lambda _: None)
    placed = check_city_stations(synthetic_stations() if stations is None else stations)
    if placed.kept.is_empty():
        raise InputError("The table of stations has no rows that can be used: give at least one.")
    parts = _Parts(folder, files, sizes)
    parts.write(tell)
    ids = parts.vehicle_ids()
    rejected = [placed.rejected.select(pl.lit("stations").alias("table"), pl.all())]
    buckets = _Buckets(folder, parts, sizes)
    with buckets:
        for part in parts.read():
            kept, aside = _through_gate(part)
            if not aside.is_empty():
                rejected.append(aside.select(pl.lit("trips").alias("table"), pl.all()))
            buckets.write(kept, ids)
            tell(buckets.rows)
    if not buckets.rows:
        raise InputError("None of the rows of trips can be used: check their columns and units.")
    ids = _kept_ids(ids, buckets)
    aside = pl.concat(rejected)
    ends = pl.DataFrame({"start_time": [buckets.first], "end_time": [buckets.last]}).cast(UTC)
    city = City(ends, placed.kept, cars or len(ids), checked_zone(time_zone), aside, placed.filled)
    return _play(buckets, city, ids, scenario, folder, parts.rows, tell)


def write_streamed_run(
    folder: Path, streamed: Streamed, scenario: Scenario, sources: dict[str, Path | None]
) -> dict[str, Any]:
    """Write what is missing beside `arrivals.parquet` to make it a run; gives the summary."""
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


@dataclass(slots=True)
class _Parts:
    """Trips by vehicle: part i has all trips of the vehicles whose hash is i modulo the number of parts."""

    folder: Path
    files: Sequence[Path]
    sizes: Sizes
    rows: int = 0
    first: dt.datetime | None = None
    last: dt.datetime | None = None
    names: list[pl.Series] = field(default_factory=list)

    def paths(self) -> list[Path]:
        rows = sum(_rows_of(file) for file in self.files)
        count = min(MOST_PARTS, max(1, -(-rows // self.sizes.part_rows)))
        return [self.folder / f"part-{i}.arrow" for i in range(count)]

    def write(self, tell: Callable[[int], None]) -> None:
        paths = self.paths()
        with ExitStack() as stack:
            writers: dict[int, Any] = {}
            for batch in self._batches():
                self.names.append(batch["vehicle_id"].unique())
                which = (batch["vehicle_id"].hash(0) % len(paths)).cast(pl.UInt32)
                for (i,), rows in batch.group_by(which.alias("part"), maintain_order=True):
                    table = rows.select(LINE, *COLUMNS).to_arrow(compat_level=pl.CompatLevel.oldest())
                    if i not in writers:
                        writers[i] = stack.enter_context(pa.ipc.new_file(paths[i], table.schema))
                    writers[i].write_table(table)
                self.rows += batch.height
                tell(self.rows)
            if not self.rows:
                raise InputError("The files of trips have no rows: give at least one.")

    def _batches(self) -> Iterator[pl.DataFrame]:
        line = 1
        for path in self.files:
            check_regular(path)
            try:
                with pq.ParquetFile(path, pre_buffer=False) as file:
                    if missing := [name for name in COLUMNS if name not in file.schema_arrow.names]:
                        raise InputError(f"{path} has no column {', '.join(missing)}: trips need {', '.join(COLUMNS)}.")
                    for batch in file.iter_batches(self.sizes.batch_rows, columns=list(COLUMNS)):
                        frame = _typed(pl.DataFrame(batch), path).with_columns(
                            pl.arange(line, line + batch.num_rows, dtype=pl.UInt32, eager=True).alias(LINE)
                        )
                        line += batch.num_rows
                        yield frame
            except pa.ArrowException as error:
                raise InputError(f"Cannot read {path} ({error}): check that the file is whole.") from None

    def vehicle_ids(self) -> pl.Series:
        """Ids of all vehicles, in order."""
        return pl.concat(self.names).unique().drop_nulls().sort()

    def read(self) -> Iterator[pl.DataFrame]:
        for path in self.paths():
            if path.exists():
                with pa.memory_map(str(path)) as file:
                    yield pl.DataFrame(pa.ipc.open_file(file).read_all())
                path.unlink()


def _rows_of(path: Path) -> int:
    check_regular(path)
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"Cannot read {path} ({error}): check that the file is whole.") from None


def _typed(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Columns in one type for all files; values that have none in it become empty, and are set aside by the gate."""
    for name in ("start_time", "end_time"):
        if not isinstance(frame.schema[name], pl.Datetime):
            raise InputError(f"{path}: column {name} holds {frame.schema[name]}: save it as a timestamp.")
    times = [
        (pl.col(name) if frame.schema[name].time_zone else pl.col(name).dt.replace_time_zone("UTC"))  # type: ignore[attr-defined]
        .dt.convert_time_zone("UTC")
        .cast(UTC)
        for name in ("start_time", "end_time")
    ]
    numbers = [pl.col(name).cast(pl.Float64, strict=False) for name in ("end_lat", "end_lon", "distance_km")]
    return frame.select(pl.col("vehicle_id").cast(pl.String).str.strip_chars(), *times, *numbers)


def _through_gate(part: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Trips of a part that can be driven, by vehicle and start, and those that cannot.

    Where nothing is wrong, which is quick to see, the gate's sentences are not needed.
    """
    ordered = part.sort("vehicle_id", "start_time", "end_time", maintain_order=True)
    hours = (pl.col("end_time") - pl.col("start_time")).dt.total_milliseconds() / 3.6e6
    same = pl.col("vehicle_id") == pl.col("vehicle_id").shift(1)
    years = (dt.datetime(1900, 1, 1, tzinfo=dt.UTC), dt.datetime(2200, 1, 1, tzinfo=dt.UTC))
    again = (
        same
        & (pl.col("start_time") == pl.col("start_time").shift(1))
        & (pl.col("end_time") == pl.col("end_time").shift(1))
    )
    fine = (
        (pl.col("vehicle_id") != "")
        & pl.col("start_time").is_between(*years)
        & pl.col("end_time").is_between(*years)
        & (pl.col("end_time") >= pl.col("start_time"))
        & pl.col("end_lat").is_between(-90, 90)
        & pl.col("end_lon").is_between(-180, 180)
        & pl.col("distance_km").is_between(0, 5000)
        & ((pl.col("end_lat") != 0) | (pl.col("end_lon") != 0))
        & ((pl.col("distance_km") <= 1) | (pl.col("distance_km") / (hours + 0.02) < MOST_KMH))
        & ~again.fill_null(value=False)
        & (~same.fill_null(value=False) | (pl.col("start_time") >= pl.col("end_time").shift(1)))
    )
    if ordered.select(fine.fill_null(value=False).all()).item():
        return ordered, pl.DataFrame()
    checked = check_trips(part)
    return checked.kept, checked.rejected


class _Buckets:
    """Trips by the time of their end: bucket i has those from `edges[i]` on, before the next edge."""

    def __init__(self, folder: Path, parts: _Parts, sizes: Sizes) -> None:
        self.folder, self.sizes = folder, sizes
        self.rows, self.planned = 0, max(1, -(-parts.rows // sizes.bucket_rows))
        self.first: dt.datetime | None = None
        self.last: dt.datetime | None = None
        self.edges: np.ndarray[Any, np.dtype[np.float64]] | None = None
        self.seen: np.ndarray[Any, np.dtype[np.bool_]] | None = None
        self.writers: dict[int, Any] = {}
        self.stack = ExitStack()

    def __enter__(self) -> _Buckets:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stack.close()

    def write(self, kept: pl.DataFrame, ids: pl.Series) -> None:
        """Sort one part's trips, which are all of some vehicles', into buckets."""
        if kept.is_empty():
            return
        runs = kept["vehicle_id"].rle().struct.unnest()  # trips come by vehicle and start
        vehicle = np.repeat(ids.search_sorted(runs["value"]).to_numpy().astype(np.int32), runs["len"].to_numpy())
        goes_on = pl.col("vehicle") == pl.col("vehicle").shift(-1)
        trips = kept.with_columns(vehicle=pl.Series(vehicle)).with_columns(
            end_s=pl.col("end_time").dt.epoch("ms") / 1000,
            next_start_s=pl.when(goes_on).then(pl.col("start_time").shift(-1).dt.epoch("ms") / 1000).otherwise(np.inf),
        )
        first, last = trips.select(pl.col("start_time").min(), end=pl.col("end_time").max()).row(0)
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)
        if self.edges is None:  # one part is a sample of all vehicles
            shares = np.linspace(0, 1, self.planned + 1)[1:-1]
            self.edges = np.unique(np.quantile(trips["end_s"].to_numpy(), shares)) if len(shares) else np.empty(0)
            self.seen = np.zeros(len(ids), np.bool_)
        assert self.seen is not None  # noqa: S101 (set with the edges)
        self.seen[trips["vehicle"].unique().to_numpy()] = True
        which = np.searchsorted(self.edges, trips["end_s"].to_numpy(), side="right")
        for (i,), rows in trips.group_by(pl.Series("bucket", which), maintain_order=True):
            table = rows.select(*BUCKET).to_arrow().cast(pa.schema(list(BUCKET.items())))
            if i not in self.writers:
                self.writers[i] = self.stack.enter_context(pa.ipc.new_file(self._path(i), table.schema))
            self.writers[i].write_table(table)
        self.rows += trips.height

    def read(self) -> Iterator[pl.DataFrame]:
        """Buckets in order of time, each sorted by end and vehicle."""
        for i in sorted(self.writers):
            with pa.memory_map(str(self._path(i))) as file:
                yield pl.DataFrame(pa.ipc.open_file(file).read_all()).sort("end_s", "vehicle", maintain_order=True)
            self._path(i).unlink()

    def _path(self, i: int) -> Path:
        return self.folder / f"bucket-{i}.arrow"


def _kept_ids(ids: pl.Series, buckets: _Buckets) -> pl.Series:
    """Ids of vehicles that have a usable trip; numbers in the buckets refer to all of them."""
    assert buckets.seen is not None  # noqa: S101 (there are rows)
    return ids.filter(pl.Series(buckets.seen))


def _play(
    buckets: _Buckets,
    city: City,
    ids: pl.Series,
    scenario: Scenario,
    folder: Path,
    trips_in: int,
    tell: Callable[[int], None],
) -> Streamed:
    """Play the buckets in order; cars and plugs go on where the bucket before left them."""
    assert buckets.seen is not None  # noqa: S101 (there are rows)
    number = (np.cumsum(buckets.seen) - 1).astype(np.int64)
    luck = draw(Itinerary(city, ids, _arrays(pl.DataFrame(schema=dict.fromkeys(BUCKET, pl.Float64)), city)), scenario)
    chance = np.random.default_rng([scenario.seed, 3])  # the stream that `draw` takes trips' numbers from
    if luck.home_kw.any():
        raise InputError(
            "Where cars are at home is read from all of their trips, which streams do not hold: give the trips in one "
            "file, or a fleet without chargers at home."
        )
    tries = np.zeros(len(luck.soc), np.int64)
    cars = engine.Cars(luck.soc.copy(), tries, luck.capacity_kwh, luck.range_km, luck.home_kw)
    plugs, rules, admit = plugs_of(city.stations), rules_of(scenario), queue_named(scenario.queue).admit
    streamed = Streamed(folder / "arrivals.parquet", vehicles_table(ids, luck), city, 0, trips_in)
    writer, arrivals, done = None, 0, 0
    try:
        for bucket in buckets.read():
            uniform = chance.random((bucket.height, 3))
            car = number[bucket["vehicle"].to_numpy()]
            electric = luck.electric[car]
            own = bucket.with_columns(vehicle=pl.Series(car)).filter(electric)
            trips = _arrays(own, city)._replace(uniform=np.ascontiguousarray(uniform[electric]))
            log = engine.run(admit, np.arange(own.height), trips, cars, plugs, rules)
            table = arrivals_table(log, Itinerary(city, ids, trips), trips, luck.capacity_kwh, plugs, arrivals)
            arrow = table.to_arrow(compat_level=pl.CompatLevel.oldest())
            if writer is None:
                writer = pq.ParquetWriter(streamed.arrivals, arrow.schema, compression="zstd")
            writer.write_table(arrow)
            arrivals, done = arrivals + table.height, done + bucket.height
            streamed.trips += own.height
            tell(done)
    finally:
        if writer is not None:
            writer.close()
    return streamed


def _arrays(trips: pl.DataFrame, city: City) -> engine.Trips:
    """Trips of a bucket as the engine reads them; random numbers are put in later."""
    stations = city.stations
    near = nearest_stations(trips["end_lat"], trips["end_lon"], stations["lat"], stations["lon"], NEAREST)
    return engine.Trips(
        trips["vehicle"].cast(pl.Int64).to_numpy(writable=True),
        trips["end_s"].to_numpy(writable=True),
        trips["next_start_s"].to_numpy(writable=True),
        trips["distance_km"].to_numpy(writable=True),
        np.ascontiguousarray(near.station),
        np.ascontiguousarray(near.km),
        np.empty((0, 3)),
        np.empty(0, np.bool_),
    )
