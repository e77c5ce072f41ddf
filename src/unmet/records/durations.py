"""Durations, from which ends are computed: `1:23:45`, `83 min`, `PT1H23M`, or a number with its unit in the heading."""

from __future__ import annotations

import re

import polars as pl

from unmet.errors import InputError

__all__ = ["duration_unit", "read_durations"]

_HOUR, _MINUTE, _SECOND, _DAY = 3_600_000, 60_000, 1000, 86_400_000  # ms
_SIZES = {"h": _HOUR, "min": _MINUTE, "s": _SECOND}
_UNITS = (  # of a bare number, by words in the heading of its column
    (r"(?:^|[^a-z])(?:h|hr|hrs)(?![a-z])|hour|stunde|heure|ora$|ore$|timer", _HOUR),
    (r"(?:^|[^a-z])(?:m|min|mins)(?![a-z])|minut", _MINUTE),
    (r"(?:^|[^a-z])(?:s|sec|secs)(?![a-z])|second|sekund|secs", _SECOND),
)
_NUMBER = r"(\d+(?:\.\d+)?)\s*"
_WORDS = (  # of a cell such as 1 d 2 h 3 min 4 s
    rf"(?i)^(?:{_NUMBER}(?:d|days?|tage?n?|jours?|giorn[oi]|d[ií]as?|dag(?:en)?|j))?[\s,]*"
    rf"(?:{_NUMBER}(?:h|hrs?|hours?|std\.?|stunden?|heures?|or[ae]|horas?|uur|uren|timer))?[\s,]*"
    rf"(?:{_NUMBER}(?:m|mins?\.?|minut\w*))?[\s,]*(?:{_NUMBER}(?:s|secs?\.?|se[cg]ond\w*|sek\w*))?$"
)
_FRENCH = r"^()(\d+)\s*h\s*(\d{2})()$"  # 1h23
_ISO = rf"^P(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?$"  # ISO 8601: PT1H23M
# Matches 1:23, 1:23:45, 2.01:23:45 and 2 days 01:23:45.
_CLOCK = r"^(?:(\d+)(?:\.| days?\.? ))?(\d+):(\d{2})(?::(\d{2})(?:\.\d+)?)?$"
_EPOCH = pl.lit("1899-12-31").str.to_datetime("%Y-%m-%d", time_unit="ms")  # from which spreadsheets count durations


def duration_unit(column: str) -> int | None:
    """Milliseconds per unit of the numbers in a column, from its heading; None if the heading names no unit."""
    found = [size for words, size in _UNITS if re.search(words, column.lower().replace("_", " "))]
    return found[0] if len(found) == 1 else None


def read_durations(cells: pl.Series, unit_name: str | None = None, *, in_minutes: bool = False) -> pl.Series:
    """Durations [Int64 ms], null where a cell cannot be read.

    `1:23` is an hour and 23 minutes, or with `in_minutes` a minute and 23 seconds. The unit of bare numbers is
    `unit_name` (h, min or s), else the one in the name of the column, as in `Duration (min)`.
    """
    # Spreadsheets put a duration below a day on 1899-12-30 or on 1899-12-31.
    text = cells.cast(pl.String, strict=False).str.strip_chars().str.replace("^1899-12-30", "1899-12-31")
    if in_minutes:
        text = text.str.replace(r"^(\d+):(\d{2})$", "${1} min ${2} s")
    number = text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    unit = _SIZES[unit_name] if unit_name else duration_unit(cells.name)
    if unit is None and (number != 0).any():  # 0 needs no unit
        raise InputError(
            f"Column {cells.name!r} holds durations without a unit, such as {text.filter(number.is_not_null())[0]}: "
            "give it with --map duration_unit=h, min or s."
        )
    read = (number * (unit or 0)).round().cast(pl.Int64, strict=False)
    for pattern in (_CLOCK, _WORDS, _ISO, _FRENCH):
        if read.null_count() > text.null_count():
            read = read.fill_null(_in_parts(text, pattern))
    dated = text.set(~text.str.contains(r"^1(?:899|900)-").fill_null(value=False), None)
    since = pl.col("t").str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="ms", strict=False) - _EPOCH
    return read.fill_null(dated.to_frame("t").select(since.dt.total_milliseconds())["t"])


def _in_parts(text: pl.Series, pattern: str) -> pl.Series:
    """Sums of the days, hours, minutes and seconds in the four groups of a pattern; null if none matches."""
    groups = text.str.replace_all(",", ".", literal=True).str.extract_groups(pattern).struct.unnest()
    parts = groups.cast(pl.Float64, strict=False)
    sizes = zip(parts.columns, (_DAY, _HOUR, _MINUTE, _SECOND), strict=True)
    total = pl.sum_horizontal(pl.col(name) * size for name, size in sizes)
    given = pl.any_horizontal(pl.all().is_not_null())
    return parts.select(pl.when(given).then(total.round().cast(pl.Int64)).alias("ms"))["ms"]
