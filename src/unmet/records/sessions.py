"""Read an operator's files into clean sessions and stations.

Rows in = sessions + restarts joined to them + rows set aside. Every row set aside is listed with its place, its value
and the reason.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from unmet.csv_files import LINE, REJECTED
from unmet.errors import InputError
from unmet.frames import POLARS, Frame, frame_type_of, to_frame_type
from unmet.records.batches import Batch, read_batches
from unmet.records.cells import REASONS
from unmet.records.cleaning import FILE, Cleaned, clean
from unmet.records.counts import count_notes
from unmet.records.crowded import crowded_note
from unmet.records.evidence import Finding, merge_findings, merge_notes
from unmet.records.formats.base import OUTAGES
from unmet.records.local_zone import settled_zone
from unmet.records.mapping import Mapping
from unmet.records.one_file import Reading
from unmet.records.outages import merge_outages
from unmet.records.outliers import clock_notes, far_note
from unmet.records.positions_check import mend_positions
from unmet.records.restarts import JOIN_MINUTES, join_restarts
from unmet.records.sources import RecordSource, find_sources
from unmet.records.station_ids import alike_note
from unmet.records.stations import KEPT_WITHOUT, check_stations, no_stations
from unmet.tables import UTC, Checked

__all__ = ["SESSIONS", "RecordCollector", "Records", "finished_sessions", "read_into", "read_sessions"]

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
Progress = Callable[[int, int], None]  # called with the number of files read so far, and in total


@dataclass(frozen=True, slots=True, repr=False)
class Records:
    """Sessions, stations and outages read from an operator's files, with all rows that were set aside."""

    sessions: pl.DataFrame  # columns of SESSIONS, sorted by start, station_id, session_id
    stations: pl.DataFrame  # station_id, lat, lon, power_kw, plugs, operator, name; null where unknown
    outages: pl.DataFrame  # columns of OUTAGES
    rejected: pl.DataFrame  # rows of sessions set aside: file, line, column, value, reason
    rejected_stations: pl.DataFrame  # rows of station tables set aside: the same columns
    counts: dict[str, int]
    formats: dict[str, str]  # file -> name of its format
    time_zone: str  # local time zone of the stations, if the records show it; else UTC
    notes: list[str] = field(default_factory=list)  # sentences about assumptions
    readings: dict[str, list[str]] = field(default_factory=dict)  # file -> how its cells were read, on what evidence
    readings_in_short: list[str] = field(default_factory=list)  # the same for all files together, one sentence per kind
    frame_type: str = POLARS  # library of the data frames that came in

    def __repr__(self) -> str:
        return (
            f"Records({self.sessions.height:,} sessions at {self.stations.height:,} stations, "
            f"{self.rejected.height:,} rows set aside, {self.time_zone})"
        )

    def to_frame(self, table: str = "sessions") -> Frame:
        """A table as a data frame of the library that the records came in.

        Args:
            table: `sessions`, `stations`, `outages`, `rejected` or `rejected_stations`.
        """
        return to_frame_type(getattr(self, table), self.frame_type)


