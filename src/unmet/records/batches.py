"""Read many files: in threads, with small files of the same layout checked together.

Checking a file takes a few hundred Polars calls, whatever its size. Small files with the same columns and format are
therefore concatenated, in order, before their cells are typed; each row keeps its file and line. What is inferred from
the rows (order of dates, unit) may change between blocks of rows, and so between files.
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

from unmet.csv_files import LINE, REJECTED
from unmet.errors import InputError
from unmet.records.cleaning import FILE
from unmet.records.formats.base import Raw
from unmet.records.one_file import Looked, OneFile, Reading, look_at, read_one
from unmet.records.sources import RecordSource

__all__ = ["Batch", "read_batches"]

MANY_FILES = 20  # fewer files are checked one by one
SMALL_ROWS = 100_000  # rows up to which a file is checked together with others
BATCH_ROWS = 1_000_000
LARGE_BYTES = 1 << 26  # size from which a file is read alone
MAX_THREADS = 4  # each has a batch in memory, and Polars has threads of its own
AHEAD = 8  # small files that are read ahead for each thread


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that were checked together, usually one."""

    first: int  # number of its first file
    sources: list[RecordSource]
    one: OneFile  # its sessions have the number of their file in FILE
    rejected: pl.DataFrame  # file, and the columns of REJECTED


def read_batches(sources: list[RecordSource], reading: Reading) -> Iterator[Batch]:
    """Read all sources and yield them in order. Threads help because Polars releases the interpreter lock."""
    workers = min(os.cpu_count() or 1, MAX_THREADS)
    many = len(sources) >= MANY_FILES
    with ThreadPoolExecutor(workers) as pool:
        checking: deque[Future[Batch]] = deque()
        try:
            for first, together in _groups(_looked_at(sources, reading.format, pool, workers), many=many):
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


def _groups(looked_at: Iterator[Looked], *, many: bool) -> Iterator[tuple[int, list[Looked]]]:
    """Groups of files to check together, each with the number of its first file."""
    together: list[Looked] = []
    first = rows = 0
    for looked in looked_at:
        if together and not (many and rows <= BATCH_ROWS and _are_alike(together[0], looked)):
            size = len(together)
            yield first, together
            first, together, rows = first + size, [], 0
        together.append(looked)
        rows += 0 if looked.raw.sessions is None else looked.raw.sessions.height
        is_last = not _is_small(looked)
        del looked
        if is_last:
            yield first, together
            first, together, rows = first + 1, [], 0
    if together:
        yield first, together


def _looked_at(
    sources: list[RecordSource],
    format: str,  # noqa: A002
    pool: ThreadPoolExecutor,
    workers: int,
) -> Iterator[Looked]:
    """The raw cells of each source; the next few are read ahead."""
    waiting: deque[Future[Looked]] = deque()
    try:
        for source in sources:
            while waiting and (len(waiting) >= AHEAD * workers or _is_large(source)):
                yield waiting.popleft().result()
            waiting.append(pool.submit(look_at, source, format))
        while waiting:
            yield waiting.popleft().result()
    finally:
        for task in waiting:
            task.cancel()


def _is_large(source: RecordSource) -> bool:
    return isinstance(source.table, Path) and source.table.is_file() and source.table.stat().st_size > LARGE_BYTES


def _is_small(looked: Looked) -> bool:
    return looked.raw.sessions is None or looked.raw.sessions.height <= SMALL_ROWS


def _are_alike(known: Looked, new: Looked) -> bool:
    """Whether a file can be checked together with another."""
    if new.raw.sessions is None or known.raw.sessions is None or not (_is_small(new) and _is_small(known)):
        return False
    plain = all(raw.stations is None and raw.outages is None and not raw.notes for raw in (known.raw, new.raw))
    same = (known.format, known.columns, known.raw.mapping) == (new.format, new.columns, new.raw.mapping)
    are_sheets = new.source.is_one_of_several or known.source.is_one_of_several
    return plain and same and not are_sheets and new.raw.sessions.schema == known.raw.sessions.schema


def _checked(first: int, together: list[Looked], reading: Reading) -> Batch:
    """The sessions of several files, checked together; meanwhile lines are numbered across files."""
    sources = [looked.source for looked in together]
    offsets = np.zeros(len(together), dtype=np.int64)
    merged = together[0]
    if len(together) > 1:
        merged, offsets = _merged(together)
    together.clear()
    one = read_one(merged, reading)
    names = pl.Series([source.name for source in sources], dtype=pl.String)
    if one.sessions is not None:
        which, line = _placed(one.sessions[LINE], offsets)
        one = replace(one, sessions=one.sessions.with_columns(line, (which + first).cast(pl.UInt32).alias(FILE)))
    which, line = _placed(one.rejected["line"], offsets)
    rejected = one.rejected.select(names.gather(which).alias("file"), line.alias("line"), "column", "value", "reason")
    return Batch(first, sources, one, rejected)


def _merged(together: list[Looked]) -> tuple[Looked, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """All cells in one table; the lines of a file follow those of the file before."""
    frames, rejects, offsets, line = [], [], [], 0
    for looked in together:
        frame, rejected = looked.raw.sessions, looked.raw.rejected
        if frame is None:
            continue
        offsets.append(line)
        frames.append(frame.with_columns((pl.col(LINE) + line).cast(pl.UInt32)))
        rejects.append(rejected.with_columns((pl.col("line") + line).cast(pl.UInt32)) if rejected.height else rejected)
        line += max([int(frame[LINE][-1]) if frame.height else 0, *rejected["line"].to_list()]) + 1
    first = together[0]
    raw: Raw = replace(
        first.raw,
        sessions=pl.concat(frames),
        rejected=pl.concat([reject.cast(pl.Schema(REJECTED)) for reject in rejects]),
    )
    return replace(first, raw=raw), np.array(offsets, dtype=np.int64)


def _placed(lines: pl.Series, offsets: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[pl.Series, pl.Series]:
    """The file of each row, counted from 0, and its line there."""
    if len(offsets) == 1:
        return pl.repeat(0, len(lines), dtype=pl.UInt32, eager=True), lines.cast(pl.UInt32)
    number = lines.to_numpy().astype(np.int64)
    which = np.searchsorted(offsets, number, side="right") - 1
    return pl.Series(which.astype(np.uint32)), pl.Series(lines.name, (number - offsets[which]).astype(np.uint32))
