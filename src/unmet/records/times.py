"""Conversion of times, as operators write them, to UTC.

Text is read column by column: ISO 8601, day-first and month-first dates, AM and PM, month names, HTTP and JavaScript
dates, seconds or milliseconds since 1970. A time with an offset is unambiguous; one without is local time. Two
rules for local times: in the hour that occurs twice, the earlier time is used unless the end would precede the start;
a time that does not exist is read an hour later.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from unmet.errors import InputError
from unmet.records.day_order import find_day_orders
from unmet.records.evidence import Finding
from unmet.records.month_names import with_english_months
from unmet.records.swapped_dates import swapped_back
from unmet.records.time_cells import with_years_first
from unmet.zones import checked_zone

__all__ = ["ZONES", "ParsedTimes", "missing_times", "read_moment", "read_times", "to_utc"]

_BY_HOURS = {  # east of Greenwich; of several meanings of an abbreviation, the one of Europe or North America
    0: "UTC GMT Z WET",
    1: "BST WEST IST CET MEZ",
    2: "CEST MESZ EET",
    3: "EEST MSK",
    8: "SGT AWST",
    9: "JST KST",
    9.5: "ACST",
    10: "AEST",
    10.5: "ACDT",
    11: "AEDT",
    12: "NZST",
    13: "NZDT",
    -2.5: "NDT",
    -3: "ADT",
    -3.5: "NST",
    -4: "AST EDT",
    -5: "EST CDT",
    -6: "CST MDT",
    -7: "MST PDT",
    -8: "PST AKDT",
    -9: "AKST",
    -10: "HST",
}
ZONES = {name: round(hours * 60) for hours, names in _BY_HOURS.items() for name in names.split()}
"""Abbreviations of zones, and their minutes east of Greenwich."""
_MINUTE, _HOUR = 60_000, 3_600_000  # ms
_MIN_MS, _MAX_MS = -30_610_224_000_000, 253_402_300_799_999  # the years 1000 to 9999: "18" is not a year
_COMPACT = ((200_001_010_000, 209_912_312_359), (20_000_101_000_000, 20_991_231_235_959))  # 202401312359(59)
_OFFSET = r":\d\d(?:[.,]\d+)?\s*[+-]\d\d(?::?\d\d)?$"  # after a time of day: 09:05 +01:00
_SAMPLE_ROWS = 100  # on which each form is tried before it is applied to a whole column


@dataclass(frozen=True, slots=True)
class ParsedTimes:
    """A column of times in milliseconds since 1970: in UTC if the offset is known, else local wall-clock time."""

    utc: pl.Series  # Int64, null where unknown
    wall: pl.Series  # Int64, null where `utc` is known or nothing could be read
    is_open: pl.Series | None = None  # Boolean: whether day and month of the row are ambiguous


def read_times(
    columns: Sequence[pl.Series], day_first: bool | None = None, suggested: bool | None = None
) -> tuple[list[ParsedTimes], list[Finding], list[str]]:
    """Read the time columns of one file: starts, ends, and further ones.

    Args:
        columns: cells as written, in the order of the file.
        day_first: the order of day and month that the user gave; None to infer it from the rows, cell by cell.
        suggested: the order that the format suggests.

    Returns:
        The times, what was decided on what evidence, and sentences for the user.
    """
    # For each column: the times that could be read at once, and the remaining texts.
    quick = [_read_quickly(column) for column in columns]
    years_first, note = with_years_first(columns, [texts for _, texts in quick if texts is not None])
    if note is not None and day_first is None:
        clocks, readings, notes = read_times(years_first, day_first, suggested)
        return clocks, readings, [*notes, note]
    if all(texts is None for _, texts in quick):
        return [clock for clock, _ in quick], [], []
    swapped = swapped_back([clock.wall for clock, _ in quick], [texts for _, texts in quick])
    quick = [(ParsedTimes(clock.utc, wall), texts) for (clock, texts), wall in zip(quick, swapped.walls, strict=True)]
    findings = [swapped.finding] if swapped.finding else []
    notes = [swapped.note] if swapped.note else []
    if day_first is not None:
        return [_read_rest(clock, texts, day_first) for clock, texts in quick], findings, notes
    rest = [_no_texts(len(clock.wall)) if texts is None else texts for clock, texts in quick]
    found = find_day_orders(rest, suggested)
    clocks = []
    for (clock, texts), order in zip(quick, found.columns, strict=True):
        months_first = (~order).fill_null(value=False)
        read = _read_rest(clock, _only(texts, ~months_first), day_first=True)
        read = _read_rest(read, _only(texts, months_first), day_first=False)
        clocks.append(ParsedTimes(read.utc, read.wall, found.open_rows))
    notes += [found.note] if found.note else []
    return clocks, [*([found.evidence] if found.evidence else []), *findings], notes


def _no_texts(length: int) -> pl.Series:
    return pl.Series([None], dtype=pl.String).new_from_index(0, length)


def _only(texts: pl.Series | None, rows: pl.Series) -> pl.Series | None:
    """The texts of some rows, null elsewhere; None if there are no such rows."""
    if texts is None:
        return None
    if rows.all():
        return texts
    chosen = texts.set(~rows.fill_null(value=False), None)
    return None if chosen.null_count() == len(chosen) else chosen


def to_utc(clock: ParsedTimes, time_zone: str, zones: pl.Series | None = None, *, later: bool = False) -> pl.Series:
    """Milliseconds since 1970 in UTC; `zones` (abbreviations, offsets or names, by row) override `time_zone`.

    In an hour that occurs twice, the earlier time is taken, or with `later` the later one.
    """
    if clock.wall.null_count() == len(clock.wall):
        return clock.utc
    if zones is None:
        return clock.utc.zip_with(clock.utc.is_not_null(), _localise(clock.wall, time_zone, later=later))
    names = zones.cast(pl.String).str.strip_chars()
    result = clock.utc
    for name in names.unique():
        rows = (names == name).fill_null(value=False) if name else (names.is_null() | (names == ""))
        local = _localise(clock.wall, name or time_zone, later=later)
        result = result.zip_with(clock.utc.is_not_null() | ~rows, local)
    return result


def _localise(wall: pl.Series, zone: str, *, later: bool) -> pl.Series:
    """Wall times of a zone in UTC [ms]; null if there is no such zone."""
    minutes = _offset_minutes(zone)
    if minutes is not None:
        return wall - minutes * _MINUTE
    try:
        checked_zone(zone)
    except InputError:  # a cell, not an option: its rows are set aside
        return pl.Series(wall.name, [None], pl.Int64).new_from_index(0, len(wall))
    times = _zoned(wall, zone, later=later)
    if times.null_count() == wall.null_count():
        return times
    return times.fill_null(_zoned(wall + _HOUR, zone, later=later))


def read_moment(option: str, text: str | None, time_zone: str | None) -> dt.datetime | None:
    """The time given to an option: a day (its first moment) or a time, local if it has no offset."""
    if text is None:
        return None
    cell = f"{text} 00:00:00" if re.fullmatch(r"[\d-]{8,10}", text.strip()) else text
    (clock,), _, _ = read_times([pl.Series([cell])])
    millis = to_utc(clock, checked_zone(time_zone or "UTC"))[0]
    if millis is None:
        raise InputError(f"{option} {text!r} is not a day or time: give one such as 2024-01-31 or 2024-01-31T08:00.")
    return dt.datetime.fromtimestamp(millis / 1000, tz=dt.UTC)


def missing_times(clock: ParsedTimes, zone: str) -> int:
    """How many wall times do not exist in a zone, since its clocks were put forward."""
    if clock.wall.null_count() == len(clock.wall) or _offset_minutes(zone) is not None:
        return 0
    return _zoned(clock.wall, zone, later=False).null_count() - clock.wall.null_count()


def _zoned(wall: pl.Series, zone: str, *, later: bool) -> pl.Series:
    """Wall times of a named zone in UTC [ms]; null where clocks were put forward and skipped the time."""
    times = wall.cast(pl.Datetime("ms")).dt.replace_time_zone(
        zone, ambiguous="latest" if later else "earliest", non_existent="null"
    )
    return times.dt.convert_time_zone("UTC").cast(pl.Int64)


def _offset_minutes(zone: str) -> int | None:
    """Minutes east of Greenwich of `CET`, `+1`, `+01` or `UTC+01:00`; None for the name of a zone."""
    if zone.upper() in ZONES:
        return ZONES[zone.upper()]
    parts = zone.upper().removeprefix("UTC").removeprefix("GMT").replace(":", "")
    if parts[:1] in {"+", "-"} and parts[1:].isdecimal() and len(parts) in {2, 3, 5}:
        hours, minutes = (int(parts[1:]), 0) if len(parts) < 5 else (int(parts[1:3]), int(parts[3:]))
        return (-1 if parts[0] == "-" else 1) * (hours * 60 + minutes)
    return None


def _nulls(length: int) -> pl.Series:
    return pl.Series([None], dtype=pl.Int64).new_from_index(0, length)


def _bounded(millis: pl.Series) -> pl.Series:
    return millis.to_frame("ms").select(_within_bounds(pl.col("ms")))["ms"].alias(millis.name)


def _within_bounds(millis: pl.Expr) -> pl.Expr:
    return pl.when(millis.is_between(_MIN_MS, _MAX_MS)).then(millis)


def _read_quickly(cells: pl.Series) -> tuple[ParsedTimes, pl.Series | None]:
    """Times in unambiguous forms, and the other texts (null elsewhere); None if no text is left."""
    nothing = _nulls(len(cells))
    dtype = cells.dtype
    if isinstance(dtype, pl.Datetime):
        millis = _bounded(cells.cast(pl.Int64) // {"ms": 1, "us": 1000, "ns": 1_000_000}[dtype.time_unit])
        return (ParsedTimes(millis, nothing) if dtype.time_zone else ParsedTimes(nothing, millis)), None
    if dtype.is_integer() and (cells.is_between(*_COMPACT[0]) | cells.is_between(*_COMPACT[1])).any():
        cells, dtype = cells.cast(pl.String), pl.String()
    if dtype.is_numeric():
        number = cells.cast(pl.Float64, strict=False)
        wall = _serial(number)
        return ParsedTimes(_epoch(number).set(wall.is_not_null(), None), wall), None
    if dtype != pl.String:
        return ParsedTimes(nothing, nothing), None
    clock, texts = _read_common(ParsedTimes(nothing, nothing), cells, _ISO)
    if texts is None:
        return clock, None
    # The sample holds the first rows only; a spreadsheet may have rewritten dates in later ones.
    years_first = _only(texts, texts.str.contains(r"^\s*\d{4}-\d\d-\d\d[T ]").fill_null(value=False))
    if years_first is None:
        return clock, texts
    clock, _ = _read_common(clock, years_first, _ISO)
    read = clock.utc.is_not_null() | clock.wall.is_not_null()
    return clock, _only(texts, ~read)


_ISO = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S%.f%#z",
    "%Y-%m-%d %H:%M:%S%.f%#z",
    "%Y/%m/%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
)


def _read_common(clock: ParsedTimes, texts: pl.Series, forms: Sequence[str]) -> tuple[ParsedTimes, pl.Series | None]:
    """Parse texts with the forms that fit a sample; returns the times, and the texts left over."""
    utc, wall = clock.utc, clock.wall
    sample = texts.drop_nulls().head(_SAMPLE_ROWS)
    for form in forms:
        if sample.is_empty():
            break
        has_offset = "%#z" in form
        parsed = _strptime(sample, form, has_offset)
        if parsed.null_count() == len(sample):
            continue
        if len(sample) < len(texts):
            parsed = _strptime(texts, form, has_offset)
        utc, wall = (utc.fill_null(parsed), wall) if has_offset else (utc, wall.fill_null(parsed))
        texts = texts.set(parsed.is_not_null(), None)
        sample = texts.drop_nulls().head(_SAMPLE_ROWS)
    return ParsedTimes(utc, wall), (None if texts.null_count() == len(texts) else texts)


def _epoch(number: pl.Series) -> pl.Series:
    """Seconds, milli-, micro- or nanoseconds since 1970, distinguished by their size."""
    size = pl.col("n").abs()
    millis = (
        pl.when(size < 1e11)
        .then(pl.col("n") * 1000)
        .when(size < 1e14)
        .then("n")
        .when(size < 1e17)
        .then(pl.col("n") / 1e3)
        .otherwise(pl.col("n") / 1e6)
    )
    return _bounded(number.to_frame("n").select(millis.round().cast(pl.Int64, strict=False))["n"])


def _serial(days: pl.Series) -> pl.Series:
    """Days since 1899-12-30, as spreadsheets count them, of the years 2000 to 2100; null for other numbers."""
    millis = ((days - 25_569) * 86_400_000).set(~days.is_between(36_526, 73_051).fill_null(value=False), None)
    seconds = (millis / 1000).round()  # a double holds a time of these days to a microsecond at best
    return (seconds * 1000).cast(pl.Int64, strict=False)


def _strptime(text: pl.Series, form: str, has_offset: bool) -> pl.Series:
    dtype = pl.Datetime("ms", "UTC") if has_offset else pl.Datetime("ms")
    millis = pl.col("text").str.strptime(dtype, form, strict=False, cache=False).cast(pl.Int64)
    # One query: on a small file, starting one costs more than running it.
    return text.to_frame("text").select(_within_bounds(millis))["text"]


def _plain(text: pl.Expr) -> pl.Expr:
    """Normalise the many ways to write a time, so that few forms remain, such as `1-2-2018 09:05:00 pm +01:00`."""
    return (
        text.str.strip_chars()
        .str.replace(r"(?i)\s*Uhr$", "")
        # 202401310905 -> 20240131T0905
        .str.replace(r"^(20\d{6})[T\s]?(\d{4})(\d\d)?$", "${1}T${2}${3}")
        # 31.01.2024 09.05 -> 31.01.2024 09:05:
        .str.replace(r"(\d{4}|[./\-]\d\d)[,\s]+(\d{1,2})\.(\d\d)(?:\.(\d\d))?$", "${1} ${2}:${3}:${4}")
        .str.replace(r":$", "")
        # 31/1/2024, 9:05 -> 31-1-2024 9:05
        .str.replace(r"^(\d{1,4})[/.\-](\d{1,2})[/.\-](\d{1,4})(?:[T,\s]+|$)", "${1}-${2}-${3} ")
        # JavaScript: 09:05:00 GMT+0100 (CET) -> 09:05:00 +0100
        .str.replace(r"\s*\([^()]*\)$", "")
        .str.replace(r"\s*\b(?:GMT|UTC)([+-]\d\d:?\d\d)$", " ${1}")
        # Wed, 31-Jan-2024 or January 31, 2024 -> 31 Jan 2024
        .str.replace(r"^(?i)(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+", "")
        .str.replace(r"^(\d{1,2})[\s\-]+([A-Za-z]{3,9})\.?,?[\s\-]+(\d{4})[T,\s]+", "${1} ${2} ${3} ")
        .str.replace(r"^([A-Za-z]{3,9})\.?\s+(\d{1,2}),?\s+(\d{4})[T,\s]+", "${2} ${1} ${3} ")
        # 9:05PM or 9:05 p.m. -> 9:05 pm
        .str.replace(r"\s*(?i)\b([ap])\.?m\.?", " ${1}m")
        # 09:05:00,123 -> 09:05:00.123
        .str.replace(r"(:\d\d),(\d+)", "${1}.${2}")
        .str.strip_chars()
    )


def _read_rest(clock: ParsedTimes, texts: pl.Series | None, day_first: bool) -> ParsedTimes:
    """Add the times in the remaining texts: common forms first, then the distinct texts in all forms."""
    if texts is not None:
        days = "%d{0}%m{0}%Y %H:%M" if day_first else "%m{0}%d{0}%Y %H:%M"
        common = [days.format(mark) + seconds for mark in "/.-" for seconds in ("", ":%S")]
        clock, texts = _read_common(clock, texts, common)
    if texts is None:
        return clock
    distinct = texts.drop_nulls().unique()
    short = with_english_months(distinct.str.slice(0, 60))
    plain = short.to_frame("t").select(_plain(pl.col("t")))["t"]
    zone = plain.str.extract(r"[\d m]\s*([A-Za-z]{1,4})$", 1).str.to_uppercase()
    zone = zone.set(~zone.is_in(list(ZONES)).fill_null(value=False), None)
    bare = plain.zip_with(zone.is_null(), plain.str.replace(r"\s*[A-Za-z]{1,4}$", ""))
    offset = zone.replace_strict(ZONES, default=None, return_dtype=pl.Int64)
    utc, wall = _try_forms(bare, day_first)
    utc = utc.fill_null(wall - offset * _MINUTE)
    wall = wall.set(utc.is_not_null(), None)
    number = _numbers(distinct)
    wall = wall.fill_null(_serial(number).set(utc.is_not_null(), None))
    utc = utc.fill_null(_epoch(number).set(wall.is_not_null(), None))
    found = pl.DataFrame({"text": distinct, "utc": utc, "wall": wall})
    looked_up = texts.to_frame("text").join(found, on="text", how="left", maintain_order="left")
    return ParsedTimes(clock.utc.fill_null(looked_up["utc"]), clock.wall.fill_null(looked_up["wall"]))


def _numbers(texts: pl.Series) -> pl.Series:
    """Texts that are numbers; a spreadsheet's day and fraction of a day are joined."""
    plain = texts.str.strip_chars().str.replace(r"^(\d{5}),(\d+)$", "${1}.${2}")
    pair = plain.str.extract_groups(r"^(\d{5})(?:\.0)? (0?\.\d+|0)$").struct
    both = pair.field("1").cast(pl.Float64, strict=False) + pair.field("2").cast(pl.Float64, strict=False)
    return plain.cast(pl.Float64, strict=False).fill_null(both)


