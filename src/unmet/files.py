"""Safe reading of untrusted files: which files may be opened, and how much may be unpacked.

A pipe or a device could block forever; a few compressed megabytes can unpack to gigabytes; a document can be nested
without end or refer to itself. All of these are refused with one sentence.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import yaml
from polars.exceptions import ComputeError, PanicException

from unmet.errors import InputError, shortened
from unmet.memory import allowed_bytes, require_bytes

__all__ = [
    "Unpacked",
    "check_regular",
    "panics_as_errors",
    "parse_yaml",
    "read_json",
    "read_yaml_lines",
    "unpack",
]

COPIES = 4  # copies of a text in memory while it is parsed into a table: bytes, decoded, split, typed
CHUNK = 1 << 24  # bytes to unpack between two checks of the limit
MAX_DOCUMENT_BYTES = 1 << 20  # YAML files are written by hand
MAX_JSON_BYTES = 1 << 30
MAX_DEPTH = 20  # of nested values in YAML
REMEDY = "split the file, save it as Parquet, or allow more with --max-memory"


def check_regular(path: Path) -> None:
    """Refuse folders, pipes, sockets and devices."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        raise InputError(f"There is no file {path}: check the path.") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a folder: give the files in it.")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is a pipe or a device: write its content to a file, and give that file.")


class Unpacked(gzip.GzipFile):
    """A gzipped file that refuses to unpack more than memory allows."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        super().__init__(fileobj=file, mode="rb")
        self.path = path

    def read(self, size: int | None = -1) -> bytes:
        """Read `size` bytes, or everything in chunks, so that the limit is reached before memory is used up."""
        if size is not None and size >= 0:
            return super().read(size)
        parts, total, allowed = [], 0, allowed_bytes()
        while part := super().read(CHUNK):
            total += len(part)
            require_bytes(COPIES * total, f"{self.path}, unpacked,", REMEDY, allowed)
            parts.append(part)
        return b"".join(parts)


def unpack(path: Path) -> bytes:
    """The content of a file, unpacked if it is gzipped."""
    check_regular(path)
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if packed:
            return Unpacked(file, path).read()
        require_bytes(COPIES * path.stat().st_size, str(path), REMEDY)
        return file.read()


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Turn panics of Polars, which are not an `Exception` and print a backtrace, into its ordinary errors."""
    try:
        with _without_backtraces():
            yield
    except PanicException as error:
        raise ComputeError(f"it is damaged: {error}") from None


_quiet_lock = threading.Lock()
_quiet_readers = 0  # threads that are reading now
_quiet_stderr: int | None = None  # a copy of standard error, to restore it


@contextmanager
def _without_backtraces() -> Iterator[None]:
    """Keep the backtraces that Rust prints off standard error, since Python cannot silence them."""
    global _quiet_readers, _quiet_stderr
    with _quiet_lock:
        if _quiet_readers == 0:
            try:
                sys.stderr.flush()
                _quiet_stderr = os.dup(2)
                devnull = os.open(os.devnull, os.O_WRONLY)
                os.dup2(devnull, 2)
                os.close(devnull)
            except (OSError, AttributeError, ValueError):  # there is no standard error
                _quiet_stderr = None
        _quiet_readers += 1
    try:
        yield
    finally:
        with _quiet_lock:
            _quiet_readers -= 1
            if _quiet_readers == 0 and _quiet_stderr is not None:
                os.dup2(_quiet_stderr, 2)
                os.close(_quiet_stderr)
                _quiet_stderr = None


def read_json(path: Path) -> Any:
    """The value of a JSON file, gzipped or not.

    Raises:
        ValueError: the file is not JSON.
    """
    text = unpack(path)
    if len(text) > MAX_JSON_BYTES:
        raise InputError(f"{path} is too large to be valid: {len(text) / 1e9:.1f} GB.")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _check_names(value: Any) -> None:
    """Refuse keys that are not text: YAML also allows numbers, dates and null."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise ValueError(f"it has a name that is not text ({str(name)[:40]})")
            _check_names(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_names(inner)


def read_yaml_lines(path: Path, kind: str, example: str) -> dict[str, Any]:
    """The values of a small YAML file of `name: value` lines.

    Args:
        path: the file.
        kind: what the file is, such as scenario.
        example: a line such as `queue: first-come`, for messages.

    Raises:
        InputError: the file cannot be read, or holds anything else.
    """
    try:
        values = parse_yaml(path)
    except OSError as error:
        raise InputError(f"Cannot read the {kind} {path}: {error.strerror}.") from None
    except InputError:
        raise
    except ValueError as error:
        reason = shortened(str(error))
        raise InputError(
            f"{path} is not a YAML file of plain values ({reason}): give lines such as {example}."
        ) from None
    if not isinstance(values, dict):
        raise InputError(f"{path} is not a {kind}: give lines such as {example}.")
    return values


def parse_yaml(path: Path) -> Any:
    """The value of a small YAML file of plain values.

    Raises:
        ValueError: the file is not YAML, is nested deeply, or refers to itself; the reason is one line.
    """
    check_regular(path)
    if path.stat().st_size > MAX_DOCUMENT_BYTES:
        raise ValueError("it is larger than 1 MB")
    text = path.read_text(encoding="utf-8-sig")
    try:
        depth = 0
        for event in yaml.parse(io.StringIO(text), yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise ValueError("it is nested too deeply")
            if isinstance(event, yaml.AliasEvent):
                raise ValueError("it uses anchors and references (& and *): write the values out")
        value = yaml.safe_load(text)
        _check_names(value)
        return value
    except (yaml.YAMLError, RecursionError, OverflowError, MemoryError) as error:
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from None