def read_sessions(
    paths: Iterable[Any] | Any,
    format: str = "auto",  # noqa: A002
    mapping: Mapping | dict[str, Any] | None = None,
    stations: Any = None,
    now: dt.datetime | None = None,
    *,
    join_minutes: float = JOIN_MINUTES,
    station_mapping: dict[str, str] | None = None,
    crs: str | None = None,
    time_zone: str | None = None,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    progress: Progress | None = None,
) -> Records:
    """Read an operator's session records: files, folders, patterns or data frames.

    Args:
        paths: one or several files, folders, patterns such as `2024-*.csv`, or data frames (pandas, Polars, Arrow); a
            folder stands for the tables in it, a workbook for its sheets.
        format: the format of all files; `auto` detects it for each.
        mapping: which columns hold what; overrides the format's mapping.
        stations: a table of stations (a file or a frame); sessions at other stations are then set aside.
        now: sessions that start more than a day later are set aside.
        join_minutes: sessions that a user restarts within this many minutes are joined to the first; 0: never.
        station_mapping: which columns of `stations` hold what, such as {"station_id": "Site"}.
        crs: coordinate system of the positions in `stations` if they are not degrees, such as EPSG:2056.
        time_zone: zone of times without one, if neither the mapping nor the format gives it.
        since: sessions that start earlier are set aside.
        until: sessions that start then or later are set aside.
        progress: called with the number of files read so far, and in total.

    Returns:
        The records: `sessions` (`session_id, station_id, start, end` [UTC], `energy_kwh` [kWh] and more), `stations`,
        and `rejected`, the rows that could not be used, each with its line and the reason. Rows in = sessions + joined
        restarts + rows set aside.

    Example:
        >>> rows = pl.DataFrame({
        ...     "station_id": ["north", "north", "south"],
        ...     "start": ["2024-05-06 08:00", "2024-05-06 09:00", "2024-05-06 09:00"],
        ...     "end": ["2024-05-06 10:00", "2024-05-06 08:30", "2024-05-06 09:30"],
        ...     "energy_kwh": [14.0, 7.0, 6.5],
        ... })
        >>> records = read_sessions(rows, time_zone="Europe/London")
        >>> records
        Records(2 sessions at 2 stations, 1 rows set aside, Europe/London)
        >>> records.rejected["reason"].to_list()
        ['is before the start']
    """
    sources = find_sources(paths)
    chosen = mapping.entries() if isinstance(mapping, Mapping) else dict(mapping or {})
    table = check_stations(stations, crs, station_mapping) if stations is not None else None
    known = set(table.kept["station_id"]) if table is not None else None
    reading = Reading(format, chosen, time_zone, known, now or dt.datetime.now(dt.UTC), since, until)
    collector = RecordCollector()
    read_into(collector, sources, reading, progress)
    cleaned = clean(collector.parts)
    records = collector.records(cleaned, [source.name for source in sources], table, stations, join_minutes, time_zone)
    return replace(records, frame_type=frame_type_of(paths, stations))


def read_into(
    collector: RecordCollector, sources: list[RecordSource], reading: Reading, progress: Progress | None
) -> None:
    """Read all sources into `collector`; raises `InputError` if no sheet of a workbook holds sessions."""
    problems: dict[str, list[str | None]] = {}  # by file, one for each sheet; None if the sheet holds sessions
    for batch in read_batches(sources, reading):
        collector.add(batch)
        for source in batch.sources:
            name = str(source.table) if isinstance(source.table, Path) else source.name
            problems.setdefault(name, []).append(batch.contents.problem)
        done = batch.first + len(batch.sources)
        del batch
        if progress is not None:
            progress(done, len(sources))
    for found in problems.values():
        if all(found) and found[0] is not None:
            raise InputError(found[0])