def _try_forms(text: pl.Series, day_first: bool) -> tuple[pl.Series, pl.Series]:
    """Times [ms] of normalised texts: in UTC if they have an offset, else wall times; null elsewhere."""
    utc = wall = _nulls(len(text))
    days = ("%d-%m-%Y", "%d-%m-%y") if day_first else ("%m-%d-%Y", "%m-%d-%y")
    with_offset = text.str.contains(_OFFSET)
    with_am_pm = text.str.contains(r"(?i) [ap]m\b")
    for has_offset in (False, True):
        for am_pm in (False, True):
            rows = (with_offset == has_offset) & (with_am_pm == am_pm)
            rest = text.zip_with(rows, _no_texts(len(text)))
            clocks = ("%I:%M %p", "%I:%M:%S%.f %p") if am_pm else ("%H:%M", "%H:%M:%S%.f")
            for date in ("%Y-%m-%d", *days, "%d %b %Y", "%Y%m%d"):
                for time in clocks:
                    if rest.null_count() == len(rest):
                        break
                    parsed = _strptime(rest, _form(date, time) + ("%#z" if has_offset else ""), has_offset)
                    rest = rest.set(parsed.is_not_null(), None)
                    utc, wall = (utc.fill_null(parsed), wall) if has_offset else (utc, wall.fill_null(parsed))
    return utc, wall


def _form(date: str, time: str) -> str:
    return f"{date}T{time.replace(':', '')}" if date == "%Y%m%d" else f"{date} {time}"
