"""Normalised column names, for comparison, and tests of what the cells look like."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import polars as pl

from unmet.records.named_zones import without_region

__all__ = ["are_times_of_day", "nested_names", "plain_name"]

_ONLY_TIME = (  # also with day 0 of a spreadsheet as the date, or as a fraction of a day
    r"^\s*(?:1(?:899-12-3[01]|900-01-0[01])[ T])?"
    r"(\d{1,2}[:.]\d\d([:.]\d\d(\.0+)?)?(\s*[AaPp][Mm])?|0?\.\d+|0)\s*$"
)
_LETTERS = str.maketrans({"ß": "ss", "ø": "o", "æ": "ae", "œ": "oe"})
_MEANINGLESS = {"id", "uid", "name", "type", "unit", "code"}  # only the outer name says what these belong to
_OF_OUTER = {"value", "amount", "timestamp", "time", "datetime", "date", "uid"}  # the outer name says what these are


def plain_name(column: str) -> str:
    """A column's name in lower case, letters and digits only, without accents.

    >>> plain_name("Ladesäulen-ID")
    'ladesaulenid'
    """
    folded = unicodedata.normalize("NFKD", without_region(column).lower().translate(_LETTERS))
    return re.sub(r"[^a-z0-9]", "", folded)


def nested_names(column: str, *, is_id: bool = False) -> Iterator[str]:
    """Shorter plain names of a value within an object of a JSON file, the shortest first.

    In a search for ids, `session.stationId` matches, and `fee.session` does not.

    >>> list(nested_names("transaction.stop.timestamp")), list(nested_names("session.energy_kwh"))
    (['stop', 'timestamp', 'stoptimestamp'], ['energykwh'])
    """
    parts = [plain_name(part) for part in column.split(".")]
    if len(parts) < 2 or not all(parts):
        return
    if parts[-1] in _OF_OUTER:
        yield parts[-2]
    if parts[-1] not in _MEANINGLESS and (parts[-1].endswith("id") or not is_id):
        yield parts[-1]
    if len(parts) > 2:
        yield "".join(parts[-2:])


def are_times_of_day(cells: pl.Series) -> bool:
    """Whether cells are times of day, without a date."""
    known = cells.drop_nulls().head(100)
    if known.dtype == pl.Time:
        return True
    if not (known.dtype == pl.String or known.dtype.is_numeric()):
        return False
    return len(known) > 0 and bool(known.cast(pl.String).str.contains(_ONLY_TIME).all())
