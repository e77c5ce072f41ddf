"""Safe reading of untrusted Parquet files.

Pages are decoded by Arrow, not by Polars: Polars reserves memory for as many values as a damaged page claims to hold,
and an allocation that fails in Rust ends the process, which nothing in Python can prevent. Arrow refuses such a page.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.exceptions import ComputeError

from unmet.files import check_regular, panics_as_errors
from unmet.memory import require_bytes

__all__ = ["parquet_rows", "parquet_schema", "read_parquet"]

REMEDY = "give part of it, or allow more with --max-memory"
WIDE, NARROW = 24, 8  # estimated bytes per value in memory: for text and other types, and for numbers
MAX_BATCH_ROWS = 1 << 20


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    """An open Parquet file; errors of Arrow about its content become a `PolarsError`."""
    check_regular(path)
    try:
        with panics_as_errors(), pq.ParquetFile(path, pre_buffer=False) as file:
            yield file
    except (FileNotFoundError, PermissionError):
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise ComputeError(f"it is damaged: {error}") from None


def parquet_rows(path: Path) -> int:
    """Number of rows of a Parquet file, from its metadata. Raises a `PolarsError` if the file is damaged."""
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def parquet_schema(path: Path) -> pl.Schema:
    """Names and types of the columns of a Parquet file. Raises a `PolarsError` if the file is damaged."""
    with _opened(path) as file:
        return pl.DataFrame(file.schema_arrow.empty_table()).schema


def read_parquet(path: Path, part: tuple[int, int] | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read a Parquet file that fits into memory. Raises a `PolarsError` if the file is damaged.

    Args:
        path: the file.
        part: first row and number of rows to read; by default all rows.
        columns: names of the columns to read; by default all.
    """
    with _opened(path) as file:
        first, rows = part or (0, file.metadata.num_rows)
        _check_groups(file)
        schema = file.schema_arrow
        kept = [schema.field(name) for name in columns] if columns is not None else list(schema)
        rows = max(0, min(rows, file.metadata.num_rows - first))
        width = sum(_bytes_of(field.type) for field in kept)
        require_bytes(rows * width, f"{path}, with {rows:,} rows,", REMEDY)
        batches = list(_batches(file, first, rows, columns))
        table = pa.Table.from_batches(batches, pa.schema(kept, schema.metadata))
        table.validate(full=True)  # finds text that is not UTF-8, and indices beyond a dictionary
        return pl.DataFrame(table).rechunk()


def _check_groups(file: pq.ParquetFile) -> None:
    """Refuse a file whose row groups do not add up to its number of rows."""
    metadata = file.metadata
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    if min(sizes, default=0) < 0 or sum(sizes) != metadata.num_rows:
        raise ComputeError("it is damaged: its groups of rows do not add up")


def _batches(file: pq.ParquetFile, first: int, rows: int, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Batches of the rows from `first` on; row groups before and after them are not read."""
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    ends = list(itertools.accumulate(sizes))  # row after the last of each group
    groups = [i for i, end in enumerate(ends) if end > first and end - sizes[i] < first + rows]
    if not groups:
        return
    skip = first - (ends[groups[0]] - sizes[groups[0]])  # rows of the first group before `first`
    names = None if columns is None else list(columns)
    for batch in file.iter_batches(min(MAX_BATCH_ROWS, max(1, rows)), groups, names):
        wanted = batch.slice(skip, rows)
        skip = max(0, skip - batch.num_rows)
        rows -= wanted.num_rows
        if wanted.num_rows:
            yield wanted
        if not rows:
            return


def _bytes_of(kind: pa.DataType) -> int:
    """Estimated bytes of a value of a type in memory."""
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _bytes_of(kind.value_type)
    return NARROW if pa.types.is_primitive(kind) else WIDE
