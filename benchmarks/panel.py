"""Records to a panel: ten million sessions, beside the straightforward pandas version."""

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
from unmet.demand.occupancy import HOUR_MS
from unmet.demand.panel import Panel, build_panel

TITLE = "Records to a panel"
TEXT = """`unmet panel` on a Parquet file of made-up sessions and a CSV of stations, in a process of its own: reading,
checking, exposure, regions, tables and page. The pandas version does less (no checks, no regions, no exposure weights)
and is timed on the sessions of some stations, as it takes too long for all; ours is timed on the same ones, from frame
to panel, and both must find the same energy and the same full hours."""

SESSIONS, STATIONS, PLUGS = 10_000_000, 5_000, 3
PEER_STATIONS = 500


def run() -> list[Result]:
    """All benchmarks of the panel."""
    return [*_large(), _beside_pandas()]


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


def _large() -> list[Result]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pl.from_pandas(random_sessions(SESSIONS, STATIONS, PLUGS)).write_parquet(folder / "sessions.parquet")
        _stations(STATIONS).write_csv(folder / "stations.csv")
        code = (
            "import resource, sys; sys.argv[0] = 'unmet'\n"
            "from unmet.cli import app\n"
            "try: app()\n"
            "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
        )
        arguments = ["panel", "sessions.parquet", "--stations", "stations.csv", "--out", "panel", "--json"]
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=folder, check=True, capture_output=True, text=True
        )
        seconds = time.perf_counter() - begun
    gib = int(done.stderr.split()[-1]) / 2**20
    rows = json.loads(done.stdout)["rows_kept"]
    what = f"{rows / 1e6:.1f} million sessions at {STATIONS:,} stations to a panel"
    return [
        Result(what, f"{seconds:.1f} s", "under 30 s", seconds < 30),
        Result("memory of that at its peak", f"{gib:.1f} GiB", "under 6 GiB", gib < 6),
    ]


def _beside_pandas() -> Result:
    sessions = random_sessions(SESSIONS // STATIONS * PEER_STATIONS, PEER_STATIONS, PLUGS)
    stations = _stations(PEER_STATIONS)
    frame = pl.from_pandas(sessions)
    build_panel(frame.head(1000), stations)  # compiled now
    begun = time.perf_counter()
    panel = build_panel(frame, stations)
    ours = time.perf_counter() - begun
    begun = time.perf_counter()
    energy, full = pandas_panel(sessions, dict(stations.select("station_id", "plugs").iter_rows()))
    peer = time.perf_counter() - begun
    _must_agree(panel, energy, full)
    found = f"{peer / ours:.0f} times ({ours:.2f} s and {peer:.1f} s for {len(sessions):,} sessions)"
    return Result("frame to panel, ours over pandas", found, "at least 20 times", peer / ours >= 20)


def _must_agree(panel: Panel, energy: pd.Series, full: pd.Series) -> None:
    rows = panel.exposure.full
    table = pl.DataFrame(
        {
            "station_id": panel.stations["station_id"].gather(rows.station),
            "ds": hours_between(*panel.period).gather(rows.hour),
            "full": rows.full_ms / HOUR_MS,
        }
    )
    hidden = table.to_pandas().set_index(["station_id", "ds"])["full"]
    full = full[full.index.get_level_values("ds") <= hidden.index.get_level_values("ds").max()]
    assert np.isclose(panel.table["y"].sum(), energy.sum())
    assert len(hidden) == len(full)
    assert np.allclose(hidden.sort_index(), full.sort_index())
