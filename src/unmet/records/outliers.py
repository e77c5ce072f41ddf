"""Sessions far from all others in time, and notes on wrong clocks and long silences of stations.

A single row whose clock was reset to 2000 would stretch a panel over many years.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from unmet.arrays import Integers
from unmet.records.ordering import numbers_of, stable_order
from unmet.tables import UTC

__all__ = ["FAR_AWAY", "clock_notes", "days_of", "far_note", "lone_starts", "main_days"]

FAR_AWAY = "start_far_away"  # key of such rows in the counts
FAR_DAYS = 365  # distance from all other sessions that makes a period isolated
MIN_OTHERS = 20  # sessions needed to compare with; also those missed in a silence that is reported
LONE_SHARE = 0.01  # highest share of all sessions in an isolated period
RESET_SHARE = 0.2  # the same before `RESET_BEFORE`
RESET_BEFORE = 11_688  # 2002-01-01 [days since 1970]: networks are younger; reset clocks start in 1970, 1980 or 2000
GAP_DAYS = 30  # shortest silence of a station that is reported
MAX_JUMPS = 0.01  # share of sessions; if more go back in time, ids do not follow time and say nothing about clocks
_DAY = 86_400_000  # ms
_SPAN = 400 * 365 * _DAY  # longer than any records; separates the times of stations in one running maximum


@dataclass(frozen=True, slots=True)
class _Period:
    first: int  # days since 1970
    last: int
    rows: int


def days_of(start: pl.Series) -> pl.DataFrame:
    """How many starts [ms] are on each day: `day` (since 1970), `rows`, sorted by day."""
    return (start // _DAY).alias("day").value_counts(name="rows").sort("day")


def lone_starts(start: pl.Series, counted: pl.DataFrame | None = None) -> pl.Series:
    """Days between each isolated start and the period of the others; 0 for starts that are not isolated.

    Isolated starts are a year or more from the others, and at most one in a hundred; before 2002, where clocks start
    after a reset, at most one in five. At least twenty sessions are needed to compare with.

    Args:
        start: starts [ms].
        counted: number of all starts by day (see `days_of`), if `start` holds only some of them.
    """
    nothing = pl.zeros(len(start), pl.Int64, eager=True)
    days = (start // _DAY).alias("day")
    if counted is None:
        if len(start) < MIN_OTHERS + 1 or int(np.ptp(days.to_numpy())) <= FAR_DAYS:
            return nothing
        counted = days_of(start)
    main, lone = _main_and_lone(counted)
    if not lone:
        return nothing
    distance = pl.max_horizontal(main.first - pl.col("day"), pl.col("day") - main.last, 0)
    within = pl.any_horizontal(pl.col("day").is_between(p.first, p.last) for p in lone)
    return days.to_frame().select(pl.when(within).then(distance).otherwise(0).cast(pl.Int64).alias("d"))["d"]


def main_days(counted: pl.DataFrame) -> tuple[int, int]:
    """The first and the last day with sessions that are not isolated."""
    _, lone = _main_and_lone(counted)
    kept = [period for period in _periods(counted) if period not in lone]
    return min(period.first for period in kept), max(period.last for period in kept)


def _main_and_lone(counted: pl.DataFrame) -> tuple[_Period, list[_Period]]:
    """The period with the most sessions, and the isolated periods."""
    periods, rows = _periods(counted), int(counted["rows"].sum())
    main = max(periods, key=lambda period: period.rows)
    if rows < MIN_OTHERS + 1 or main.rows < MIN_OTHERS:
        return main, []
    return main, [p for p in periods if p is not main and p.rows <= max(1, _max_share(p, main) * rows)]


def _max_share(period: _Period, main: _Period) -> float:
    """The highest share of all rows that an isolated period can have."""
    return RESET_SHARE if period.last < RESET_BEFORE <= main.first else LONE_SHARE


def _periods(counted: pl.DataFrame) -> list[_Period]:
    """Stretches of days with sessions, a year or more apart."""
    day, rows = counted["day"].to_numpy(), counted["rows"].to_numpy()
    edges = np.flatnonzero(np.diff(day) >= FAR_DAYS) + 1
    return [
        _Period(int(d[0]), int(d[-1]), int(r.sum()))
        for d, r in zip(np.split(day, edges), np.split(rows, edges), strict=True)
    ]


def far_note(far: pl.DataFrame) -> str | None:
    """A sentence about sessions (`station_id, start`) that are set aside for being years from all others."""
    if far.is_empty():
        return None
    names = far["station_id"].unique().sort()
    shown = ", ".join(names.head(3)) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
    first, last = (f"{day:%Y-%m-%d}" for day in far.select(pl.min("start"), pl.max("start").alias("last")).row(0))
    when = f"on {first}" if first == last else f"from {first} to {last}"
    some = "1 session" if far.height == 1 else f"{far.height:,} sessions"
    return (
        f"{some} at {len(names):,} {'station' if len(names) == 1 else 'stations'} ({shown}), dated {when}, "
        f"{'is' if far.height == 1 else 'are'} a year or more away from all others and set aside: the clock was "
        "probably wrong."
    )


def clock_notes(sessions: pl.DataFrame) -> list[str]:
    """Sentences about stations with long silences, or whose clocks jumped back; sessions sorted by start.

    A silence counts from 30 days, if the station is otherwise busy enough for twenty sessions in that time. A clock
    jumped if starts go back by more than a day although the ids of a station's sessions increase.
    """
    number = numbers_of(sessions["station_id"])
    order = stable_order(number)
    station, start = number[order], sessions["start"].cast(UTC).to_physical().to_numpy()[order]
    return [
        note for note in (_silence(sessions, order, station, start), _jump(sessions, order, station, start)) if note
    ]


def _silence(sessions: pl.DataFrame, order: Integers, station: Integers, start: Integers) -> str | None:
    """A sentence about stations with long silences.

    Args:
        sessions: sorted by start.
        order: their rows, sorted by station and start.
        station: number of the station of each session, in that order.
        start: its start [ms], in that order.
    """
    start = start // _DAY
    gap = np.diff(start, prepend=start[:1])  # days since the last start at the station, 0 for its first
    gap[np.diff(station, prepend=-1) != 0] = 0
    rows = np.bincount(station, minlength=1)
    edges = np.flatnonzero(np.diff(station, prepend=-1))
    span = np.zeros(len(rows))
    span[station[edges]] = np.maximum.reduceat(start, edges) - np.minimum.reduceat(start, edges)
    usual = rows[station] / (span[station] - gap + 1)  # sessions per day outside the gap
    silent = np.flatnonzero((gap >= GAP_DAYS) & (gap * usual >= MIN_OTHERS))
    if not len(silent):
        return None
    longest = int(silent[np.argmax(gap[silent])])
    name, until = sessions.select("station_id", "start").row(int(order[longest]))
    number = len(np.unique(station[silent]))
    one = number == 1
    return (
        f"{number:,} {'station' if one else 'stations'} had no session for {GAP_DAYS} days or more although "
        f"{'it usually has' if one else 'they usually have'} {MIN_OTHERS} or more in that time (the longest: "
        f"{name}, {int(gap[longest])} days until {until:%Y-%m-%d}). If {'it was' if one else 'they were'} out of "
        "order, say so with --outages."
    )


def _jump(sessions: pl.DataFrame, order: Integers, station: Integers, start: Integers) -> str | None:
    """A sentence about starts that go back although ids increase; None if ids are not in order of time.

    The arguments are those of `_silence`.
    """
    ids = sessions["session_id"].cast(pl.Int64, strict=False)
    if len(ids) < MIN_OTHERS or ids.null_count():
        return None
    id_number = ids.to_numpy()[order]
    in_order = (np.diff(id_number) > 0) | (np.diff(station) != 0)
    if in_order.all():
        return None
    by_id = np.lexsort((id_number, station))
    order, start = order[by_id], start[by_id]
    # The latest start at the station so far.
    latest = np.maximum.accumulate(start - start.min() + station * _SPAN) - station * _SPAN + start.min()
    back = np.flatnonzero(start < latest - _DAY)
    if not len(back) or len(back) > MAX_JUMPS * len(start):
        return None
    name, when = sessions.select("station_id", "start").row(int(order[back[0]]))
    stations = len(np.unique(station[back]))
    return (
        f"Judging by the ids of sessions, the {'clock' if stations == 1 else 'clocks'} of {stations:,} "
        f"{'station' if stations == 1 else 'stations'} jumped back by more than a day (for example {name} on "
        f"{when:%Y-%m-%d}): check those times."
    )
