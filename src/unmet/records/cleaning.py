"""Cleaning the sessions of all files together: duplicates, order, and one car at a time per plug.

Strings are slow to compare, so stations and plugs are numbered, and station and start form one sort key. Two rows can
only be the same session if their keys are equal, so the costly comparisons are made only among those few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.compiled import compiled
from unmet.csv_files import LINE
from unmet.records.outliers import FAR_AWAY, lone_starts
from unmet.tables import UTC

__all__ = ["FILE", "Cleaned", "clean"]

FILE = "__file__"  # the number of the file that a row came from
_REPEATS: dict[str, pl.DataType] = {
    "file": pl.UInt32(),
    "line": pl.UInt32(),
    "session_id": pl.String(),
    "first_file": pl.UInt32(),
    "first_line": pl.UInt32(),
}
_NO_SESSIONS: dict[str, pl.DataType] = {  # columns if there are no files
    FILE: pl.UInt32(),
    LINE: pl.UInt32(),
    "station_id": pl.String(),
    "start": pl.Int64(),
    "end": pl.Int64(),
    "energy_kwh": pl.Float64(),
}


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Sessions in order, and the rows that repeat an earlier one."""

    sessions: pl.DataFrame  # the columns that came in, sorted by start, station and id
    repeats: pl.DataFrame  # file, line and session_id of duplicates; first_file and first_line of the rows they repeat
    far: pl.DataFrame  # file, line, station_id, start and days of rows that are years away from all others
    counts: dict[str, int]


def clean(parts: list[pl.DataFrame], days: pl.DataFrame | None = None) -> Cleaned:
    """Remove duplicates, sort, and cut sessions that overlap the next one on the same plug.

    Each part has FILE, LINE, station_id, start and end [Int64, ms], energy_kwh, and perhaps session_id, plug_id,
    vehicle_id and user_id. The first of several equal rows is kept. The list is emptied, to save memory. If the parts
    are only some of the sessions, `days` counts all of them (see `outliers.days_of`).
    """
    counts = {"duplicates": 0, "duplicates_that_differ": 0, "ids_used_twice": 0, "ends_cut_short": 0}
    repeats = pl.DataFrame(schema={"row": pl.UInt32, "first": pl.UInt32})
    frame = pl.concat(parts, how="diagonal") if parts else pl.DataFrame(schema=_NO_SESSIONS)
    parts.clear()
    frame, far = _without_far(frame, days)
    counts[FAR_AWAY] = far.height
    if frame.is_empty():
        return Cleaned(frame, _describe_repeats(repeats, frame), far, counts)
    station = _codes(frame["station_id"])
    key = _sort_key(frame["start"], station)
    order, tied = _order(key)
    if len(tied):
        rows = order.gather(tied)
        columns = [
            c for c in ("session_id", "plug_id", "vehicle_id", "user_id", "end", "energy_kwh") if c in frame.columns
        ]
        same = frame.select(columns)[rows].with_columns(rows.alias("row"), key.gather(rows).alias("key"))
        repeats, counts["duplicates_that_differ"] = _repeats(same)
        counts["duplicates"] = repeats.height
        by = ["key", "session_id", "row"] if "session_id" in same.columns else ["key", "row"]
        order = order.scatter(tied, same.select(pl.col("row").sort_by(*by))["row"])
    if repeats.height:
        repeated = pl.zeros(frame.height, pl.Boolean, eager=True).scatter(repeats["row"], True)
        order = order.filter(~repeated.gather(order))
    del key
    described = _describe_repeats(repeats, frame)
    if len(order) < frame.height or not _is_in_order(order):
        station = station.gather(order)
        # Column by column, so that only one column is in memory twice.
        frame = pl.DataFrame([frame.drop_in_place(name).gather(order) for name in frame.columns])
    del order
    if "session_id" in frame.columns:
        ids = frame["session_id"].drop_nulls().hash()  # hashes take less memory than ids
        counts["ids_used_twice"] = len(ids) - ids.n_unique()
        del ids
    if "plug_id" in frame.columns and frame["plug_id"].null_count() < frame.height:
        end, counts["ends_cut_short"] = _cut_overlaps(frame, station)
        frame = frame.with_columns(end.alias("end"))
    return Cleaned(frame, described, far, counts)


