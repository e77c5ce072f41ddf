"""Conversion of the raw cells of one file into typed sessions; each row is checked on its own.

A row is rejected for the first reason that applies, in the order of `REASONS`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from unmet.csv_files import LINE, REJECTED
from unmet.records.clocks import Clocks, read_clocks
from unmet.records.energies import energy_cells, has_energy, read_energies
from unmet.records.evidence import Finding
from unmet.records.id_cells import columns_of, identity_of
from unmet.records.mapping import Mapping
from unmet.records.named_zones import UNNAMED, NamedZones
from unmet.records.odd_times import printable_times
from unmet.records.outliers import FAR_AWAY
from unmet.records.station_ids import respell_ids
from unmet.records.time_cells import join_cells
from unmet.records.units import MAX_KW, MAX_KWH, SMALL_KWH
from unmet.tables import MAX_TEXT_BYTES
from unmet.zones import checked_zone

__all__ = ["REASONS", "Typed", "type_cells"]

MAX_DAYS = 31  # longer stays are records that were never closed
FIRST_START = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)  # earlier starts come from clocks that were not set
IDS = ("session_id", "plug_id", "post_id", "vehicle_id", "user_id", "operator")  # optional, kept as text
_DAY, _HOUR = 86_400_000, 3_600_000  # ms

# By key in the counts: the column whose value is shown, and why the row is set aside. `FAR_AWAY` is found when the
# sessions of all files are cleaned, the others here.
REASONS: dict[str, tuple[str, str]] = {
    "station_missing": ("station_id", "is empty"),
    "station_too_long": ("station_id", f"is longer than {MAX_TEXT_BYTES} bytes"),
    "start_missing": ("start", "is empty"),
    "start_without_time": ("start", "is a date without a time of day: map its column too, such as start=DATE+TIME"),
    "start_without_date": ("start", "is a time of day without a date: map its date too, such as start=DATE+TIME"),
    "start_unreadable": ("start", "is not a date and time that can be read"),
    "day_order_open": ("start", "may have the day or the month first: nothing in the file shows which"),
    "open_sessions": ("end", "is empty: the session was still open"),
    "end_without_time": ("end", "is a date without a time of day: map its column too, such as end=DATE+TIME"),
    "end_unreadable": ("end", "is not a date and time that can be read"),
    "end_before_start": ("end", "is before the start"),
    "too_long": ("end", f"is more than {MAX_DAYS} days after the start"),
    "start_in_future": ("start", "is in the future"),
    "start_too_early": ("start", f"is before the year {FIRST_START.year}"),
    "energy_missing": ("energy_kwh", "is empty"),
    "energy_unreadable": ("energy_kwh", "is not a number"),
    "energy_negative": ("energy_kwh", "is negative"),
    "energy_absurd": ("energy_kwh", f"is above {MAX_KWH:g} kWh"),
    "power_absurd": ("energy_kwh", f"needs more than {MAX_KW:g} kW over the time plugged in"),
    FAR_AWAY: ("start", "is years away from all other sessions: the clock was probably wrong"),
    "outside_period": ("start", "is not between --since and --until"),
    "stations_unknown": ("station_id", "is not in the table of stations: add it there, or give no table"),
}
_CODES = {key: code for code, key in enumerate(REASONS, start=1)}


@dataclass(frozen=True, slots=True)
class Typed:
    """The valid sessions of one file, and the rejected rows."""

    kept: pl.DataFrame  # LINE, station_id, start and end [Int64 ms], energy_kwh; other columns that the file has
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
    """Convert the cells of one file, and reject the rows that cannot be used.

    Args:
        raw: LINE and the columns that `mapping` names.
        mapping: what the columns mean.
        now: sessions that start more than a day later are rejected.
        known_stations: sessions at other stations are rejected; None if there is no table of stations.
        chosen: entries of the mapping that the user gave and that are binding; the others are suggestions.
        period: sessions that start before the first time, or at the second or later, are rejected; None for no limit.
        named: time zones stated in the headings, in which these columns are read.
    """
    checked_zone(mapping.time_zone)
    start_cells = join_cells(raw, columns_of(mapping.start))
    end_cells = join_cells(raw, columns_of(mapping.end) if mapping.duration is None else (mapping.duration,))
    clocks = read_clocks(raw, mapping, (start_cells, end_cells), chosen, named)
    typed = _with_ids(raw, mapping, clocks)
    respelled = None
    if known_stations is not None:
        ids, respelled = respell_ids(typed["station_id"], known_stations)
        typed = typed.with_columns(ids.alias("station_id"))
    written = energy_cells(raw, mapping)
    energy = read_energies(written, typed, mapping, is_settled="energy_factor" in chosen)
    typed = typed.with_columns(energy.kwh.alias("energy_kwh"))
    readings = [*clocks.readings, *energy.readings]
    notes = [*clocks.notes, *energy.notes, *([respelled] if respelled else [])]
    given = pl.DataFrame(
        {
            "start": start_cells.is_not_null(),
            "end": end_cells.is_not_null(),
            "energy_kwh": has_energy(raw, mapping, written),
        }
    )
    doubts = _Doubts(
        day_order_open=clocks.is_open,
        start_lacks_time=_lacks_time(start_cells, typed["start"]),
        end_lacks_time=_lacks_time(end_cells, typed["end"]),
        start_lacks_date=_lacks_date(start_cells, typed["start"]),
    )
    code = _first_reason(typed, given, doubts, now, known_stations, period)
    if not (code > 0).any():
        return Typed(typed, pl.DataFrame(schema=REJECTED), {}, notes, readings)
    shown = {"station_id": typed["station_id"], "start": start_cells, "end": end_cells, "energy_kwh": written}
    tally = dict(code.filter(code > 0).value_counts().rows())
    counts = {key: tally[code] for key, code in _CODES.items() if code in tally}
    return Typed(typed.filter(code == 0), _rejected(typed[LINE], code, shown), counts, notes, readings)


def _with_ids(raw: pl.DataFrame, mapping: Mapping, clocks: Clocks) -> pl.DataFrame:
    """LINE, station_id, start and end, and the other ids and times that the file has."""
    station = (
        pl.Series([mapping.station], dtype=pl.String).new_from_index(0, raw.height)
        if mapping.station is not None or mapping.station_id is None
        else identity_of(raw, mapping.station_id)
    )
    columns = {
        LINE: raw[LINE].cast(pl.UInt32),
        "station_id": station,
        "start": clocks.start,
        "end": clocks.end,
        "energy_kwh": pl.Series([None], dtype=pl.Float64).new_from_index(0, raw.height),
    }
    for field in IDS:
        names = columns_of(getattr(mapping, field) or ())
        if names and set(names) <= set(raw.columns):
            columns[field] = identity_of(raw, names)
    if clocks.charged is not None:
        columns["charged"] = clocks.charged
    return pl.DataFrame(columns)


@dataclass(frozen=True, slots=True)
class _Doubts:
    """Masks of rows with incomplete or ambiguous times, by kind; None if there are no such rows."""

    day_order_open: pl.Series | None
    start_lacks_time: pl.Series | None
    end_lacks_time: pl.Series | None
    start_lacks_date: pl.Series | None


def _lacks_date(cells: pl.Series, read: pl.Series) -> pl.Series | None:
    """Which unreadable cells are times of day without a date."""
    if cells.dtype != pl.String or read.null_count() == cells.null_count():
        return None
    unread = cells.set(read.is_not_null(), None)
    return unread.str.contains(r"^\s*\d{1,2}[:.h]\d\d([:.]\d\d)?(\s*[AaPp]\.?[Mm]\.?)?\s*$").fill_null(value=False)


def _lacks_time(cells: pl.Series, read: pl.Series) -> pl.Series | None:
    """Which unreadable cells are dates without a time of day."""
    if cells.dtype == pl.Date:
        return cells.is_not_null() & read.is_null()
    if cells.dtype != pl.String or read.null_count() == cells.null_count():
        return None
    unread = cells.set(read.is_not_null(), None)
    return unread.str.contains(r"^\s*\d{1,4}[/.\-]\d{1,2}[/.\-]\d{1,4}\.?\s*$").fill_null(value=False)


def _first_reason(
    typed: pl.DataFrame,
    given: pl.DataFrame,
    doubts: _Doubts,
    now: dt.datetime,
    known_stations: Collection[str] | None,
    period: tuple[dt.datetime | None, dt.datetime | None],
) -> pl.Series:
    """The code of the first reason to reject each row, 0 for none.

    Args:
        typed: converted cells, null where unreadable.
        given: whether `start`, `end` and `energy_kwh` are filled, readable or not.
        doubts: rows with incomplete or ambiguous times.
        now: as in `type_cells`, like the next two.
        known_stations: ids in the table of stations.
        period: first time, and the time after the last.
    """
    start, end, energy = pl.col("start"), pl.col("end"), pl.col("energy_kwh")
    hours = (end - start) / _HOUR
    wrong = {  # in the order of REASONS
        "station_missing": pl.col("station_id").is_null(),
        "station_too_long": pl.col("station_id").str.len_bytes() > MAX_TEXT_BYTES,
        "start_missing": pl.lit(~given["start"]),
        "start_without_time": _mask(doubts.start_lacks_time),
        "start_without_date": _mask(doubts.start_lacks_date),
        "start_unreadable": start.is_null(),
        "day_order_open": _mask(doubts.day_order_open),
        "open_sessions": pl.lit(~given["end"]),
        "end_without_time": _mask(doubts.end_lacks_time),
        "end_unreadable": end.is_null(),
        "end_before_start": end < start,
        "too_long": end - start > MAX_DAYS * _DAY,
        # Local times that are read as UTC may seem up to a day late.
        "start_in_future": start > int(now.timestamp() * 1000) + _DAY,
        "start_too_early": start < int(FIRST_START.timestamp() * 1000),
        "energy_missing": pl.lit(~given["energy_kwh"]),
        "energy_unreadable": energy.is_null() | ~energy.is_finite(),
        "energy_negative": energy < 0,
        "energy_absurd": energy > MAX_KWH,
        "power_absurd": (energy > SMALL_KWH) & (energy > MAX_KW * hours),
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


def _mask(rows: pl.Series | None) -> pl.Expr:
    return pl.lit(False) if rows is None else pl.lit(rows)


def _rejected(lines: pl.Series, code: pl.Series, shown: dict[str, pl.Series]) -> pl.DataFrame:
    """The rows with a code, with the columns of REJECTED; `shown` has the cells as written."""
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
    """Cells as text of up to 200 characters, for messages."""
    if cells.dtype.is_temporal():
        cells = printable_times(cells)
    elif cells.dtype.is_nested() or cells.dtype in (pl.Binary, pl.Object):
        cells = pl.Series([str(cell) for cell in cells.to_list()], dtype=pl.String)
    return cells.cast(pl.String, strict=False).str.slice(0, 200)
