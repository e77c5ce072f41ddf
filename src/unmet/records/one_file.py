"""Read one file (or frame, or sheet) of records: recognise its format, find its columns and type its cells."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from unmet.csv_files import LINE, REJECTED
from unmet.errors import InputError
from unmet.records.cells import IDS, type_cells
from unmet.records.columns import check_columns, quoted
from unmet.records.evidence import Finding
from unmet.records.formats import format_named, recognise
from unmet.records.formats.base import Raw
from unmet.records.formats.column_names import plain_name
from unmet.records.formats.files import read_head
from unmet.records.formats.generic import energy_factor, guess_mapping
from unmet.records.local_zone import zone_by_rows
from unmet.records.mapping import Mapping, mapping_from
from unmet.records.named_zones import NamedZones, named_zones
from unmet.records.odd_times import with_printable_times
from unmet.records.places import positions_in
from unmet.records.plug_ids import tell_plugs_apart
from unmet.records.sheet_stations import with_sheet_as_station
from unmet.records.sources import RecordSource
from unmet.records.station_columns import looks_like_stations
from unmet.records.station_names import with_names
from unmet.records.stations import STATIONS
from unmet.records.times import ZONES
from unmet.zones import checked_zone

__all__ = ["NO_ROWS", "OneFile", "RawFile", "Reading", "final_mapping", "read_one", "read_raw", "with_zone"]

NO_ROWS = "has a header and no rows."
# Words in headings of columns that may name drivers.
_DRIVERS = ("user", "driver", "card", "badge", "rfid", "customer", "kunde", "karte", "nutzer", "fahrer", "client",
            "utilisateur", "utente", "tessera", "usuario", "tarjeta")  # fmt: skip
# Formats for files of any source: they do not define the zone of times without one, nor what else the columns hold.
_ZONELESS = ("generic", "table", "unmet")


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are to be read."""

    format: str = "auto"
    chosen: dict[str, Any] = field(default_factory=dict)  # mapping entries given by the user
    time_zone: str | None = None  # zone of times without one, if nothing else gives it
    known_stations: Collection[str] | None = None  # sessions at other stations are rejected; None for no table
    now: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))  # starts over a day later are rejected
    since: dt.datetime | None = None  # sessions must start at this time or later
    until: dt.datetime | None = None  # and before this time

    def __post_init__(self) -> None:
        """Check the time zone even if the times of all files have their own: hours of the day are counted in it."""
        if self.time_zone is not None:
            checked_zone(self.time_zone)


@dataclass(frozen=True, slots=True)
class RawFile:
    """The raw cells of a source, and the format in which it was read."""

    source: RecordSource
    raw: Raw
    format: str  # its name
    columns: tuple[str, ...]  # headings, with duplicates, and the columns that its format adds


@dataclass(frozen=True, slots=True)
class OneFile:
    """The contents of one file, typed and checked."""

    format: str
    sessions: pl.DataFrame | None  # typed, see `cells.Typed`; None for a file of stations only
    rejected: pl.DataFrame  # columns of REJECTED
    counts: dict[str, int]
    stations: pl.DataFrame | None = None
    outages: pl.DataFrame | None = None
    zone: str | None = None  # local zone of the stations; None if the file does not show it
    notes: list[str] = field(default_factory=list)  # sentences without the file's name
    readings: list[Finding] = field(default_factory=list)
    problem: str | None = None  # why a sheet of a workbook holds no sessions


def read_raw(source: RecordSource, format: str) -> RawFile:  # noqa: A002
    """Read the cells of a source in a format; `auto` recognises the format."""
    if isinstance(source.table, pl.DataFrame):
        frame = source.table
        frame = frame if LINE in frame.columns else frame.with_row_index(LINE, offset=1)
        raw = _plain_columns(Raw(guess_mapping(frame.drop(LINE)), sessions=frame), source.name, is_guessed=True)
        return RawFile(source, raw, "table", tuple((frame if raw.sessions is None else raw.sessions).columns))
    if format == "auto":
        file_format, head = recognise(source.table, source.sheet)
    else:
        file_format, head = format_named(format), read_head(source.table, source.sheet)
    head = replace(head, part=source.part)
    raw = _plain_columns(file_format.read(head), source.name, is_guessed=file_format.name == "generic")
    raw = with_sheet_as_station(raw, source)
    columns = () if raw.sessions is None else tuple(raw.sessions.columns)
    if head.kind in ("csv", "excel"):
        columns = (*head.columns, *(column for column in columns if column not in head.columns))
    return RawFile(source, raw, file_format.name, columns)


