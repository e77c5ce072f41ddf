"""Formats by name: each is one small file here, with a `Format` in it.

`recognise` asks them in turn; `generic`, which takes any table, is asked last.
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
from pathlib import Path

from unmet.errors import InputError
from unmet.records.formats.base import Format, Head
from unmet.records.formats.files import read_head

__all__ = ["format_named", "format_names", "recognise", "register"]

_LAST = "generic"
_formats: dict[str, Format] = {}
_found: list[bool] = []
_finding = threading.RLock()


def register(new: Format) -> Format:
    """Add a format, or replace the one of that name."""
    _formats[new.name] = new
    return new


def format_names() -> list[str]:
    """The names of all formats, in the order in which they are asked."""
    return list(_all())


def format_named(name: str) -> Format:
    """The format of this name."""
    known = _all()
    if name not in known:
        raise InputError(f"There is no format {name!r}: give auto, {', '.join(known)}.")
    return known[name]


def recognise(path: Path, sheet: str | None = None) -> tuple[Format, Head]:
    """The first format that a file (or a sheet of a workbook) fits, and what was seen of it."""
    head = read_head(path, sheet)
    for candidate in _all().values():
        if candidate.matches(head):
            return candidate, head
    names = ", ".join(_all())
    raise InputError(f"{path} is a {head.kind.upper()} file of no known format: give one of {names}, or a CSV file.")


def _all() -> dict[str, Format]:
    with _finding:  # files are read in several threads
        if not _found:
            for module in pkgutil.iter_modules(__path__, f"{__name__}."):
                for value in vars(importlib.import_module(module.name)).values():
                    if isinstance(value, Format) and value.name not in _formats:
                        register(value)
            _found.append(True)
    return dict(sorted(_formats.items(), key=lambda item: (item[0] == _LAST, item[0])))
