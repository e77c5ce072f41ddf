"""Planning: a plan for 1,000 and 10,000 sites, and the replay compared with SimPy and with Erlang's formula."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import simpy

from benchmarks.report import Result
from unmet.demand.panel import Panel
from unmet.estimation.lost_demand import LostDemand
from unmet.planning.drivers import DrawnDemand, Drivers, demand_of
from unmet.planning.erlang import erlang_b
from unmet.planning.plan import plan
from unmet.planning.replay import NOBODY, take_plugs

TITLE = "Planning"
TEXT = """Random networks of sites with one to six plugs, eight weeks of records with a daily rush, several kinds of
sites and stays of two hours on average. A plan of 200 plugs with 200 draws is made from the fitted estimate, with
everything that `unmet plan` computes except its page. The same drivers are also simulated with SimPy, with a process
per driver and a resource for the plugs, once for each number of plugs, and the same numbers must be served. Erlang's
formula is compared with the replay of ten million drivers. Processor time is that of all threads; on two free cores, a
plan takes no longer than that."""

MONDAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
DAYS, STAY_HOURS = 56, 2.0
HOUR_MS = 3_600_000
SIMPY_SITES, SIMPY_DRAWS, SIMPY_PLUGS = 12, 20, 5


def run() -> list[Result]:
    """All benchmarks of planning."""
    small, fitted = network(1000), None
    results = []
    plan(LostDemand().fit(network(20)), plugs=5)  # compiles the loops before they are timed
    for panel, limit in ((small, 60.0), (network(10_000), 600.0)):
        started = time.perf_counter()
        lost = LostDemand().fit(panel)
        estimated = time.perf_counter() - started
        started, busy = time.perf_counter(), time.process_time()
        result = plan(lost, plugs=200)
        planned, busy = time.perf_counter() - started, time.process_time() - busy
        found = (
            f"{planned:.0f} s ({busy:.0f} s of processor time); the estimate before it {estimated:.0f} s "
            f"({panel.sessions.height:,} sessions, {result.sites} sites get plugs)"
        )
        what = f"a plan of 200 plugs for {panel.sites.height:,} sites, 200 draws"
        results.append(Result(what, found, f"under {limit:.0f} s", planned < limit))
        fitted = fitted or demand_of(lost)
    if fitted is not None:
        results.append(compare_with_simpy(fitted))
    return [*results, *compare_with_erlang()]


def network(sites: int, seed: int = 1) -> Panel:
    """Records of many simulated sites, without the drivers who found no plug."""
    rng = np.random.default_rng(seed)
    plugs = rng.integers(1, 7, sites)
    rate = plugs / STAY_HOURS * rng.uniform(0.1, 0.45, sites)  # drivers per hour
    hour = np.arange(24)
    profiles = np.stack([np.exp(-(((hour - peak) / 3) ** 2) / 2) + 0.1 for peak in (8, 13, 18)])
    profiles /= profiles.mean(axis=1, keepdims=True)
    parts = []
    for s in range(sites):
        hourly_rate = np.tile(profiles[s % 3], DAYS) * rate[s] * np.repeat(rng.gamma(16, 1 / 16, DAYS), 24)
        count = rng.poisson(hourly_rate)
        at = np.repeat(np.arange(24 * DAYS), count) + rng.random(count.sum())
        at = np.sort((at * HOUR_MS).astype(np.int64))
        stay = (rng.gamma(4, STAY_HOURS / 4, len(at)) * HOUR_MS).astype(np.int64) + 60_000
        served = take_plugs(np.array([0, len(at)]), at, stay, int(plugs[s])) != NOBODY
        parts.append((np.full(served.sum(), s), at[served], stay[served]))
    site, at, stay = (np.concatenate(part) for part in zip(*parts, strict=True))
    first = int(MONDAY.timestamp() * 1000)
    moment = pl.Datetime("ms", "UTC")
    sessions = pl.DataFrame(
        {
            "station_id": pl.Series(site).cast(pl.String),
            "start": pl.Series(first + at).cast(moment),
            "end": pl.Series(first + at + stay).cast(moment),
            "energy_kwh": rng.gamma(4, 4, len(site)),
        }
    )
    side = int(np.ceil(np.sqrt(sites)))
    stations = pl.DataFrame(
        {
            "station_id": [str(s) for s in range(sites)],
            "lat": 55 + 0.02 * (np.arange(sites) // side),
            "lon": 10 + 0.03 * (np.arange(sites) % side),
            "power_kw": np.full(sites, 22.0),
            "plugs": plugs,
        }
    )
    return Panel(sessions, stations, regions="20", time_zone="UTC")


def compare_with_simpy(demand: DrawnDemand) -> Result:
    """Serve the same drivers with 1, 2, ... added plugs, by our replay and by SimPy."""
    busiest = np.argsort(-np.bincount(demand.hidden.site, demand.hidden.drivers.mean(axis=0), minlength=demand.sites))
    drivers = [demand.first_draws(SIMPY_DRAWS).lost(int(s)) for s in busiest[:SIMPY_SITES]]
    started = time.perf_counter()
    ours = [_served(part) for part in drivers]
    own = time.perf_counter() - started
    started = time.perf_counter()
    theirs = [[_simpy_served(part, k) for k in range(1, SIMPY_PLUGS + 1)] for part in drivers]
    peer = time.perf_counter() - started
    if ours != theirs:
        raise AssertionError(f"SimPy serves {theirs}, the replay {ours}")
    number = sum(len(part.at_ms) for part in drivers)
    found = f"{peer / own:,.0f} times ({own:.4f} s and {peer:.1f} s for {number:,} drivers, 1 to {SIMPY_PLUGS} plugs)"
    return Result("replay compared with SimPy", found, "at least 100 times as fast", peer / own >= 100)


def _served(drivers: Drivers) -> list[int]:
    plug = take_plugs(drivers.first, drivers.at_ms, drivers.stay_ms, SIMPY_PLUGS)
    return [int(((plug != NOBODY) & (plug < k)).sum()) for k in range(1, SIMPY_PLUGS + 1)]


def _simpy_served(drivers: Drivers, plugs: int) -> int:
    served = 0
    for d in range(drivers.draws):
        rows = slice(int(drivers.first[d]), int(drivers.first[d + 1]))
        at, stay = drivers.at_ms[rows].tolist(), drivers.stay_ms[rows].tolist()
        if not at:
            continue
        env = simpy.Environment(initial_time=at[0])
        site = simpy.Resource(env, plugs)
        count = [0]

        def charge(length: int, env: Any = env, site: Any = site) -> Iterator[Any]:
            with site.request() as request:
                yield request
                yield env.timeout(length)

        def arrivals(
            at: list[int] = at, stay: list[int] = stay, env: Any = env, site: Any = site, count: list[int] = count
        ) -> Iterator[Any]:
            for now, length in zip(at, stay, strict=True):
                # A car that departs at this very moment departs first.
                yield env.timeout(now - env.now) if now > env.now else env.timeout(0)
                if site.count < site.capacity:
                    count[0] += 1
                    env.process(charge(length))

        env.process(arrivals())
        env.run()
        served += count[0]
    return served


def compare_with_erlang() -> list[Result]:
    """Blocking of Poisson arrivals, compared with Erlang's formula."""
    rng, number = np.random.default_rng(3), 10_000_000
    at = (np.cumsum(rng.exponential(0.5, number)) * HOUR_MS).astype(np.int64)
    results = []
    for name, stays in (
        ("exponential", rng.exponential(2.0, number)),
        ("fixed", np.full(number, 2.0)),
        ("log-normal", rng.lognormal(np.log(2.0) - 0.5, 1.0, number)),
    ):
        plug = take_plugs(np.array([0, number]), at, (stays * HOUR_MS).astype(np.int64), 8)
        off = [float(((plug == NOBODY) | (plug >= c)).mean() / erlang_b(c, 4.0) - 1) for c in range(1, 9)]
        worst = max(map(abs, off))
        found = f"{100 * worst:.2f} % off at most, with 1 to 8 plugs at a load of 4 (blocking 80 to 3 %)"
        results.append(Result(f"blocking with {name} stays", found, "within 1 % of Erlang-B", worst < 0.01))
    return results
