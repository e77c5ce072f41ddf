"""Records to sessions: ten million rows from one CSV file, and from a thousand."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.report import Result

TITLE = "Records to sessions"
TEXT = """`read_sessions` on random sessions in CSV: ids, stations, plugs, users, dates with the day first, energies.
It recognises the format, decides the order of day and month, checks every row, removes duplicates, cuts ends and joins
restarts. The same rows are read alternately from one file and from 1,000, each time in a new process, and must give the
same sessions. Since other programs may run on the machine, the faster of two runs counts. For comparison, Polars alone
is timed as it reads the file, parses its times and sorts it, without any check."""

SESSIONS, STATIONS, PLUGS, USERS, FILES = 10_000_000, 5_000, 3, 400_000, 1_000
TURNS = 2  # runs of each, of which the faster counts

_CODE = """
import json, resource, sys, time
from unmet.records.sessions import read_sessions
started = time.perf_counter()
sessions = read_sessions(sys.argv[1], time_zone="Europe/Copenhagen").sessions
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "seconds": time.perf_counter() - started, "cpu": used.ru_utime + used.ru_stime, "gib": used.ru_maxrss / 2**20,
    "rows": sessions.height, "energy": sessions["energy_kwh"].sum(), "starts": sessions["start"].dt.epoch("s").sum(),
}))
"""

_POLARS = """
import json, resource, sys, time
import polars as pl
started = time.perf_counter()
times = pl.col("Start Time", "End Time").str.to_datetime("%d/%m/%Y %H:%M")
rows = pl.read_csv(sys.argv[1]).with_columns(times).sort("Start Time", "Station").height
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"seconds": time.perf_counter() - started, "cpu": used.ru_utime + used.ru_stime, "rows": rows}))
"""


def run() -> list[Result]:
    """Read one file and many files, alternately."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder)
        turns = [[_timed(_CODE, folder / path) for path in ("one/sessions.csv", "many")] for _ in range(TURNS)]
        one, many = (min(runs, key=lambda run: run["seconds"]) for runs in zip(*turns, strict=True))
        polars_alone = _timed(_POLARS, folder / "one/sessions.csv")
    for key in ("rows", "starts"):
        assert one[key] == many[key]
    assert np.isclose(one["energy"], many["energy"])
    measured = f"{_times(one)}; Polars alone takes {_times(polars_alone)}"
    ratio = many["seconds"] / one["seconds"]
    return [
        Result(f"{SESSIONS:,} sessions from one CSV file", measured, "under 40 s", one["seconds"] < 40),
        Result("its peak memory", f"{one['gib']:.1f} GiB", "under 6 GiB", one["gib"] < 6),
        Result(f"the same from {FILES:,} files", f"{_times(many)}, {ratio:.2f} times", "no slower", ratio <= 1.1),
        Result("its peak memory", f"{many['gib']:.1f} GiB", "under 6 GiB", many["gib"] < 6),
    ]


def _times(found: dict[str, float]) -> str:
    return f"{found['seconds']:.1f} s ({found['cpu']:.0f} s of processor time)"


def _timed(code: str, path: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _write(folder: Path) -> None:
    """Write sessions in order of time, one car at a time at each plug, as one file and as many."""
    rng = np.random.default_rng(4)
    plugs = STATIONS * PLUGS
    each = SESSIONS // plugs + 1
    gaps = rng.exponential(60.0, (plugs, each)) + 5
    stays = rng.gamma(2.0, 45.0, (plugs, each)) + 5
    start = np.cumsum(gaps + np.roll(stays, 1, axis=1), axis=1)
    place = np.repeat(np.arange(plugs), each)
    minutes, stay = start.ravel().astype(np.int64), stays.ravel().astype(np.int64)
    order = np.argsort(minutes, kind="stable")[:SESSIONS]
    first = np.datetime64("2021-01-01T00:00", "m")
    frame = pl.DataFrame(
        {
            "Session ID": np.arange(SESSIONS),
            "Station": place[order] // PLUGS,
            "Plug": place[order] % PLUGS + 1,
            "User": rng.integers(0, USERS, SESSIONS),
            "Start Time": (first + minutes[order]).astype("datetime64[ms]"),
            "End Time": (first + minutes[order] + stay[order]).astype("datetime64[ms]"),
            "Energy (kWh)": np.round(stay[order] / 60 * rng.uniform(3, 11, SESSIONS), 2),
        }
    ).with_columns(
        pl.col("Start Time", "End Time").dt.strftime("%d/%m/%Y %H:%M"), pl.format("S{}", "Station").alias("Station")
    )
    for name, files in (("one", 1), ("many", FILES)):
        (folder / name).mkdir()
        size = SESSIONS // files
        for number in range(files):
            path = folder / name / ("sessions.csv" if files == 1 else f"{number:04}.csv")
            frame.slice(number * size, size).write_csv(path)
