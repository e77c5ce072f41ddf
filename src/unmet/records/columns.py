"""Check for required columns: all missing ones are reported at once, each with its likeliest candidates in the file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

import polars as pl

from unmet.csv_files import LINE
from unmet.errors import InputError
from unmet.records.cells import IDS
from unmet.records.formats.column_names import are_times_of_day, plain_name
from unmet.records.formats.generic import ALIASES
from unmet.records.mapping import Mapping
from unmet.records.times import read_times

__all__ = ["MAX_GUESSES", "candidates", "check_columns", "quoted", "suggested"]

_SAMPLE_ROWS = 200
_MIN_LIKENESS = 0.55  # ratio of difflib from which a name resembles a known one
_PART_LIKENESS = 0.8  # likeness of a name that contains a known one, such as `Charging Station Id (new)`
_MIN_SHARE = 0.8  # share of the cells that must have the form of an entry
MAX_GUESSES = 200  # columns that are searched if no name matches; comparing names is slow
# A date without a time of day, or at midnight, as spreadsheets write it.
_ONLY_DATE = r"^\s*\d{1,4}[/.\-]\d{1,2}[/.\-]\d{1,4}\.?(\s+0?0:00(:00)?)?\s*$"


def check_columns(
    mapping: Mapping, columns: Collection[str], chosen: Collection[str], name: str, frame: pl.DataFrame
) -> None:
    """Raise `InputError` if required or chosen columns are missing or occur twice; the message suggests candidates.

    Args:
        mapping: which columns hold what.
        columns: headings of the file, with duplicates.
        chosen: entries of the mapping that the user gave.
        name: name of the file, for the message.
        frame: its cells, for suggestions.
    """
    entries = ["start", "end" if mapping.duration is None else "duration"]
    entries += (
        ["energy_kwh"] if mapping.meter_start is None or mapping.meter_end is None else ["meter_start", "meter_end"]
    )
    entries += [*(["station_id"] if mapping.station is None else []), "zone", "end_zone"]
    entries += [entry for entry in (*IDS, "charged") if entry in chosen]
    missing: dict[str, list[str]] = {}
    for entry in entries:
        value = getattr(mapping, entry)
        names = () if value is None else (value,) if isinstance(value, str) else value
        absent = [column for column in names if column not in columns]
        if absent or (value is None and entry == "station_id"):
            missing[entry] = absent
        for column in names:
            if list(columns).count(column) > 1:
                raise InputError(f"{name} has two columns {column!r}: rename one of them.")
    if missing:
        raise InputError(_missing_message(name, missing, mapping, columns, frame))


def _missing_message(
    name: str, missing: dict[str, list[str]], mapping: Mapping, columns: Collection[str], frame: pl.DataFrame
) -> str:
    """The error message about missing columns (entry of the mapping: columns that it names but the file lacks)."""
    known = ", ".join(column for column in columns if column and column != LINE)[:1000] or "none"
    asked = {column for absent in missing.values() for column in absent}
    # Columns that other entries use are no candidates.
    taken = {value for value in mapping.model_dump().values() if isinstance(value, str)} - asked
    taken |= {part for value in mapping.model_dump().values() if isinstance(value, tuple) for part in value}
    parts, hints = [], []
    for entry, absent in missing.items():
        named = [column for column in absent if column != entry]
        parts.append(f"{' or '.join(map(repr, named))} for {entry}" if named else entry)
        likely = suggested(entry, frame, taken)
        hints.append(f"--map {quoted(entry + '=' + '+'.join(likely))}" if likely else f"--map {entry}=COLUMN")
        taken |= set(likely)
    if "station_id" in missing:
        hints = [hint.replace("station_id=COLUMN", "station_id=COLUMN or station=NAME") for hint in hints]
    some = "columns" if len(missing) > 1 else "column"
    guessed = " (a guess by names and values)" if any("COLUMN" not in hint for hint in hints) else ""
    return (
        f"{name} has no {some} {', '.join(parts)}: say which with {' '.join(hints)}{guessed}. Its columns are {known}."
    )


def quoted(text: str) -> str:
    """An option's value, quoted for a shell."""
    return f'"{text}"' if re.search(r"[^\w=.+\-]", text) else text