def _without_far(frame: pl.DataFrame, days_of_all: pl.DataFrame | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The sessions of the main period of the records, and the rows that are years away from it."""
    days = lone_starts(frame["start"], days_of_all)
    lone = days > 0
    described = pl.DataFrame(
        {
            "file": frame[FILE].filter(lone),
            "line": frame[LINE].filter(lone),
            "station_id": frame["station_id"].filter(lone),
            "start": frame["start"].filter(lone).cast(UTC),
            "days": days.filter(lone),
        }
    )
    # Rows from several files come in chunks, some of which are now empty, and pl.format fails on empty chunks.
    return (frame.filter(~lone).rechunk() if described.height else frame), described.rechunk()


def _describe_repeats(repeats: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """File, line and id of duplicates, and file and line of the rows that they repeat, with the columns of _REPEATS."""
    if repeats.is_empty():
        return pl.DataFrame(schema=_REPEATS)
    row, first = repeats["row"], repeats["first"]
    identity = frame["session_id"].gather(row) if "session_id" in frame.columns else None
    return pl.DataFrame(
        {
            "file": frame[FILE].gather(row),
            "line": frame[LINE].gather(row),
            "session_id": pl.Series(identity if identity is not None else [None] * len(row), dtype=pl.String),
            "first_file": frame[FILE].gather(first),
            "first_line": frame[LINE].gather(first),
        }
    )


def _codes(names: pl.Series) -> pl.Series:
    """A number for each name, in the order of the names; null where a name is null."""
    distinct = names.drop_nulls().unique().sort()
    return names.cast(pl.Enum(distinct)).to_physical().cast(pl.Int64)


def _sort_key(start: pl.Series, station: pl.Series) -> pl.Series:
    """One number that sorts as start, then station."""
    first, last, stations = _whole(start.min()), _whole(start.max()), _whole(station.max()) + 1
    if (last - first + 1) * stations < 2**62:
        return (start - first) * stations + station
    # The product would overflow: rank the pairs instead.
    return start.to_frame("s").with_columns(station.alias("c")).select(pl.struct("s", "c").rank("dense"))["s"]


def _whole(value: Any) -> int:
    """An aggregate of a column of integers, which Polars types too widely, as int."""
    return int(value)


def _is_in_order(order: pl.Series) -> bool:
    """Whether the rows are already in order."""
    return bool((order.diff().drop_nulls() == 1).all())


def _order(key: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The rows in order of the key, and the positions in that order whose key occurs more than once."""
    order = pl.arange(0, len(key), dtype=pl.UInt32, eager=True) if key.is_sorted() else key.arg_sort()
    ordered = key.gather(order)
    again = (ordered.diff() == 0).fill_null(value=False)
    return order, (again | again.shift(-1, fill_value=False)).arg_true()


def _repeats(same: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Which rows repeat an earlier one of the same station and start, and how many of them have other values.

    Either the id is equal, or plug, end and energy are. If no plug is known, the user must be equal too, and
    sessions without energy but with different ids count as two.
    """
    nothing = pl.lit(None, pl.String)
    identity, plug, vehicle, user = (
        pl.col(column) if column in same.columns else nothing
        for column in ("session_id", "plug_id", "vehicle_id", "user_id")
    )
    same = same.sort("row").with_columns(
        identity.alias("identity"),
        plug.alias("plug"),
        pl.when(plug.is_null()).then(pl.coalesce(vehicle, user)).alias("user"),
    )
    content = ("key", "plug", "user", "end", "energy_kwh")
    # Whether equal contents are enough to show that two rows are one session.
    telling = pl.col("plug").is_not_null() | (pl.col("energy_kwh") > 0) | pl.col("identity").is_null()
    with_matches = same.with_columns(
        pl.when(pl.col("identity").is_not_null()).then(pl.col("row").first().over("key", "identity")).alias("by_id"),
        pl.when(telling).then(pl.col("row").first().over(*content, telling)).alias("by_content"),
    )
    first = pl.min_horizontal("by_id", "by_content")
    found = with_matches.with_columns(first.alias("first")).filter(pl.col("first") < pl.col("row"))
    differ = found.filter((pl.col("by_content") == pl.col("row")).fill_null(value=False)).height
    return found.select("row", "first"), differ


def _cut_overlaps(frame: pl.DataFrame, station: pl.Series) -> tuple[pl.Series, int]:
    """Ends such that no two sessions overlap on a plug, for sessions sorted by start; and how many ends moved.

    A session ends no later than the next one on its plug starts. A session within another one gets zero duration.
    """
    plugs = _codes(frame["plug_id"])
    rows = plugs.is_not_null().arg_true()
    plug = (station * (_whole(plugs.max()) + 1) + plugs).gather(rows).to_numpy()
    row = rows.to_numpy().astype(np.int64)
    del plugs, rows
    if int(plug.max()) < 2**62 // frame.height:  # plug and row fit into one integer, which sorts faster than an argsort
        ordered = pl.Series(plug * frame.height + row).sort().to_numpy()
        plug, row = ordered // frame.height, ordered % frame.height
        del ordered
    else:
        order = np.argsort(plug, kind="stable")
        plug, row = plug[order], row[order]
    start, end = frame["start"].to_numpy()[row], frame["end"].to_numpy()[row]
    shorter = _one_at_a_time(plug, start, end)
    moved = np.flatnonzero(shorter < end)
    if not len(moved):
        return frame["end"], 0
    ends = frame["end"].to_numpy().copy()
    ends[row[moved]] = shorter[moved]
    return pl.Series("end", ends), len(moved)


@compiled("int64[::1](int64[::1], int64[::1], int64[::1])")
def _one_at_a_time(plug: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ends such that a plug holds one car at a time; rows sorted by plug and start."""
    cut = end.copy()
    holder = 0
    for i in range(1, len(plug)):
        if plug[i] == plug[holder] and end[i] <= cut[holder]:
            cut[i] = start[i]  # within the stay of another: a restart or a spurious record, not another car
            continue
        if plug[i] == plug[holder] and start[i] < cut[holder]:
            cut[holder] = start[i]
        holder = i
    return cut
