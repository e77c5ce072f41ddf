"""Records that do not fit into memory: read once, file by file, and written to disk in cells of stations.

All sessions of a station are in one cell, so that duplicates, restarts and cars on one plug are found within it. Large
Parquet files are read in parts. Checks that need all sessions (for rows years away from all others) use counts by
day, which are kept for all cells. Reading a cell back therefore returns the sessions that reading everything at once
would, with one exception: an id that too many cars use at once to belong to one driver is recognised only among the
cells that are read together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from unmet.csv_files import LINE
from unmet.records.cleaning import FILE, clean
from unmet.records.one_file import Reading
from unmet.records.outliers import days_of
from unmet.records.sessions import RecordCollector, Records, finished_sessions, read_into
from unmet.records.sources import find_sources, in_parts
from unmet.tables import Checked

__all__ = ["PART_ROWS", "Partition", "partition_records"]

PART_ROWS = 2_000_000  # rows of a Parquet file that are read at a time
_CODE = "__station__"  # column with the row of a session's station in the table of stations


@dataclass(frozen=True, slots=True)
class Partition:
    """Sessions on disk, by cell; small enough to be sent to another process that sees the same disk."""

    folder: Path
    rows: NDArray[np.int64]  # number of sessions in each cell, (cells,)
    days: pl.DataFrame  # number of sessions by day, see `outliers.days_of`
    station_ids: pl.Series  # ids of the table of stations; on disk, its row stands for an id
    names: tuple[str, ...]  # names of the sources, by number
    join_minutes: float

    def read(self, cells: Sequence[int]) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, int]]:
        """Read some cells. Returns sessions, rows set aside at this stage, and counts, as `finished_sessions` does."""
        parts = []
        for cell in cells:
            for path in sorted(self.folder.glob(f"cell-{cell:04d}-*.arrow")):
                with pa.memory_map(str(path)) as file:
                    parts.append(pl.DataFrame(pa.ipc.open_file(file).read_all()))
        frames = [
            part.with_columns(self.station_ids.gather(part[_CODE]).alias("station_id")).drop(_CODE) for part in parts
        ]
        if len({tuple(frame.columns) for frame in frames}) > 1:  # restore the order of rows with different columns
            frames = [pl.concat(frames, how="diagonal").sort(FILE, LINE)]
        return finished_sessions(clean(frames, self.days), list(self.names), self.join_minutes)


def partition_records(
    paths: Iterable[Any] | Any,
    folder: Path,
    reading: Reading,
    stations: Checked,
    cell_of_station: NDArray[np.int64],
    *,
    given: Any = None,
    join_minutes: float,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Partition, Records]:
    """Read files of sessions and write them into cells. Returns where they are, and the records without sessions.

    Args:
        paths: files, folders, patterns.
        folder: existing folder to write to.
        reading: how to read; `known_stations` are the stations of the table.
        stations: the table of stations.
        cell_of_station: cell of each row of `stations`, numbered from 0.
        given: where the table came from, for notes.
        join_minutes: as in `read_sessions`.
        progress: called with the number of parts read so far, and in total.
    """
    sources = in_parts(find_sources(paths), PART_ROWS)
    with ExitStack() as stack:
        collector = _SpillingCollector(folder, stations.kept["station_id"], cell_of_station, stack)
        read_into(collector, sources, reading, progress)
    if not collector.days:
        collector.days.append(pl.DataFrame(schema={"day": pl.Int64, "rows": pl.UInt32}))
    days = pl.concat(collector.days).group_by("day").agg(pl.col("rows").cast(pl.Int64).sum()).sort("day")
    names = tuple(source.name for source in sources)
    partition = Partition(folder, collector.rows, days, stations.kept["station_id"], names, join_minutes)
    seen = stations.kept["station_id"].clear()  # none: all stations are in the table
    records = collector.without_sessions(stations, given, seen, reading.time_zone)
    return partition, replace(records, notes=[*collector.file_notes(), *records.notes])


@dataclass(slots=True)
class _Spill:
    """Writes sessions to the files of their cells."""

    folder: Path
    stack: ExitStack
    writers: dict[tuple[int, int], Any] = field(default_factory=dict)  # by cell and number of the layout
    layouts: list[pa.Schema] = field(default_factory=list)

    def write(self, cell: int, table: pa.Table) -> None:
        """Append sessions to the file of a cell; each set of columns has a file of its own."""
        if table.schema not in self.layouts:
            self.layouts.append(table.schema)
        key = cell, self.layouts.index(table.schema)
        if key not in self.writers:
            path = self.folder / f"cell-{cell:04d}-{key[1]}.arrow"
            self.writers[key] = self.stack.enter_context(pa.ipc.new_file(path, table.schema))
        self.writers[key].write_table(table)


class _SpillingCollector(RecordCollector):
    """A collector that writes its sessions to disk."""

    def __init__(self, folder: Path, ids: pl.Series, cell_of_station: NDArray[np.int64], stack: ExitStack) -> None:
        super().__init__()
        self.ids, self.codes = ids, pl.Series(np.arange(len(ids), dtype=np.uint32))
        self.cell_of_station = cell_of_station
        self.rows = np.zeros(int(cell_of_station.max(initial=0)) + 1, np.int64)
        self.days: list[pl.DataFrame] = []
        self.spill = _Spill(folder, stack)

    def keep(self, sessions: pl.DataFrame) -> None:
        """Write typed sessions into the cells of their stations, in their order."""
        if sessions.is_empty():
            return
        self.days.append(days_of(sessions["start"]))
        code = sessions["station_id"].replace_strict(self.ids, self.codes, return_dtype=pl.UInt32)
        cell = self.cell_of_station[code.to_numpy()]
        order = np.argsort(cell.astype(np.int16), kind="stable")  # a radix sort for 16-bit integers
        ordered = sessions.drop("station_id").with_columns(code.alias(_CODE))[order]
        table = ordered.to_arrow(compat_level=pl.CompatLevel.oldest())
        used, first = np.unique(cell[order], return_index=True)
        sizes = np.diff(np.append(first, len(cell)))
        for number, start, size in zip(used, first, sizes, strict=True):
            self.spill.write(int(number), table.slice(int(start), int(size)))
        self.rows[used] += sizes
