"""Run folders and files, which are written completely or not at all, and the cache folder."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from unmet.claims import Claim, claimed, settle_beside
from unmet.errors import InputError, is_disk_full, notes_of
from unmet.finite import null_not_finite, plain_json
from unmet.manifest import MANIFEST, foreign_paths, write_manifest

__all__ = ["MANIFEST", "atomic_file", "available_cores", "cache_folder", "run_folder", "write_json"]

FILE_PATIENCE_SECONDS = 10.0  # files are written quickly, so waiting for another writer is worthwhile


@contextmanager
def run_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder to write a run into; it is renamed to `path` when everything is written.

    The name is claimed from the start, so a second writer is refused at once. An existing folder that is not empty is
    never touched, unless `overwrite` is set and a run wrote everything in it. If another process fills the folder in
    the meantime, the run gets another name.
    """
    path = path.resolve()
    with _disk_full_as_input_error(path), ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            settle_beside(path)
            _check_replaceable(path, overwrite=overwrite)
            claim = stack.enter_context(claimed(path))
            _check_replaceable(path, overwrite=overwrite)  # again: another writer may have finished in between
            claim.new.mkdir()
        except OSError as error:
            raise _unwritable(path, error, "folder") from None
        yield claim.new
        null_not_finite(claim.new)
        write_manifest(claim.new)
        _flush(claim.new)
        _take_name(claim, overwrite=overwrite)


def _unwritable(path: Path, error: OSError, kind: str) -> InputError:
    return InputError(f"Cannot write to {path.parent}: {error.strerror}. Name another {kind} with --out.")


@contextmanager
def _disk_full_as_input_error(path: Path) -> Iterator[None]:
    """Turn the errors of a full or read-only disk into an `InputError`. Libraries raise other types for them."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if not is_disk_full(error) and getattr(error, "errno", None) != errno.EROFS:
            raise
        reason = getattr(error, "strerror", None) or "No space left on device"
        refused = InputError(f"Cannot write to {path}: {reason}. Free some space, or name another place with --out.")
        if kept := notes_of(error):
            refused.add_note(kept)
        raise refused from None


def _check_replaceable(path: Path, *, overwrite: bool) -> None:
    """Raise `InputError` unless the folder is empty, or may be overwritten and contains nothing but a run."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file: name a folder with --out.")
    if not path.exists() or not any(path.iterdir()):
        return
    if not overwrite:
        raise InputError(f"{path} is not empty: name another folder with --out, or replace it with --overwrite.")
    if foreign := foreign_paths(path):
        raise InputError(
            f"{path} contains files that unmet did not write, or that have changed since ({', '.join(foreign[:3])}), "
            "so it is not replaced: delete it yourself, or name another folder with --out."
        )


def _take_name(claim: Claim, *, overwrite: bool) -> None:
    """Give a finished run its name, or another one if the name was taken in the meantime."""
    claim.new.chmod(0o755)
    try:
        _check_replaceable(claim.target, overwrite=overwrite)
        if claim.target.exists() and any(claim.target.iterdir()):
            _replace(claim)
        else:
            if claim.target.exists():
                claim.target.rmdir()  # fails, as does the rename below, if something has just been put there
            claim.new.rename(claim.target)
    except (InputError, OSError):
        if not claim.new.exists():
            raise
        kept = _free_name(claim.target)
        claim.new.rename(kept)
        raise InputError(
            f"{claim.target} was used by another process during this run, so it is left alone: the result is in {kept}."
        ) from None
    _flush_entry(claim.target.parent)


def _replace(claim: Claim) -> None:
    """Replace an older run by two renames; `claims` settles an interruption between them."""
    claim.target.rename(claim.old)
    try:
        if foreign_paths(claim.old, by_name=True):  # added since the first check
            raise InputError(f"{claim.target} contains files that unmet did not write.")
        claim.new.rename(claim.target)
    except BaseException:
        claim.old.rename(claim.target)
        raise
    shutil.rmtree(claim.old, ignore_errors=True)


def _free_name(path: Path) -> Path:
    """A name such as out-1 that nothing has yet."""
    return next(name for i in range(1, 10_000) if not (name := path.with_name(f"{path.name}-{i}")).exists())


def _flush(folder: Path) -> None:
    """Flush a folder to disk before it gets its final name."""
    for path in (*folder.rglob("*"), folder):
        _flush_entry(path)


def _flush_entry(path: Path) -> None:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError as error:  # not every file system can flush a folder
        if is_disk_full(error) or error.errno == errno.EIO:
            raise
    finally:
        os.close(handle)


@contextmanager
def atomic_file(path: Path, *, overwrite: bool = True) -> Iterator[Path]:
    """A temporary path to write a file to; it is renamed to `path` when the file is complete.

    Without `overwrite`, a file that has the name by then is not touched.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file.")
    path = path.resolve()
    with _disk_full_as_input_error(path), ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            claim = stack.enter_context(claimed(path, FILE_PATIENCE_SECONDS))
            claim.new.touch()
        except OSError as error:
            raise _unwritable(path, error, "place") from None
        yield claim.new
        claim.new.chmod(0o644)
        _flush_entry(claim.new)
        if overwrite:
            claim.new.replace(path)
        else:
            _link_as(claim.new, path)


def _link_as(draft: Path, path: Path) -> None:
    """Give a file its name, if no other file has it."""
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        raise InputError(
            f"{path} already exists: name another file with --out, or replace it with --overwrite."
        ) from None
    except OSError:  # a file system without links
        if path.exists():
            raise InputError(f"{path} already exists: name another file, or replace it with --overwrite.") from None
        draft.rename(path)


def cache_folder() -> Path:
    """The folder for files that can be rebuilt: $UNMET_CACHE, else the user's cache folder."""
    import platformdirs

    return Path(os.environ.get("UNMET_CACHE") or platformdirs.user_cache_dir("unmet"))


def available_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write_json(path: Path, value: Any) -> None:
    """Write a value as readable JSON; NaN and infinity, which JSON does not have, become null."""
    path.write_text(json.dumps(plain_json(value), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
