"""An operator's files in, clean sessions and stations out.

Rows in = sessions + rows set aside, always; every row set aside says where it was, what it held and why.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from unmet.errors import InputError
from unmet.records.cells import IDS, REASONS, Typed, check_columns, type_cells
from unmet.records.cleaning import FILE, Cleaned, clean
from unmet.records.formats import format_named, recognise
from unmet.records.formats.base import LINE, OUTAGES, REJECTED, Raw
from unmet.records.formats.files import read_head
from unmet.records.formats.generic import energy_factor, guess_mapping
from unmet.records.mapping import Mapping, mapping_from
from unmet.records.outages import merge_outages
from unmet.records.restarts import JOIN_MINUTES, join_restarts
from unmet.records.stations import check_stations
from unmet.tables import UTC, Checked, as_frame

__all__ = ["SESSIONS", "Records", "read_records"]

SESSIONS: dict[str, pl.DataType] = {
    "session_id": pl.String(),
    "station_id": pl.String(),
    "start": UTC,
    "end": UTC,
    "energy_kwh": pl.Float64(),
    "plug_id": pl.String(),
    "vehicle_id": pl.String(),
    "operator": pl.String(),
    "charged": UTC,
    "user_id": pl.String(),
    "post_id": pl.String(),
}
_REJECTED = {"file": pl.String, **REJECTED}


@dataclass(frozen=True, slots=True)
class Records:
    """What an operator's files hold."""

    sessions: pl.DataFrame  # columns of SESSIONS, sorted by start, station_id, session_id
    stations: pl.DataFrame  # station_id, lat, lon, power_kw, plugs, operator, name; null where unknown
    outages: pl.DataFrame  # columns of OUTAGES
    rejected: pl.DataFrame  # rows of sessions set aside: file, line, column, value, reason
    rejected_stations: pl.DataFrame  # rows of station tables set aside: the same columns
    counts: dict[str, int]
    formats: dict[str, str]  # file -> name of its format
    time_zone: str  # of the clocks at the stations, as far as the records know it
    notes: list[str] = field(default_factory=list)  # sentences on what had to be assumed
    readings: dict[str, list[str]] = field(default_factory=dict)  # file -> how its cells were read, on what evidence


def read_records(
    paths: Iterable[Any] | Any,
    format: str = "auto",  # noqa: A002
    mapping: Mapping | dict[str, Any] | None = None,
    stations: Any = None,
    now: dt.datetime | None = None,
    *,
    join_minutes: float = JOIN_MINUTES,
    crs: str | None = None,
) -> Records:
    """Read files (or frames) of sessions; `mapping` overrides what their format says about columns.

    With a table of `stations` (a file or a frame), sessions at other stations are set aside. Sessions that a driver
    starts again within `join_minutes` are joined to the first (0: never). `crs` is the coordinate reference system of
    the table's positions, where they are not degrees.
    """
    sources = _sources(paths)
    chosen = mapping.model_dump(exclude_defaults=True) if isinstance(mapping, Mapping) else dict(mapping or {})
    table = check_stations(stations, crs) if stations is not None else None
    known = set(table.kept["station_id"]) if table is not None else None
    pile = _Pile()
    for number, (name, source) in enumerate(sources):
        raw, used, columns = _read(source, format)
        raw = _plain_columns(raw, name)
        pile.add(name, raw, used)
        if raw.sessions is None:
            continue
        columns = columns or tuple(raw.sessions.columns)
        final = _override(raw.mapping, chosen, columns, name)
        check_columns(final, columns, chosen, name)
        if used == "generic" and final.energy_factor != 1:
            pile.notes.append(f"{name}: energies in {final.energy_kwh!r} are multiplied by {final.energy_factor:g}.")
        if used in ("generic", "table") and final == final.model_copy(update={"time_zone": "UTC", "zone": None}):
            pile.notes += _naive_note(raw.sessions, final, name)
        typed = type_cells(raw.sessions, final, name, now or dt.datetime.now(dt.UTC), known, chosen=chosen)
        are_arrivals = raw.are_arrivals
        del raw
        pile.zones.append(final.clocks)
        pile.add_sessions(number, name, typed, are_arrivals=are_arrivals)
        del typed
    cleaned = clean(pile.parts)
    return pile.records(cleaned, [name for name, _ in sources], table, stations, join_minutes)


