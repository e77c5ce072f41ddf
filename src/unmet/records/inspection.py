"""Inspection of files: what they contain, and how they would be read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
import yaml

from unmet.csv_files import LINE
from unmet.errors import InputError
from unmet.records.cells import REASONS
from unmet.records.columns import suggested
from unmet.records.local_zone import settled_zone
from unmet.records.mapping import Mapping
from unmet.records.named_zones import NamedZones, named_zones
from unmet.records.one_file import NO_ROWS, OneFile, Reading, final_mapping, read_one, read_raw, with_zone
from unmet.records.positions_check import mend_positions
from unmet.records.sources import RecordSource, find_sources
from unmet.records.station_columns import guess_station_columns, known_columns, looks_like_stations, station_hints
from unmet.records.stations import STATIONS, check_stations
from unmet.tables import Checked

__all__ = ["Inspection", "inspect_files"]

# Columns of the sample of a file of sessions, and of a table of stations.
SHOWN = ("session_id", "station_id", "post_id", "plug_id", "user_id", "start", "end", "energy_kwh")
SHOWN_STATIONS = ("station_id", "lat", "lon", "power_kw", "plugs", "operator", "name")
ROWS = 10  # of the sample
_NEEDED = ("start", "end", "energy_kwh", "station_id")


@dataclass(frozen=True, slots=True)
class Inspection:
    """How one file would be read."""

    name: str
    format: str
    rows: int = 0  # in the file
    kept: int = 0  # rows that are sessions
    columns: dict[str, str] = field(default_factory=dict)  # column of the file -> an example
    mapping: str = ""  # YAML to start a mapping file from; for a table of stations, options of the command line
    readings: list[str] = field(default_factory=list)  # how cells were read, and on what evidence
    notes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)  # rows set aside, by reason
    reasons: list[str] = field(default_factory=list)  # the same in words
    sample: pl.DataFrame = field(default_factory=lambda: _no_rows(SHOWN))  # parsed rows
    problem: str | None = None  # why the file cannot be read without a change
    stations: int = 0  # number of stations that the file lists
    time_zone: str | None = None  # of the stations' clocks, if the file shows it

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary, for JSON."""
        names = [name for name in self.__slots__ if name != "sample"]
        return {name: getattr(self, name) for name in names} | {"sample": self.sample.to_dicts()}


def inspect_files(
    paths: Any,
    reading: Reading | None = None,
    stations: Any = None,
    station_mapping: dict[str, str] | None = None,
    crs: str | None = None,
) -> list[Inspection]:
    """Inspect files, folders or patterns, each file on its own.

    Tables of stations among them, and the one given as `stations`, are read with `station_mapping` and `crs`.
    """
    reading = reading or Reading()
    options = _StationOptions(station_mapping or {}, crs, reading.time_zone)
    found = [_inspect(source, reading, options) for source in find_sources(paths)]
    zone = next((one.time_zone for one in found if one.time_zone not in (None, "UTC")), None)
    options = replace(options, time_zone=reading.time_zone or zone)
    others = [] if stations is None else find_sources([stations])
    return found + [_inspect_stations(source, read_raw(source, "generic").raw.sessions, options) for source in others]


@dataclass(frozen=True, slots=True)
class _StationOptions:
    """Options for reading tables of stations."""

    mapping: dict[str, str]
    crs: str | None
    time_zone: str | None


def _inspect_stations(source: RecordSource, frame: pl.DataFrame | None, options: _StationOptions) -> Inspection:
    """How a table of stations would be read."""
    frame = pl.DataFrame() if frame is None else frame.drop(LINE, strict=False)
    examples = {name: _example(frame[name]) for name in frame.columns}
    mapping = options.mapping if set(options.mapping.values()) <= set(frame.columns) else {}
    known = known_columns(frame, STATIONS, ()) | mapping
    guesses = guess_station_columns(frame, known)
    hint = f"Options to start from: {station_hints(guesses)}" if guesses else ""
    use = "it is used if --stations is not given" if source.is_one_of_several else "give it with --stations"
    notes = [f"This is a table of stations: {use}."]
    try:
        checked = check_stations(frame, options.crs, mapping, source.name)
    except InputError as error:
        return Inspection(
            source.name,
            "stations",
            rows=frame.height,
            columns=examples,
            mapping=hint,
            notes=notes,
            sample=_no_rows(SHOWN_STATIONS),
            problem=str(error),
        )
    unusable = checked.rejected.group_by("column", "reason", maintain_order=True).len()
    reasons = [f"{_rows_text(count)}: {column or 'the row'} {reason}" for column, reason, count in unusable.rows()]
    used = ", ".join(f"{entry} from {column!r}" for entry, column in known.items())
    stations, position_notes = _mended(checked, options.time_zone, source.name)
    notes += [note.removeprefix(f"{source.name}: ") for note in (*checked.notes, *position_notes)]
    kept = stations.select(name for name in SHOWN_STATIONS if stations[name].null_count() < stations.height)
    return Inspection(
        source.name,
        "stations",
        rows=frame.height,
        columns=examples,
        mapping=hint,
        readings=[f"Columns used: {used}."],
        notes=notes,
        reasons=reasons,
        sample=kept.head(ROWS),
        stations=checked.kept.height,
    )


