"""Restarts: sessions that one driver interrupts and starts again are one arrival, not several.

A session is a restart of another if the same user starts it at the same station within a few minutes of the other's
end. A user who has several cars at a station at once is followed plug by plug. The joined session has the first start,
the last end and the sum of the energies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Integers
from unmet.compiled import compiled
from unmet.records.ordering import numbers_of, stable_order
from unmet.tables import UTC, as_frame

__all__ = ["JOIN_MINUTES", "join_restarts"]

JOIN_MINUTES = 15.0
"""Longest break between two sessions that are joined, by default [minutes].

Of the sessions in Belib's and Lugano's records, 16 % and 15 % follow another of the same user at the same station
within 15 minutes, most of them within two minutes; in the next quarter of an hour it is less than 1 %.
"""
MAX_CARS = 3  # an id that more cars use at once does not belong to one driver
_PLACEHOLDERS = (
    *("unknown", "sconosciuto", "unbekannt", "inconnu", "desconocido", "desconhecido", "onbekend", "ukendt", "okänd"),
    *("ukjent", "tuntematon", "nieznany", "anonymous", "anonyme", "anonym", "anonimo", "guest", "gast", "adhoc"),
    *("none", "null", "nan", "na", "notavailable", "notapplicable", "undefined", "default", "noid", "nouser", "test"),
)


def join_restarts(sessions: Any, minutes: float = JOIN_MINUTES) -> tuple[pl.DataFrame, int]:
    """Join each session with its restarts.

    Args:
        sessions: `session_id, station_id, start, end, energy_kwh, user_id` and, where known, `post_id, plug_id,
            charged`; any Arrow-compatible frame. Other columns keep the value of the first session.
        minutes: longest time from the end of a session to the start of its restart [minutes]; 0 joins nothing.

    Returns:
        The sessions in their order, and how many of them were joined to an earlier one.

    Sessions without a user, of a placeholder such as `unknown`, or of an id that more than three cars use at once are
    left as they are.

    >>> import datetime as dt
    >>> times = [dt.datetime(2024, 5, 1, 8, minute, tzinfo=dt.UTC) for minute in (0, 10, 12, 50)]
    >>> frame = pl.DataFrame({"session_id": ["1", "2"], "station_id": "A", "start": times[::2], "end": times[1::2],
    ...                       "energy_kwh": [0.1, 7.0], "user_id": "me"})
    >>> joined, count = join_restarts(frame, minutes=15)
    >>> joined["energy_kwh"].to_list(), count
    ([7.1], 1)
    """
    frame = as_frame(sessions)
    if minutes <= 0 or "user_id" not in frame.columns or frame.is_empty():
        return frame, 0
    # Rows are kept in order of start, and then sorted stably: by user, or by user and station.
    user, station = numbers_of(frame["user_id"]), numbers_of(frame["station_id"])
    rows = np.flatnonzero(_has_user(frame["user_id"], user))
    start, end = (frame[column].cast(UTC).to_physical().to_numpy() for column in ("start", "end"))
    if (np.diff(start[rows]) < 0).any():
        rows = rows[np.argsort(start[rows], kind="stable")]
    by_user = rows[stable_order(user[rows])]
    rows = np.sort(by_user[~_is_shared(user[by_user], start[by_user], end[by_user])]) if len(by_user) else by_user
    rows = rows[np.argsort(start[rows], kind="stable")] if (np.diff(start[rows]) < 0).any() else rows
    if not len(rows):
        return frame, 0
    rows = rows[stable_order(user[rows] * (station.max() + 1) + station[rows])]
    key = user[rows] * (station.max() + 1) + station[rows]
    first = rows[_first_of_each(key, _parts(frame)[rows], start[rows], end[rows], round(minutes * 60_000))]
    joined = first != rows
    if not joined.any():
        return frame, 0
    return _joined(frame, rows[joined], first[joined]), int(joined.sum())


def _has_user(names: pl.Series, numbers: Integers) -> NDArray[np.bool_]:
    """Whether each session has a real user id: letters or digits other than zeros, and not a placeholder."""
    if names.null_count() == len(names):
        return np.zeros(len(names), dtype=np.bool_)
    distinct = pl.DataFrame([pl.Series("number", numbers), names.cast(pl.String).alias("name")]).unique(
        "number", keep="any"
    )
    plain = pl.col("name").str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]", "").str.strip_chars_start("0")
    real = distinct.filter((plain != "").fill_null(value=False) & ~plain.is_in(list(_PLACEHOLDERS)))["number"]
    known = np.zeros(int(numbers.max(initial=0)) + 2, dtype=np.bool_)
    known[real.to_numpy()] = True
    known[-1] = False  # the number of a missing id is -1
    return known[numbers]


def _parts(frame: pl.DataFrame) -> Integers:
    """A number for the post of a session, or for its plug where no post is known."""
    places = [pl.col(column).cast(pl.String) for column in ("post_id", "plug_id") if column in frame.columns]
    if not places:
        return np.zeros(frame.height, dtype=np.int64)
    return numbers_of(frame.select(pl.coalesce(*places, pl.lit("")).alias("part"))["part"])


@compiled("boolean[::1](int64[::1], int64[::1], int64[::1])")
def _is_shared(user: Integers, start: Integers, end: Integers) -> NDArray[np.bool_]:
    """Whether the user of a session has more cars at once than one driver can have; sorted by user, start."""
    shared = np.zeros(len(user), dtype=np.bool_)
    present = np.empty(MAX_CARS, dtype=np.int64)  # ends of the user's cars; a session without duration adds no car
    begin = 0
    for i in range(len(user)):
        if i == 0 or user[i] != user[i - 1]:
            begin = i
            present[:] = start[i]
        free = np.argmin(present)
        if present[free] > start[i] and end[i] > start[i]:
            shared[begin] = True
        elif end[i] > present[free]:
            present[free] = end[i]
        if i + 1 == len(user) or user[i + 1] != user[i]:
            shared[begin : i + 1] = shared[begin]
    return shared


@compiled("int64[::1](int64[::1], int64[::1], int64[::1], int64[::1], int64)")
def _first_of_each(key: Integers, part: Integers, start: Integers, end: Integers, longest_ms: int) -> Integers:
    """Position of the first session of each arrival; rows are sorted by key (user, station) and start.

    Sessions follow each other at the station or, where a user has cars on two parts of it at once, on each part.
    """
    first = np.arange(len(key))
    latest = end.copy()  # end of the sessions joined so far
    begin = 0
    while begin < len(key):
        stop = begin + 1
        several = False
        until = end[begin]
        while stop < len(key) and key[stop] == key[begin]:
            several |= start[stop] < until and part[stop] != part[stop - 1]
            until = max(until, end[stop])
            stop += 1
        for i in range(begin + 1, stop):
            j = i - 1
            while several and j >= begin and part[j] != part[i]:
                j -= 1
            if j >= begin and start[i] - latest[j] <= longest_ms:
                first[i] = first[j]
                latest[i] = max(latest[i], latest[j])
        begin = stop
    return first


def _joined(frame: pl.DataFrame, rows: Integers, first: Integers) -> pl.DataFrame:
    """Merge restarts into their first sessions; `first` is the position of the first session of each row."""
    place = pl.Series("place", first)
    columns = [column for column in ("start", "end", "energy_kwh", "charged") if column in frame.columns]
    parts = pl.concat(
        [
            frame.select(columns)[rows].with_columns(place),
            frame.select(columns)[place.unique().to_numpy()].with_columns(place.unique()),
        ]
    )
    last = pl.col("charged").sort_by("end").last() if "charged" in columns else pl.lit(None)
    merged = parts.group_by("place", maintain_order=True).agg(
        pl.col("end").max(), pl.col("energy_kwh").sum(), last.alias("charged")
    )
    changed = [frame[column].scatter(merged["place"], merged[column]) for column in columns if column != "start"]
    stays = pl.repeat(True, frame.height, dtype=pl.Boolean, eager=True).scatter(pl.Series(rows), False)
    return frame.with_columns(changed).filter(stays)