class RecordCollector:
    """Collects the contents of the files read so far."""

    def __init__(self) -> None:
        self.parts: list[pl.DataFrame] = []  # typed sessions
        self.rejected: list[pl.DataFrame] = [pl.DataFrame(schema=_REJECTED)]
        self.outages: list[pl.DataFrame] = []
        self.stations: list[tuple[str, pl.DataFrame]] = []  # file, stations in it
        self.counts = dict.fromkeys(("rows_in", "rows_kept", "rows_set_aside", "shapeless", *REASONS), 0)
        self.formats: dict[str, str] = {}
        self.zones: list[str | None] = []  # None if a file does not show its zone
        self.rejected_stations: list[pl.DataFrame] = [pl.DataFrame(schema=_REJECTED)]
        self.notes: dict[str, list[str]] = {}  # sentence -> files
        self.readings: dict[str, list[str]] = {}  # file -> how its cells were read
        self.findings: list[tuple[Finding, int]] = []  # each with its number of files

    def add(self, batch: Batch) -> None:
        """Add the contents of some files."""
        one, names = batch.contents, [source.name for source in batch.sources]
        for key, rows in one.counts.items():
            self.counts[key] += rows
        readings = list(map(str, one.readings))
        for name in names:
            self.formats[name], self.readings[name] = one.format, readings
        self.findings += [(finding, len(names)) for finding in one.readings]
        for note in one.notes:
            self.notes.setdefault(note, []).extend(names)
        if one.outages is not None:
            self.outages.append(one.outages.select(list(OUTAGES)))
        if one.stations is not None:
            # A file of stations describes them better than one of sessions.
            self.stations.insert(0 if one.sessions is None else len(self.stations), (names[0], one.stations))
        if one.sessions is not None or one.zone is not None:
            self.zones.append(one.zone)
        if one.sessions is None:
            self.rejected_stations.append(batch.rejected.cast(pl.Schema(_REJECTED)))
        else:
            self.rejected.append(batch.rejected.cast(pl.Schema(_REJECTED)))
            self.keep(one.sessions)

    def keep(self, sessions: pl.DataFrame) -> None:
        """Keep the typed sessions of some files."""
        self.parts.append(sessions)

    def file_notes(self) -> list[str]:
        """Sentences about single files, each with the files that it concerns."""
        return merge_notes(self.notes)

    def records(
        self,
        cleaned: Cleaned,
        names: list[str],
        table: Checked | None,
        given: Any,
        join_minutes: float,
        time_zone: str | None,
    ) -> Records:
        """The records of all files.

        `names` are those of the files, by number. If the user gave a table of stations, `given` is where it came from.
        `join_minutes` and `time_zone` are as in `read_sessions`.
        """
        counts, notes = self.counts, self.file_notes()
        sessions, set_aside, counted = finished_sessions(cleaned, names, join_minutes)
        rejected = pl.concat([*self.rejected, set_aside])
        counts |= counted
        counts["rows_set_aside"] = rejected.height
        notes += count_notes(counts, sessions.height)
        if sessions.height:
            notes += clock_notes(sessions)
        far = far_note(cleaned.far)
        notes += [far] if far else []
        crowded = crowded_note(sessions, table.kept) if table is not None else None
        seen = sessions["station_id"].unique().sort()
        others = self.without_sessions(table, given, seen, time_zone)
        notes += [*([crowded] if crowded else []), *others.notes]
        return replace(others, sessions=sessions, rejected=rejected, notes=notes)

    def without_sessions(self, table: Checked | None, given: Any, seen: pl.Series, time_zone: str | None) -> Records:
        """The records without their sessions; `seen` holds the ids of the stations in the sessions."""
        counts, notes = self.counts, list[str]()
        where = str(given) if isinstance(given, str | Path) else "The stations"
        if table is not None:
            stations, rejected = table.kept, _in_file(table.rejected, where)
            notes += table.notes
        else:
            stations, rejected = _all_stations(self.stations, seen)
            alike = alike_note(stations["station_id"])
            notes += [alike] if alike else []
        rejected = pl.concat([*self.rejected_stations, rejected])
        is_kept = rejected["reason"].str.ends_with(KEPT_WITHOUT)
        counts["stations"], counts["stations_set_aside"] = stations.height, int((~is_kept).sum())
        counts["station_values_unused"] = int(is_kept.sum())
        outages = merge_outages(pl.concat([pl.DataFrame(schema=OUTAGES), *self.outages]))
        known = [zone for zone in self.zones if zone is not None]
        if len(set(known)) > 1:
            notes.append(f"The files have several time zones ({', '.join(sorted(set(known)))}): one is used for all.")
        zone = next((zone for zone in known if zone != "UTC"), "UTC")
        # A note of `in_degrees`: converted positions, or swapped ones, are certain.
        are_converted = table is not None and any("degrees" in note for note in table.notes)
        stations, position_notes = mend_positions(stations, time_zone or zone, where, are_certain=are_converted)
        zone, zone_note = settled_zone(self.zones, time_zone, stations)
        notes += [*position_notes, *([zone_note] if zone_note else [])]
        return Records(
            sessions=pl.DataFrame(schema=SESSIONS),
            stations=stations,
            outages=outages,
            rejected=pl.concat(self.rejected),
            rejected_stations=rejected,
            counts=counts,
            formats=self.formats,
            time_zone=zone,
            notes=notes,
            readings=self.readings,
            readings_in_short=merge_findings(self.findings),
        )


