"""Restarts: sessions that one driver breaks off and starts again are one arrival, not several.

A session is a restart of another if the same user starts it at the same station within a few minutes of the other's
end. A user who has several cars at a station at once is followed plug by plug there. Joined, the sessions are one: its
start is the first start, its end the last end, its energy the sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from unmet.tables import as_frame

__all__ = ["JOIN_MINUTES", "join_restarts"]

JOIN_MINUTES = 15.0
"""Longest break between two sessions that are joined, by default [minutes].

Of the sessions in Belib's and Lugano's records, 16 % and 15 % follow another of the same user at the same station
within 15 minutes, most of them within two minutes; in the next quarter of an hour it is less than 1 %.
"""
MOST_CARS = 3  # an id that more cars use at once is not of one driver
_PLACEHOLDERS = (
    *("unknown", "sconosciuto", "unbekannt", "inconnu", "desconocido", "desconhecido", "onbekend", "ukendt", "okänd"),
    *("ukjent", "tuntematon", "nieznany", "anonymous", "anonyme", "anonym", "anonimo", "guest", "gast", "adhoc"),
    *("none", "null", "nan", "na", "notavailable", "notapplicable", "undefined", "default", "noid", "nouser", "test"),
)
_ROW, _GROUP, _WHO = "__row__", "__group__", "__who__"
_STATION, _PART, _WHERE = "__station__", "__part__", "__where__"


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
    told = frame.with_row_index(_ROW).filter(_is_user(pl.col("user_id")))
    told = told.select(_ROW, "start", "end", _code("user_id").alias(_WHO), *_places(frame))
    told = told.join(_shared(told), on=_WHO, how="anti").sort(_WHO, _STATION, "start", "end", _ROW)
    told = told.with_columns(_where(told)).sort(_WHO, _WHERE, "start", "end", _ROW)
    if told.is_empty():
        return frame, 0
    group = _groups(told, minutes)
    count = told.height - int(group[-1] + 1)
    if not count:
        return frame, 0
    first = told[_ROW].to_numpy()[np.searchsorted(group, group)]  # the row of the first of each group
    label = np.arange(frame.height, dtype=np.uint32)
    label[told[_ROW].to_numpy()] = first
    return _joined(frame, label), count


def _is_user(user: pl.Expr) -> pl.Expr:
    """Whether an id is of somebody: it has letters or digits other than zeros, and is no word for nobody."""
    plain = user.str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]", "").str.strip_chars_start("0")
    return (plain != "").fill_null(value=False) & ~plain.is_in(list(_PLACEHOLDERS))


def _code(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.Categorical).to_physical()


def _places(frame: pl.DataFrame) -> list[pl.Expr]:
    """Numbers for the station of a session, and for the post or plug there."""
    part = next((column for column in ("post_id", "plug_id") if column in frame.columns), None)
    return [
        _code("station_id").alias(_STATION),
        (_code(part).fill_null(-1) if part else pl.lit(0)).cast(pl.Int64).alias(_PART),
    ]


def _where(told: pl.DataFrame) -> pl.Expr:
    """The place within which a user's sessions follow each other: the station, or the post where cars are several."""
    both = [_WHO, _STATION]
    present = pl.col("start") < pl.col("end").cum_max().shift().over(both)
    elsewhere = pl.col(_PART) != pl.col(_PART).shift().over(both)
    several = (present & elsewhere).fill_null(value=False).any().over(both)
    return pl.struct(_STATION, pl.when(several).then(_PART)).rank("dense").alias(_WHERE)


def _shared(told: pl.DataFrame) -> pl.DataFrame:
    """Users with more sessions at once than one driver can have."""
    changes = pl.concat(
        [
            told.select(_WHO, pl.col("start").alias("at"), change=1),
            told.select(_WHO, pl.col("end").alias("at"), change=-1),
        ]
    )
    # At one moment, ends come first: a session of no length is nobody's second car.
    cars = changes.sort(_WHO, "at", "change").select(_WHO, pl.col("change").cum_sum().over(_WHO).alias("cars"))
    return cars.filter(pl.col("cars") > MOST_CARS).select(pl.col(_WHO).unique())


def _groups(told: pl.DataFrame, minutes: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Numbers of the joined sessions; rows sorted by user, place and start."""
    who, where = told[_WHO].to_numpy(), told[_WHERE].to_numpy()
    start, end = (told[column].cast(pl.Datetime("ms", "UTC")).to_physical().to_numpy() for column in ("start", "end"))
    changes = np.ones(told.height, dtype=bool)
    changes[1:] = (who[1:] != who[:-1]) | (where[1:] != where[:-1])
    block = np.cumsum(changes) - 1
    # The latest end so far in a block; blocks are kept apart by a span longer than the records.
    span = int(end.max() - start.min()) + 1
    so_far = np.maximum.accumulate(end - start.min() + block * span) - block * span + start.min()
    begins = changes.copy()
    begins[1:] |= start[1:] - so_far[:-1] > minutes * 60_000
    return np.cumsum(begins) - 1


def _joined(frame: pl.DataFrame, label: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> pl.DataFrame:
    """One row for each label, in the order of the first rows."""
    frame = frame.with_columns(pl.Series(_GROUP, label)).with_row_index(_ROW)
    several = pl.col(_GROUP).is_duplicated()
    alone, parts = frame.filter(~several), frame.filter(several)
    last = {name: pl.col(name).sort_by("end", _ROW).last() for name in ("charged",) if name in frame.columns}
    changed = {"end": pl.col("end").max(), "energy_kwh": pl.col("energy_kwh").sum(), **last}
    ordered = parts.sort(_GROUP, "start", _ROW)
    one = ordered.group_by(_GROUP, maintain_order=True).agg(
        changed.get(name, pl.col(name).first()).alias(name) for name in frame.columns if name not in (_GROUP, _ROW)
    )
    together = pl.concat([alone.drop(_ROW), one.select(alone.drop(_ROW).columns)])
    return together.sort(_GROUP).drop(_GROUP)
