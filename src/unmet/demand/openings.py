"""Opening and closing times of sites and plugs, inferred from their sessions."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl

from unmet.arrays import Integers
from unmet.demand.spells import Visits, group_visits
from unmet.records.formats.base import OUTAGES

__all__ = ["DAY_MS", "absent_plugs", "openings"]


DAY_MS = 86_400_000
# A unit was closed before its first session (or after its last) if the silence meets all of these conditions.
SURE = 1e-4  # its probability by chance is below this
MIN_DAYS = 14  # it lasts at least this long
LONGER = 3.0  # it is this many times as long as any other silence


def openings(visits: Visits, first_ms: int, last_ms: int) -> tuple[Integers, Integers]:
    """When each unit opened and closed [ms since `first_ms`].

    A unit (a site or a plug) was closed before its first session, or after its last, if it was so busy in between that
    the silence is unlikely to be chance. Otherwise it was open from the first hour to the last.
    """
    units, period = len(visits.first) - 1, last_ms - first_ms
    begin, end = np.zeros(units, np.int64), np.full(units, period)
    sessions = np.diff(visits.first)
    used = sessions > 1  # a single session says nothing about how busy a unit is
    if not used.any():
        return begin, end
    start_ms, end_ms = visits.start_ms - first_ms, np.minimum(visits.end_ms - first_ms, period)
    unit = np.repeat(np.arange(units), sessions)
    first, last = np.minimum(visits.first[:-1], len(unit) - 1), np.maximum(visits.first[1:] - 1, 0)
    earliest, latest = start_ms[first], end_ms[last]
    # Starts and ends are sorted separately: if a gap is positive, all earlier cars had left by then.
    gaps = np.where(unit[1:] == unit[:-1], start_ms[1:] - end_ms[:-1], 0)
    gap = np.zeros(units, np.int64)
    gap[used] = np.maximum.reduceat(np.concatenate([[0], gaps]), visits.first[:-1][used])
    for edge, silence, at in ((begin, earliest, earliest), (end, period - latest, latest + 1)):
        long = (silence >= MIN_DAYS * DAY_MS) & (silence >= LONGER * gap)
        # The probability that sessions at uniformly random times all miss the silence.
        chance = (1 - np.minimum(silence / period, 1)) ** sessions
        closed = used & long & (chance < SURE)
        edge[closed] = at[closed]
    return begin, end


def absent_plugs(sessions: pl.DataFrame, first: dt.datetime, period_ms: int) -> pl.DataFrame:
    """Times before plugs were installed, or after they were removed, while their station was open, as outages.

    Only plugs that the sessions name are considered, and only absences of more than a day.
    """
    if "plug_id" not in sessions.columns:
        return pl.DataFrame(schema=OUTAGES)
    since = int(first.timestamp() * 1000)
    named = sessions.drop_nulls("plug_id").select("station_id", pl.col("plug_id").cast(pl.String), "start", "end")
    plugs = _open_times(named, ["station_id", "plug_id"], since, period_ms)
    stations = _open_times(sessions, ["station_id"], since, period_ms)
    known = plugs.join(stations, on="station_id", suffix="_station")
    absent = [
        known.filter(pl.col(a) + DAY_MS < pl.col(b)).select("station_id", "plug_id", start=a, end=b)
        for a, b in (("opened_station", "opened"), ("closed", "closed_station"))
    ]
    moments = (pl.col("start", "end") + since).cast(pl.Datetime("ms", "UTC"))
    return pl.concat(absent).sort("station_id", "plug_id", "start").with_columns(moments).cast(pl.Schema(OUTAGES))


def _open_times(sessions: pl.DataFrame, keys: list[str], since: int, period_ms: int) -> pl.DataFrame:
    """When each unit opened and closed: the key columns, `opened` and `closed` [ms since the first hour]."""
    units = sessions.select(keys).unique(maintain_order=True).with_row_index("unit")
    unit = sessions.join(units, on=keys, how="left", maintain_order="left")["unit"].to_numpy().astype(np.int64)
    start_ms, end_ms = (sessions[name].dt.epoch("ms").to_numpy(writable=True) for name in ("start", "end"))
    visits = group_visits(unit, start_ms, end_ms, np.arange(len(unit)), units.height)
    opened, closed = openings(visits, since, since + period_ms)
    return units.select(*keys, opened=pl.Series(opened), closed=pl.Series(closed))