def read_one(file: RawFile, reading: Reading) -> OneFile:
    """Type the cells of a file; rows in = sessions + rejected."""
    raw, format_name, columns, source = file.raw, file.format, file.columns, file.source
    counts = {"rows_in": 0, "shapeless": raw.rejected.height}
    if raw.sessions is None:
        without = OneFile(format_name, None, raw.rejected, {}, raw.stations, raw.outages)
        return replace(without, zone=raw.mapping.local_zone, notes=list(raw.notes))
    counts["rows_in"] = raw.sessions.height + raw.rejected.height
    chosen = with_zone(reading, raw.mapping, format_name)
    mapping = final_mapping(raw.mapping, chosen, columns, source.name)
    try:
        check_columns(mapping, columns, reading.chosen, source.name, raw.sessions)
    except InputError as error:
        if not source.is_one_of_several:
            if looks_like_stations(raw.sessions, STATIONS):
                raise InputError(
                    f"{source.name} looks like a table of stations: give it with --stations, and session records as "
                    "FILES."
                ) from None
            raise
        return _sheet_without_sessions(raw.sessions, str(error))
    if not counts["rows_in"]:
        notes = [*raw.notes, NO_ROWS]
        return OneFile(format_name, None, raw.rejected, {}, raw.stations, raw.outages, notes=notes)
    named = named_zones(mapping, raw.mapping, reading.chosen)
    typed = type_cells(
        raw.sessions,
        mapping,
        reading.now,
        reading.known_stations,
        chosen=chosen,
        period=(reading.since, reading.until),
        named=named,
    )
    is_scaled = format_name == "generic" and mapping.energy_factor != 1
    notes = [*raw.notes, *(_unit_notes(mapping, typed.readings) if is_scaled else ())]
    notes += _mapping_notes(raw.sessions, mapping, format_name, chosen, named)
    is_settled = "plug_id" in chosen
    kept, plug_note = tell_plugs_apart(typed.kept, raw.sessions, _used_columns(mapping), is_settled=is_settled)
    zone, zone_note = _local_zone(file, typed.kept, mapping, reading, named)
    # Restarts are joined by user. A vehicle stands for its user, unless no session is a restart.
    if "vehicle_id" in kept.columns and not raw.are_arrivals:
        known = [column for column in ("user_id", "vehicle_id") if column in kept.columns]
        kept = kept.with_columns(pl.coalesce(known).alias("user_id"))
    return OneFile(
        format_name,
        kept,
        rejected=pl.concat([raw.rejected.cast(pl.Schema(REJECTED)), typed.rejected.cast(pl.Schema(REJECTED))]),
        counts=counts | typed.counts,
        stations=_stations_in(raw, typed.kept, format_name),
        outages=raw.outages,
        zone=zone,
        notes=[*notes, *typed.notes, *(sentence for sentence in (plug_note, zone_note) if sentence)],
        readings=typed.readings,
    )


def _stations_in(raw: Raw, kept: pl.DataFrame, format_name: str) -> pl.DataFrame | None:
    """The stations that a file lists; otherwise what its sessions show about their stations."""
    if raw.stations is not None or raw.sessions is None:
        return raw.stations
    return with_names(positions_in(raw.sessions, kept) if format_name in _ZONELESS else None, raw.sessions, kept)


def _local_zone(
    file: RawFile, kept: pl.DataFrame, mapping: Mapping, reading: Reading, named: NamedZones
) -> tuple[str | None, str | None]:
    """The local zone of a file's stations, None if it is not known, and a sentence if its rows show it."""
    raw, format_name = file.raw, file.format
    is_given = reading.time_zone is not None or bool({"time_zone", "local_zone"} & set(reading.chosen))
    if is_given or {"time_zone", "local_zone"} & raw.mapping.model_fields_set or raw.sessions is None:
        return mapping.station_zone, None
    has_zones = mapping.zone is not None or (named.start is not None and named.end is not None)
    if format_name in _ZONELESS and not has_zones and _are_naive(raw.sessions, mapping):
        return mapping.station_zone, None  # `_mapping_notes` says that they are read as UTC
    return zone_by_rows(raw.sessions, kept, mapping, named)


