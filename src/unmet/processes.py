"""Worker processes that end with the process that started them."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import TypeVar

from unmet.runs import available_cores

__all__ = ["end_with", "map_in_processes"]

POLL_SECONDS = 0.5
AHEAD = 2  # calls per core that are prepared ahead of their results, to limit memory

Given = TypeVar("Given")
Result = TypeVar("Result")


def map_in_processes(function: Callable[[Given], Result], arguments: Iterable[Given]) -> Iterator[Result]:
    """Yield `function(argument)` for each argument in order, computed in one process per core.

    Arguments are taken only a few ahead of the results, so that a generator of large ones needs little memory.
    """
    from loky import ProcessPoolExecutor

    cores = available_cores()
    if cores == 1:
        yield from map(function, arguments)
        return
    pool = ProcessPoolExecutor(cores, initializer=end_with, initargs=(os.getpid(),))
    pending: deque[Future[Result]] = deque()
    try:
        for argument in arguments:
            pending.append(pool.submit(function, argument))
            if len(pending) > AHEAD * cores:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=False, kill_workers=True)


def end_with(parent: int) -> None:
    """End this process soon after its parent, even if the parent was killed.

    A thread watches the parent's id. Linux could send a signal instead (PR_SET_PDEATHSIG), but it sends it as soon as
    the *thread* that started this process ends.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="unmet-end-with-parent").start()
