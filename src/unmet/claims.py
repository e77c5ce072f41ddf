"""Claims: one writer per output, enforced by a lock that is released when its process ends.

While `out` is being written, its unfinished version lives in a hidden folder next to it, `.out.unmet-draft`:

- `lock`: an empty file that the writer keeps locked (flock); the kernel releases it however the process ends;
- `new`: the version being written;
- `old`: the version being replaced, between two renames.

The next process that gets the lock finds what a killed writer left behind, and settles it, that is, completes or undoes
it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from unmet.errors import InputError
from unmet.manifest import foreign_paths, read_manifest, verify

try:
    import fcntl
except ImportError:  # not on Windows, where an open file cannot be replaced in the first place
    fcntl = None  # type: ignore[assignment]

__all__ = ["Claim", "claimed", "hold", "is_claimed", "settle", "settle_beside"]

SUFFIX = ".unmet-draft"
POLL_SECONDS = 0.05
PARTS = frozenset({"lock", "new", "old"})  # a folder with anything else in it is not ours, and is left alone


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write to a path, which one process has at a time."""

    target: Path
    work: Path
    """The hidden folder next to the target."""

    @property
    def new(self) -> Path:
        """Where the new version is written."""
        return self.work / "new"

    @property
    def old(self) -> Path:
        """Where the old version is kept while it is replaced."""
        return self.work / "old"


@contextmanager
def claimed(target: Path, patience_seconds: float = 1.0) -> Iterator[Claim]:
    """Claim a path, and settle what a killed writer left behind.

    Raises:
        InputError: another process still holds the claim after `patience_seconds`.
    """
    claim = _claim_of(target)
    lock = _lock(claim, patience_seconds)
    try:
        _settle(claim)
        yield claim
    finally:
        _release(claim, lock)


def is_claimed(target: Path) -> bool:
    """Whether another process is writing to a path right now."""
    try:
        handle = os.open(_claim_of(target).work / "lock", os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        return not _try_lock(handle)
    finally:
        os.close(handle)


def hold(folder: Path) -> int:
    """Lock a folder that is filled file by file against other writers until this process ends. Returns the lock.

    The lock is on the folder itself, so nothing has to be cleaned up.
    """
    handle = os.open(folder, os.O_RDONLY)
    if not _try_lock(handle):
        os.close(handle)
        raise _taken_error(folder)
    return handle


def settle(target: Path) -> None:
    """Complete or undo what a killed writer of a path left behind. Does nothing while a writer is at work."""
    claim = _claim_of(target)
    if not _is_work_folder(claim.work):
        return
    with contextlib.suppress(InputError, OSError), claimed(target, 0.0):
        pass


def settle_beside(target: Path) -> None:
    """Settle everything that killed writers left behind in the folder of a path."""
    with contextlib.suppress(OSError):
        for work in target.parent.glob(f".*{SUFFIX}"):
            settle(work.with_name(work.name[1 : -len(SUFFIX)]))


def _claim_of(target: Path) -> Claim:
    """The claim on a path, whether or not this process holds it."""
    return Claim(target, target.with_name(f".{target.name}{SUFFIX}"))


def _is_work_folder(work: Path) -> bool:
    return work.is_dir() and not work.is_symlink() and {path.name for path in work.iterdir()} <= PARTS


def _lock(claim: Claim, patience_seconds: float) -> int:
    """Open and lock the lock file, and check that no other writer has removed it in the meantime."""
    path = claim.work / "lock"
    deadline = time.monotonic() + patience_seconds
    while True:
        handle = _open_lock(claim, path)
        if handle is not None:
            if _try_lock(handle) and _is_same_file(handle, path):
                return handle
            os.close(handle)
        if time.monotonic() > deadline:
            raise _taken_error(claim.target)
        time.sleep(POLL_SECONDS)


def _open_lock(claim: Claim, path: Path) -> int | None:
    claim.work.mkdir(exist_ok=True)
    try:
        if not _is_work_folder(claim.work):
            raise InputError(f"{claim.work} is needed for drafts of {claim.target.name}: move your files out of it.")
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
    except FileNotFoundError:  # its last writer has just removed it
        return None


def _try_lock(handle: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: atomic renames have to suffice
        return True
    return True


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False


def _taken_error(target: Path) -> InputError:
    return InputError(f"Another process is writing to {target}: wait for it to end, or name another place with --out.")


def _settle(claim: Claim) -> None:
    """Complete or undo what the last writer left in the hidden folder, according to how far it got."""
    if claim.old.exists():  # it was killed while it replaced the old version
        if not claim.target.exists():  # between the two renames
            if _is_whole(claim.new) and not foreign_paths(claim.old, by_name=True):
                claim.new.rename(claim.target)
            else:
                claim.old.rename(claim.target)
                _remove(claim.new)
                return
        elif claim.new.exists():
            raise InputError(
                f"A replacement of {claim.target} was interrupted, and the name has been used since: the old version "
                f"is in {claim.old}, the new one in {claim.new}. Move away what you need, then delete "
                f"{claim.work}."
            )
        _remove(claim.old)
    _remove(claim.new)


def _is_whole(folder: Path) -> bool:
    return folder.is_dir() and read_manifest(folder) is not None and verify(folder).is_whole


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _release(claim: Claim, lock: int) -> None:
    """Remove the hidden folder while its lock is held, unless it still contains an old version to restore."""
    try:
        if not claim.old.exists():
            with contextlib.suppress(OSError):
                _remove(claim.new)
                (claim.work / "lock").unlink(missing_ok=True)
                claim.work.rmdir()
    finally:
        os.close(lock)
