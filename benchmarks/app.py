"""The app: what-if in the built-in city, and reads of tables while another process fits a model."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from benchmarks.report import Result

TITLE = "The app"
TEXT = """`unmet serve` in a process of its own, queried over HTTP; `python -m benchmarks app` runs this alone. What-if:
20 questions at 5 % electric cars, each with more plugs at a different station, so that none is answered from the cache.
The first time is the server's: simulation, and sums by station, region, day and hour. The second is for the
whole request, with all stations and regions as JSON. Reads: pages of 50 sites of a recovered run, by four concurrent
clients, while a job of the app estimates lost demand and fits a forecaster to it."""

QUESTIONS, CLIENTS, SECONDS = 20, 4, 8.0  # what-ifs; concurrent readers, and for how long they read


def run() -> list[Result]:
    """All benchmarks of the app."""
    with tempfile.TemporaryDirectory() as folder, _served(Path(folder)) as port:
        server_seconds, request_seconds = zip(*_what_ifs(port), strict=True)
        rate, fit_was_running = _reads_during_a_fit(port)
    median, request = statistics.median(server_seconds), statistics.median(request_seconds)
    measured = (
        f"{median:.2f} s of the server, {request:.2f} s for the whole request (slowest: {max(request_seconds):.2f} s)"
    )
    return [
        Result("what-if at 5 %, median of 20", measured, "under 1 s", median < 1),
        Result(
            "cached reads while a fit runs",
            f"{rate:,.0f} per second",
            "50 per second or more",
            rate >= 50 and fit_was_running,
        ),
    ]


@contextmanager
def _served(folder: Path) -> Iterator[int]:
    """Start a server with a run from simulated records; yields its port."""
    unmet = [sys.executable, "-m", "unmet"]
    city, run_ = folder / "city", folder / "run"
    for command in (
        ["simulate", "--penetration", "0.02", "--out", str(city)],
        ["recover", str(city / "sessions.parquet"), "--stations", str(city / "stations.parquet"), "--out", str(run_)],
    ):
        subprocess.run([*unmet, *command], check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    server = subprocess.Popen([*unmet, "serve", str(run_), "--port", str(port)], stderr=subprocess.DEVNULL)
    try:
        while not _ready(port):
            time.sleep(0.5)
        yield port
    finally:
        server.terminate()
        server.wait()


def _ready(port: int) -> bool:
    try:
        return bool(_ask(port, "GET", "/api/health")["city_ready"])
    except OSError:
        return False


def _ask(port: int, method: str, path: str, body: Any = None) -> Any:
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, path, data, {"content-type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def _what_ifs(port: int) -> list[tuple[float, float]]:
    """Time of the server and of the whole request for each question [s]."""
    times = []
    for row in _ask(port, "GET", "/api/city")["stations"][:QUESTIONS]:
        started = time.perf_counter()
        answer = _ask(port, "POST", "/api/city/what-if", {"plugs": [[row["station_id"], row["plugs"] + 2]]})
        times.append((answer["seconds"], time.perf_counter() - started))
    return times


def _reads_during_a_fit(port: int) -> tuple[float, bool]:
    """Reads per second, and whether the job was still running after them."""
    job = _ask(port, "POST", "/api/forecast", {})["id"]
    while _ask(port, "GET", f"/api/jobs/{job}")["doing"] in ("Waiting for its turn", "Starting", "Reading the records"):
        time.sleep(0.1)
    done = [0] * CLIENTS
    until = time.perf_counter() + SECONDS

    def read(client: int) -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        while time.perf_counter() < until:
            connection.request("GET", "/api/runs/given/tables/sites?limit=50")
            assert len(json.loads(connection.getresponse().read())["rows"]) == 50
            done[client] += 1

    threads = [threading.Thread(target=read, args=(i,)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    running = _ask(port, "GET", f"/api/jobs/{job}")["state"] == "running"
    _ask(port, "DELETE", f"/api/jobs/{job}")
    return sum(done) / SECONDS, running


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for result in run():
        print(f"{result.what}: {result.measured} (target: {result.promised}; {'met' if result.kept else 'MISSED'})")
