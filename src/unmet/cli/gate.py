"""The outermost layer of the command line: turns every error into one sentence and exit code 2."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unmet.errors import InputError, is_disk_full, notes_of, printable, shortened
from unmet.extras import EXTRA_OF, needs_extra

__all__ = ["run_guarded", "sentence_on"]

TRACEBACK = "UNMET_TRACEBACK"  # environment variable that shows tracebacks
_PASSWORD_IN_URL = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s@]*@", re.IGNORECASE)
_SETTLED_PARENTS = 3  # a file inside an unfinished run may be given, such as RUN/panel/panel.parquet
_MAX_PATH = 4096  # longest path on Linux [characters]


def run_guarded(command: Callable[[], Any], arguments: Sequence[str] = ()) -> None:
    """Run the command. Any error gives one sentence and exit code 2.

    Before that, unfinished writes of killed commands at the paths among the `arguments` are completed or undone.
    """
    _settle_paths(arguments)
    try:
        command()
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # a panic of Polars is not an Exception
        if os.environ.get(TRACEBACK):
            traceback.print_exc()
        print(f"unmet: {sentence_on(error)}", file=sys.stderr)
        sys.exit(2)


def sentence_on(error: BaseException) -> str:
    """One sentence about an error, with a remedy; a second one if the command has left something to continue from."""
    note = notes_of(error)
    if isinstance(error, InputError):
        return f"{error} {note}".rstrip()
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in EXTRA_OF:
        return str(needs_extra("This", error))
    reason = shortened(printable(_without_password(" ".join(str(error).split()))), 300)
    if isinstance(error, MemoryError):
        sentence = f"There is not enough memory{f' ({reason})' if reason else ''}: process less data at a time."
        return f"{sentence} {note}".rstrip()
    note = note or "Nothing was written."
    if is_disk_full(error):
        return f"The disk is full ({reason}): free some space, or name another place with --out. {note}"
    if isinstance(error, OSError) and error.filename is not None:
        name = shortened(printable(os.fsdecode(error.filename)), 300)
        return f"Cannot use {name}: {error.strerror}. Check that it exists and that you may read or write it."
    if isinstance(error, RecursionError):
        return "The input is nested too deeply: check its contents."
    kind = type(error).__name__
    return (
        f"An unexpected error occurred ({kind}{f': {reason}' if reason else ''}). {note} Check the "
        f"input, and report this if it looks right; {TRACEBACK}=1 shows the traceback."
    )


def _without_password(text: str) -> str:
    return _PASSWORD_IN_URL.sub(r"\g<before>***@", text)


def _settle_paths(arguments: Sequence[str]) -> None:
    """Settle unfinished writes at every argument that may be a path; which options take paths is not known here."""
    from unmet.claims import settle

    for argument in arguments:
        text = argument.partition("=")[2] if argument.startswith("--") else argument
        if not text or len(text) > _MAX_PATH or "://" in text or "\x00" in text:
            continue
        path = Path(text).absolute()
        for part in (path, *path.parents[:_SETTLED_PARENTS]):
            if part.name:
                try:
                    settle(part)
                except OSError:  # a name that no file can have
                    break