def finished_sessions(
    cleaned: Cleaned, names: list[str], join_minutes: float
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, int]]:
    """Sessions with the columns of SESSIONS and restarts joined, rows set aside on the way, and counts."""
    counts: dict[str, int] = {}
    sessions, counts["ids_made_up"] = _with_all_columns(cleaned.sessions, names)
    counts["rows_kept"] = sessions.height
    sessions, counts["restarts_joined"] = join_restarts(sessions, join_minutes)
    rejected = pl.concat([_rejected_repeats(cleaned.repeats, names), _rejected_far(cleaned.far, names)])
    counts |= cleaned.counts
    counts["zero_energy"] = int((sessions["energy_kwh"] == 0).sum())
    return sessions, rejected, counts


def _in_file(rejected: pl.DataFrame, name: str) -> pl.DataFrame:
    """Rejected rows with the name of their file."""
    return rejected.select(pl.lit(name).alias("file"), *(pl.col(c).cast(t) for c, t in REJECTED.items()))


def _rejected_repeats(repeats: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Duplicates as rows set aside, each with the line of the first."""
    if repeats.is_empty():
        return pl.DataFrame(schema=_REJECTED)
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


def _rejected_far(rows: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Rows years away from all others as rows set aside."""
    if rows.is_empty():
        return pl.DataFrame(schema=_REJECTED)
    years = (pl.col("days") / 365.25).round(1)
    return rows.select(
        pl.Series(names, dtype=pl.String).gather(rows["file"]).alias("file"),
        "line",
        pl.lit("start").alias("column"),
        pl.col("start").dt.strftime("%Y-%m-%dT%H:%M:%SZ").alias("value"),
        pl.format("is {} years away from all other sessions: the clock was probably wrong", years).alias("reason"),
    )


def _with_all_columns(frame: pl.DataFrame, names: list[str]) -> tuple[pl.DataFrame, int]:
    """The columns of SESSIONS; a missing id is made up from file and line. Also returns how many were."""
    short = [Path(name).name for name in names]
    labels = pl.Series(short if len(set(short)) == len(short) else names, dtype=pl.String)
    made_up = pl.format("{}:{}", pl.lit(labels).gather(pl.col(FILE)), LINE)
    if "session_id" not in frame.columns:
        n_missing = frame.height
        identity = made_up
    else:
        n_missing = frame["session_id"].null_count()
        identity = pl.coalesce("session_id", made_up) if n_missing else pl.col("session_id")
    columns: dict[str, pl.Expr] = {"session_id": identity}
    for name, dtype in SESSIONS.items():
        if name not in columns:
            columns[name] = pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype)
    if "charged" in frame.columns:  # the energy flow ends during the stay; a time before it is wrong
        charged = pl.when(pl.col("charged") >= pl.col("start")).then(pl.min_horizontal("charged", "end"))
        columns["charged"] = charged.cast(UTC)
    return frame.select(columns[name].alias(name) for name in SESSIONS), n_missing


def _all_stations(found: list[tuple[str, pl.DataFrame]], seen: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Stations listed in the files, and those named only by sessions (`seen`, distinct ids); and rejected rows."""
    if not found:
        named = pl.concat([no_stations(), seen.to_frame("station_id")], how="diagonal")
        return named, pl.DataFrame(schema=_REJECTED)
    kept = [no_stations()]
    rejected = [pl.DataFrame(schema=_REJECTED)]
    for name, stations in found:
        checked = check_stations(stations, name=name)
        kept.append(checked.kept)
        rejected.append(_in_file(checked.rejected, name))
    both = pl.concat([*kept, seen.to_frame("station_id")], how="diagonal")
    # Files may complete each other's information about a station; earlier ones take precedence.
    known = both.group_by("station_id", maintain_order=True).agg(pl.exclude("station_id").drop_nulls().first())
    return known.select(both.columns), pl.concat(rejected)
