"""Train the same network from different seeds, in parallel on the available cores.

Each seed is trained on one thread, so that its result does not depend on how many are trained at a time.
"""

from __future__ import annotations

import os
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse

from unmet.errors import InputError
from unmet.models.backbones.base import Backbone
from unmet.models.checkpoint import STATE_SUFFIX, read_state, write_state
from unmet.models.graph import Graph
from unmet.models.network import ForecastNetwork
from unmet.models.training import Epoch, Task, TrainingState, train
from unmet.processes import end_with

__all__ = ["SeedProgress", "TrainingJob", "build_network", "one_thread", "train_seeds"]

CHECKPOINT_SECONDS = 10  # least time between checkpoints of a seed
POLL_SECONDS = 0.1  # time between reports of progress


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A backbone on a graph, to be trained for a task."""

    task: Task
    backbone: type[Backbone]
    graph: sparse.csr_array
    device: str = "cpu"


class SeedProgress(NamedTuple):
    """Progress of one seed."""

    seed: int
    epoch: int
    loss: float
    best: float  # best validation loss so far
    done: bool


def build_network(job: TrainingJob, seed: int) -> ForecastNetwork:
    """A network with initial weights from a seed; torch's global random state is unchanged."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        backbone = job.backbone(job.task.encoding.shape(job.task.lags), Graph(job.graph))
        return ForecastNetwork(backbone, job.task.likelihood.outputs).to(job.device)


def train_seeds(
    job: TrainingJob,
    seeds: Sequence[int],
    workers: int,
    checkpoints: Path | None = None,
    on_progress: Callable[[list[SeedProgress]], None] | None = None,
) -> tuple[list[TrainingState], bool]:
    """Train every seed, up to `workers` at a time. Returns their states, and whether training was interrupted.

    Ctrl-C ends training after the current epoch, with the best weights so far. With a folder of `checkpoints`, training
    resumes from it and updates it.
    """
    with tempfile.TemporaryDirectory(prefix="unmet-") as folder:
        board = _Board(Path(folder) / "board", len(seeds), create=True)

        def report() -> None:
            if on_progress:
                on_progress(board.progress(seeds))

        with _stop_on_interrupt(board):
            if workers == 1 or len(seeds) == 1:
                states = [_train_one(job, seed, row, board, checkpoints, report) for row, seed in enumerate(seeds)]
            else:
                states = _in_parallel(job, seeds, min(workers, len(seeds)), board, checkpoints, report)
        report()
        return states, board.stopped and not all(state.done for state in states)


def _in_parallel(
    job: TrainingJob,
    seeds: Sequence[int],
    workers: int,
    board: _Board,
    checkpoints: Path | None,
    report: Callable[[], None],
) -> list[TrainingState]:
    import cloudpickle
    from loky import get_reusable_executor
    from loky.process_executor import BrokenProcessPool

    stored = board.path.with_name("job")  # once for all seeds; cloudpickle includes classes of other packages
    stored.write_bytes(cloudpickle.dumps(job))
    with _interrupts_blocked_in_children():
        pool = get_reusable_executor(workers, timeout=60, initializer=end_with, initargs=(os.getpid(),))
        futures = [
            pool.submit(_in_process, board.path, len(seeds), seed, row, checkpoints) for row, seed in enumerate(seeds)
        ]
    pending = set(futures)
    try:
        while pending:
            _, pending = wait(pending, POLL_SECONDS, FIRST_EXCEPTION)
            report()
            if any(future.done() and future.exception() for future in futures):
                board.stop()
        return [future.result() for future in futures]
    except BrokenProcessPool:
        raise InputError(
            "A process that trained a seed ended unexpectedly, perhaps for lack of memory: set `workers` lower."
        ) from None
    except BaseException:
        board.stop()
        raise


def _in_process(path: Path, seeds: int, seed: int, row: int, checkpoints: Path | None) -> TrainingState:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and stops workers through the board
    job: TrainingJob = pickle.loads(path.with_name("job").read_bytes())  # noqa: S301 (written by the parent just now)
    return _train_one(job, seed, row, _Board(path, seeds), checkpoints, lambda: None)


def _train_one(
    job: TrainingJob, seed: int, row: int, board: _Board, checkpoints: Path | None, report: Callable[[], None]
) -> TrainingState:
    """Train one seed, whose progress is in `row` of the board, and write checkpoints."""
    path = checkpoints / f"seed-{seed}{STATE_SUFFIX}" if checkpoints else None
    state = read_state(path) if path else TrainingState()
    written = time.monotonic()

    def on_epoch(epoch: Epoch) -> bool:
        board.write(row, epoch)
        report()
        # Training is left, and continued below, whenever a checkpoint is due.
        return not board.stopped and not (path and time.monotonic() - written > CHECKPOINT_SECONDS)

    with one_thread():
        network = build_network(job, seed)
        if board.stopped and not state.epoch:  # stopped before the first epoch: return the initial weights
            state.best = network.state_dict()
            return state
        while True:
            state = train(network, job.task, seed, state, on_epoch)
            if path:
                write_state(path, state)
            written = time.monotonic()
            if state.done or board.stopped:
                break
    board.finish(row)
    return state


class _Board:
    """A small shared file in which processes report the progress of their seeds and read whether to stop.

    It has one row per seed (epoch, loss, best loss, whether it is done), and a last one whose first cell says to stop.
    """

    def __init__(self, path: Path, seeds: int, *, create: bool = False) -> None:
        self.path = path
        self.cells = np.memmap(path, np.float64, "w+" if create else "r+", shape=(seeds + 1, 4))

    def write(self, row: int, epoch: Epoch) -> None:
        self.cells[row, :3] = epoch.number, epoch.loss, epoch.best

    def finish(self, row: int) -> None:
        self.cells[row, 3] = 1

    def progress(self, seeds: Sequence[int]) -> list[SeedProgress]:
        return [
            SeedProgress(seed, int(epoch), float(loss), float(best), bool(done))
            for seed, (epoch, loss, best, done) in zip(seeds, self.cells[:-1], strict=True)
        ]

    def stop(self) -> None:
        self.cells[-1, 0] = 1

    @property
    def stopped(self) -> bool:
        return bool(self.cells[-1, 0])


@contextmanager
def _stop_on_interrupt(board: _Board) -> Iterator[None]:
    """Ctrl-C asks all seeds to stop; a second one raises KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def on_interrupt(number: int, frame: object) -> None:
        board.stop()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _interrupts_blocked_in_children() -> Iterator[None]:
    """Block Ctrl-C in processes that are started here, from the start, while they still import torch.

    In this process the signal is only delayed: it is delivered afterwards.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    from loky.backend import resource_tracker as loky_tracker

    for tracker in (resource_tracker, loky_tracker):  # starting these would unblock the signal
        tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread, so that sums have a fixed order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
