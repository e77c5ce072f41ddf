"""Plug ids that are reused at every post of a station.

A connector number such as 1 or 2 is often unique only within its post. If a station then has several posts, sessions of
different plugs seem to overlap on one. If a column of the file identifies the posts, it becomes part of the id.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.compiled import compiled
from unmet.csv_files import LINE
from unmet.records.ordering import numbers_of, stable_order

__all__ = ["overlap_share", "tell_plugs_apart"]

# Shares of sessions that overlap another one on their plug; real records have about 1 %.
MIN_SHARE = 0.05  # from which ids are suspected of being reused
HOPELESS_SHARE = 0.2  # from which ids do not identify plugs at all
MIN_REDUCTION = 5  # factor by which the right column of posts reduces that share
MIN_SESSIONS = 20  # fewer show nothing
MANY_SESSIONS = 100_000  # a sufficient sample
MIN_SESSIONS_PER_POST = 5  # on average; a column with more values does not hold posts
ALLOWED_MS = 60_000  # overlap that times rounded to the minute explain
# Parts of the names of columns that may hold posts, and of columns that do not.
_POSTS = re.compile(
    r"post|borne|colonn|cp.?id|charge.?point|charge.?box|charger|evse|station|unit|device|asset|serial|s[äa]ule|pole"
)
_NO_POSTS = re.compile(r"time|date|start|end|kwh|energy|type|model|user|name of|cost|price")


def tell_plugs_apart(
    typed: pl.DataFrame, raw: pl.DataFrame, used: set[str], *, is_settled: bool
) -> tuple[pl.DataFrame, str | None]:
    """Sessions with plug ids that are unique within their station, and a sentence about changes made or needed.

    Args:
        typed: LINE, station_id, plug_id, start and end [Int64 ms].
        raw: LINE and the columns of the file.
        used: columns that are used for something else.
        is_settled: whether the user gave the column of the plug; then nothing is changed.
    """
    if "plug_id" not in typed.columns or typed.height < MIN_SESSIONS:
        return typed, None
    some = _some_stations(typed)
    share = overlap_share(some, some["plug_id"])
    if share < MIN_SHARE:
        return typed, None
    finding = f"{100 * share:.0f} % of sessions overlap another one on the same plug"
    column, remaining = _post_column(some, raw, used, share)
    if column is None:
        remedy = "If ids of plugs start again at every post, give --map plug_id=POST+PLUG."
        if is_settled or share < HOPELESS_SHARE:
            return typed, f"{finding}. {remedy}"
        return typed.drop("plug_id"), f"{finding}, so plug ids are not used. {remedy}"
    if is_settled:
        remedy = f'--map "plug_id={column}+PLUG"'
        return typed, f"{finding}; within {column!r} only {remaining:.1%} would: give {remedy} if that is the post."
    post = _aligned(typed, raw, column)
    plug = pl.concat_str(post, pl.col("plug_id"), separator="/")
    note = f"{finding}, but only {remaining:.1%} within {column!r}, which is taken as the post and added to the id."
    new = {"plug_id": plug} | ({} if "post_id" in typed.columns else {"post_id": post})
    return typed.with_columns(**new), note


def _some_stations(typed: pl.DataFrame) -> pl.DataFrame:
    """The sessions of a sufficient sample of stations."""
    every = typed.height // MANY_SESSIONS
    if every < 2:
        return typed
    some = typed.filter(pl.col("station_id").hash(seed=0) % every == 0)
    return some if some.height >= MANY_SESSIONS // 2 else typed  # stations are too few to choose from


def overlap_share(sessions: pl.DataFrame, plug: pl.Series) -> float:
    """Share of sessions that start before the previous one on their plug has ended."""
    rows = np.flatnonzero(plug.is_not_null().to_numpy())
    if not len(rows):
        return 0.0
    station, numbers = numbers_of(sessions["station_id"].gather(rows)), numbers_of(plug.gather(rows))
    place = station * (int(numbers.max()) + 1) + numbers  # a number for each plug of each station
    start, end = sessions["start"].to_numpy()[rows], sessions["end"].to_numpy()[rows]
    by_start = np.arange(len(rows)) if (np.diff(start) >= 0).all() else np.argsort(start, kind="stable")
    order = by_start[stable_order(place[by_start])]
    return float(_overlaps(place[order], start[order], end[order], ALLOWED_MS)) / len(rows)


@compiled("int64(int64[::1], int64[::1], int64[::1], int64)")
def _overlaps(place: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], allowed: int) -> int:
    """Number of sessions that overlap an earlier one on their plug (`place`); sorted by plug and start, times in ms."""
    count = 0
    until = end[0]
    for i in range(1, len(place)):
        if place[i] != place[i - 1]:
            until = end[i]
            continue
        is_same = start[i] == start[i - 1] and end[i] == end[i - 1]  # a duplicate
        if start[i] < until - allowed and end[i] > start[i] and not is_same:
            count += 1
        until = max(until, end[i])
    return count


def _post_column(typed: pl.DataFrame, raw: pl.DataFrame, used: set[str], share: float) -> tuple[str | None, float]:
    """The column whose values, as posts, reduce overlaps most, if clearly; and the remaining share of overlaps."""
    best, lowest = None, share / MIN_REDUCTION
    for column in raw.columns:
        name = column.lower()
        if column in used or column == LINE or not _POSTS.search(name) or _NO_POSTS.search(name):
            continue
        post = _aligned(typed, raw, column)
        if not 1 < post.n_unique() <= max(typed.height // MIN_SESSIONS_PER_POST, 2):
            continue
        both = typed.select(pl.concat_str(post, pl.col("plug_id"), separator="/").alias("both"))["both"]
        remaining = overlap_share(typed, both)
        if remaining < lowest:
            best, lowest = column, remaining
    return best, lowest


def _aligned(typed: pl.DataFrame, raw: pl.DataFrame, column: str) -> pl.Series:
    """The cells of a column for the rows that are kept."""
    rows = raw[LINE].cast(pl.UInt32).search_sorted(typed[LINE])
    return raw[column].gather(rows).cast(pl.String).str.strip_chars()
