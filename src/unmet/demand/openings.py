"""Openings: from when to when a station, or a plug of it, was there, as its sessions tell."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.demand.occupancy import Stays, stays_by_station
from unmet.records.formats.base import OUTAGES

__all__ = ["DAY_MS", "absent_plugs", "openings"]

Integers = NDArray[np.int64]

DAY_MS = 86_400_000
SURE = 1e-4  # chance that none of its sessions fell into the silence before the first, or after the last
LEAST_DAYS = 14  # length of that silence,
LONGER = 3.0  # which must be so many times that of any other


def openings(stays: Stays, first_ms: int, last_ms: int) -> tuple[Integers, Integers]:
    """When each unit with stays opened and closed, in ms from the first hour on.

    A unit was closed before its first session, or after its last, if it had been so busy in between that the silence
    cannot be chance; else it is taken to have been there from the first hour to the last.
    """
    units, period = len(stays.first) - 1, last_ms - first_ms
    begin, end = np.zeros(units, np.int64), np.full(units, period)
    came = np.diff(stays.first)
    some = came > 1
    if not some.any():
        return begin, end
    start_ms, end_ms = stays.start_ms - first_ms, np.minimum(stays.end_ms - first_ms, period)
    unit = np.repeat(np.arange(units), came)
    first, last = np.minimum(stays.first[:-1], len(unit) - 1), np.maximum(stays.first[1:] - 1, 0)
    earliest, latest = start_ms[first], end_ms[last]
    # Starts and ends are sorted each for themselves: all who came before had left by then, where the gap is positive.
    gaps = np.where(unit[1:] == unit[:-1], start_ms[1:] - end_ms[:-1], 0)
    gap = np.zeros(units, np.int64)
    gap[some] = np.maximum.reduceat(np.concatenate([[0], gaps]), stays.first[:-1][some])
    for edge, silence, at in ((begin, earliest, earliest), (end, period - latest, latest + 1)):
        long = (silence >= LEAST_DAYS * DAY_MS) & (silence >= LONGER * gap)
        chance = (1 - np.minimum(silence / period, 1)) ** came
        closed = some & long & (chance < SURE)
        edge[closed] = at[closed]
    return begin, end


def absent_plugs(
    sessions: pl.DataFrame, stations: pl.Series, opened: Integers, closed: Integers, first: dt.datetime, last_ms: int
) -> pl.DataFrame:
    """Times at which plugs were not there yet, or no longer, while their station was open, as outages.

    `opened` and `closed` are those of the stations, in ms from `first` on. Only plugs that the sessions name are told
    apart.
    """
    if "plug_id" not in sessions.columns:
        return pl.DataFrame(schema=OUTAGES)
    since = int(first.timestamp() * 1000)
    named = sessions.drop_nulls("plug_id").select("station_id", pl.col("plug_id").cast(pl.String), "start", "end")
    plugs = named.select("station_id", "plug_id").unique(maintain_order=True).with_row_index("plug")
    unit = named.join(plugs, on=["station_id", "plug_id"], how="left", maintain_order="left")["plug"]
    start_ms, end_ms = (named[name].dt.epoch("ms").to_numpy(writable=True) for name in ("start", "end"))
    stays = stays_by_station(unit.to_numpy().astype(np.int64), start_ms, end_ms, plugs.height)
    begin, end = openings(stays, since, since + last_ms)
    edges = pl.DataFrame({"station_id": stations, "opened": opened, "closed": closed})
    known = plugs.with_columns(begin=pl.Series(begin), end=pl.Series(end)).join(edges, on="station_id")
    gone = [
        known.filter(pl.col(a) + DAY_MS < pl.col(b)).select("station_id", "plug_id", start=a, end=b)
        for a, b in (("opened", "begin"), ("end", "closed"))
    ]
    moments = (pl.col("start", "end") + since).cast(pl.Datetime("ms", "UTC"))
    return pl.concat(gone).sort("station_id", "plug_id", "start").with_columns(moments).cast(pl.Schema(OUTAGES))
