"""Trips on disk while they are streamed: sorted into parts by vehicle, then into buckets by the time of arrival."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from unmet.csv_files import LINE
from unmet.errors import InputError
from unmet.files import check_regular, panics_as_errors
from unmet.memory import allowed_bytes
from unmet.simulation.ahead import ahead
from unmet.simulation.simulate import BYTES_PER_TRIP
from unmet.tables import UTC

__all__ = ["BUCKET", "Sizes", "TripBuckets", "TripParts", "files_to_stream", "find_trip_files"]


# Columns that are read from the files of trips.
COLUMNS = ("vehicle_id", "start_time", "end_time", "end_lat", "end_lon", "distance_km")


BUCKET = ("vehicle", "end_s", "next_start_s", "distance_km", "end_lat", "end_lon")
"""Columns of the trips in a bucket."""
MAX_PARTS = 512  # every part is an open file


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of rows in memory at a time; none of them changes the result."""

    batch_rows: int = 1_000_000
    part_rows: int = 2_000_000
    bucket_rows: int = 2_000_000


def files_to_stream(trips: Path | None) -> list[Path]:
    """The Parquet files of trips, if they are several or too large for memory; else none."""
    if trips is None or not trips.is_file():
        return find_trip_files(trips) if trips is not None else []
    with trips.open("rb") as file:
        if file.read(4) != b"PAR1":
            return []
    return [trips] if _row_count(trips) * BYTES_PER_TRIP > allowed_bytes() else []


def find_trip_files(path: Path) -> list[Path]:
    """The Parquet files of a folder or a pattern, sorted by name; none if it is a single file."""
    if path.is_file():
        return []
    folder, pattern = (path, "*.parquet") if path.is_dir() else (path.parent, path.name)
    found = sorted(file for file in folder.rglob(pattern) if file.suffix == ".parquet" and file.is_file())
    if not found and path.is_dir():
        raise InputError(f"The folder {path} holds no Parquet files: give trips as Parquet, or one CSV file.")
    return found