def _sheet_without_sessions(frame: pl.DataFrame, problem: str) -> OneFile:
    """A sheet without sessions: a table of stations, or something else that is left out."""
    nothing = pl.DataFrame(schema=REJECTED)
    if looks_like_stations(frame, STATIONS):
        notes = ["is read as a table of stations."]
        return OneFile("stations", None, nothing, {}, stations=frame.drop(LINE), notes=notes, problem=problem)
    return OneFile("none", None, nothing, {}, notes=["holds no sessions and is left out."], problem=problem)


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with structs unnested, up to three levels deep, and lists of one replaced by their member."""
    for _ in range(3):
        lists = [column for column, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
        short = [column for column in lists if (frame[column].list.len() <= 1).all()]
        frame = frame.with_columns(pl.col(column).list.first() for column in short) if short else frame
        structs = [column for column, dtype in frame.schema.items() if isinstance(dtype, pl.Struct)]
        if not structs:
            break
        frame = frame.with_columns(pl.col(column).name.prefix_fields(f"{column}.") for column in structs).unnest(
            structs
        )
    return frame


def _plain_columns(raw: Raw, name: str, *, is_guessed: bool) -> Raw:
    """Convert categories and unprintable times to text, and fields of structs to columns such as `station.id`.

    Other nested values are refused.
    """
    if raw.sessions is None:
        return raw
    flat, mapping = _flat(raw.sessions), raw.mapping
    if is_guessed and flat.columns != raw.sessions.columns:
        mapping = guess_mapping(flat.drop(LINE))
    for column, dtype in flat.schema.items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Duration):
            raise InputError(f"{name}: column {column} holds {dtype}: give text, numbers or times.")
    plain = flat.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    return replace(raw, sessions=with_printable_times(plain), mapping=mapping)


def final_mapping(base: Mapping, chosen: dict[str, Any], columns: Collection[str], name: str) -> Mapping:
    """A format's mapping, overridden by the user's entries; `Date+Time` are two columns."""
    values = dict(chosen)
    for entry in ("start", "end", "station_id", *IDS):
        value = values.get(entry)
        if isinstance(value, str) and value not in columns and "+" in value:
            values[entry] = tuple(part.strip() for part in value.split("+"))
    if "station_id" in values:
        values.setdefault("station", None)
    if "end" in values:
        values.setdefault("duration", None)
    if "energy_kwh" in values:
        values = {"meter_start": None, "meter_end": None} | values
    if isinstance(values.get("energy_kwh"), str) and values["energy_kwh"] != base.energy_kwh:
        values.setdefault("energy_factor", energy_factor(values["energy_kwh"]))
    elif isinstance(values.get("meter_end"), str) and values["meter_end"] != base.meter_end:
        values.setdefault("energy_factor", energy_factor(values["meter_end"]))
    return mapping_from(values, f"The mapping for {name}", base) if values else base


def with_zone(reading: Reading, mapping: Mapping, format_name: str) -> dict[str, Any]:
    """The user's mapping entries for a file, with the user's time zone if nothing else gives that of its times."""
    is_zoneless = format_name in _ZONELESS and mapping.zone is None
    if reading.time_zone is None or not is_zoneless or {"time_zone", "zone", "local_zone"} & set(reading.chosen):
        return reading.chosen
    return reading.chosen | {"time_zone": reading.time_zone}


def _used_columns(mapping: Mapping) -> set[str]:
    """Columns that a mapping uses for anything but the post, and that hold no other posts (see `tell_plugs_apart`)."""
    names: set[str] = set()
    for entry in (
        "start",
        "end",
        "duration",
        "energy_kwh",
        "meter_start",
        "meter_end",
        "charged",
        "zone",
        "end_zone",
        "station_id",
        *IDS,
    ):
        value = getattr(mapping, entry)
        if value is not None and entry != "post_id":
            names |= {value} if isinstance(value, str) else set(value)
    return names


def _unit_notes(mapping: Mapping, readings: list[Finding]) -> list[str]:
    """A sentence about the factor that the name of the energy column implies, if the rows support it."""
    is_used = any(finding.entry == ("energy_factor", mapping.energy_factor) for finding in readings)
    factor = f"{mapping.energy_factor:g}"
    return [f"energies in {mapping.meter_end or mapping.energy_kwh!r} are multiplied by {factor}."] if is_used else []


def _mapping_notes(
    frame: pl.DataFrame, mapping: Mapping, format_name: str, chosen: dict[str, Any], named: NamedZones
) -> list[str]:
    """Sentences about how columns were interpreted."""
    notes = []
    is_assumed = format_name in _ZONELESS and "time_zone" not in chosen and mapping.zone is None
    if is_assumed and _are_naive(frame, mapping) and not (named.start and named.end):
        notes.append(
            "times without a zone are taken as UTC. If they are local, give --time-zone and the name of their zone, "
            "such as Europe/London or America/Denver."
        )
    return [*notes, *_unused_notes(frame, mapping, format_name, chosen)]


def _unused_notes(frame: pl.DataFrame, mapping: Mapping, format_name: str, chosen: dict[str, Any]) -> list[str]:
    """Sentences about unused columns that name zones or seem to name drivers."""
    notes = []
    used = _used_columns(mapping)
    free = [c for c, dtype in frame.schema.items() if c not in used and dtype == pl.String]
    zones = [c for c in free if "zone" in plain_name(c) and _names_zones(frame[c])]
    if zones and mapping.zone is None and "time_zone" not in chosen and _are_naive(frame, mapping):
        examples = ", ".join(frame[zones[0]].drop_nulls().head(10_000).str.strip_chars().unique().sort().head(3))
        why = ""
        if format_name not in _ZONELESS:
            zone = f"times in the {format_name} format are in {mapping.time_zone}"
            why = f": {zone} (docs/records.md says how that is known)"
        hints = [f"--map {quoted(f'{entry}={c}')}" for entry, c in zip(("zone", "end_zone"), zones, strict=False)]
        column = " and ".join(map(repr, zones[:2]))
        notes.append(f"the zones in {column} ({examples}) are not used{why}. To use them, give {' '.join(hints)}.")
    is_known = any(getattr(mapping, entry) in frame.columns for entry in ("user_id", "vehicle_id"))
    drivers = (
        [] if is_known or {"user_id", "vehicle_id"} & set(chosen) else [c for c in free if _may_name_drivers(frame, c)]
    )
    if drivers:
        hint = quoted(f"user_id={drivers[0]}")
        notes.append(
            f"restarted sessions are not joined, since no column is known to name drivers. If {drivers[0]!r} does, "
            f"give --map {hint}."
        )
    return notes


def _may_name_drivers(frame: pl.DataFrame, column: str) -> bool:
    """Whether a column's name has a word for driver or card, and its values repeat."""
    if not any(word in plain_name(column) for word in _DRIVERS):
        return False
    known = frame[column].drop_nulls().head(10_000)
    return 1 < known.n_unique() < len(known)


def _names_zones(cells: pl.Series) -> bool:
    names = cells.drop_nulls().head(1000).str.strip_chars().str.to_uppercase()
    return len(names) > 0 and bool(names.is_in(list(ZONES)).all())


def _are_naive(frame: pl.DataFrame, mapping: Mapping) -> bool:
    """Whether times are written without a zone."""
    column = mapping.start if isinstance(mapping.start, str) else mapping.start[-1]
    if column not in frame.columns:
        return False
    dtype = frame.schema[column]
    if isinstance(dtype, pl.Datetime):
        return dtype.time_zone is None
    if dtype != pl.String:
        return False
    cells = frame[column].drop_nulls().head(100)
    if cells.is_empty():
        return False
    # Seconds since 1970 are in UTC; days since 1899, which have five digits, are in no known zone.
    return not cells.str.contains(r"(?i)(z|gmt|utc|[+-]\d\d:?\d\d)\s*(\([^)]*\))?$|^\d{6,}(\.\d+)?$").any()
