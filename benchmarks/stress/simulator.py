"""A small simulator of charging networks with known lost demand, sharing no code with the package.

Drivers take a free plug if there is one, and are otherwise lost unless they wait or try another site. Their arrivals
come from `benchmarks.stress.arrivals`. Times are minutes since the start of the records.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
import polars as pl

from benchmarks.stress.arrivals import (
    MEDIAN_STAY_MINUTES,
    START,
    TIME_ZONE,
    Arrivals,
    Case,
    Sites,
    make_arrivals,
    make_sites,
)

__all__ = ["Network", "simulate"]

CENTRE = (55.68, 12.57)  # [degree]
KM_PER_DEGREE = (111.2, 62.7)  # of latitude and of longitude, at the centre
LOST, STAYED_AWAY = -1, -2  # instead of a plug
CHANGEOVER_MINUTES = 1.0  # between a departure and the first in the queue plugging in


@dataclass(frozen=True, slots=True)
class Network:
    """Records as an operator has them, and the truth.

    Attributes:
        sessions: `session_id, station_id, plug_id, user_id, start, end, energy_kwh`, times in UTC; `plug_id` and
            `user_id` are absent where a case says so.
        stations: `station_id, name, lat, lon, power_kw, plugs`, as the operator lists them.
        lost: `station_id, time, energy_kwh`, one row per lost driver, at the time of arrival. Where several stations
            form a site, each of its plugs is equally likely to be the one that a lost driver meant to use.
        truth: `station_id, site_id, cars_at_once, full_share` [share of time in which the whole site was full].
        drivers: drivers who came during the records, served or lost.
        time_zone: local time of the stations.
    """

    sessions: pl.DataFrame
    stations: pl.DataFrame
    lost: pl.DataFrame
    truth: pl.DataFrame
    drivers: int
    time_zone: str


def simulate(case: Case, seed: int) -> Network:
    """Simulate the records of a network, and the drivers that it lost.

    Args:
        case: what the network is like.
        seed: the same seed gives the same network.
    """
    rng = np.random.default_rng(seed)
    sites = make_sites(case, rng)
    arrivals = make_arrivals(case, sites, rng)
    plug, start, full_share = _serve(case, sites, arrivals, rng)
    return _records(case, sites, arrivals, plug, start, full_share, rng)


@dataclass(slots=True)
class _Site:
    """Plugs of a site while the simulation runs; driver numbers index the arrivals."""

    capacity: int
    pool: float  # cars
    free: list[int]
    departures: list[tuple[float, int]] = field(default_factory=list)  # heap of (minute, plug)
    queue: deque[tuple[float, int]] = field(default_factory=deque)  # (minute of giving up, driver)
    turned_away: deque[float] = field(default_factory=deque)  # until when each counts as charging elsewhere
    full_since: float = np.inf
    full_minutes: float = 0.0

    def take(self, minute: float, stay: float, choice: float) -> int:
        """Take one of the free plugs, chosen by a uniform draw, for a stay [minutes]."""
        plug = self.free.pop(int(choice * len(self.free)))
        heappush(self.departures, (minute + stay, plug))
        if not self.free:
            self.full_since = minute
        return plug

    def release(self, end: float) -> float:
        """Free the plug of the next departure and return its minute; full time counts until the end of the records."""
        minute, plug = heappop(self.departures)
        if not self.free:
            self.full_minutes += max(min(minute, end) - max(self.full_since, 0.0), 0.0)
        self.free.append(plug)
        return minute

    def appeal(self, minute: float, balking: float) -> float:
        """Share of would-be drivers who come, given the cars that are here and those turned away."""
        while self.turned_away and self.turned_away[0] <= minute:
            self.turned_away.popleft()
        taken = self.capacity - len(self.free)
        put_off = balking * min(taken / max(self.capacity - 1, 1), 1.0)
        return (1 - put_off) * max(1 - (taken + len(self.turned_away)) / self.pool, 0.0)


def _serve(
    case: Case, sites: Sites, arrivals: Arrivals, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Let drivers arrive in turn.

    Returns:
        The plug of every driver, LOST or STAYED_AWAY, shape (drivers,); when each plugged in [minutes], shape
        (drivers,); and the share of time that each site was full, shape (sites,).
    """
    end = case.weeks * 10080.0
    count = len(arrivals.minute)
    plug, start = np.full(count, LOST), arrivals.minute.copy()
    stay, choice = arrivals.stay.tolist(), rng.random(count).tolist()
    waits = (rng.random(count) < case.waiting_share * (arrivals.site % case.waiting_every == 0)).tolist()
    spills = (rng.random(count) < case.spill_share).tolist()
    mood = rng.random(count).tolist()
    typical_stay = MEDIAN_STAY_MINUTES[sites.kind]
    nearest = _nearest(sites.position_km, case.spill_km)
    running = [
        _Site(int(plugs), case.pool_per_plug * plugs, np.flatnonzero(sites.plug_site == i).tolist())
        for i, plugs in enumerate(sites.capacity)
    ]

    def advance(site: _Site, now: float) -> None:
        """Let cars leave until now; the first in the queue who is still there takes the plug."""
        while site.departures and site.departures[0][0] <= now:
            minute = site.release(end)
            while site.queue and site.queue[0][0] < minute:
                site.queue.popleft()
            if site.queue:
                _, driver = site.queue.popleft()
                start[driver] = minute + CHANGEOVER_MINUTES
                plug[driver] = site.take(minute, stay[driver] + CHANGEOVER_MINUTES, choice[driver])

    def arrive(now: float) -> None:
        """Let drivers who divert arrive at the next site."""
        while under_way and under_way[0][0] <= now:
            then, driver, where = heappop(under_way)
            site = running[nearest[where]]
            advance(site, then)
            if site.free:
                plug[driver], start[driver] = site.take(then, stay[driver], choice[driver]), then
            else:
                running[where].turned_away.append(then + typical_stay[where])

    under_way: list[tuple[float, int, int]] = []
    for driver, (now, where) in enumerate(zip(arrivals.minute.tolist(), arrivals.site.tolist(), strict=True)):
        arrive(now)
        site = running[where]
        advance(site, now)
        if mood[driver] >= site.appeal(now, case.balking):
            plug[driver] = STAYED_AWAY
            continue
        if not site.free and waits[driver]:
            site.queue.append((now + case.patience_minutes, driver))
            continue
        if not site.free and spills[driver] and nearest[where] >= 0:
            heappush(under_way, (now + case.spill_minutes, driver, where))
            arrive(now)
        elif site.free:
            plug[driver] = site.take(now, stay[driver], choice[driver])
        else:
            site.turned_away.append(now + typical_stay[where])
    arrive(np.inf)
    for site in running:
        advance(site, np.inf)
    return plug, start, np.array([site.full_minutes for site in running]) / end


