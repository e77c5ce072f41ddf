"""Jobs: long tasks in separate processes, one at a time, with progress, limits and a way to cancel them.

A job never runs in the server process: a file that crashes its reader or takes all memory ends only the job.
"""

from __future__ import annotations

import multiprocessing
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from unmet.errors import InputError
from unmet.views.app.settings import Limits

__all__ = ["Job", "Jobs", "ReportProgress", "Work"]

ReportProgress = Callable[[str, float], None]
"""Called with a description of the current step, and the share of the work that is done."""
Work = Callable[[Path, dict[str, Any], ReportProgress], None]
"""Writes a run into a folder, given a request, and reports its progress."""

FINISHED = frozenset({"done", "failed", "cancelled"})
POLL_SECONDS = 0.2
TERMINATE_SECONDS = 2  # time that a process has to end before it is killed
MAX_FINISHED = 50  # finished jobs that are remembered


@dataclass
class Job:
    """A long task and its progress."""

    id: str
    kind: str
    folder: Path = field(repr=False)
    request: dict[str, Any] = field(default_factory=dict)
    state: str = "waiting"  # then running, and one of FINISHED
    doing: str = "Waiting for its turn"
    progress: float = 0.0
    error: str = ""
    cancelled: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def run(self) -> Path:
        """Folder of the run that the job writes."""
        return self.folder / "run"

    def public(self) -> dict[str, Any]:
        """The fields that visitors may see, as a dictionary."""
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "doing": self.doing,
            "progress": round(self.progress, 3),
            "error": self.error,
        }


class Jobs:
    """All jobs, run one after the other. Each has a thread that waits for its turn and then watches its process."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._turn = threading.Lock()  # held by the running job
        self._closed = False

    def start(self, kind: str, work: Work, request: dict[str, Any], folder: Path | None = None) -> Job:
        """Queue a job. It writes into the subfolder `run` of the given folder, by default of a new one."""
        with self._lock:
            unfinished = sum(job.state not in FINISHED for job in self._jobs.values())
            if self._closed or unfinished >= self.limits.waiting_jobs:
                raise InputError(f"{unfinished} jobs already wait or run: wait until one ends, or cancel one.")
            job = Job(secrets.token_hex(8), kind, folder or self.folder, request)
            if folder is None:
                job.folder = self.folder / job.id
            job.folder.mkdir(parents=True, exist_ok=True)
            self._jobs[job.id] = job
            self._forget()
        threading.Thread(target=self._watch, args=(job, work), daemon=True).start()
        return job

    def named(self, job_id: str) -> Job:
        """The job with an id. Raises KeyError if there is none."""
        with self._lock:
            if job_id not in self._jobs:
                raise KeyError(job_id)
            return self._jobs[job_id]

    def all(self) -> list[Job]:
        """All jobs, in the order in which they were started."""
        with self._lock:
            return list(self._jobs.values())

    def cancel(self, job_id: str) -> Job:
        """Cancel a job; its output is removed."""
        job = self.named(job_id)
        job.cancelled.set()
        return job

    def close(self) -> None:
        """Cancel all jobs and accept no new ones."""
        self._closed = True
        for job in self.all():
            job.cancelled.set()

    def _forget(self) -> None:
        """Remove all but the latest `MAX_FINISHED` finished jobs and their folders. The lock must be held."""
        old = [job for job in self._jobs.values() if job.state in FINISHED][:-MAX_FINISHED]
        for job in old:
            del self._jobs[job.id]
            shutil.rmtree(job.folder, ignore_errors=True)

    def _watch(self, job: Job, work: Work) -> None:
        while not self._turn.acquire(timeout=POLL_SECONDS):
            if job.cancelled.is_set():
                _end(job, "cancelled", "Cancelled")
                return
        try:
            if job.cancelled.is_set():
                _end(job, "cancelled", "Cancelled")
                return
            self._run(job, work)
        finally:
            self._turn.release()

    def _run(self, job: Job, work: Work) -> None:
        context = multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        arguments = work, job.run, job.request, sender, self.limits.job_memory_bytes
        process = context.Process(target=_run_in_process, args=arguments, daemon=True)
        process.start()
        sender.close()
        job.state, job.doing = "running", "Starting"
        deadline = time.monotonic() + self.limits.job_seconds
        outcome: tuple[str, str] | None = None
        while outcome is None:
            if job.cancelled.is_set():
                outcome = "cancelled", "Cancelled"
            elif time.monotonic() > deadline:
                outcome = "failed", f"The task took longer than {self.limits.job_seconds // 60} minutes."
            else:
                outcome = self._receive(job, receiver, process)
        if process.is_alive():
            process.terminate()
            process.join(TERMINATE_SECONDS)
            if process.is_alive():
                process.kill()
        process.join()
        if outcome[0] != "done":
            shutil.rmtree(job.run, ignore_errors=True)
        _end(job, *outcome)

    def _receive(self, job: Job, pipe: Connection, process: Any) -> tuple[str, str] | None:
        """Handle one message from the process. Returns its final state and a text once it has ended, else None."""
        try:
            if not pipe.poll(POLL_SECONDS):
                return None if process.is_alive() or pipe.poll(0) else ("failed", "The task stopped unexpectedly.")
            kind, text, share = pipe.recv()
        except (EOFError, OSError):
            return "failed", "The task stopped unexpectedly: it may have needed more memory than allowed."
        if kind == "doing":
            job.doing, job.progress = text, share
            return None
        return kind, text


def _end(job: Job, state: str, text: str) -> None:
    job.doing = text if state != "failed" else "Failed"
    job.error = text if state == "failed" else ""
    job.progress = 1.0 if state == "done" else job.progress
    job.state = state  # set last, since other threads wait for it


def _run_in_process(work: Work, folder: Path, request: dict[str, Any], pipe: Connection, memory_bytes: int) -> None:
    """The target of the process: do the work, and send its progress and outcome."""
    _limit_memory(memory_bytes)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        work(folder, request, lambda text, share: pipe.send(("doing", text, share)))
        pipe.send(("done", "Done", 1.0))
    except InputError as error:
        pipe.send(("failed", str(error), 1.0))
    except MemoryError:
        pipe.send(("failed", "The task needs more memory than allowed: upload fewer rows.", 1.0))
    except Exception as error:  # a visitor sees one sentence, and the log has the traceback
        import traceback

        traceback.print_exc()
        pipe.send(("failed", f"The task failed unexpectedly ({type(error).__name__}).", 1.0))


def _limit_memory(memory_bytes: int) -> None:
    """Limit the memory of this process, if the system supports it."""
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
