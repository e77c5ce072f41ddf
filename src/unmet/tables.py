"""Tables: declarations of their columns, and the validation of every table that users give.

A table is declared once, as columns with unit, meaning and bounds; validation and documentation both use this
declaration. A row that cannot be used is rejected with its line, its value and the reason: rows in = rows kept + rows
rejected.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import polars as pl

from unmet.csv_files import LINE, no_rejected, read_frame, with_lines
from unmet.errors import InputError, shortened

__all__ = [
    "MAX_TEXT_BYTES",
    "UTC",
    "Checked",
    "Column",
    "RowRule",
    "Table",
    "as_frame",
    "check_every_row",
    "check_table",
    "parse_time",
]

UTC = pl.Datetime("ms", "UTC")
MAX_TEXT_BYTES = 1000  # longest id or name, since tables and pages repeat them
_PLAUSIBLE_TIMES = dt.datetime(1900, 1, 1, tzinfo=dt.UTC), dt.datetime(2200, 1, 1, tzinfo=dt.UTC)  # others are typos


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: its type, unit, meaning and range of values."""

    name: str
    kind: Literal["text", "number", "integer", "time"]
    unit: str
    meaning: str
    required: bool = True
    default: float | None = None  # replaces empty cells, which are counted
    aliases: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, slots=True)
