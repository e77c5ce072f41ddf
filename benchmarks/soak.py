"""A server under mixed requests for a long time: `python -m benchmarks.soak --minutes 30`.

`unmet serve` runs in a process of its own, on loopback. Requests arrive at a steady rate: pages, tables, files,
reports, what-ifs that are not cached, uploads with a job that estimates lost demand, and invalid requests. Each must
get the right status. The server's memory is sampled every few seconds. A warm-up comes before the time that is
measured: it fills the cache of what-ifs, makes every other kind of request as often, and waits for a first job. From
then on memory must stay flat: the mean over the last fifth of the time within 5 % of the mean over the first fifth. The
processes of jobs must end with them.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from statistics import mean

import psutil

MIB = 1024**2
FLAT = 0.05  # largest relative change of memory that counts as flat
POLL_SECONDS = 5.0
JOB_SECONDS = 90.0  # from one upload to the next
LEFT_SECONDS = 30.0  # time allowed for the processes of the last job to end
WARM_UP_ROUNDS = 40  # two what-ifs per round: together more than the 64 answers that the server caches


class Client:
    """Sends requests to a server, and counts its answers."""

    def __init__(self, port: int) -> None:
        self.port, self.answers, self.failures, self.slowest = port, Counter[str](), list[str](), 0.0

    def ask(self, kind: str, expected: int, method: str, path: str, body: bytes | None = None) -> bytes:
        """Send one request, whose status should be `expected`, and return the answer."""
        started = time.perf_counter()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body, {"content-type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException) as error:
            self.failures.append(f"{kind}: {type(error).__name__}")
            return b"{}"
        finally:
            connection.close()
        self.slowest = max(self.slowest, time.perf_counter() - started)
        self.answers[kind] += 1
        if answer.status != expected:
            self.failures.append(f"{kind}: {answer.status} instead of {expected}")
        return content


def requests(client: Client, rng: random.Random, stations: list[dict[str, object]]) -> list[Callable[[], object]]:
    """Functions that send one kind of request each, with different values every time.

    A kind that is listed several times is drawn that much more often.
    """

    def what_if() -> None:
        plugs = [[rng.choice(stations)["station_id"], rng.randint(1, 40)]]
        question = {"plugs": plugs, "penetration": 0.02, "growth": rng.randrange(100) / 1000}
        client.ask("what-if", 200, "POST", "/api/city/what-if", json.dumps(question).encode())

    def table() -> None:
        name = rng.choice(("sites", "stations", "regions", "weeks", "week_hours", "sensitivity"))
        client.ask("table", 200, "GET", f"/api/runs/given/tables/{name}?limit={rng.randint(1, 500)}")

    def nonsense() -> None:
        path, body, status = rng.choice((
            ("/api/city/what-if", b'{"plugs": [["nowhere", 1]]}', 400),
            ("/api/city/what-if", b"[" * 5000, 400),
            ("/api/city/what-if", b'{"penetration": NaN}', 422),
            ("/api/plan", b"{}", 400),
            ("/api/records?name=x.exe", b"MZ", 400),
            ("/api/records/0123456789abcdef/recover", b"{}", 404),
        ))  # fmt: skip
        client.ask("nonsense", status, "POST", path, body)

    return [
        what_if, what_if, table, table, table, nonsense,
        lambda: client.ask("page", 200, "GET", rng.choice(("/", "/docs", "/_dash-layout"))),
        lambda: client.ask("health", 200, "GET", "/api/health"),
        lambda: client.ask("city", 200, "GET", "/api/city"),
        lambda: client.ask("file", 200, "GET", "/api/runs/given/files/sites.csv"),
        lambda: client.ask("report", 200, "GET", "/api/runs/given/report"),
        lambda: client.ask("missing", 404, "GET", f"/api/jobs/{rng.getrandbits(64):016x}"),
        lambda: client.ask("jobs", 200, "GET", "/api/jobs"),
    ]  # fmt: skip


def start_job(client: Client, records: bytes, stations: bytes) -> str:
    """Upload records, start a job that estimates their lost demand, and return its id."""
    upload = json.loads(client.ask("upload", 201, "POST", "/api/records?name=s.csv", records)).get("id", "0" * 16)
    client.ask("upload", 201, "POST", f"/api/records/{upload}/stations?name=t.csv", stations)
    return str(json.loads(client.ask("job", 202, "POST", f"/api/records/{upload}/recover", b"{}")).get("id", ""))


def soak(minutes: float, rate: float, seed: int) -> bool:
    """Run a server under load, print the findings, and return whether it passed."""
    from tests.small_network import STATIONS, records
    from tests.views.runs import write_lost

    rng = random.Random(seed)  # noqa: S311
    csv = records(28)[0].write_csv().encode(), STATIONS.write_csv().encode()
    with tempfile.TemporaryDirectory(prefix="unmet-soak-") as name, socket.socket() as free:
        run = write_lost(Path(name) / "run")
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
        free.close()
        command = [sys.executable, "-m", "unmet", "serve", str(run), "--port", str(port)]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            client, watched = Client(port), psutil.Process(server.pid)
            while not _is_ready(port):
                time.sleep(0.5)
            kinds = requests(client, rng, _stations(client))
            _warm_up(client, watched, kinds, csv)
            return _load(client, watched, kinds, rng, csv, minutes, rate)
        finally:
            server.terminate()
            server.wait()


def _warm_up(
    client: Client, server: psutil.Process, kinds: list[Callable[[], object]], csv: tuple[bytes, bytes]
) -> None:
    """Make every kind of request often enough to fill the caches, and wait for a first job."""
    started, at_first = time.monotonic(), server.memory_info().rss / MIB
    job = start_job(client, *csv)
    for _ in range(WARM_UP_ROUNDS):
        for ask in kinds:
            ask()
    while json.loads(client.ask("job", 200, "GET", f"/api/jobs/{job}")).get("state") in ("waiting", "running"):
        time.sleep(1)
    print(
        f"warm-up: {sum(client.answers.values())} requests in {time.monotonic() - started:.0f} s; memory "
        f"{at_first:.0f} MiB before, {server.memory_info().rss / MIB:.0f} MiB after",
        flush=True,
    )


def _load(
    client: Client,
    server: psutil.Process,
    kinds: list[Callable[[], object]],
    rng: random.Random,
    csv: tuple[bytes, bytes],
    minutes: float,
    rate: float,
) -> bool:
    """Send requests at a steady rate for some minutes, and return whether the server passed."""
    started, memory_mib, jobs = time.monotonic(), list[float](), list[str]()
    sampled, uploaded = 0.0, -JOB_SECONDS
    while (now := time.monotonic() - started) < minutes * 60:
        if now - sampled >= POLL_SECONDS:
            sampled = now
            memory_mib.append(server.memory_info().rss / MIB)
        if now - uploaded >= JOB_SECONDS and now < minutes * 60 - 1.5 * JOB_SECONDS:
            uploaded = now
            jobs.append(start_job(client, *csv))
        rng.choice(kinds)()
        time.sleep(max(0.0, 1 / rate - (time.monotonic() - started - now)))
    left = _left(server)
    states = Counter(json.loads(client.ask("job", 200, "GET", f"/api/jobs/{job}")).get("state") for job in jobs[-5:])
    return _verdict(client, memory_mib, minutes, left, states, len(jobs))


def _verdict(
    client: Client, memory_mib: list[float], minutes: float, left: int, states: Counter[str], jobs: int
) -> bool:
    """Print the findings, and return whether the server passed."""
    fifth = max(1, len(memory_mib) // 5)
    first, last = mean(memory_mib[:fifth]), mean(memory_mib[-fifth:])
    grown = last / first - 1
    number = sum(client.answers.values())
    print(f"{number:,} requests, warm-up included; {minutes:g} minutes: {dict(client.answers.most_common())}")
    print(f"{len(client.failures)} failed {client.failures[:5]}; slowest {client.slowest:.1f} s")
    print(f"{jobs} jobs; the last of them: {dict(states)}; processes left: {left}")
    print(
        f"memory: {first:.0f} MiB in the first fifth, {last:.0f} MiB in the last ({100 * grown:+.1f} %), "
        f"between {min(memory_mib):.0f} and {max(memory_mib):.0f} MiB"
    )
    done = all(state == "done" for state in states)
    return not client.failures and abs(grown) <= FLAT and not left and done


def _left(server: psutil.Process) -> int:
    """Number of job processes that have not ended in time, without the helper processes of multiprocessing."""
    until = time.monotonic() + LEFT_SECONDS
    while time.monotonic() < until and _working(server):
        time.sleep(1)
    return _working(server)


def _working(server: psutil.Process) -> int:
    """Number of job processes of a server that are running now."""
    found = 0
    for process in server.children(recursive=True):
        try:
            words = " ".join(process.cmdline())
        except psutil.Error:
            continue
        found += "resource_tracker" not in words and "forkserver" not in words
    return found


def _is_ready(port: int) -> bool:
    try:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/api/health")
        return bool(json.loads(connection.getresponse().read())["city_ready"])
    except (OSError, HTTPException):
        return False


def _stations(client: Client) -> list[dict[str, object]]:
    return list(json.loads(client.ask("city", 200, "GET", "/api/city"))["stations"])


def main() -> None:
    """Soak a server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=2.0, help="requests per second")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sys.exit(not soak(given.minutes, given.rate, given.seed))


if __name__ == "__main__":
    main()