def _nearest(position_km: np.ndarray, limit_km: float) -> np.ndarray:
    """Nearest other site, or -1 if it is farther than the limit, shape (sites,)."""
    distance = np.hypot(*(position_km[:, None] - position_km[None]).transpose(2, 0, 1))
    np.fill_diagonal(distance, np.inf)
    return np.where(distance.min(axis=1) <= limit_km, distance.argmin(axis=1), -1)


def _records(
    case: Case,
    sites: Sites,
    arrivals: Arrivals,
    plug: np.ndarray,
    start: np.ndarray,
    full_share: np.ndarray,
    rng: np.random.Generator,
) -> Network:
    """Turn drivers into the operator's tables and the truth; times before or after the records are left out."""
    end = case.weeks * 10080.0
    lost = (plug == LOST) & (arrivals.minute >= 0) & (arrivals.minute < end)
    served = (plug >= 0) & (start >= 0) & (start < end)
    lost_site = arrivals.site[lost]
    first_plug = np.searchsorted(sites.plug_site, lost_site)
    meant = first_plug + (rng.random(len(lost_site)) * sites.capacity[lost_site]).astype(np.int64)
    names = np.array([f"S{i + 1:03d}" for i in range(case.stations)])
    exclusive = rng.random(case.stations) < case.exclusive_share
    sessions = pl.DataFrame(
        {
            "station_id": names[sites.plug_station[plug[served]]],
            "plug_id": _plug_names(sites, plug[served], names, exclusive, rng),
            "user_id": np.char.add("U", arrivals.user[served].astype(str)),
            "start": start[served],
            "end": start[served] + arrivals.stay[served],
            "energy_kwh": arrivals.energy_kwh[served],
        }
    )
    sessions = _restarted(sessions, case.restart_share, rng)
    late = np.where(rng.random(sessions.height) < case.overlap_share, rng.uniform(0, 3, sessions.height), 0.0)
    sessions = sessions.with_columns(pl.col("end") + late).sort("start", "plug_id")
    numbers = pl.int_range(1, sessions.height + 1, eager=True).cast(pl.String)
    sessions = sessions.insert_column(0, numbers.alias("session_id"))
    dropped = [name for name, kept in (("plug_id", case.plug_ids), ("user_id", case.user_ids)) if not kept]
    lost_table = {
        "station_id": names[sites.plug_station[meant]],
        "time": arrivals.minute[lost],
        "energy_kwh": arrivals.energy_kwh[lost],
    }
    return Network(
        sessions=sessions.with_columns(_clock("start"), _clock("end")).drop(dropped),
        stations=_station_table(case, sites, names, exclusive, rng),
        lost=pl.DataFrame(lost_table).with_columns(_clock("time")),
        truth=_truth_table(sites, names, full_share),
        drivers=int(served.sum() + lost.sum()),
        time_zone=TIME_ZONE,
    )


