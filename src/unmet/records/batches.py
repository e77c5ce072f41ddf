"""Read many files: in threads, with small files of the same layout checked together.

Checking a file takes a few hundred Polars calls, whatever its size. Small files with the same columns and format are
therefore concatenated, in order, before their cells are typed; each row keeps its file and line. The order of day and
month and the unit of energies may change between blocks of rows, so they may also differ between the files of a batch.

References to raw cells are deleted as soon as possible, because generators would otherwise keep them in memory.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from unmet.arrays import Integers
from unmet.csv_files import LINE, REJECTED
from unmet.errors import InputError
from unmet.records.cleaning import FILE
from unmet.records.formats.base import Raw
from unmet.records.one_file import OneFile, RawFile, Reading, read_one, read_raw
from unmet.records.sources import RecordSource

__all__ = ["Batch", "read_batches"]

MANY_FILES = 20  # fewer files are checked one by one
SMALL_ROWS = 100_000  # rows up to which a file is checked together with others
BATCH_ROWS = 1_000_000  # a batch with more rows than this gets no further file
LARGE_BYTES = 1 << 26  # size from which a file is read alone
MAX_THREADS = 4  # each has a batch in memory, and Polars has threads of its own
AHEAD = 8  # files that are read ahead for each thread


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that were checked together, usually one."""

    first: int  # number of its first file
    sources: list[RecordSource]
    contents: OneFile  # sessions have the number of their file in FILE
    rejected: pl.DataFrame  # file, and the columns of REJECTED


def read_batches(sources: list[RecordSource], reading: Reading) -> Iterator[Batch]:
    """Read all sources and yield them in order. Threads help because Polars releases the interpreter lock."""
    workers = min(os.cpu_count() or 1, MAX_THREADS)
    many = len(sources) >= MANY_FILES
    with ThreadPoolExecutor(workers) as pool:
        checking: deque[Future[Batch]] = deque()
        try:
            for first, together in _groups(_raw_files(sources, reading.format, pool, workers), many=many):
                alone = not _is_small(together[0])
                checking.append(pool.submit(_checked, first, together, reading))
                del together
                while checking and (alone or len(checking) > workers):  # a large file is read alone, to save memory
                    yield checking.popleft().result()
            while checking:
                yield checking.popleft().result()
        except InputError:
            for task in checking:  # an error in an earlier file is reported first
                task.result()
            raise
        finally:
            for task in checking:
                task.cancel()


def _groups(files: Iterator[RawFile], *, many: bool) -> Iterator[tuple[int, list[RawFile]]]:
    """Groups of files to check together, each with the number of its first file.

    Unless there are `many` files, each forms a group of its own.
    """
    together: list[RawFile] = []
    first = rows = 0
    for file in files:
        if together and not (many and rows <= BATCH_ROWS and _are_alike(together[0], file)):
            size = len(together)
            yield first, together
            first, together, rows = first + size, [], 0
        together.append(file)
        rows += 0 if file.raw.sessions is None else file.raw.sessions.height
        is_alone = not _is_small(file)  # a large file is checked before the next one is read
        del file
        if is_alone:
            yield first, together
            first, together, rows = first + 1, [], 0
    if together:
        yield first, together


def _raw_files(
    sources: list[RecordSource],
    format: str,  # noqa: A002
    pool: ThreadPoolExecutor,
    workers: int,
) -> Iterator[RawFile]:
    """The raw cells of each source; the next few are read ahead."""
    waiting: deque[Future[RawFile]] = deque()
    try:
        for source in sources:
            while waiting and (len(waiting) >= AHEAD * workers or _is_large(source)):
                yield waiting.popleft().result()
            waiting.append(pool.submit(read_raw, source, format))
        while waiting:
            yield waiting.popleft().result()
    finally:
        for task in waiting:
            task.cancel()


def _is_large(source: RecordSource) -> bool:
    return isinstance(source.table, Path) and source.table.is_file() and source.table.stat().st_size > LARGE_BYTES


def _is_small(file: RawFile) -> bool:
    return file.raw.sessions is None or file.raw.sessions.height <= SMALL_ROWS


def _are_alike(known: RawFile, new: RawFile) -> bool:
    """Whether a file can be checked together with another."""
    if new.raw.sessions is None or known.raw.sessions is None or not (_is_small(new) and _is_small(known)):
        return False
    # Stations, outages and notes belong to one file, and the name of a sheet may be its station.
    only_sessions = all(raw.stations is None and raw.outages is None and not raw.notes for raw in (known.raw, new.raw))
    same_layout = (known.format, known.columns, known.raw.mapping) == (new.format, new.columns, new.raw.mapping)
    are_sheets = new.source.is_one_of_several or known.source.is_one_of_several
    return only_sessions and same_layout and not are_sheets and new.raw.sessions.schema == known.raw.sessions.schema


def _checked(first: int, together: list[RawFile], reading: Reading) -> Batch:
    """Check several files together. Their lines are numbered consecutively for this, and renumbered at the end."""
    sources = [file.source for file in together]
    offsets = np.zeros(len(together), dtype=np.int64)
    merged = together[0]
    if len(together) > 1:
        merged, offsets = _merged(together)
    together.clear()
    contents = read_one(merged, reading)
    names = pl.Series([source.name for source in sources], dtype=pl.String)
    if contents.sessions is not None:
        number, line = _file_and_line(contents.sessions[LINE], offsets)
        sessions = contents.sessions.with_columns(line, (number + first).cast(pl.UInt32).alias(FILE))
        contents = replace(contents, sessions=sessions)
    number, line = _file_and_line(contents.rejected["line"], offsets)
    rejected = contents.rejected.select(
        names.gather(number).alias("file"), line.alias("line"), "column", "value", "reason"
    )
    return Batch(first, sources, contents, rejected)


def _merged(together: list[RawFile]) -> tuple[RawFile, Integers]:
    """All cells in one table, whose lines continue from file to file; and the number of lines before each file."""
    frames, rejects, offsets, lines_before = [], [], [], 0
    for file in together:
        frame, rejected = file.raw.sessions, file.raw.rejected
        if frame is None:
            continue
        offsets.append(lines_before)
        frames.append(frame.with_columns((pl.col(LINE) + lines_before).cast(pl.UInt32)))
        if rejected.height:
            rejected = rejected.with_columns((pl.col("line") + lines_before).cast(pl.UInt32))
        rejects.append(rejected)
        lines_before += max([int(frame[LINE][-1]) if frame.height else 0, *rejected["line"].to_list()]) + 1
    first = together[0]
    raw: Raw = replace(
        first.raw,
        sessions=pl.concat(frames),
        rejected=pl.concat([reject.cast(pl.Schema(REJECTED)) for reject in rejects]),
    )
    return replace(first, raw=raw), np.array(offsets, dtype=np.int64)


def _file_and_line(lines: pl.Series, offsets: Integers) -> tuple[pl.Series, pl.Series]:
    """The number of the file of each row in its batch, counted from 0, and the line in that file."""
    if len(offsets) == 1:
        return pl.repeat(0, len(lines), dtype=pl.UInt32, eager=True), lines.cast(pl.UInt32)
    merged_line = lines.to_numpy().astype(np.int64)
    number = np.searchsorted(offsets, merged_line, side="right") - 1
    return pl.Series(number.astype(np.uint32)), pl.Series(lines.name, (merged_line - offsets[number]).astype(np.uint32))