class RowRule:
    """A condition over several columns or rows that a valid row meets."""

    column: str  # column whose value is quoted if a row is rejected
    holds: pl.Expr
    reason: str


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of a table."""

    name: str
    columns: tuple[Column, ...]

    def to_markdown(self) -> str:
        """The columns as a table for documents."""
        rows = ["| column | unit | meaning |", "| --- | --- | --- |"]
        for column in self.columns:
            notes = [column.meaning]
            if not column.required:
                notes.append("optional")
            if column.default is not None:
                notes.append(f"{column.default:g} where empty")
            if column.aliases:
                notes.append("also read as " + ", ".join(f"`{alias}`" for alias in column.aliases))
            rows.append(f"| `{column.name}` | {column.unit} | {'; '.join(notes)} |")
        return "\n".join(rows)


@dataclass(frozen=True, slots=True)
class Checked:
    """The valid rows of a table, and the rejected ones."""

    kept: pl.DataFrame
    rejected: pl.DataFrame  # line, column, value, reason
    filled: dict[str, int] = field(default_factory=dict)  # empty cells filled with a default, by column
    notes: tuple[str, ...] = ()  # assumptions that had to be made, a sentence each

    @property
    def rows_in(self) -> int:
        """Number of rows before validation."""
        return self.kept.height + self.rejected.height


def as_frame(table: Any) -> pl.DataFrame:
    """Any Arrow-compatible frame (Polars, pandas, PyArrow, DuckDB) as a Polars frame."""
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if hasattr(table, "__arrow_c_stream__") or isinstance(table, dict):
        return pl.DataFrame(table)
    raise InputError(
        f"A {type(table).__name__} is not a table: give a Polars, pandas or PyArrow frame, or a file path."
    )


def check_table(
    source: Any,
    table: Table,
    rules: Sequence[RowRule] = (),
    sort: Sequence[str] = (),
    mapped: Mapping[str, str] | None = None,
) -> Checked:
    """Validate a frame or a file as a table.

    Columns are found by name or alias, whatever their case, and cast. Rows with a value that cannot be cast, is missing
    or is out of bounds are rejected. Then `rules` apply in order, each to the rows that passed the previous ones,
    sorted by `sort` (for rules that compare neighbouring rows).

    Args:
        source: a data frame, or the path of a file.
        table: the declaration of its columns.
        rules: further conditions on rows.
        sort: columns to sort by.
        mapped: headings of columns that have other names in the source, as {name: heading}.
    """
    if isinstance(source, str | Path):
        name = str(source)
        frame, malformed = read_frame(Path(source))
    else:
        name = f"The table of {table.name}"
        frame, malformed = as_frame(source), no_rejected()
        frame = frame if LINE in frame.columns else with_lines(frame, 1)
    frame = _with_declared_names(frame, table, name, mapped or {})
    columns = [column for column in table.columns if column.name in frame.columns]
    empty = {column.name: _is_empty(column.name, frame.schema[column.name]) for column in columns}
    cast = frame.select(
        LINE,
        *(_cast(column, frame.schema[column.name]).alias(column.name) for column in columns),
        pl.struct(_shown(column.name, frame.schema[column.name]) for column in columns).alias(_RAW),
        *(empty[column.name].alias(_EMPTY + column.name) for column in columns),
    ).with_columns(pl.coalesce(_problem(column) for column in columns).alias(_WHY))
    rejected = [malformed, _as_rejected(cast.filter(pl.col(_WHY).is_not_null()))]
    kept = cast.filter(pl.col(_WHY).is_null())
    filled = {c.name: int(kept[_EMPTY + c.name].sum()) for c in columns if c.default is not None}
    kept = kept.with_columns(
        pl.when(pl.col(_EMPTY + c.name)).then(c.default).otherwise(c.name).cast(cast.schema[c.name]).alias(c.name)
        for c in columns
        if c.default is not None
    )
    for column in table.columns:  # columns that the source does not have at all
        if column.default is not None and column.name not in filled:
            filled[column.name] = kept.height
            dtype = pl.Int32 if column.kind == "integer" else pl.Float64
            kept = kept.with_columns(pl.lit(column.default, dtype).alias(column.name))
    if sort:
        kept = kept.sort(*sort, maintain_order=True)
    for rule in rules:
        why = _rejection(rule.column, pl.lit(rule.reason))
        reasons = kept.with_columns(pl.when(rule.holds.fill_null(value=False)).then(None).otherwise(why).alias(_WHY))
        rejected.append(_as_rejected(reasons.filter(pl.col(_WHY).is_not_null())))
        kept = reasons.filter(pl.col(_WHY).is_null())
    names = [column.name for column in table.columns if column.name in kept.columns]
    return Checked(kept.select(names), pl.concat(rejected).sort("line"), filled)


def check_every_row(source: Any, table: Table) -> pl.DataFrame:
    """Validate a table in which every row must be valid, and which needs at least one row."""
    checked = check_table(source, table)
    if checked.rejected.height:
        line, column, value, reason = checked.rejected.row(0)
        raise InputError(f"{table.name.capitalize()}, line {line}: {column} {value!r} {reason}: correct the table.")
    if checked.kept.is_empty():
        needed = ", ".join(column.name for column in table.columns if column.required)
        raise InputError(
            f"The table of {table.name} has no rows: give at least one{f', with {needed}' if needed else ''}."
        )
    return checked.kept


# Columns that are added during validation: cells as text, the reason why a row is rejected, whether a cell is empty.
_RAW, _WHY, _EMPTY = "__raw__", "__why__", "__empty__"


def _as_rejected(rows: pl.DataFrame) -> pl.DataFrame:
    """The table of rejected rows: line, column, value, reason."""
    return rows.select(pl.col(LINE).alias("line").cast(pl.UInt32), pl.col(_WHY)).unnest(_WHY)


def _rejection(column: str, reason: pl.Expr) -> pl.Expr:
    """The column, value and reason of a rejected row, as a struct."""
    value = pl.col(_RAW).struct.field(column).str.slice(0, 200)
    return pl.struct(column=pl.lit(column), value=value, reason=reason)


def _with_declared_names(frame: pl.DataFrame, table: Table, name: str, mapped: Mapping[str, str]) -> pl.DataFrame:
    """The frame with its columns renamed as the table declares them, without unknown ones; `name` is for messages."""
    found = {column.strip().lstrip("\ufeff").lower(): column for column in frame.columns}
    known = [column.name for column in table.columns]
    if unknown := [each for each in mapped if each not in known]:
        raise InputError(f"{table.name} have no {unknown[0]!r} to map a column to: they have {', '.join(known)}.")
    if absent := [column for column in mapped.values() if column.strip().lower() not in found]:
        present = ", ".join(c for c in frame.columns if c != LINE)
        raise InputError(f"{name} has no column {absent[0]!r} to map: its columns are {present}.")
    names, missing = {LINE: LINE}, []
    for column in table.columns:
        spellings = (mapped[column.name],) if column.name in mapped else (column.name, *column.aliases)
        spelled = next((found[a.strip().lower()] for a in spellings if a.strip().lower() in found), None)
        if spelled is not None:
            names[spelled] = column.name
        elif column.required and column.default is None:
            missing.append(column.name)
    if missing:
        present = shortened(", ".join(c for c in frame.columns if c != LINE), 500) or "none"
        needed = ", ".join(c.name for c in table.columns if c.required and c.default is None)
        raise InputError(
            f"{name} has no column {', '.join(missing)}: {table.name} need {needed}. Its columns are {present}."
        )
    for spelled, dtype in frame.select(*names).schema.items():
        if dtype.is_nested() or dtype in (pl.Boolean, pl.Binary, pl.Duration, pl.Object):
            raise InputError(f"{name}: column {spelled} holds {dtype}: give text, numbers or times.")
    return frame.select(pl.col(*names).name.map(names.__getitem__)).with_columns(
        pl.col(pl.Categorical, pl.Enum).cast(pl.String)
    )


def _is_empty(column: str, dtype: pl.DataType) -> pl.Expr:
    value = pl.col(column)
    return (value.str.strip_chars() == "").fill_null(value=True) if dtype == pl.String else value.is_null()


def _shown(column: str, dtype: pl.DataType) -> pl.Expr:
    """A cell as text, to quote it if the row is rejected."""
    value = pl.col(column)
    if isinstance(dtype, pl.Datetime):  # Polars cannot print the year 300000
        return pl.when(parse_time(value, dtype).is_between(*_PLAUSIBLE_TIMES)).then(value).cast(pl.String)
    return value.cast(pl.String)


def _cast(column: Column, dtype: pl.DataType) -> pl.Expr:
    value = pl.col(column.name)
    if dtype == pl.String:
        value = value.str.strip_chars()
    if column.kind == "text":
        return _shown(column.name, dtype).str.strip_chars()
    if column.kind == "time":
        return parse_time(value, dtype)
    number = value.cast(pl.Float64, strict=False)
    if column.kind == "integer":
        return pl.when(number == number.round()).then(number).cast(pl.Int32, strict=False)
    return number


def parse_time(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Times in UTC from ISO 8601 text, seconds or milliseconds since 1970, or datetimes; without an offset, UTC."""
    if isinstance(dtype, pl.Datetime):
        aware = value if dtype.time_zone else value.dt.replace_time_zone("UTC")
        return aware.dt.convert_time_zone("UTC").cast(UTC)
    if dtype == pl.Date:
        return value.cast(pl.Datetime("ms")).dt.replace_time_zone("UTC")
    number = value.cast(pl.Float64, strict=False)
    # Up to 1e11 they are seconds, above milliseconds. Below 1e8 they are more likely dates such as 20190901.
    millis = pl.when(number.abs() < 1e8).then(None).when(number.abs() < 1e11).then(number * 1000).otherwise(number)
    from_number = millis.cast(pl.Int64, strict=False).cast(UTC)
    if dtype != pl.String:
        return from_number
    # Make spaces between date and time a T, add missing seconds, and read times without an offset as UTC.
    iso = value.str.replace(r"^(\d{4}-\d\d-\d\d)[ T]+", "${1}T").str.replace(r"(T\d\d:\d\d)($|Z|[+-])", "${1}:00${2}")
    iso = pl.when(iso.str.contains(r"T.*(Z|[+-]\d\d:?\d\d)$")).then(iso).otherwise(iso + "Z")
    return pl.coalesce(iso.str.to_datetime("%+", time_unit="ms", time_zone="UTC", strict=False), from_number)


