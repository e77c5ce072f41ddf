"""Many files at a time: cells are read in threads, and small files of one layout are judged together.

Judging a file costs some hundred calls of Polars, whatever its size. A thousand small files of the same columns and
format are therefore put together, in their order, before their cells are typed; each row keeps its file and line. What
the rows decide (order of dates, unit) may change from block to block of rows, so also from file to file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from unmet.records.cleaning import FILE
from unmet.records.formats.base import LINE, REJECTED, Raw
from unmet.records.one_file import Looked, OneFile, Reading, look_at, read_one
from unmet.records.sources import Source

__all__ = ["Batch", "read_batches"]

MANY_FILES = 20  # fewer are judged each on its own
SMALL_ROWS = 100_000  # of a file that is judged together with others
BATCH_ROWS = 1_000_000
LARGE_BYTES = 1 << 26  # of a file that is read alone


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that were judged together, mostly one."""

    first: int  # number of its first file
    sources: list[Source]
    one: OneFile  # sessions with FILE, from `first` on
    rejected: pl.DataFrame  # file, and the columns of REJECTED


def read_batches(sources: list[Source], reading: Reading) -> Iterator[Batch]:
    """Read all sources, in their order."""
    together: list[Looked] = []
    first = 0
    for looked in _looked_at(sources, reading.format):
        if together and not (len(sources) >= MANY_FILES and _are_alike(together, looked)):
            batch = _judged(first, together, reading)
            first, together = first + len(batch.sources), []
            yield batch
            del batch
        together.append(looked)
        del looked
    if together:
        yield _judged(first, together, reading)


def _looked_at(sources: list[Source], format: str) -> Iterator[Looked]:  # noqa: A002
    """The raw cells of each source; several are read at a time, since reading leaves other threads alone."""
    workers = min(os.cpu_count() or 1, len(sources))
    if workers < 2:
        yield from (look_at(source, format) for source in sources)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: list[Future[Looked]] = []
        try:
            for source in sources:
                while waiting and (len(waiting) > workers or _is_large(source)):  # one large file in memory at a time
                    yield waiting.pop(0).result()
                waiting.append(pool.submit(look_at, source, format))
            while waiting:
                yield waiting.pop(0).result()
        finally:
            for task in waiting:
                task.cancel()


def _is_large(source: Source) -> bool:
    return isinstance(source.table, Path) and source.table.is_file() and source.table.stat().st_size > LARGE_BYTES


def _are_alike(together: list[Looked], new: Looked) -> bool:
    """Whether a file can be judged with those before it."""
    known, rows = together[0], new.raw.sessions
    if rows is None or known.raw.sessions is None or max(rows.height, known.raw.sessions.height) > SMALL_ROWS:
        return False
    plain = all(raw.stations is None and raw.outages is None and not raw.notes for raw in (known.raw, new.raw))
    same = (known.format, known.columns, known.raw.mapping) == (new.format, new.columns, new.raw.mapping)
    is_alone = new.source.is_one_of_several or known.source.is_one_of_several
    full = sum(looked.raw.sessions.height for looked in together if looked.raw.sessions is not None) > BATCH_ROWS
    return plain and same and not is_alone and not full and rows.schema == known.raw.sessions.schema


def _judged(first: int, together: list[Looked], reading: Reading) -> Batch:
    """What files hold, judged together; lines are counted on from file to file while they are."""
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
