"""Cells of times: several columns joined into one, and dates with the year first."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

__all__ = ["join_cells", "with_years_first"]

_YEAR_DAY_MONTH = r"^\s*\d{4}[/.\-](?:1[3-9]|2\d|3[01])[/.\-](?:0?[1-9]|1[0-2])\b"  # 2023-31-01
_ONLY_YEAR_MONTH_DAY = r"^\s*\d{4}[/.\-]\d{1,2}[/.\-](?:1[3-9]|2\d|3[01])\b"  # 2023-01-31
_YEAR_OF_FOUR_DIGITS = r"^(\s*\d{4}[/.\-])(\d{1,2})([/.\-])(\d{1,2})\b"  # 2023-01-02
_PARTS_OF_TWO_DIGITS = r"^\s*(\d\d)([/.\-])(\d\d)[/.\-](\d\d)\b"  # 23-01-02
MIN_CELLS = 3  # fewer may be typing errors
_MORE_DAYS = 3  # the last part is the day if it takes more values than the first by more than this


def join_cells(frame: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """The cells of one column, or those of several as one text; null where any of them is empty.

    Two or three columns are a date, a time and perhaps a zone; four to six are parts, from year to second.
    """
    if len(columns) == 1:
        return _blank_to_null(frame[columns[0]])
    parts = [_blank_to_null(frame[column].cast(pl.String)) for column in columns]
    if len(parts) > 3:
        return _from_parts([part.str.strip_chars().str.replace(r"\.0+$", "") for part in parts])
    # Spreadsheets write a date as midnight of that day, and a time as one on their first day.
    parts[0] = parts[0].str.replace(r"[ T]0?0:00(:00(\.0+)?)?$", "")
    parts[1] = parts[1].str.replace(r"^1(899-12-3[01]|900-01-0[01])[ T]", "")
    return pl.DataFrame(dict(zip("abc", parts, strict=False))).select(pl.concat_str(pl.all(), separator=" "))["a"]


def _from_parts(parts: list[pl.Series]) -> pl.Series:
    """Year, month, day, hour and, if given, minute and second as one text; the year may come third."""
    year_first = (parts[0].str.len_bytes() == 4).any()
    form = ("{}-{}-{} {}:{}" if year_first else "{}/{}/{} {}:{}") + ":{}" * (len(parts) - 5)
    padded = [part.str.zfill(2) for part in parts[:6]] + [pl.Series(["00"]).new_from_index(0, len(parts[0]))] * (
        5 - len(parts)
    )
    names = "abcdef"[: len(padded)]
    return pl.DataFrame(dict(zip(names, padded, strict=True))).select(pl.format(form, *names).alias("a"))["a"]


def _blank_to_null(cells: pl.Series) -> pl.Series:
    if cells.dtype != pl.String:
        return cells
    blank = cells.str.strip_chars().str.len_bytes() == 0
    return cells.set(blank.fill_null(value=False), None) if blank.any() else cells


def with_years_first(columns: Sequence[pl.Series], unread: Sequence[pl.Series]) -> tuple[list[pl.Series], str | None]:
    """Dates such as 2023-31-01 or 23-01-31 rewritten as 2023-01-31, and a sentence; None if there are none.

    Args:
        columns: starts and ends as written.
        unread: their texts that are not plain ISO dates.
    """
    texts = [column for column in columns if column.dtype == pl.String]
    if sum(int(column.str.contains(_YEAR_DAY_MONTH).sum()) for column in unread) >= MIN_CELLS:
        if any(column.str.contains(_ONLY_YEAR_MONTH_DAY).any() for column in texts):
            return list(columns), None
        rewritten = _rewritten(columns, _YEAR_OF_FOUR_DIGITS, "${1}${4}${3}${2}")
        return rewritten, "Dates such as 2023-31-01 are read as year, day, month."
    if unread and all(_has_short_years_first(column) for column in unread):
        rewritten = _rewritten(columns, _PARTS_OF_TWO_DIGITS, "20${1}${2}${3}${2}${4}")
        return rewritten, "Dates such as 23-01-31 are read as year, month, day: their first part hardly changes."
    return list(columns), None


def _rewritten(columns: Sequence[pl.Series], pattern: str, value: str) -> list[pl.Series]:
    """The columns with a pattern replaced in those that are text."""
    return [column.str.replace(pattern, value) if column.dtype == pl.String else column for column in columns]


def _has_short_years_first(texts: pl.Series) -> bool:
    """Whether the first of three numbers of two digits is the year: it takes few values, and the last takes many."""
    if not texts.drop_nulls().head(100).str.contains(_PARTS_OF_TWO_DIGITS).all():
        return False
    parts = texts.drop_nulls().unique().str.extract_groups(_PARTS_OF_TWO_DIGITS).struct.unnest().drop_nulls()
    year, _, month, day = (parts[name].cast(pl.Int64, strict=False) for name in parts.columns)
    are_dates = bool(month.is_between(1, 12).all() and day.is_between(1, 31).all())
    return are_dates and day.n_unique() > year.n_unique() + _MORE_DAYS
