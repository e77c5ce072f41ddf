"""GPS points from files and frames, read and validated one batch at a time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import polars as pl
from polars.exceptions import PolarsError

from unmet.csv_files import REJECTED, csv_header, csv_lines, csv_rows, open_file
from unmet.errors import InputError
from unmet.files import panics_as_errors
from unmet.tables import Column, RowRule, Table, as_frame, check_table, parse_time

__all__ = ["GPS_POINTS", "PointBatch", "point_batches", "source_name", "usable_points"]

GPS_POINTS = Table(
    "GPS points",
    (
        Column("vehicle_id", "text", "", "the car", aliases=("vehicle", "car_id", "uid", "id")),
        Column("time", "time", "UTC", "time of the point", aliases=("timestamp", "datetime", "t")),
        Column("lat", "number", "degree", "latitude", aliases=("latitude",), minimum=-90, maximum=90),
        Column("lon", "number", "degree", "longitude", aliases=("longitude", "lng"), minimum=-180, maximum=180),
    ),
)

_PLAUSIBLE_TIME = pl.col("time").is_between(
    dt.datetime(1900, 1, 1, tzinfo=dt.UTC), dt.datetime(2200, 1, 1, tzinfo=dt.UTC)
)
_HAS_FIX = (pl.col("lat") != 0) | (pl.col("lon") != 0)
_RULES = (
    RowRule("time", _PLAUSIBLE_TIME, "is not between the years 1900 and 2200"),
    RowRule("lat", _HAS_FIX, "is 0 and so is lon: the receiver had no position"),
)
# Types that a column may have, besides numbers.
_COLUMN_TYPES = (pl.String, pl.Datetime, pl.Categorical, pl.Enum, pl.Null)
MAX_BATCH_BYTES = 1 << 28  # bounds memory if lines are very long
_REJECTED = REJECTED | {"line": pl.UInt64}  # a file of points can have more than 2^32 lines


class PointBatch(NamedTuple):
    """Rows with the columns of `GPS_POINTS`, their lines, and rows with a wrong number of fields."""

    frame: pl.DataFrame
    line: pl.Series
    malformed: pl.DataFrame


def usable_points(batch: PointBatch) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Valid points with their lines, and rejected ones.

    Most rows have a common format and are in bounds. Only the others are validated as a table, which is slower but
    recognises more formats and gives reasons.
    """
    time = pl.col("time")
    if (dtype := batch.frame.schema["time"]) == pl.String:
        formats = ("%+", "%Y-%m-%d %H:%M:%S%.f")  # %+ is ISO 8601 with an offset
        parsed = [time.str.to_datetime(text, time_unit="ms", time_zone="UTC", strict=False) for text in formats]
        time = pl.coalesce(*parsed, parse_time(time.cast(pl.Float64, strict=False), pl.Float64()))
    else:
        time = parse_time(time, dtype)
    parsed_rows = batch.frame.select(
        pl.col("vehicle_id").cast(pl.String).str.strip_chars(),
        time.alias("time"),
        pl.col("lat", "lon").cast(pl.Float64, strict=False),
        line=batch.line,
    )
    in_bounds = pl.col("lat").is_between(-90, 90) & pl.col("lon").is_between(-180, 180)
    usable = parsed_rows.select(
        ((pl.col("vehicle_id") != "") & in_bounds & _PLAUSIBLE_TIME & _HAS_FIX).fill_null(value=False)
    ).to_series()
    if usable.all():
        return parsed_rows, pl.DataFrame(schema=_REJECTED)
    unusual = batch.frame.filter(~usable)
    if isinstance(dtype, pl.Datetime):  # as text for messages; Polars cannot print the year 300000
        text = pl.when(_PLAUSIBLE_TIME).then(pl.col("time")).dt.strftime("%+")
        other = pl.format("{} ms", pl.col("time").dt.epoch("ms"))
        unusual = unusual.with_columns(parsed_rows["time"].filter(~usable)).with_columns(time=pl.coalesce(text, other))
    checked = check_table(unusual, GPS_POINTS, _RULES)
    lines = batch.line.filter(~usable)
    # `check_table` numbers the rows that it was given from 1; they get the lines of the file again.
    rejected_rows = checked.rejected["line"] - 1
    is_kept = pl.arange(len(lines), eager=True).is_in(rejected_rows.cast(pl.Int64).implode()).not_()
    kept = checked.kept.with_columns(line=lines.filter(is_kept))
    rejected = checked.rejected.with_columns(line=lines.gather(rejected_rows))
    return pl.concat([parsed_rows.filter(usable), kept]).sort("line"), rejected


