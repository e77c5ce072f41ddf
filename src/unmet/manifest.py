"""Manifests list the files of a run with hashes and versions.

They reveal damage, and they make sure that `--overwrite` replaces only what unmet wrote.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from unmet import __version__
from unmet.errors import InputError

__all__ = ["MANIFEST", "Manifest", "Verdict", "foreign_paths", "read_manifest", "verify", "write_manifest"]

MANIFEST = ".unmet-run"
FORMAT = 2  # format 1 was a list of names, without hashes
LIBRARIES = ("numba", "numpy", "polars", "scikit-learn", "scipy", "torch")  # results depend on their versions


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files that a run wrote, and the versions that wrote them."""

    unmet: str
    """Version of unmet that wrote the run."""
    libraries: dict[str, str]
    files: dict[str, str]
    """SHA-256 of each file, by its path in the folder."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A folder compared with its manifest."""

    manifest: Manifest
    missing: tuple[str, ...]
    changed: tuple[str, ...]
    foreign: tuple[str, ...]
    """Files, links and empty folders that the run did not write."""

    @property
    def is_whole(self) -> bool:
        """Whether everything that the run wrote is there unchanged."""
        return not self.missing and not self.changed


def write_manifest(folder: Path) -> None:
    """Write the manifest of everything in a folder. It contains no time stamp: the same run gives the same bytes."""
    about = {
        "format": FORMAT,
        "unmet": __version__,
        "libraries": {name: found for name in LIBRARIES if (found := _version_of(name))},
        "files": {name: _digest(folder / name) for name in _paths(folder) if (folder / name).is_file()},
    }
    (folder / MANIFEST).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None if it has none, or one without hashes."""
    try:
        stored: Any = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if stored["format"] > FORMAT:
            raise InputError(f"{folder} was written by unmet {stored['unmet']!s}: use that version or a later one.")
        files = {str(name): str(digest) for name, digest in stored["files"].items()}
        libraries = {str(name): str(number) for name, number in stored["libraries"].items()}
        return Manifest(str(stored["unmet"]), libraries, files)
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def verify(folder: Path) -> Verdict:
    """Compare the content of every file in a folder with its manifest."""
    manifest = read_manifest(folder)
    if manifest is None:
        reason = "was written before manifests had hashes" if (folder / MANIFEST).is_file() else "holds no manifest"
        raise InputError(f"{folder} {reason}, so it cannot be checked: give a folder that this version wrote.")
    present = set(_paths(folder))
    missing = sorted(set(manifest.files) - present)
    changed = [name for name in sorted(present & set(manifest.files)) if not _is_as_written(folder, manifest, name)]
    return Verdict(manifest, tuple(missing), tuple(changed), tuple(sorted(present - set(manifest.files))))


def foreign_paths(folder: Path, *, by_name: bool = False) -> list[str]:
    """Everything in a folder that differs from what a run wrote: added or changed files, links, empty folders.

    With `by_name`, files that the manifest lists count as unchanged and are not read.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return _paths(folder) or ([MANIFEST] if (folder / MANIFEST).exists() else [])
    return [
        name
        for name in _paths(folder)
        if name not in manifest.files or not (by_name or _is_as_written(folder, manifest, name))
    ]


def _paths(folder: Path) -> list[str]:
    """Files, links and empty folders below a folder, except its manifest."""
    found = [
        path.relative_to(folder).as_posix()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or not path.is_dir() or not any(path.iterdir())
    ]
    return [name for name in found if name != MANIFEST]


def _is_as_written(folder: Path, manifest: Manifest, name: str) -> bool:
    path = folder / name
    return not path.is_symlink() and path.is_file() and _digest(path) == manifest.files[name]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version_of(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
