"""The parts of a file format: how a file is recognised, and how it is read into raw cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import polars as pl

from unmet.csv_files import no_rejected
from unmet.records.mapping import Mapping

__all__ = ["OUTAGES", "Format", "Head", "Raw"]

OUTAGES: dict[str, pl.DataType] = {
    "station_id": pl.String(),
    "plug_id": pl.String(),
    "start": pl.Datetime("ms", "UTC"),
    "end": pl.Datetime("ms", "UTC"),
}
"""Columns of a table of outages: each row is one plug out of order from `start` until `end`."""


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a file, from which its format is recognised."""

    path: Path
    kind: Literal["csv", "parquet", "json", "excel"]
    columns: tuple[str, ...]  # headings of a table, stripped; empty for JSON
    text: str  # the beginning of a CSV or JSON file; empty for others
    encoding: str = "utf-8"
    separator: str = ","
    sheet: str | None = None  # name of the sheet of a workbook
    part: tuple[int, int] | None = None  # of a large Parquet file: the first row to read, and the number of rows


@dataclass(frozen=True, slots=True)
class Raw:
    """The raw contents of one file, before any check."""

    mapping: Mapping  # what the columns of `sessions` mean
    sessions: pl.DataFrame | None = None  # LINE and the file's own columns, as text or with the types in the file
    stations: pl.DataFrame | None = None  # station_id and, where known, lat, lon, power_kw, plugs, operator, name
    outages: pl.DataFrame | None = None  # columns of OUTAGES
    rejected: pl.DataFrame = field(default_factory=no_rejected)  # rows that could not be read
    notes: tuple[str, ...] = ()  # sentences about assumptions
    are_arrivals: bool = False  # whether each session is certainly an arrival, and not a restart


@dataclass(frozen=True, slots=True)
class Format:
    """A file format."""

    name: str  # as the user gives it
    title: str  # one line for lists of formats
    matches: Callable[[Head], bool]  # whether a file has this format
    read: Callable[[Head], Raw]
