"""Tables with one date and two times of day: `Date`, `Start` and `End`.

The date is that of the start. The end follows from its time of day (see `bare_ends`), or better from a duration.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from unmet.errors import InputError
from unmet.records.bare_ends import find_bare_ends
from unmet.records.durations import read_durations
from unmet.records.formats.column_names import are_times_of_day, plain_name

__all__ = ["with_shared_date"]

# Names of dates; the first four also count as a part of a name, such as `Session date`.
_WORDS = ("date", "datum", "data", "fecha", "dato", "day", "tag", "jour", "giorno", "dia", "dag")
# Parts of the names of dates other than that of the start.
_OTHERS = ("end", "bill", "invoice", "pay", "creat", "updat", "birth", "rechnung", "fin", "modif", "export")
_ONLY_DATE = r"^\s*\d{1,4}[/.\-]\d{1,2}[/.\-]\d{1,4}\.?(?:[ T]0?0:00(?::00(?:\.0+)?)?)?\s*$"
_SAMPLE_ROWS = 500
_DAY, _TOLERANCE = 86_400_000, 90_000  # ms; times may be rounded to the minute


def with_shared_date(frame: pl.DataFrame, found: dict[str, Any]) -> dict[str, Any]:
    """The columns found by name, with the date added to a start that is a time of day.

    A duration that agrees with an end given as a time of day replaces it, since it also covers stays over a day.
    """
    start, end = found.get("start"), found.get("end")
    if isinstance(start, str) and are_times_of_day(frame[start]):
        date = _date_column(frame, set(map(str, found.values())))
        if date is None:
            return found
        found = found | {"start": (date, start)}
    if isinstance(end, str) and "duration" in found and are_times_of_day(frame[end]) and _agree(frame, found):
        return {field: column for field, column in found.items() if field != "end"}
    return found


def _date_column(frame: pl.DataFrame, taken: set[str]) -> str | None:
    """The only column that may hold the date of the session; None if there is none, or more than one."""
    names = {column: plain_name(column) for column in frame.columns if column not in taken}
    dates = [
        column
        for column, name in names.items()
        if (name in _WORDS or any(word in name for word in _WORDS[:4]))
        and not any(word in name for word in _OTHERS)
        and _are_dates(frame[column])
    ]
    plain = [column for column in dates if names[column] in _WORDS]
    return dates[0] if len(dates) == 1 else plain[0] if len(plain) == 1 else None


def _are_dates(cells: pl.Series) -> bool:
    if cells.dtype == pl.Date:
        return True
    known = cells.drop_nulls().head(_SAMPLE_ROWS)
    if isinstance(known.dtype, pl.Datetime):
        return bool((known.dt.time() == pl.time(0)).all()) if len(known) else False
    return known.dtype == pl.String and len(known) > 0 and bool(known.str.contains(_ONLY_DATE).all())


def _agree(frame: pl.DataFrame, found: dict[str, Any]) -> bool:
    """Whether start plus duration gives the time of day of the end in nine of ten rows."""
    some = frame.head(_SAMPLE_ROWS)
    clock = found["start"] if isinstance(found["start"], str) else found["start"][-1]
    first, last = (find_bare_ends(some[column].cast(pl.String)) for column in (clock, found["end"]))
    try:
        length = read_durations(some[found["duration"]])
    except InputError:
        return False
    if first is None or last is None:
        return False
    difference = ((first.time_of_day + length - last.time_of_day) % _DAY).drop_nulls()
    agree = (difference <= _TOLERANCE) | (difference >= _DAY - _TOLERANCE)
    return len(difference) > 0 and int(agree.sum()) >= 0.9 * len(difference)
