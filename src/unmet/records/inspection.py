"""What files contain and how they would be read, before anything is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
import yaml

from unmet.errors import InputError
from unmet.records.columns import candidates
from unmet.records.formats.base import LINE
from unmet.records.mapping import Mapping
from unmet.records.one_file import OneFile, Reading, final_mapping, look_at, looks_like_stations, read_one, with_zone
from unmet.records.sources import Source, find_sources

__all__ = ["Inspection", "inspect_files"]

SHOWN = ("session_id", "station_id", "post_id", "plug_id", "user_id", "start", "end", "energy_kwh")
ROWS = 10
_NEEDED = ("start", "end", "energy_kwh", "station_id")


@dataclass(frozen=True, slots=True)
class Inspection:
    """One file, as it would be read."""

    name: str
    format: str
    rows: int
    kept: int
    columns: dict[str, str]  # column of the file -> an example
    mapping: str  # YAML to start a mapping file from
    readings: list[str]  # how cells were read, on what evidence
    notes: list[str]
    counts: dict[str, int]  # rows set aside, by reason
    sample: pl.DataFrame  # rows as understood
    problem: str | None = None  # why the file cannot be read as it is
    stations: int = 0

    def to_dict(self) -> dict[str, Any]:
        """All of it for machines."""
        names = [name for name in self.__slots__ if name != "sample"]
        return {name: getattr(self, name) for name in names} | {"sample": self.sample.to_dicts()}


def inspect_files(paths: Any, reading: Reading | None = None) -> list[Inspection]:
    """Look at files, folders or patterns, each file on its own."""
    return [_inspect(source, reading or Reading()) for source in find_sources(paths)]


def _inspect(source: Source, reading: Reading) -> Inspection:
    looked = look_at(source, reading.format)
    raw, used = looked.raw, looked.format
    if raw.sessions is None:
        stations = 0 if raw.stations is None else raw.stations.height
        notes = [f"holds {stations:,} stations and {0 if raw.outages is None else raw.outages.height:,} outages."]
        empty = pl.DataFrame(schema=dict.fromkeys(SHOWN, pl.String))
        return Inspection(source.name, used, 0, 0, {}, "", [], notes, {}, empty, None, stations)
    chosen = with_zone(reading, raw.mapping, used)
    mapping = final_mapping(raw.mapping, chosen, looked.columns, source.name)
    examples = {name: _example(raw.sessions[name]) for name in raw.sessions.columns if name != LINE}
    try:
        one: OneFile | None = read_one(looked, reading)
        problem = None
    except InputError as error:
        one, problem = None, str(error)
        if looks_like_stations(raw.sessions):
            problem = "This looks like a table of stations: give it with --stations."
    made = _to_start_from(mapping, raw.sessions, chosen)
    rows = raw.sessions.height + raw.rejected.height
    if one is None or one.sessions is None:
        empty = pl.DataFrame(schema=dict.fromkeys(SHOWN, pl.String))
        return Inspection(source.name, used, rows, 0, examples, made, [], [], {}, empty, problem)
    aside = {name: count for name, count in one.counts.items() if count and name != "rows_in"}
    kept = one.sessions.height
    return Inspection(
        source.name,
        used,
        rows,
        kept,
        examples,
        made,
        list(map(str, one.readings)),
        one.notes,
        aside,
        _sample(one.sessions),
        None,
    )


def _example(cells: pl.Series) -> str:
    known = cells.drop_nulls()
    return str(known[0])[:60] if len(known) else ""


def _to_start_from(mapping: Mapping, frame: pl.DataFrame, chosen: dict[str, Any]) -> str:
    """A mapping file with what was found, and for the rest the likeliest columns.

    What a format only suggests, as the order of day and month, is left out: in the file it would win over the rows.
    """
    values: dict[str, Any] = {}
    taken: set[str] = set()
    for entry, value in mapping.model_dump(mode="json").items():
        names = [value] if isinstance(value, str) else value or []
        if not isinstance(names, list) or entry == "duration_unit":
            values |= {entry: value} if entry in chosen else {}
        elif entry in ("time_zone", "local_zone", "station"):
            values |= {entry: value} if value is not None and entry in mapping.model_fields_set else {}
        elif names and set(names) <= set(frame.columns):
            values[entry] = value
            taken |= set(names)
    for entry in _NEEDED:
        instead = {"station_id": "station", "end": "duration"}.get(entry)
        if entry not in values and instead not in values:
            likely = candidates(entry, frame, taken)
            values[entry] = likely[0] if likely else "COLUMN"
            taken |= set(likely[:1])
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def _sample(sessions: pl.DataFrame) -> pl.DataFrame:
    """Rows from all over the file, as understood; times in UTC."""
    places = pl.Series(range(0, sessions.height, max(sessions.height // ROWS, 1)), dtype=pl.UInt32).head(ROWS)
    some = sessions[places.to_list()] if sessions.height else sessions
    times = pl.col("start", "end").cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%d %H:%M:%S")
    return some.with_columns(times).select(name for name in SHOWN if name in sessions.columns)