class _Pile:
    """What has been read so far."""

    def __init__(self) -> None:
        self.parts: list[pl.DataFrame] = []
        self.rejected: list[pl.DataFrame] = []
        self.outages: list[pl.DataFrame] = []
        self.stations: list[tuple[str, pl.DataFrame]] = []
        self.counts = dict.fromkeys(("rows_in", "rows_kept", "rows_set_aside", "shapeless", *REASONS), 0)
        self.formats: dict[str, str] = {}
        self.zones: list[str] = []
        self.odd_stations: list[pl.DataFrame] = [pl.DataFrame(schema=_REJECTED)]
        self.notes: list[str] = []
        self.readings: dict[str, list[str]] = {}

    def add(self, name: str, raw: Raw, used: str) -> None:
        """What a file holds besides sessions, and its rows without shape."""
        self.formats[name] = used
        if raw.sessions is None:
            self.odd_stations.append(_in_file(raw.rejected, name))
        else:
            self.rejected.append(_in_file(raw.rejected, name))
            self.counts["shapeless"] += raw.rejected.height
            self.counts["rows_in"] += raw.rejected.height + raw.sessions.height
        if raw.outages is not None:
            self.outages.append(raw.outages.select(list(OUTAGES)))
        if raw.stations is not None:
            # A file of stations knows them better than one of sessions.
            self.stations.insert(0 if raw.sessions is None else len(self.stations), (name, raw.stations))

    def add_sessions(self, number: int, name: str, typed: Typed, *, are_arrivals: bool) -> None:
        """The sessions of a file."""
        self.notes += typed.notes
        self.readings[name] = typed.readings
        self.rejected.append(_in_file(typed.rejected, name))
        for key, rows in typed.counts.items():
            self.counts[key] += rows
        kept = typed.kept.with_columns(pl.lit(number, pl.UInt16).alias(FILE))
        if "vehicle_id" in kept.columns and not are_arrivals:
            known = [column for column in ("user_id", "vehicle_id") if column in kept.columns]
            kept = kept.with_columns(pl.coalesce(known).alias("user_id"))
        self.parts.append(kept)

    def records(
        self, cleaned: Cleaned, names: list[str], table: Checked | None, given: Any, join_minutes: float
    ) -> Records:
        """Everything together."""
        counts, notes = self.counts, self.notes
        sessions = _finish(cleaned.sessions, names, counts)
        counts["rows_kept"] = sessions.height
        sessions, counts["restarts_joined"] = join_restarts(sessions, join_minutes)
        rejected = pl.concat([*self.rejected, _repeated(cleaned.repeats, names)])
        counts |= cleaned.counts
        counts["rows_set_aside"] = rejected.height
        counts["zero_energy"] = int((sessions["energy_kwh"] == 0).sum())
        if counts["ids_used_twice"]:
            notes.append(f"{counts['ids_used_twice']} sessions have the id of another at another station or start.")
        if table is not None:
            where = str(given) if isinstance(given, str | Path) else "stations"
            stations, odd = table.kept, _in_file(table.rejected, where)
            notes += table.notes
        else:
            stations, odd = _all_stations(self.stations, sessions)
        odd = pl.concat([*self.odd_stations, odd])
        counts["stations"], counts["stations_set_aside"] = stations.height, odd.height
        outages = merge_outages(pl.concat([pl.DataFrame(schema=OUTAGES), *self.outages]))
        if len(set(self.zones)) > 1:
            notes.append(
                f"The files are of several time zones ({', '.join(sorted(set(self.zones)))}): one goes for all."
            )
        zone = next((zone for zone in self.zones if zone != "UTC"), "UTC")
        return Records(sessions, stations, outages, rejected, odd, counts, self.formats, zone, notes, self.readings)


def _sources(paths: Iterable[Any] | Any) -> list[tuple[str, Any]]:
    """Names and sources: a file's name is its path, a frame's its number."""
    several = isinstance(paths, list | tuple) or (isinstance(paths, Iterable) and not hasattr(paths, "columns"))
    given = list(paths) if several and not isinstance(paths, str | Path) else [paths]
    if not given:
        raise InputError("There are no files to read: give at least one.")
    return [
        (str(source), Path(source)) if isinstance(source, str | Path) else (f"table {number}", as_frame(source))
        for number, source in enumerate(given, start=1)
    ]


def _read(source: Path | pl.DataFrame, format: str) -> tuple[Raw, str, tuple[str, ...]]:  # noqa: A002
    if isinstance(source, pl.DataFrame):
        frame = source if LINE in source.columns else source.with_row_index(LINE, offset=1)
        return Raw(guess_mapping(frame.drop(LINE)), sessions=frame), "table", ()
    if format == "auto":
        used, head = recognise(source)
    else:
        used, head = format_named(format), read_head(source)
    return used.read(head), used.name, head.columns if head.kind == "csv" else ()


