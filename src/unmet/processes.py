"""Worker processes that end with the process that started them."""

from __future__ import annotations

import os
import threading
import time

__all__ = ["end_with"]

POLL_SECONDS = 0.5


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