def source_name(source: Any) -> str:
    """The name of a source in messages."""
    return str(source) if isinstance(source, str | Path) else f"The table of {GPS_POINTS.name}"


def point_batches(source: Any, rows: int, mapped: Mapping[str, str] | None = None) -> Iterator[PointBatch]:
    """The points of a file or frame, at most `rows` at a time; `mapped` is {name: heading}."""
    if not isinstance(source, str | Path):
        frame = as_frame(source)
        names = {name: frame.columns[i] for name, i in _column_positions(frame.columns, source, mapped).items()}
        yield from _numbered_batches((frame.slice(i, rows) for i in range(0, frame.height, rows)), names)
        return
    path = Path(source)
    try:
        with open_file(path) as file:
            yield from _parquet_batches(path, rows, mapped) if file is None else _csv_batches(path, file, rows, mapped)
    except PolarsError as error:
        raise InputError(f"Cannot read {path}: {error}. Check that the file is whole.") from None


def _parquet_batches(path: Path, rows: int, mapped: Mapping[str, str] | None) -> Iterator[PointBatch]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            columns = file.schema_arrow.names
            names = {name: columns[i] for name, i in _column_positions(columns, path, mapped).items()}
            batches = file.iter_batches(rows, columns=list(names.values()))
            yield from _numbered_batches((_frame_of(batch) for batch in batches), names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # UnicodeDecodeError: damaged column names
        raise InputError(f"Cannot read {path}: {error}. Check that the file is whole.") from None


def _frame_of(batch: Any) -> pl.DataFrame:
    batch.validate(full=True)  # text that is not UTF-8
    with panics_as_errors():  # Polars panics at column names that are not text
        return pl.DataFrame(batch)


def _numbered_batches(frames: Iterator[pl.DataFrame], names: dict[str, str]) -> Iterator[PointBatch]:
    """Batches of frames, with rows numbered from 1; `names` are the headings by the names in `GPS_POINTS`."""
    done = 0
    for frame in frames:
        for spelling in names.values():
            dtype = frame.schema[spelling]
            if not dtype.is_numeric() and dtype.base_type() not in _COLUMN_TYPES:
                raise InputError(f"The column {spelling} of the points holds {dtype}: give text, numbers or times.")
        renamed = frame.select(pl.col(spelling).alias(name) for name, spelling in names.items())
        text = renamed.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
        line = pl.arange(done + 1, done + 1 + frame.height, dtype=pl.UInt64, eager=True)
        yield PointBatch(text, line, pl.DataFrame(schema=_REJECTED))
        done += frame.height


def _csv_batches(path: Path, file: BinaryIO, rows: int, mapped: Mapping[str, str] | None) -> Iterator[PointBatch]:
    lines_of_file = csv_lines(file)
    header = next(lines_of_file, b"")
    if b"\x00" in header:
        raise InputError(f"{path} is a binary file: give a CSV or Parquet file.")
    try:
        separator, names = csv_header(header)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8: save it as CSV in UTF-8, or give a Parquet file.") from None
    wanted = _column_positions(names, path, mapped)
    done = 1
    for lines in _line_batches(lines_of_file, rows):
        yield PointBatch(*csv_rows(lines, done + 1, separator, len(names), wanted))
        done += len(lines)


def _line_batches(lines: Iterator[bytes], rows: int) -> Iterator[list[bytes]]:
    """Batches of at most `rows` lines, and of a bounded size."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if len(batch) >= rows or size > MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _column_positions(names: Sequence[str], source: Any, mapped: Mapping[str, str] | None = None) -> dict[str, int]:
    """Position of each column of `GPS_POINTS` among the columns `names`."""
    # Reversed, so that the first of several columns with the same name wins; likewise for aliases below.
    places = {name.strip().lower(): i for i, name in reversed(list(enumerate(names)))}
    given = {name: column.strip().lower() for name, column in (mapped or {}).items()}
    known = [column.name for column in GPS_POINTS.columns]
    if wrong := [name for name in given if name not in known]:
        raise InputError(f"{GPS_POINTS.name} have no {wrong[0]!r} to map a column to: they have {', '.join(known)}.")
    wanted = {}
    for column in GPS_POINTS.columns:
        spellings = (given[column.name],) if column.name in given else (column.name, *column.aliases)
        for spelling in reversed(spellings):
            if spelling in places:
                wanted[column.name] = places[spelling]
    missing = [column.name for column in GPS_POINTS.columns if column.name not in wanted]
    if missing:
        raise InputError(
            f"{source_name(source)} has no column {', '.join(missing)}: {GPS_POINTS.name} need vehicle_id, time, "
            f"lat, lon. Its columns are {', '.join(names)[:500] or 'none'}."
        )
    return wanted