@dataclass(slots=True)
class TripParts:
    """Trips by vehicle: part i has all trips of the vehicles whose hash is i modulo the number of parts."""

    folder: Path
    files: Sequence[Path]
    sizes: Sizes
    rows: int = 0
    first: dt.datetime | None = None
    last: dt.datetime | None = None

    def paths(self) -> list[Path]:
        """Files of the parts; some may not exist."""
        rows = sum(_row_count(file) for file in self.files)
        count = min(MAX_PARTS, max(1, -(-rows // self.sizes.part_rows)))
        return [self.folder / f"part-{i}.arrow" for i in range(count)]

    def write(self, report: Callable[[int], None]) -> None:
        """Read the input once and write every trip into its part; `report` receives the number of trips so far."""
        paths = self.paths()
        with ExitStack() as stack:
            writers: dict[int, Any] = {}
            for batch in ahead(self._batches()):
                part_of_row = (batch["vehicle_id"].hash(0) % len(paths)).to_numpy()
                for i, table in _tables_by(part_of_row, batch.select(LINE, *COLUMNS)):
                    if i not in writers:
                        writers[i] = stack.enter_context(pa.ipc.new_file(paths[i], table.schema))
                    writers[i].write_table(table)
                self.rows += batch.height
                report(self.rows)
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
                        batch.validate(full=True)  # text that is not UTF-8
                        with panics_as_errors():  # Polars panics at column names that are not text
                            rows = pl.DataFrame(batch)
                        frame = _typed(rows, path).with_columns(
                            pl.arange(line, line + batch.num_rows, dtype=pl.UInt32, eager=True).alias(LINE)
                        )
                        line += batch.num_rows
                        yield frame
            except (pa.ArrowException, pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
                raise InputError(f"Cannot read {path} ({error}): check that the file is whole.") from None

    def read(self) -> Iterator[pl.DataFrame]:
        """The parts, one after the other. Each file is removed once it has been used."""
        for path in self.paths():
            if path.exists():
                with pa.memory_map(str(path)) as file:
                    yield pl.DataFrame(pa.ipc.open_file(file).read_all())
                path.unlink()


def _tables_by(number_of_row: NDArray[Any], rows: pl.DataFrame) -> Iterator[tuple[int, pa.Table]]:
    """Rows split into Arrow tables by their numbers, each in the order of the rows; numbers are below 2 ** 15."""
    order = np.argsort(
        number_of_row.astype(np.int16), kind="stable"
    )  # a radix sort, which NumPy has for 16-bit integers
    table = rows[order].to_arrow(compat_level=pl.CompatLevel.oldest())
    numbers, first = np.unique(number_of_row[order], return_index=True)
    for number, start, end in zip(numbers, first, np.append(first[1:], len(number_of_row)), strict=True):
        yield int(number), table.slice(int(start), int(end - start))


def _row_count(path: Path) -> int:
    check_regular(path)
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read {path} ({error}): check that the file is whole.") from None


def _typed(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Columns with the same types in all files; values that cannot be converted become null, to be set aside later."""
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


class TripBuckets:
    """Trips by end time; bucket i holds the trips that end between two consecutive `edges`."""

    def __init__(self, folder: Path, parts: TripParts, sizes: Sizes) -> None:
        self.folder, self.sizes = folder, sizes
        self.rows, self.n_buckets = 0, max(1, -(-parts.rows // sizes.bucket_rows))
        self.first: dt.datetime | None = None
        self.last: dt.datetime | None = None
        self.edges: np.ndarray[Any, np.dtype[np.float64]] | None = None
        self.names: list[pl.Series] = []  # names of vehicles, in the order of their numbers on disk
        self.vehicles = 0
        self.writers: dict[int, Any] = {}
        self.stack = ExitStack()

    def __enter__(self) -> TripBuckets:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stack.close()

    def write(self, kept: pl.DataFrame) -> None:
        """Sort the trips of a part, which are grouped by vehicle and sorted by start, into buckets."""
        if kept.is_empty():
            return
        runs = kept["vehicle_id"].rle().struct.unnest()
        numbers = np.arange(self.vehicles, self.vehicles + runs.height, dtype=np.int32)
        vehicle = np.repeat(numbers, runs["len"].to_numpy())
        self.names.append(runs["value"])
        self.vehicles += runs.height
        has_next = pl.col("vehicle") == pl.col("vehicle").shift(-1)
        trips = kept.with_columns(vehicle=pl.Series(vehicle)).with_columns(
            end_s=pl.col("end_time").dt.epoch("ms") / 1000,
            next_start_s=pl.when(has_next).then(pl.col("start_time").shift(-1).dt.epoch("ms") / 1000).otherwise(np.inf),
        )
        first, last = trips.select(pl.col("start_time").min(), end=pl.col("end_time").max()).row(0)
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)
        if self.edges is None:  # vehicles are in parts at random, so the first part is a sample of all end times
            shares = np.linspace(0, 1, self.n_buckets + 1)[1:-1]
            self.edges = np.unique(np.quantile(trips["end_s"].to_numpy(), shares)) if len(shares) else np.empty(0)
        bucket_of_row = np.searchsorted(self.edges, trips["end_s"].to_numpy(), side="right")
        for i, table in _tables_by(bucket_of_row, trips.select(*BUCKET)):
            if i not in self.writers:
                self.writers[i] = self.stack.enter_context(pa.ipc.new_file(self._path(i), table.schema))
            self.writers[i].write_table(table)
        self.rows += trips.height

    def vehicle_ids(self) -> pl.Series:
        """Ids of all vehicles that have a trip, in order."""
        return pl.concat(self.names).sort()

    def read(self) -> Iterator[pl.DataFrame]:
        """Buckets in order of time, each sorted by end and vehicle; vehicles are numbered in the order of their ids."""
        rank = np.empty(self.vehicles, np.int32)  # place of each vehicle on disk in the order of ids
        rank[pl.concat(self.names).arg_sort().to_numpy()] = np.arange(self.vehicles, dtype=np.int32)
        for i in sorted(self.writers):
            with pa.memory_map(str(self._path(i))) as file:
                bucket = pl.DataFrame(pa.ipc.open_file(file).read_all())
                ordered = bucket.with_columns(vehicle=pl.Series(rank[bucket["vehicle"].to_numpy()]))
                yield ordered.sort("end_s", "vehicle", maintain_order=True)
            self._path(i).unlink()

    def _path(self, i: int) -> Path:
        return self.folder / f"bucket-{i}.arrow"