def _mended(checked: Checked, time_zone: str | None, name: str) -> tuple[pl.DataFrame, list[str]]:
    """Stations with swapped positions corrected, and sentences about positions, as `read_sessions` gives them."""
    are_converted = any("degrees" in note for note in checked.notes)  # a note of `in_degrees`
    return mend_positions(checked.kept, time_zone or "UTC", name, are_certain=are_converted)


def _no_rows(columns: tuple[str, ...]) -> pl.DataFrame:
    return pl.DataFrame(schema=dict.fromkeys(columns, pl.String))


def _rows_text(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _in_words(counts: dict[str, int]) -> list[str]:
    """Rows set aside, as sentences."""
    words = {key: f"{column} {reason}" for key, (column, reason) in REASONS.items()}
    words["shapeless"] = "the row has more or fewer fields than the header"
    return [f"{_rows_text(count)} set aside: {words.get(key, key)}" for key, count in counts.items()]


def _inspect(source: RecordSource, reading: Reading, options: _StationOptions) -> Inspection:
    """How a file of sessions or stations would be read."""
    file = read_raw(source, reading.format)
    raw, format_name = file.raw, file.format
    if raw.sessions is None:
        stations = 0 if raw.stations is None else raw.stations.height
        notes = [f"holds {stations:,} stations and {0 if raw.outages is None else raw.outages.height:,} outages."]
        return Inspection(source.name, format_name, notes=notes, stations=stations)
    chosen = with_zone(reading, raw.mapping, format_name)
    mapping = final_mapping(raw.mapping, chosen, file.columns, source.name)
    examples = {name: _example(raw.sessions[name]) for name in raw.sessions.columns if name != LINE}
    try:
        one: OneFile | None = read_one(file, reading)
        problem = None
    except InputError as error:
        one, problem = None, str(error)
    is_read = one is not None and one.sessions is not None
    if not is_read and raw.sessions.height and looks_like_stations(raw.sessions, STATIONS):
        return _inspect_stations(source, raw.sessions, options)
    if one is not None and not is_read:
        problem = one.problem or f"{source.name} {NO_ROWS}"
    proposed = _mapping_template(mapping, raw.sessions, chosen, one, named_zones(mapping, raw.mapping, reading.chosen))
    rows = raw.sessions.height + raw.rejected.height
    if one is None or one.sessions is None:
        return Inspection(source.name, format_name, rows, columns=examples, mapping=proposed, problem=problem)
    set_aside = {name: count for name, count in one.counts.items() if count and name != "rows_in"}
    positions, position_notes = one.stations, list[str]()
    if positions is not None:
        checked = check_stations(positions, name=source.name)
        positions, position_notes = _mended(checked, reading.time_zone or one.zone, source.name)
    zone, zone_note = settled_zone([one.zone], reading.time_zone, positions)
    position_notes += [zone_note] if zone_note else []
    position_notes = [note.removeprefix(f"{source.name}: ") for note in position_notes]
    return Inspection(
        source.name,
        format_name,
        rows=rows,
        kept=one.sessions.height,
        columns=examples,
        mapping=proposed,
        readings=list(map(str, one.readings)),
        notes=[*one.notes, *position_notes],
        counts=set_aside,
        reasons=_in_words(set_aside),
        sample=_sample(one.sessions),
        time_zone=zone,
    )


def _example(cells: pl.Series) -> str:
    known = cells.drop_nulls()
    return str(known[0])[:60] if len(known) else ""


def _mapping_template(
    mapping: Mapping, frame: pl.DataFrame, chosen: dict[str, Any], one: OneFile | None, named: NamedZones
) -> str:
    """The text of a mapping file: the columns found, and the likeliest candidates for the others.

    It includes the order of day and month, zone and unit inferred from the rows, if all agree. What a format merely
    suggests is left out, because an entry in the file would override the rows.
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
        instead = {"station_id": "station", "end": "duration", "energy_kwh": "meter_end"}.get(entry)
        if entry not in values and instead not in values:
            likely = suggested(entry, frame, taken)
            values[entry] = (list(likely) if len(likely) > 1 else likely[0]) if likely else "COLUMN"
            taken |= set(likely)
    decided = dict(finding.entry for finding in one.readings if finding.entry) if one is not None else {}
    for entry, value in decided.items():
        if value != Mapping.model_fields[entry].default or mapping.model_dump()[entry] != value:
            values[entry] = value
    if named.start or named.end:  # a time zone in the file would override the names of columns
        if named.all_utc and mapping.time_zone != "UTC":
            values["local_zone"] = mapping.time_zone
        elif not named.all_utc:
            values.pop("time_zone", None)
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def _sample(sessions: pl.DataFrame) -> pl.DataFrame:
    """Parsed rows from across the file; times in UTC."""
    places = pl.Series(range(0, sessions.height, max(sessions.height // ROWS, 1)), dtype=pl.UInt32).head(ROWS)
    some = sessions[places.to_list()] if sessions.height else sessions
    times = pl.col("start", "end").cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%d %H:%M:%S")
    return some.with_columns(times).select(name for name in SHOWN if name in sessions.columns)
