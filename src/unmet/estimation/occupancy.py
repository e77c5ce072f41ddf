"""Occupancy: the history of every site of a panel, from its sessions, outages and capacities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Floats, Integers
from unmet.demand.openings import openings
from unmet.demand.panel import Panel, station_rows
from unmet.demand.spells import FREE, FULL, RELEASED, History, Visits, group_visits, sweep
from unmet.estimation.clock import Clock, make_clock

__all__ = ["Network", "failed_attempts", "observe"]

FAILED_SECONDS, FAILED_KWH = 180, 0.1  # a session within both limits is a failed attempt to charge


@dataclass(frozen=True, slots=True)
class Network:
    """Sites as the estimator sees them."""

    clock: Clock
    visits: Visits
    history: History
    capacity: Integers  # (sites,)
    opened_ms: Integers  # (sites,)
    closed_ms: Integers  # (sites,)
    site_of_station: Integers  # (stations,), row of the station's site
    station_of_session: Integers  # (sessions,), row of the session's station
    left_out: NDArray[np.bool_]  # (sessions,), whether an arrival is not used to estimate rates

    @property
    def sites(self) -> int:
        """Number of sites."""
        return len(self.capacity)

    @property
    def arrivals_at_full(self) -> Floats:
        """Arrivals recorded although no plug was free, (sites,)."""
        arrivals = self.history.arrivals
        return self.by_site(arrivals.site, (arrivals.state == FULL).astype(float))

    def by_site(self, site: Integers, values: Floats) -> Floats:
        """Sums of values by site, (sites,)."""
        return np.bincount(site, values, minlength=self.sites).astype(float)

    def with_capacity(self, capacity: Integers) -> Network:
        """The same visits at sites with other capacities."""
        history = _history(self.visits, capacity, self.opened_ms, self.closed_ms, self.left_out)
        return replace(self, history=history, capacity=capacity)

    def without(self, rows: Integers) -> Network:
        """The same sites, without using the arrivals of these sessions to estimate rates."""
        left_out = self.left_out.copy()
        left_out[rows] = True
        return replace(self, history=_leave_out(self.history, left_out), left_out=left_out)

    def before(self, end_ms: int) -> Network:
        """The network as known at a time: with the visits that had started by then."""
        begun = self.visits.start_ms < end_ms
        site = np.repeat(np.arange(self.sites), np.diff(self.visits.first))
        # Visits that ended before this time had started by then, and later ends do not matter: keep the earliest ends.
        ends = [
            self.visits.end_ms[a:b][: int(begun[a:b].sum())]
            for a, b in zip(self.visits.first[:-1], self.visits.first[1:], strict=True)
        ]
        visits = group_visits(
            site[begun], self.visits.start_ms[begun], np.concatenate(ends), self.visits.row[begun], self.sites
        )
        closed = np.minimum(self.closed_ms, end_ms)
        history = _history(visits, self.capacity, self.opened_ms, closed, self.left_out)
        return replace(self, visits=visits, history=history, closed_ms=closed)

    def only(self, sites: Integers) -> Network:
        """The network restricted to some of its sites."""
        parts = [np.arange(self.visits.first[s], self.visits.first[s + 1]) for s in sites]
        rows = np.concatenate(parts) if parts else np.empty(0, np.int64)
        site = np.repeat(np.arange(len(sites)), [len(part) for part in parts])
        visits = group_visits(
            site, self.visits.start_ms[rows], self.visits.end_ms[rows], self.visits.row[rows], len(sites)
        )
        opened, closed, capacity = self.opened_ms[sites], self.closed_ms[sites], self.capacity[sites]
        history = _history(visits, capacity, opened, closed, self.left_out)
        return replace(
            self,
            visits=visits,
            history=history,
            capacity=capacity,
            opened_ms=opened,
            closed_ms=closed,
            site_of_station=np.arange(len(sites)),
        )


def _history(
    visits: Visits, capacity: Integers, opened_ms: Integers, closed_ms: Integers, left_out: NDArray[np.bool_]
) -> History:
    """The history of visits, with some arrivals left out."""
    return _leave_out(sweep(visits, capacity, opened_ms, closed_ms), left_out)


def _leave_out(history: History, left_out: NDArray[np.bool_]) -> History:
    """The same history, except that arrivals that are left out count like arrivals at a plug just released."""
    if not left_out.any():
        return history
    arrivals = history.arrivals
    state = np.where(left_out[arrivals.row] & (arrivals.state == FREE), RELEASED, arrivals.state).astype(np.int8)
    return History(history.spells, arrivals._replace(state=state))


def observe(panel: Panel) -> Network:
    """The history of every site of a panel.

    A plug out of order counts as taken, but not as an arrival. If an outage names its plug, a car on that
    plug is not counted twice.
    """
    first, last = panel.period
    first_ms, last_ms = int(first.timestamp() * 1000), int(last.timestamp() * 1000)
    clock = make_clock(first_ms, panel.hours, panel.time_zone)
    site_rows = pl.Series(np.arange(panel.sites.height))
    of_station = (
        panel.stations["site_id"].replace_strict(panel.sites["site_id"], site_rows, return_dtype=pl.Int64).to_numpy()
    )
    station, start, end = station_rows(panel.sessions, panel.stations)
    cars = group_visits(of_station[station], start, end, np.arange(len(start)), panel.sites.height)
    opened, closed = openings(cars, first_ms, last_ms)
    outages = _without_cars(_limiting_outages(panel), panel.sessions)
    visits = cars
    if not outages.is_empty():
        broken, out_start, out_end = station_rows(outages, panel.stations)
        visits = group_visits(
            np.concatenate([of_station[station], of_station[broken]]),
            np.concatenate([start, out_start]),
            np.concatenate([end, out_end]),
            np.concatenate([np.arange(len(start)), np.full(len(broken), -1)]),
            panel.sites.height,
        )
    capacity = panel.sites["capacity"].to_numpy().astype(np.int64)
    # Before the first and after the last session of the network, records are missing, not drivers.
    opened_ms = np.maximum(first_ms + opened, int(start.min()))
    closed_ms = np.minimum(first_ms + closed, int(start.max()) + 1)
    failed = failed_attempts(panel.sessions)
    history = _history(visits, capacity, opened_ms, closed_ms, failed)
    return Network(clock, visits, history, capacity, opened_ms, closed_ms, of_station, station, failed)


def failed_attempts(sessions: pl.DataFrame) -> NDArray[np.bool_]:
    """Whether sessions ended at once without energy, (sessions,): charging did not start, so they are not demand."""
    ended = (pl.col("end") - pl.col("start")).dt.total_seconds() <= FAILED_SECONDS
    return sessions.select(ended & (pl.col("energy_kwh") <= FAILED_KWH)).to_series().to_numpy()


def _limiting_outages(panel: Panel) -> pl.DataFrame:
    """Outages of stations that need all plugs to reach their capacity; others have a spare plug."""
    if panel.outages.is_empty():
        return panel.outages
    if "plug_id" in panel.sessions.columns:
        named = panel.sessions.group_by("station_id").agg(named=pl.col("plug_id").drop_nulls().n_unique())
    else:
        named = panel.stations.select("station_id", named=pl.lit(0))
    needs = (
        panel.stations.join(named, on="station_id", how="left")
        .filter(pl.col("capacity") >= pl.max_horizontal(pl.col("named").fill_null(0), pl.col("plugs").fill_null(0)))
        .select("station_id")
    )
    return panel.outages.join(needs, on="station_id", how="semi", maintain_order="left")


def _without_cars(outages: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """Outages without the time in which a car was on the same plug."""
    if outages.is_empty() or "plug_id" not in sessions.columns or outages["plug_id"].null_count() == outages.height:
        return outages
    plug = ["station_id", "plug_id"]
    on_plug = (
        sessions.select(*plug, a="start", b="end").join(outages.select(plug).unique(), on=plug, how="semi").sort("a")
    )
    cars = {key: part.select("a", "b").rows() for key, part in on_plug.group_by(plug, maintain_order=True)}
    rows = []
    for station, name, start, end in outages.select(*plug, "start", "end").iter_rows():
        at = start
        for begins, ends in cars.get((station, name), ()):
            if ends <= at or begins >= end:
                continue
            if begins > at:
                rows.append((station, name, at, begins))
            at = max(at, ends)
        if at < end:
            rows.append((station, name, at, end))
    return pl.DataFrame(rows, schema=outages.schema, orient="row")