def _plain_columns(raw: Raw, name: str) -> Raw:
    """Categories as text; columns that are no cells at all are refused."""
    if raw.sessions is None:
        return raw
    for column, dtype in raw.sessions.schema.items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Duration):
            raise InputError(f"{name}: column {column} holds {dtype}: give text, numbers or times.")
    return replace(raw, sessions=raw.sessions.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)))


def _override(base: Mapping, chosen: dict[str, Any], columns: tuple[str, ...], name: str) -> Mapping:
    """A format's mapping with what the user says about columns on top; `Date+Time` are two columns."""
    values = dict(chosen)
    for which in ("start", "end", "station_id", *IDS):
        value = values.get(which)
        if isinstance(value, str) and value not in columns and "+" in value:
            values[which] = tuple(part.strip() for part in value.split("+"))
    if "station_id" in values:
        values.setdefault("station", None)
    if isinstance(values.get("energy_kwh"), str) and values["energy_kwh"] != base.energy_kwh:
        values.setdefault("energy_factor", energy_factor(values["energy_kwh"]))
    return mapping_from(values, f"The mapping for {name}", base) if values else base


def _naive_note(frame: pl.DataFrame, mapping: Mapping, name: str) -> list[str]:
    """A word where times carry no zone and none was given."""
    column = mapping.start if isinstance(mapping.start, str) else mapping.start[-1]
    if column not in frame.columns or frame.schema[column] != pl.String:
        return []
    cells = frame[column].drop_nulls().head(100)
    if cells.str.contains(r"(?i)(z|gmt|utc|[+-]\d\d:?\d\d)\s*$|^\d+(\.\d+)?$").any():
        return []
    return [f"{name}: times without a zone are taken as UTC; give --map time_zone=Europe/Copenhagen if they are local."]


def _in_file(rejected: pl.DataFrame, name: str) -> pl.DataFrame:
    return rejected.select(pl.lit(name).alias("file"), *(pl.col(c).cast(t) for c, t in REJECTED.items()))


def _repeated(repeats: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Duplicates as rows set aside, each with the line of the first."""
    known = pl.Series(names, dtype=pl.String)
    first = repeats.select(
        pl.format("is the same session as on line {} of {}", "first_line", known.gather(repeats["first_file"]))
    )
    return repeats.select(
        known.gather(repeats["file"]).alias("file"),
        "line",
        pl.lit("session_id").alias("column"),
        pl.col("session_id").str.slice(0, 200).alias("value"),
        first.to_series().alias("reason"),
    )


def _finish(frame: pl.DataFrame, names: list[str], counts: dict[str, int]) -> pl.DataFrame:
    """The columns of SESSIONS: ids made up from file and line where there are none, times as times."""
    short = [Path(name).name for name in names]
    labels = pl.Series(short if len(set(short)) == len(short) else names, dtype=pl.String)
    made_up = pl.format("{}:{}", pl.lit(labels).gather(pl.col(FILE)), LINE)
    if "session_id" not in frame.columns:
        counts["ids_made_up"] = frame.height
        identity = made_up
    else:
        counts["ids_made_up"] = frame["session_id"].null_count()
        identity = pl.coalesce("session_id", made_up) if counts["ids_made_up"] else pl.col("session_id")
    columns: dict[str, pl.Expr] = {"session_id": identity}
    for name, dtype in SESSIONS.items():
        if name not in columns:
            columns[name] = pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype)
    if "charged" in frame.columns:
        charged = pl.when(pl.col("charged") >= pl.col("start")).then(pl.min_horizontal("charged", "end"))
        columns["charged"] = charged.cast(UTC)
    return frame.select(columns[name].alias(name) for name in SESSIONS)


def _all_stations(found: list[tuple[str, pl.DataFrame]], sessions: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The stations that came with the sessions and those only seen in them; and rows of stations set aside."""
    kept = [check_stations(pl.DataFrame(schema={"station_id": pl.String})).kept]
    rejected = [pl.DataFrame(schema=_REJECTED)]
    for name, stations in found:
        checked = check_stations(stations)
        kept.append(checked.kept)
        rejected.append(_in_file(checked.rejected, name))
    seen = sessions.select(pl.col("station_id").unique().sort())
    both = pl.concat([*kept, seen], how="diagonal")
    # What one file leaves out of a station, another may say.
    known = both.group_by("station_id", maintain_order=True).agg(pl.exclude("station_id").drop_nulls().first())
    return known.select(both.columns), pl.concat(rejected)
