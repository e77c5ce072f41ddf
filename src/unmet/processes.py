"""Worker processes: they end with the process that started them, whatever ended that."""

from __future__ import annotations

import os
import threading
import time

__all__ = ["end_with"]

LOOK_SECONDS = 0.5


def end_with(parent: int) -> None:
    """Have this process end soon after its parent, also when that was killed and could tell nobody.

    A thread looks at who the parent is. Linux could send a signal instead (PR_SET_PDEATHSIG), but does so as soon as
    the *thread* that started this process ends.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="unmet-end-with-parent").start()
