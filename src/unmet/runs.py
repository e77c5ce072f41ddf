"""Run folders: written whole or not at all. And the cache folder for what can be made again."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unmet.errors import InputError

__all__ = ["MANIFEST", "atomic_file", "available_cores", "cache_folder", "run_folder", "write_json"]


MANIFEST = ".unmet-run"  # lists what a run wrote, so that only that is ever replaced


@contextmanager
def run_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write a run into; it takes its name only when all is written.

    A folder that holds something already is left alone, unless `overwrite` is set and all of it was written by a run.
    """
    path = path.resolve()
    _may_replace(path, overwrite=overwrite)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise InputError(f"Cannot write to {path.parent}: {error.strerror}. Name another folder with --out.") from None
    try:
        yield draft
        names = sorted(str(file.relative_to(draft)) for file in draft.rglob("*") if file.is_file())
        (draft / MANIFEST).write_text("\n".join(names) + "\n", encoding="utf-8")
        draft.chmod(0o755)
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
            path.rename(old / "old")
            try:
                draft.rename(path)
            except BaseException:
                (old / "old").rename(path)
                raise
            finally:
                shutil.rmtree(old, ignore_errors=True)
        else:
            draft.rename(path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _may_replace(path: Path, *, overwrite: bool) -> None:
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file: name a folder with --out.")
    if not path.exists() or not any(path.iterdir()):
        return
    if not overwrite:
        raise InputError(f"{path} is not empty: name another folder with --out, or allow --overwrite.")
    manifest = path / MANIFEST
    written = set(manifest.read_text(encoding="utf-8").splitlines()) if manifest.is_file() else set()
    files = {str(file.relative_to(path)) for file in path.rglob("*") if not file.is_dir()}
    foreign = sorted(files - written - {MANIFEST})
    if foreign:
        raise InputError(
            f"{path} holds what no run of unmet wrote ({', '.join(foreign[:3])}), so it is not replaced: name another "
            "folder with --out."
        )


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A path to write a file to; it takes its name only when it is whole."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InputError(f"Cannot write to {path.parent}: {error.strerror}. Name another place with --out.") from None
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o644)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def cache_folder() -> Path:
    """Where things are kept that can be made again: $UNMET_CACHE, else the user's cache folder."""
    import platformdirs

    return Path(os.environ.get("UNMET_CACHE") or platformdirs.user_cache_dir("unmet"))


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write_json(path: Path, value: Any) -> None:
    """Write a value as readable JSON."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
