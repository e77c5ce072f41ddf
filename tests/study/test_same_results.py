"""A study gives the same bytes wherever it runs, and whatever is killed in the meantime."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.study.grids import FEW, digests, perform_grid, pool_processes, small_grid
from unmet.errors import InputError
from unmet.study.store import Store

ROOT = Path(__file__).parents[2]
RUNS = len(small_grid(FEW)[1])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, str]:
    """The results of one worker without any disturbance."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert perform_grid(folder, workers=1).done == RUNS
    return digests(folder)


def kept(folder: Path) -> int:
    return len(list((folder / "runs").glob("*.parquet")))


def test_a_study_survives_being_killed_repeatedly(undisturbed, tmp_path):
    """Kill one of its workers, then the whole study, whose workers must end with it; stop the rest once more."""
    command = [sys.executable, "-m", "tests.study.grids", str(tmp_path), "2", "3"]
    with subprocess.Popen(command, cwd=ROOT) as study:
        while not (tmp_path / "paused").exists():
            assert study.poll() is None, "the study ended by itself"
            time.sleep(0.01)
        pool = pool_processes(study.pid)
        study.kill()
    (tmp_path / "paused").unlink()
    assert study.returncode == -signal.SIGKILL
    assert pool
    assert kept(tmp_path) == 3
    assert not psutil.wait_procs(pool, timeout=300)[1], "workers outlive the study"

    def stop(progress):
        if progress.done == 2:
            raise SystemExit

    with pytest.raises(SystemExit):
        perform_grid(tmp_path, workers=1, on_progress=stop)
    assert kept(tmp_path) == 5
    progress = perform_grid(tmp_path, workers=1)
    assert (progress.kept, progress.done) == (5, RUNS - 5)
    assert digests(tmp_path) == undisturbed


@dataclass
class Cluster:
    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    """A Dask scheduler and two workers, one of them with two threads. The scheduler's file tells its address."""
    from distributed.utils import json_load_robust

    folder = tmp_path_factory.mktemp("dask")
    found = folder / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    where = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(found)]
    commands = [
        [*dask, "scheduler", *where, "--port", "0", "--no-show"],
        [*dask, "worker", *where, "--no-nanny", "--nthreads", "1"],
        [*dask, "worker", *where, "--no-nanny", "--nthreads", "2"],
    ]
    processes = []
    for command in commands:
        processes.append(subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        while not found.exists():
            assert processes[0].poll() is None, "the scheduler ended by itself"
            time.sleep(0.05)
    address = json_load_robust(found)["address"]  # waits until all of it is written
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr("unmet.clusters.CONNECT_TIMEOUT", "300s")  # a busy machine answers late
    yield Cluster(address, processes[0], processes[1:])
    for process in reversed(processes):
        process.kill()
        process.wait()
    monkeypatch.undo()


def test_a_dask_cluster_survives_the_loss_of_a_worker(undisturbed, tmp_path, cluster):
    from distributed import Client

    with Client(cluster.address, timeout="300s") as client:
        client.wait_for_workers(2, timeout=300)

    def kill(progress):
        if progress.done == 1:  # early, when data sent to that worker may be nowhere else
            cluster.workers[0].kill()

    progress = perform_grid(tmp_path, scheduler=cluster.address, on_progress=kill)
    assert cluster.workers[0].wait() == -signal.SIGKILL
    assert (progress.done, progress.failed) == (RUNS, {})
    assert digests(tmp_path) == undisturbed


def test_the_loss_of_the_dask_scheduler_ends_the_study_with_one_sentence(undisturbed, tmp_path, cluster):
    def kill(progress):
        if progress.done == 4:
            cluster.scheduler.kill()

    with pytest.raises(InputError, match="was lost: finished runs are kept"):
        perform_grid(tmp_path, scheduler=cluster.address, on_progress=kill)
    assert 4 <= kept(tmp_path) < RUNS
    perform_grid(tmp_path, workers=1)
    assert digests(tmp_path) == undisturbed


def test_a_folder_belongs_to_one_study(tmp_path):
    Store(tmp_path / "s", name="total")
    Store(tmp_path / "s", name="total")
    Store(tmp_path / "s")
    with pytest.raises(InputError, match="holds the study total, not application"):
        Store(tmp_path / "s", name="application")
