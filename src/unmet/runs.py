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

__all__ = ["atomic_file", "cache_folder", "run_folder", "write_json"]


@contextmanager
def run_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write a run into; it takes its name only when all is written.

    A folder that holds something already is left alone unless `overwrite` is set.
    """
    path = path.absolute()
    if path.exists() and (not path.is_dir() or (any(path.iterdir()) and not overwrite)):
        raise InputError(f"{path} is not empty: name another folder with --out, or allow --overwrite.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise InputError(f"Cannot write to {path.parent}: {error.strerror}. Name another folder with --out.") from None
    try:
        yield draft
        draft.chmod(0o755)
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
            path.rename(old / "old")
            draft.rename(path)
            shutil.rmtree(old)
        else:
            draft.rename(path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A path to write a file to; it takes its name only when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
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


def write_json(path: Path, value: Any) -> None:
    """Write a value as readable JSON."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
