"""Records to a panel: ten million sessions, compared with a straightforward pandas version."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

from benchmarks.pandas_panel import pandas_panel, random_sessions
from benchmarks.report import Result
from unmet.demand.calendar import hours_between
from unmet.demand.panel import Panel
from unmet.estimation.clock import BINS_A_WEEK
from unmet.estimation.exposed import FullHours, full_hours
from unmet.estimation.occupancy import observe

TITLE = "Records to lost demand"
TEXT = """`unmet recover` on a Parquet file of random sessions and a CSV of stations, in a process of its own: reading,
checking, capacity, sites, the estimate with 200 draws, tables and page; and the same without positions for a year of
10,000 stations. A small file is read first, since the first run of a new version compiles its loops, which takes about
20 s. The pandas version only finds energy and full time by station and hour; ours does that, checks every
row and infers capacity and sites as well. Both are timed on the sessions of some stations, from frame to full hours,
and must agree. Machines differ and are shared, so the last row compares the whole estimate with pandas in the same
run."""

SESSIONS, STATIONS, PLUGS = 10_000_000, 5_000, 3
MANY_SESSIONS, MANY_STATIONS = 5_000_000, 10_000
PEER_STATIONS = 500


def run() -> list[Result]:
    """All benchmarks of the panel."""
    large, seconds_per_session = _large()
    pandas, pandas_seconds_per_session = _compared_with_pandas()
    share = seconds_per_session / pandas_seconds_per_session
    found = f"{share:.2f} times ({1e6 * seconds_per_session:.1f} s and {1e6 * pandas_seconds_per_session:.1f} s)"
    what = "a million sessions to lost demand, ours over occupancy and exposure alone in pandas"
    whole = Result(what, found, "under 1", share < 1)
    return [*large, pandas, whole]


def _stations(number: int) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    return pl.DataFrame(
        {
            "station_id": [f"s{i}" for i in range(number)],
            "lat": 55 + rng.random(number),
            "lon": 12 + rng.random(number),
            "power_kw": 22.0,
            "plugs": PLUGS,
        }
    )


def _large() -> tuple[list[Result], float]:
    """Time and memory of large records, and the time per session [s]."""
    _recover(SESSIONS // 1000, STATIONS // 50, placed=True)  # compiles, once for each version of the code
    seconds, cpu_seconds, gib, rows = _recover(SESSIONS, STATIONS, placed=True)
    what = f"{rows / 1e6:.1f} million sessions at {STATIONS:,} stations to lost demand with intervals"
    _, _, many_gib, many_rows = _recover(MANY_SESSIONS, MANY_STATIONS, placed=False)
    results = [
        Result(what, f"{seconds:.1f} s ({cpu_seconds:.0f} s of processor time)", "under 60 s", seconds < 60),
        Result("its peak memory", f"{gib:.1f} GiB", "under 6 GiB", gib < 6),
        Result(
            f"memory for a year of {MANY_STATIONS:,} stations without positions "
            f"({many_rows / 1e6:.1f} million sessions)",
            f"{many_gib:.1f} GiB", "under 6 GiB", many_gib < 6,
        ),
    ]  # fmt: skip
    return results, seconds / rows


def _recover(sessions: int, stations: int, *, placed: bool) -> tuple[float, float, float, int]:
    """Time and processor time [s], peak memory [GiB] and sessions of `unmet recover` on random records."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pl.from_pandas(random_sessions(sessions, stations, PLUGS)).write_parquet(folder / "sessions.parquet")
        table = _stations(stations)
        (table if placed else table.drop("lat", "lon")).write_csv(folder / "stations.csv")
        code = (
            "import resource, sys, time; sys.argv[0] = 'unmet'\n"
            "from unmet.cli import app\n"
            "try: app()\n"
            "finally: print(time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
        )
        arguments = ["recover", "sessions.parquet", "--stations", "stations.csv", "--out", "recovered", "--json"]
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=folder, check=True, capture_output=True, text=True
        )
        seconds = time.perf_counter() - started
    cpu_seconds, kib = done.stderr.split()[-2:]
    return seconds, float(cpu_seconds), int(kib) / 2**20, int(json.loads(done.stdout)["seen_arrivals"])


def _compared_with_pandas() -> tuple[Result, float]:
    """Occupancy and exposure compared with pandas, and the time of pandas per session [s]."""
    sessions = random_sessions(SESSIONS // STATIONS * PEER_STATIONS, PEER_STATIONS, PLUGS)
    stations = _stations(PEER_STATIONS)
    frame = pl.from_pandas(sessions)
    _full_hours(Panel(frame.head(1000), stations))  # compiles the loops before they are timed
    started = time.perf_counter()
    panel = Panel(frame, stations)
    rows = _full_hours(panel)
    ours = time.perf_counter() - started
    started = time.perf_counter()
    energy, full = pandas_panel(sessions, dict(stations.select("station_id", "plugs").iter_rows()))
    peer = time.perf_counter() - started
    _must_agree(panel, rows, energy, full)
    found = f"{peer / ours:.0f} times ({ours:.2f} s and {peer:.1f} s for {len(sessions):,} sessions)"
    ratio = Result("frame to occupancy and exposure, ours over pandas", found, "at least 20 times", peer / ours >= 20)
    return ratio, peer / len(sessions)


def _full_hours(panel: Panel) -> FullHours:
    network = observe(panel)
    return full_hours(network.history.spells, network.clock, np.ones((network.sites, BINS_A_WEEK)))


def _must_agree(panel: Panel, rows: FullHours, energy: pd.Series, full: pd.Series) -> None:
    """Fail unless energy and full time by station and hour equal those of pandas."""
    table = pl.DataFrame(
        {
            "station_id": panel.sites["site_id"].gather(rows.site),
            "ds": hours_between(*panel.period).gather(rows.hour),
            "full": rows.full,
        }
    )
    ours = table.to_pandas().set_index(["station_id", "ds"])["full"]
    alone = set(panel.sites.filter(pl.col("stations") == 1)["site_id"])  # stations side by side are one site here
    full = full[full.index.get_level_values("station_id").isin(alone)]
    ours = ours[ours.index.get_level_values("station_id").isin(alone)]
    last = ours.index.get_level_values("ds").max()
    full, ours = (part[part.index.get_level_values("ds") < last] for part in (full, ours))
    assert np.isclose(panel.table["y"].sum(), energy.sum())
    assert len(ours) == len(full)
    assert np.allclose(ours.sort_index(), full.sort_index())
