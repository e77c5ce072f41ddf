"""Raw cells of one file into typed sessions, each row checked on its own.

A row is rejected for the first reason that applies, in the order of `REASONS`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from unmet.csv_files import LINE, REJECTED
from unmet.records.duration_forms import choose_clock_form
from unmet.records.durations import read_durations
from unmet.records.energy_numbers import read_numbers
from unmet.records.evidence import Finding
from unmet.records.grouped_digits import without_grouping_points
from unmet.records.mapping import Mapping
from unmet.records.named_zones import UNNAMED, NamedZones
from unmet.records.outliers import FAR_AWAY
from unmet.records.station_ids import as_the_table_spells
from unmet.records.time_cells import join_cells
from unmet.records.times import ParsedTimes, read_times, to_utc
from unmet.records.units import MOST_KW, MOST_KWH, SMALL_KWH, choose_unit
from unmet.records.zone_choice import choose_zone
from unmet.zones import checked_zone

__all__ = ["REASONS", "Typed", "type_cells"]

MOST_DAYS = 31
FIRST_START = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
IDS = ("session_id", "plug_id", "post_id", "vehicle_id", "user_id", "operator")  # optional, kept as text
_DAY, _HOUR = 86_400_000, 3_600_000

REASONS: dict[str, tuple[str, str]] = {  # what is counted: column whose value is shown, and why the row is set aside
    "station_missing": ("station_id", "is empty"),
    "start_missing": ("start", "is empty"),
    "start_without_time": ("start", "is a date without a time of day: map its column too, such as start=DATE+TIME"),
    "start_unreadable": ("start", "is not a date and time that can be read"),
    "day_order_open": ("start", "may have the day or the month first: nothing in the file tells which"),
    "open_sessions": ("end", "is empty: the session was still open"),
    "end_without_time": ("end", "is a date without a time of day: map its column too, such as end=DATE+TIME"),
    "end_unreadable": ("end", "is not a date and time that can be read"),
    "end_before_start": ("end", "is before the start"),
    "too_long": ("end", f"is more than {MOST_DAYS} days after the start"),
    "start_in_future": ("start", "is in the future"),
    "start_too_early": ("start", f"is before the year {FIRST_START.year}"),
    "energy_missing": ("energy_kwh", "is empty"),
    "energy_unreadable": ("energy_kwh", "is not a number"),
    "energy_negative": ("energy_kwh", "is negative"),
    "energy_absurd": ("energy_kwh", f"is above {MOST_KWH:g} kWh"),
    "power_absurd": ("energy_kwh", f"needs more than {MOST_KW:g} kW over the time plugged in"),
    FAR_AWAY: ("start", "is years away from all other sessions: the clock was probably wrong"),
    "outside_period": ("start", "is not between --since and --until"),
    "stations_unknown": ("station_id", "is not in the table of stations: add it there, or give no table"),
}
_CODES = {key: code for code, key in enumerate(REASONS, start=1)}


@dataclass(frozen=True, slots=True)
class Typed:
    """The valid sessions of one file, and the rejected rows."""

    kept: pl.DataFrame  # LINE, station_id, start and end [Int64 ms], energy_kwh; the rest where the file has it
    rejected: pl.DataFrame  # columns of REJECTED
    counts: dict[str, int]  # rows by key of REASONS
    notes: list[str]
    readings: list[Finding]  # how the cells were read, and on what evidence


def type_cells(
    raw: pl.DataFrame,
    mapping: Mapping,
    now: dt.datetime,
    known_stations: Collection[str] | None = None,
    *,
    chosen: Collection[str] = (),
    period: tuple[dt.datetime | None, dt.datetime | None] = (None, None),
    named: NamedZones = UNNAMED,
) -> Typed:
    """Check the rows of one file; `raw` has LINE and the columns that `mapping` names.

    Entries of the mapping that the user has `chosen` are binding; the others are suggestions. Sessions that start
    outside the `period` are rejected. Columns whose names state a zone (`named`) are read in it.
    """
    checked_zone(mapping.time_zone)
    start_cells = join_cells(raw, _columns(mapping.start))
    end_cells = join_cells(raw, _columns(mapping.end) if mapping.duration is None else (mapping.duration,))
    clocks = _read_clocks(raw, mapping, (start_cells, end_cells), chosen, named)
    typed = _with_ids(raw, mapping, clocks)
    respelled = None
    if known_stations is not None:
        ids, respelled = as_the_table_spells(typed["station_id"], known_stations)
        typed = typed.with_columns(ids.alias("station_id"))
    energy_cells = raw[mapping.energy_kwh]
    energy = _read_energy(energy_cells, typed, mapping, is_settled="energy_factor" in chosen)
    typed = typed.with_columns(energy.kwh.alias("energy_kwh"))
    readings, notes = (
        [*clocks.readings, energy.reading],
        [*clocks.notes, *energy.notes, *([respelled] if respelled else [])],
    )
    energy_given = _text(energy_cells) if energy_cells.dtype == pl.String else energy_cells
    cells = {"start": start_cells, "end": end_cells, "energy_kwh": energy_given}
    given = pl.DataFrame({name: column.is_not_null() for name, column in cells.items()})
    doubts = _Doubts(clocks.is_open, _lacks_time(start_cells, typed["start"]), _lacks_time(end_cells, typed["end"]))
    code = _judge(typed, given, doubts, now, known_stations, period)
    if not (code > 0).any():
        return Typed(typed, pl.DataFrame(schema=REJECTED), {}, notes, readings)
    shown = {"station_id": typed["station_id"], "start": start_cells, "end": end_cells, "energy_kwh": energy_cells}
    tally = dict(code.filter(code > 0).value_counts().rows())
    counts = {key: tally[code] for key, code in _CODES.items() if code in tally}
    return Typed(typed.filter(code == 0), _set_aside(typed[LINE], code, shown), counts, notes, readings)


def _with_ids(raw: pl.DataFrame, mapping: Mapping, clocks: _Clocks) -> pl.DataFrame:
    """LINE, station_id, start and end, and the other ids and times that the file has."""
    station = (
        pl.Series([mapping.station], dtype=pl.String).new_from_index(0, raw.height)
        if mapping.station is not None or mapping.station_id is None
        else _identity(raw, mapping.station_id)
    )
    columns = {
        LINE: raw[LINE].cast(pl.UInt32),
        "station_id": station,
        "start": clocks.start,
        "end": clocks.end,
        "energy_kwh": pl.Series([None], dtype=pl.Float64).new_from_index(0, raw.height),
    }
    for field in IDS:
        names = _columns(getattr(mapping, field) or ())
        if names and set(names) <= set(raw.columns):
            columns[field] = _identity(raw, names)
    if clocks.charged is not None:
        columns["charged"] = clocks.charged
    return pl.DataFrame(columns)


@dataclass(frozen=True, slots=True)
class _Energies:
    kwh: pl.Series
    reading: Finding
    notes: list[str]


def _read_energy(cells: pl.Series, typed: pl.DataFrame, mapping: Mapping, *, is_settled: bool) -> _Energies:
    hours = (typed["end"] - typed["start"]) / _HOUR
    cells, grouped = without_grouping_points(cells, hours, mapping.energy_factor)
    numbers, are_kwh, note = read_numbers(cells)
    chargers = [typed["station_id"]]
    if "plug_id" in typed.columns:
        chargers.append(
            typed.select(pl.concat_str("station_id", "plug_id", separator="/", ignore_nulls=True))["station_id"]
        )
    unit = choose_unit(
        numbers.set(are_kwh, None), hours, mapping.energy_factor, is_settled=is_settled, chargers=chargers
    )
    is_plain = isinstance(unit.factor, float) and unit.factor == 1
    kwh = numbers if is_plain else numbers.zip_with(are_kwh, numbers * unit.factor)
    return _Energies(kwh, unit.reading, [sentence for sentence in (grouped, note, unit.note) if sentence])


def _columns(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _text(cells: pl.Series) -> pl.Series:
    """Cells as text, null where blank; whole numbers stored as 3.0 become 3."""
    if cells.dtype.is_float():
        finite = cells.is_finite().fill_null(value=False)
        if (cells.filter(finite) % 1 == 0).all() and (cells.filter(finite).abs() < 2**53).all():
            cells = cells.set(~finite, None).cast(pl.Int64)
    text = (cells if cells.dtype == pl.String else cells.cast(pl.String, strict=False)).str.strip_chars()
    blank = text.str.len_bytes() == 0
    return text.set(blank.fill_null(value=False), None) if blank.any() else text


def _identity(raw: pl.DataFrame, names: str | tuple[str, ...]) -> pl.Series:
    """Ids from one column, or joined from several, such as `CP1/2`; null where a part is empty."""
    columns = _columns(names)
    if len(columns) == 1:
        return _text(raw[columns[0]])
    parts = pl.DataFrame({str(place): _text(raw[column]) for place, column in enumerate(columns)})
    return parts.select(pl.concat_str(pl.all(), separator="/"))["0"]


@dataclass(frozen=True, slots=True)
class _Clocks:
    start: pl.Series  # Int64 [ms]
    end: pl.Series
    charged: pl.Series | None
    readings: list[Finding]
    notes: list[str]
    is_open: pl.Series | None = None  # rows whose day and month are ambiguous


def _read_clocks(
    raw: pl.DataFrame,
    mapping: Mapping,
    cells: tuple[pl.Series, pl.Series],
    chosen: Collection[str],
    named: NamedZones,
) -> _Clocks:
    start_cells, end_cells = cells
    if mapping.duration is not None:
        end_cells = pl.Series([None], dtype=pl.String).new_from_index(0, raw.height)
    columns = [start_cells, end_cells]
    if mapping.charged is not None and mapping.charged in raw.columns:
        columns.append(join_cells(raw, (mapping.charged,)))
    day_first = mapping.day_first if "day_first" in chosen else None
    clocks, readings, notes = read_times(columns, day_first, mapping.day_first)
    zones = raw[mapping.zone] if mapping.zone is not None else None
    end_zones = raw[mapping.end_zone] if mapping.end_zone is not None else zones
    zone, note = mapping.time_zone, None
    if zones is None:
        unnamed = [clock for clock, name in zip(clocks, (named.start, named.end), strict=False) if name is None]
        zone, note = choose_zone(unnamed, mapping.time_zone, is_settled="time_zone" in chosen)
    notes += [note] if note else []
    readings += _zone_findings(clocks, mapping, zone, named)
    start = to_utc(clocks[0], named.start or zone, None if named.start else zones)
    end_zone, end_zones = named.end or zone, None if named.end else end_zones
    end = to_utc(clocks[1], end_zone, end_zones)
    if mapping.duration is not None:
        form, note = _form_of_durations(raw, mapping, start)
        notes += [note] if note else []
        end = start + read_durations(raw[mapping.duration], mapping.duration_unit, in_minutes=form == "min")
        readings.append(Finding("Ends are starts plus the durations in a column of their own."))
    before = (end < start).fill_null(value=False)
    if before.any():
        later = to_utc(clocks[1], end_zone, end_zones, later=True)
        end = later.zip_with(before & (later >= start).fill_null(value=False), end)
    charged_zone = named.charged or zone
    charged = to_utc(clocks[2], charged_zone, None if named.charged else end_zones) if len(clocks) > 2 else None
    return _Clocks(start, end, charged, readings, notes, clocks[0].is_open)


def _form_of_durations(raw: pl.DataFrame, mapping: Mapping, start: pl.Series) -> tuple[str, str | None]:
    """Whether durations such as 42:29 are in hours or minutes, by the energies and plugs of their rows."""
    numbers, are_kwh, _ = read_numbers(raw[mapping.energy_kwh])
    kwh = numbers.zip_with(are_kwh, numbers * mapping.energy_factor)
    names = (*_columns(mapping.station_id or ()), *_columns(mapping.plug_id or ()))
    charger = _identity(raw, names) if mapping.plug_id and set(names) <= set(raw.columns) else None
    return choose_clock_form(raw[mapping.duration or ""], mapping.duration_unit, kwh, start, charger)


def _zone_findings(clocks: list[ParsedTimes], mapping: Mapping, zone: str, named: NamedZones) -> list[Finding]:
    """In which zones starts and ends are read, and who says so."""
    found: list[Finding] = []
    walls = [len(clock.wall) - clock.wall.null_count() for clock in clocks[:2]]
    own_ends = mapping.end if mapping.duration is None else ()
    for name, columns, count in zip((named.start, named.end), (mapping.start, own_ends), walls, strict=True):
        if name is not None and count:
            shown = " and ".join(repr(column) for column in _columns(columns))
            zone_said = "UTC" if name == "UTC" else f"UTC{name[:3]}:{name[3:]}"
            entry = ("time_zone", "UTC") if named.all_utc else None
            found.append(Finding(f"{{}} times in {shown} are read as {zone_said}, as its name says.", (count,), entry))
    local = sum(count for count, name in zip(walls, (named.start, named.end), strict=True) if name is None)
    if local and mapping.zone is None:
        entry = None if named.start or named.end else ("time_zone", zone)
        found.append(Finding(f"{{}} times are written without a zone and are read as {zone}.", (local,), entry))
    elif local:
        found.append(Finding(f"{{}} times are read in the zone that column {mapping.zone!r} gives.", (local,)))
    certain = sum(len(clock.utc) - clock.utc.null_count() for clock in clocks[:2])
    if certain:
        found.append(Finding("{} times carry their own zone or offset.", (certain,)))
    return found


@dataclass(frozen=True, slots=True)
class _Doubts:
    """Rows with incomplete times, or None."""

    day_order: pl.Series | None
    start_time: pl.Series | None
    end_time: pl.Series | None


def _lacks_time(cells: pl.Series, read: pl.Series) -> pl.Series | None:
    """Which unreadable cells are dates without a time of day."""
    if cells.dtype == pl.Date:
        return cells.is_not_null() & read.is_null()
    if cells.dtype != pl.String or read.null_count() == cells.null_count():
        return None
    unread = cells.set(read.is_not_null(), None)
    return unread.str.contains(r"^\s*\d{1,4}[/.\-]\d{1,2}[/.\-]\d{1,4}\.?\s*$").fill_null(value=False)


def _judge(
    typed: pl.DataFrame,
    given: pl.DataFrame,
    doubts: _Doubts,
    now: dt.datetime,
    known_stations: Collection[str] | None,
    period: tuple[dt.datetime | None, dt.datetime | None],
) -> pl.Series:
    """The code of the first reason to reject a row, 0 for none."""
    start, end, energy = pl.col("start"), pl.col("end"), pl.col("energy_kwh")
    hours = (end - start) / _HOUR
    wrong = {
        "station_missing": pl.col("station_id").is_null(),
        "start_missing": pl.lit(~given["start"]),
        "start_without_time": _where(doubts.start_time),
        "start_unreadable": start.is_null(),
        "day_order_open": _where(doubts.day_order),
        "open_sessions": pl.lit(~given["end"]),
        "end_without_time": _where(doubts.end_time),
        "end_unreadable": end.is_null(),
        "end_before_start": end < start,
        "too_long": end - start > MOST_DAYS * _DAY,
        "start_in_future": start > int(now.timestamp() * 1000) + _DAY,
        "start_too_early": start < int(FIRST_START.timestamp() * 1000),
        "energy_missing": pl.lit(~given["energy_kwh"]),
        "energy_unreadable": energy.is_null() | ~energy.is_finite(),
        "energy_negative": energy < 0,
        "energy_absurd": energy > MOST_KWH,
        "power_absurd": (energy > SMALL_KWH) & (energy > MOST_KW * hours),
    }
    since, until = (None if time is None else int(time.timestamp() * 1000) for time in period)
    if since is not None or until is not None:
        inside = pl.lit(True) if since is None else start >= since
        wrong["outside_period"] = ~(inside if until is None else inside & (start < until))
    if known_stations is not None:
        wrong["stations_unknown"] = ~pl.col("station_id").is_in(list(known_stations))
    code = pl.lit(0, pl.UInt8)
    for key, applies in reversed(wrong.items()):
        code = pl.when(applies).then(pl.lit(_CODES[key], pl.UInt8)).otherwise(code)
    return typed.select(code.alias("code"))["code"]


def _where(rows: pl.Series | None) -> pl.Expr:
    return pl.lit(False) if rows is None else pl.lit(rows)


def _set_aside(lines: pl.Series, code: pl.Series, shown: dict[str, pl.Series]) -> pl.DataFrame:
    parts = []
    for key, (column, reason) in REASONS.items():
        rows = (code == _CODES[key]).arg_true()
        if len(rows):
            value = _shown(shown[column].gather(rows))
            parts.append(
                pl.DataFrame({"line": lines.gather(rows), "value": value}).select(
                    "line", pl.lit(column).alias("column"), "value", pl.lit(reason).alias("reason")
                )
            )
    return pl.concat(parts).sort("line")


def _shown(cells: pl.Series) -> pl.Series:
    """Cells as text, for messages."""
    if isinstance(cells.dtype, pl.Datetime):  # Polars cannot print the year 300000
        years = pl.Series([0, 10_000]) * 31_556_952 - 62_167_219_200
        unit = {"ms": 10**3, "us": 10**6, "ns": 10**9}[cells.dtype.time_unit]
        number = cells.cast(pl.Int64)
        sane = number.is_between(years[0] * min(unit, 10**6), min(years[1] * unit, 2**63 - 1)).fill_null(value=False)
        cells = cells.set(~sane, None).cast(pl.String).fill_null(number.cast(pl.String))
    elif cells.dtype.is_nested() or cells.dtype in (pl.Binary, pl.Object):
        cells = pl.Series([str(cell) for cell in cells.to_list()], dtype=pl.String)
    return cells.cast(pl.String, strict=False).str.slice(0, 200)