def _clock(column: str) -> pl.Expr:
    """Minutes since the start of the records as a UTC time."""
    milliseconds = (pl.col(column) * 60_000).round().cast(pl.Int64) + int(START.timestamp() * 1000)
    return milliseconds.cast(pl.Datetime("ms", "UTC"))


def _plug_names(
    sites: Sites, plug: np.ndarray, names: np.ndarray, exclusive: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Name of the plug used, such as S001-2; where connectors exclude each other, one of the two of the post."""
    station = sites.plug_station[plug]
    number = plug - np.searchsorted(sites.plug_station, station)
    connector = 2 * number + rng.integers(0, 2, len(plug))
    number = np.where(exclusive[station], connector, number) + 1
    return np.char.add(np.char.add(names[station], "-"), number.astype(str))


def _restarted(sessions: pl.DataFrame, share: float, rng: np.random.Generator) -> pl.DataFrame:
    """Cut a share of the sessions of over 20 minutes into two or three, one to four minutes apart.

    The car stays at its plug, so nobody can use the plug between the parts.
    """
    cut = (rng.random(sessions.height) < share) & (sessions["end"] - sessions["start"] > 20).to_numpy()
    parts = np.where(cut, rng.integers(2, 4, sessions.height), 1)
    row = np.repeat(np.arange(sessions.height), parts)
    part = np.arange(len(row)) - np.repeat(np.cumsum(parts) - parts, parts)
    length = (sessions["end"] - sessions["start"]).to_numpy()[row] / parts[row]
    gap = np.where(part < parts[row] - 1, rng.uniform(1, 4, len(row)), 0.0)
    start = sessions["start"].to_numpy()[row] + part * length
    return sessions[row].with_columns(
        start=pl.Series(start),
        end=pl.Series(start + length - gap),
        energy_kwh=pl.col("energy_kwh") / pl.Series(parts[row].astype(np.float64)),
    )


def _station_table(
    case: Case, sites: Sites, names: np.ndarray, exclusive: np.ndarray, rng: np.random.Generator
) -> pl.DataFrame:
    """Stations as the operator lists them; those of one site lie some 20 m apart."""
    plugs = np.bincount(sites.plug_station)
    site = sites.plug_site[np.searchsorted(sites.plug_station, np.arange(case.stations))]
    place = sites.position_km[site] + rng.uniform(-0.015, 0.015, (case.stations, 2))
    wrong = rng.random(case.stations) < case.table_share
    listed = np.maximum(plugs * np.where(exclusive, 2, 1) + np.where(wrong, case.table_error, 0), 1)
    return pl.DataFrame(
        {
            "station_id": names,
            "name": [f"Station {i + 1}" for i in range(case.stations)],
            "lat": CENTRE[0] + place[:, 0] / KM_PER_DEGREE[0],
            "lon": CENTRE[1] + place[:, 1] / KM_PER_DEGREE[1],
            "power_kw": sites.power_kw[site],
            "plugs": listed,
        }
    )


def _truth_table(sites: Sites, names: np.ndarray, full_share: np.ndarray) -> pl.DataFrame:
    """What the operator does not know about each station."""
    site = sites.plug_site[np.searchsorted(sites.plug_station, np.arange(len(names)))]
    return pl.DataFrame(
        {
            "station_id": names,
            "site_id": site,
            "cars_at_once": np.bincount(sites.plug_station),
            "full_share": full_share[site],
        }
    )