def suggested(entry: str, frame: pl.DataFrame, taken: Collection[str] = ()) -> tuple[str, ...]:
    """The likeliest column for an entry of a mapping: one, two (dates and times of day) or none."""
    likely = candidates(entry, frame, taken)
    if not likely or entry not in {"start", "end"}:
        return tuple(likely[:1])
    date = likely[0]
    cells = frame[date].drop_nulls().head(_SAMPLE_ROWS)
    if cells.dtype == pl.String and not cells.str.contains(_ONLY_DATE).all():
        return (date,)
    times = [c for c in frame.columns[:MAX_GUESSES] if c not in {LINE, date, *taken} and are_times_of_day(frame[c])]
    by_name = difflib.SequenceMatcher(b=plain_name(date))

    def likeness(column: str) -> float:
        by_name.set_seq1(plain_name(column))
        return by_name.ratio()

    return (date, max(times, key=likeness)) if times else (date,)


def candidates(entry: str, frame: pl.DataFrame, taken: Collection[str] = ()) -> list[str]:
    """The columns of a file that may hold an entry of a mapping, the likeliest first."""
    sample = frame.head(_SAMPLE_ROWS)
    scored = []
    for column in frame.columns[:MAX_GUESSES]:
        if column == LINE or column in taken or not _could_hold(entry, sample[column]):
            continue
        plain = plain_name(column)
        if entry == "energy_kwh" and any(word in plain for word in (*ALIASES["meter_start"], *ALIASES["meter_end"])):
            continue  # a meter reading is not an energy
        words = [word for word in ALIASES.get(entry, ()) if word]
        likeness = max((difflib.SequenceMatcher(None, plain, word).ratio() for word in words), default=0.0)
        likeness = max([likeness, *(_PART_LIKENESS for word in words if len(word) > 3 and word in plain)])
        scored.append((likeness, column))
    likely = [column for likeness, column in sorted(scored, key=lambda found: -found[0]) if likeness >= _MIN_LIKENESS]
    # If a single column has values of the right kind, its name does not matter.
    is_only = len(scored) == 1 and entry in {"start", "end", "energy_kwh"}
    is_first = len(scored) == 2 and entry == "start"  # of two columns of times, the start comes first
    return likely or ([scored[0][1]] if is_only or is_first else [])


def _could_hold(entry: str, cells: pl.Series) -> bool:
    """Whether cells could be values of an entry."""
    cells = cells.drop_nulls()
    if cells.is_empty():
        return entry not in {"start", "end", "energy_kwh", "station_id"}
    if entry in {"start", "end", "charged"}:
        if isinstance(cells.dtype, pl.Datetime | pl.Date):
            return True
        # Numbers of up to five digits could be days of a spreadsheet, but are more often energies or counts.
        if cells.dtype != pl.String or _share(cells.str.contains(r"^\s*-?\d{0,5}([.,]\d+)?\s*$")) > 0.5:
            return False
        (clock,), _, _ = read_times([cells])
        dates = cells.str.contains(r"^\s*\d{1,4}[/.\-]\d{1,2}[/.\-]\d{1,4}")
        return _share(clock.utc.is_not_null() | clock.wall.is_not_null() | dates) > _MIN_SHARE
    if entry == "energy_kwh":
        numbers = cells.cast(pl.String).str.replace_all(r"(?i)[\s']|[km]?wh$", "").str.replace(",", ".", literal=True)
        return _share(numbers.cast(pl.Float64, strict=False).is_not_null()) > _MIN_SHARE
    return True


def _share(mask: pl.Series) -> float:
    return int(mask.sum()) / len(mask)