# What a cell should be, for messages.
_KINDS = {
    "number": "a number",
    "integer": "a whole number",
    "time": "a time such as 2019-09-01T07:30:00Z",
    "text": "text",
}


def _problem(column: Column) -> pl.Expr:
    """Why a row cannot be used because of this column, or null."""
    value, empty = pl.col(column.name), pl.col(_EMPTY + column.name)
    if column.kind == "time":
        value = pl.when(value.is_between(*_PLAUSIBLE_TIMES)).then(value)
    wanted = _KINDS[column.kind]
    problems = []
    if column.required and column.default is None:
        problems.append((empty, "is empty"))
    problems.append((~empty & value.is_null(), f"is not {wanted}"))
    if column.kind == "text":
        problems.append((value.str.len_bytes() > MAX_TEXT_BYTES, f"is longer than {MAX_TEXT_BYTES} bytes"))
    if column.kind == "number":
        problems.append((~value.is_finite(), "is not a number"))
    if column.minimum is not None:
        problems.append((value < column.minimum, f"is below {column.minimum:g}"))
    if column.maximum is not None:
        problems.append((value > column.maximum, f"is above {column.maximum:g}"))
    return pl.coalesce(pl.when(is_wrong).then(_rejection(column.name, pl.lit(reason))) for is_wrong, reason in problems)
