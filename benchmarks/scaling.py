"""Time and memory by size: trips streamed through a simulation, sessions read and estimated.

    python -m benchmarks.scaling                 # up to ten million trips and a million sessions
    python -m benchmarks.scaling --full          # 100 million of each: a quiet machine, tens of GB of disk
    python -m benchmarks.scaling trips 1e5 1e6   # one kind, these sizes

Inputs are generated first, and not measured. Each size runs in a process of its own; memory is the peak of that process
and of those that it starts. CPU time is given beside wall time, because other work on the machine affects it less.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
import psutil

SIZES = {"trips": (100_000, 1_000_000, 10_000_000), "sessions": (10_000, 100_000, 1_000_000), "areas": (1_000_000,)}
FULL_SIZES = {
    "trips": (100_000, 1_000_000, 10_000_000, 100_000_000),
    "sessions": (100_000, 1_000_000, 10_000_000),
    "areas": (1_000_000, 10_000_000, 100_000_000),
}
STATIONS = 20_000
TRIPS_PER_CAR = 50
SESSIONS_PER_STATION = 5_000
FILE_ROWS = 2_000_000
UTC_MS = pl.Datetime("ms", "UTC")
START_MS = 1_704_067_200_000  # 2024-01-01
DAY_MS = 86_400_000
WEEKS = 8


def make_stations(count: int, seed: int = 0) -> pl.DataFrame:
    """Stations of a country, in towns of all sizes."""
    rng = np.random.default_rng([seed, 1])
    towns = max(1, count // 50)  # the k-th largest has about 1 / k of the stations of the largest
    town = rng.choice(towns, count, p=(p := 1 / np.arange(1, towns + 1)) / p.sum())
    at = rng.uniform((46, 6), (54, 15), (towns, 2))[town] + rng.normal(0, 0.02, (count, 2))
    return pl.DataFrame(
        {
            "station_id": [f"s{i:06d}" for i in range(count)],
            "lat": at[:, 0],
            "lon": at[:, 1],
            "power_kw": rng.choice([11.0, 22.0, 150.0], count),
            "plugs": rng.integers(2, 9, count),
        }
    )


def make_trips(folder: Path, trips: int, stations: pl.DataFrame) -> None:
    """Write files of trips in random order, each with some of the cars; a car drives about six times a week."""
    at = stations.select("lat", "lon").to_numpy()
    slot = WEEKS * 7 * DAY_MS // TRIPS_PER_CAR  # time for one trip of a car [ms]
    for number, first in enumerate(range(0, trips, FILE_ROWS)):
        rng = np.random.default_rng([number, 2])
        rows = min(FILE_ROWS, trips - first)
        car, turn = np.divmod(np.arange(first, first + rows), TRIPS_PER_CAR)
        begin = START_MS + turn * slot + rng.integers(0, slot // 2, rows)
        minutes = rng.gamma(2, 10, rows).clip(1, slot / 2 / 60_000)
        end = at[rng.integers(0, len(at), rows)] + rng.normal(0, 0.01, (rows, 2))
        frame = pl.DataFrame(
            {
                "vehicle_id": pl.Series(car).cast(pl.String).str.zfill(9),
                "start_time": pl.Series(begin).cast(UTC_MS),
                "end_time": pl.Series(begin + (minutes * 60_000).astype(np.int64)).cast(UTC_MS),
                "end_lat": end[:, 0],
                "end_lon": end[:, 1],
                "distance_km": minutes * rng.uniform(0.4, 1.2, rows),
            }
        )
        frame.sample(fraction=1, shuffle=True, seed=number).write_parquet(folder / f"trips-{number:04d}.parquet")


def make_sessions(folder: Path, sessions: int) -> None:
    """Write random sessions in files by station, and the table of stations."""
    count = max(2, sessions // SESSIONS_PER_STATION)
    stations = make_stations(count)
    stations.write_parquet(folder / "stations.parquet")
    per_file = max(1, FILE_ROWS // SESSIONS_PER_STATION)
    for number, first in enumerate(range(0, count, per_file)):
        rng = np.random.default_rng([number, 3])
        rows = SESSIONS_PER_STATION * min(per_file, count - first)
        place = np.repeat(np.arange(first, min(count, first + per_file)), SESSIONS_PER_STATION)
        hour = rng.choice(24, rows, p=(p := 1.2 + np.sin(np.arange(24) / 24 * 2 * np.pi - 2)) / p.sum())
        begin = START_MS + rng.integers(0, 364, rows) * DAY_MS + hour * 3_600_000 + rng.integers(0, 3_600_000, rows)
        minutes = rng.gamma(2, 20, rows)
        frame = pl.DataFrame(
            {
                "session_id": pl.Series(np.arange(rows) + number * FILE_ROWS).cast(pl.String),
                "station_id": stations["station_id"].gather(place),
                "start": pl.Series(begin).cast(UTC_MS),
                "end": pl.Series(begin + (minutes * 60_000).astype(np.int64)).cast(UTC_MS),
                "energy_kwh": minutes / 60 * 11,
            }
        )
        frame.sort("start").write_parquet(folder / f"sessions-{number:04d}.parquet")


def simulate_trips(folder: Path) -> dict[str, float]:
    """Simulate all trips of a folder, all cars electric."""
    from unmet.simulation.scenario import Scenario
    from unmet.simulation.stream import stream_simulation
    from unmet.simulation.trip_files import find_trip_files

    out = folder / "out"
    out.mkdir()
    files = find_trip_files(folder / "trips")
    streamed = stream_simulation(files, folder / "stations.parquet", Scenario(penetration=1.0), out)
    return {"stations": STATIONS, "arrivals": streamed.outcome().arrivals.height}


def estimate_sessions(folder: Path) -> dict[str, float]:
    """Read all sessions of a folder and estimate lost demand."""
    from unmet.demand.from_records import PanelChoices, panel_from_records
    from unmet.estimation.lost_demand import LostDemand

    files = tuple(sorted((folder / "sessions").glob("sessions-*.parquet")))
    choices = PanelChoices(files=files, stations=folder / "sessions" / "stations.parquet")
    panel, _, _ = panel_from_records(choices, None)
    read = time.perf_counter()
    LostDemand(draws=20).fit(panel)
    return {"stations": panel.stations.height, "estimate_s": round(time.perf_counter() - read, 1)}


def estimate_areas(folder: Path) -> dict[str, float]:
    """Read all sessions of a folder and estimate lost demand area by area, on all cores."""
    from unmet.demand.from_records import PanelChoices
    from unmet.estimation.lost_demand import LostDemand
    from unmet.estimation.recover_areas import recover_by_area

    files = tuple(sorted((folder / "areas").glob("sessions-*.parquet")))
    choices = PanelChoices(files=files, stations=folder / "areas" / "stations.parquet")
    added, _, _ = recover_by_area(choices, LostDemand(draws=20).get_params(), folder)
    return {"stations": added.summary["stations"], "areas": added.summary["areas"]}


WORK = {"trips": simulate_trips, "sessions": estimate_sessions, "areas": estimate_areas}


def measured(kind: str, size: int, folder: Path) -> dict[str, float]:
    """Generate an input, and measure its processing in a new process."""
    (folder / kind).mkdir()
    if kind == "trips":
        stations = make_stations(STATIONS)
        stations.write_parquet(folder / "stations.parquet")
        make_trips(folder / kind, size, stations)
    else:
        make_sessions(folder / kind, size)
    command = [sys.executable, "-m", "benchmarks.scaling", "--measure", kind, str(size), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peak = _watched_peak(process)
        printed = process.stdout.read() if process.stdout else ""
    if process.returncode:
        sys.exit(f"{kind} of {size} failed")
    return json.loads(printed.splitlines()[-1]) | {"peak_gib": round(peak / 1024**3, 3)}


def _watched_peak(process: subprocess.Popen[str]) -> float:
    """Most memory [byte] that a process and those it started had at one time; pages that they share count once."""
    peak = 0.0
    while process.poll() is None:
        try:
            whole = psutil.Process(process.pid)
            peak = max(peak, sum(each.memory_full_info().pss for each in (whole, *whole.children(recursive=True))))
        except psutil.Error:
            pass
        time.sleep(0.25)
    return peak


def measure(kind: str, size: int, folder: Path) -> None:
    """Do the work and measure it, imports included."""
    started, before = time.perf_counter(), _cpu()
    found = WORK[kind](folder)
    wall = time.perf_counter() - started
    for worker in multiprocessing.active_children():  # their time counts once they have ended
        worker.join()
    figures = {"size": size, "wall_s": wall, "cpu_s": _cpu() - before}
    print(json.dumps({name: round(value, 3) for name, value in figures.items()} | found))


def _cpu() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in both)


def main() -> None:
    """Print a row per size, and the exponent with which CPU time grows between the first and the last."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("kind", nargs="?", choices=sorted(WORK))
    parser.add_argument("rest", nargs="*")
    given = parser.parse_args()
    if given.measure:
        measure(given.kind, int(given.rest[0]), Path(given.rest[1]))
        return
    for kind in [given.kind] if given.kind else sorted(WORK):
        sizes = [int(float(text)) for text in given.rest] or (FULL_SIZES if given.full else SIZES)[kind]
        rows = []
        for size in sizes:
            with tempfile.TemporaryDirectory(prefix="unmet-scaling-") as folder:
                rows.append(measured(kind, size, Path(folder)))
            print(kind, rows[-1], f"load {os.getloadavg()[0]:.1f}", flush=True)
        if len(rows) > 1:
            exponent = math.log(rows[-1]["cpu_s"] / rows[0]["cpu_s"]) / math.log(rows[-1]["size"] / rows[0]["size"])
            print(f"{kind}: CPU time grows as size to the power {exponent:.2f} (start-up included)")


if __name__ == "__main__":
    main()
