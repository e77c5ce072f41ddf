"""Run a study on the cores of this machine or on a Dask cluster; finished runs are kept."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from unmet.clusters import connected
from unmet.errors import InputError
from unmet.processes import end_with
from unmet.runs import available_cores
from unmet.study.cells import Run, RunResult, perform
from unmet.study.parcels import pack, unpack_scene
from unmet.study.scenes import Scene
from unmet.study.store import Store

__all__ = ["Progress", "connected", "execute"]

ATTEMPTS = 3  # number of attempts at a run whose worker is lost


@dataclass(slots=True)
class Progress:
    """Progress of a study, in runs."""

    total: int
    kept: int  # runs finished by earlier calls
    done: int = 0  # runs finished by this call
    failed: dict[Run, str] = field(default_factory=dict)
    seconds: float = 0.0  # sum of the times of the runs of this call
    best: tuple[str, float] | None = None  # the model with the lowest mean tilted loss so far, and that loss

    @property
    def left(self) -> int:
        """Runs that are neither done nor failed."""
        return self.total - self.kept - self.done - len(self.failed)


Outcomes = Generator[tuple[Run, RunResult | str], None, None]


class _Pool(Protocol):
    """Where runs are performed."""

    def outcomes(self, runs: Sequence[Run]) -> Outcomes:
        """Perform runs, and yield each with its result or the reason why it failed."""


def execute(
    runs: Sequence[Run],
    scenes: Sequence[Scene],
    store: Store,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Perform the runs whose results are not in the store yet, and keep each as soon as it is done.

    A run that fails is listed and not repeated in this call. Stopping at any moment loses only the runs in progress.

    Args:
        runs: all runs of the study.
        scenes: the scenes that the runs refer to.
        store: where results are kept.
        workers: number of processes; by default one per core.
        scheduler: address of a Dask scheduler, whose workers are used instead of this machine's cores.
        on_progress: called after every run.
    """
    missing = [run for run in runs if not store.has(run)]
    progress = Progress(len(runs), len(runs) - len(missing))
    report = on_progress or (lambda _: None)
    report(progress)
    if not missing:
        return progress
    scene_of = {scene.fingerprint(): scene for scene in scenes}
    pool: _Pool = _Cluster(scheduler, scene_of) if scheduler else _Cores(workers or available_cores(), scene_of)
    losses: dict[str, list[float]] = {}
    with closing(pool.outcomes(missing)) as outcomes:
        for run, outcome in outcomes:
            if isinstance(outcome, str):
                progress.failed[run] = outcome
            else:
                store.write(run, outcome)
                progress.done += 1
                progress.seconds += outcome.seconds
                losses.setdefault(run.model, []).append(outcome.row["tilted_loss"])
                best = min(losses, key=lambda model: sum(losses[model]) / len(losses[model]))
                progress.best = best, sum(losses[best]) / len(losses[best])
            report(progress)
    return progress


class _Cores:
    """One single-threaded process per core. Scenes are stored in files that each process reads."""

    def __init__(self, workers: int, scenes: dict[str, Scene]) -> None:
        self.workers = workers
        self.scenes = scenes

    def outcomes(self, runs: Sequence[Run]) -> Outcomes:
        if self.workers == 1:
            for run in runs:
                yield run, _attempt(run, self.scenes[run.scene])
            return
        with tempfile.TemporaryDirectory(prefix="unmet-") as name:
            paths = {key: Path(name) / key for key in {run.scene for run in runs}}
            for key, path in paths.items():
                path.write_bytes(pack(self.scenes[key], runs))
            yield from self._in_processes(runs, paths)

    def _in_processes(self, runs: Sequence[Run], paths: dict[str, Path]) -> Outcomes:
        from loky import ProcessPoolExecutor
        from loky.process_executor import BrokenProcessPool

        attempts = dict.fromkeys(runs, 0)  # by unfinished run
        while attempts:
            # Runs whose worker was lost are repeated one at a time, so that a run that crashes takes no other with it.
            repeated = [run for run, count in attempts.items() if count]
            waiting, workers = iter(repeated or list(attempts)), 1 if repeated else self.workers
            pool = ProcessPoolExecutor(workers, initializer=end_with, initargs=(os.getpid(),))
            running: dict[Future[RunResult | str], Run] = {}
            try:
                while True:
                    while len(running) < workers and (run := next(waiting, None)) is not None:
                        attempts[run] += 1
                        running[pool.submit(_attempt, run, paths[run.scene])] = run
                    if not running:
                        break
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        run = running[future]
                        outcome = future.result()
                        del running[future], attempts[run]
                        yield run, outcome
            except BrokenProcessPool:
                for run in running.values():
                    if attempts.get(run, 0) >= ATTEMPTS:
                        del attempts[run]
                        yield run, f"its worker was lost {ATTEMPTS} times"
            finally:
                pool.shutdown(wait=False, kill_workers=True)


class _Cluster:
    """Workers of a Dask cluster, to which the scenes are sent."""

    def __init__(self, scheduler: str, scenes: dict[str, Scene]) -> None:
        self.client = connected(scheduler)
        self.scheduler = scheduler
        self.scenes = scenes

    def outcomes(self, runs: Sequence[Run]) -> Outcomes:
        from distributed import as_completed

        used = {run.scene for run in runs}
        with self.client:
            # Submitted rather than scattered: if a worker is lost, Dask computes its parcels again.
            sent = {key: self.client.submit(bytes, pack(self.scenes[key], runs), pure=False) for key in used}
            futures = {
                self.client.submit(_attempt, run, sent[run.scene], key=f"unmet-{run.key}", retries=ATTEMPTS): run
                for run in runs
            }
            completed: Any = as_completed  # it has no type annotations
            for future in completed(futures):
                try:
                    outcome = str(future.exception()) if future.status == "error" else future.result()
                except (OSError, CancelledError):
                    raise InputError(
                        f"The Dask scheduler at {self.scheduler} was lost: finished runs are kept. Run the command "
                        "again to resume."
                    ) from None
                yield futures[future], outcome


def _attempt(run: Run, source: Scene | bytes | Path) -> RunResult | str:
    """The result of a run on a scene or parcel, or the reason why it failed: one failure must not end a study."""
    try:
        packed = source.read_bytes() if isinstance(source, Path) else source
        scene = unpack_scene(packed) if isinstance(packed, bytes) else packed
        with _ONE_AT_A_TIME:
            return perform(run, scene)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


# Torch has one random generator and one number of threads per process, so the threads of a Dask worker take turns.
_ONE_AT_A_TIME = threading.Lock()
