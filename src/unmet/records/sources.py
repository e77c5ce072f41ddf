"""Sources of records: files, folders, patterns, sheets of workbooks, and frames."""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from unmet.errors import InputError
from unmet.files import check_regular
from unmet.parquet_files import parquet_rows
from unmet.records.formats.excel import is_workbook, sheet_names
from unmet.tables import as_frame

__all__ = ["RecordSource", "expand_paths", "find_sources", "in_parts", "is_parquet"]

_ENDINGS = (".csv", ".txt", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


@dataclass(frozen=True, slots=True)
class RecordSource:
    """One table of records."""

    name: str  # path, with the sheet if there are several; or a frame's number
    table: Path | pl.DataFrame
    sheet: str | None = None
    is_one_of_several: bool = False  # whether the workbook has other sheets
    part: tuple[int, int] | None = None  # of a large Parquet file: the first row, and the number of rows


def find_sources(given: Iterable[Any] | Any) -> list[RecordSource]:
    """The tables in files, folders, patterns such as `2024-*.csv`, and frames, in their order."""
    # Data frames are iterable too, but have columns.
    several = isinstance(given, list | tuple) or (isinstance(given, Iterable) and not hasattr(given, "columns"))
    members = list(given) if several and not isinstance(given, str | Path) else [given]
    if not members:
        raise InputError("There are no files to read: give at least one.")
    sources: list[RecordSource] = []
    for number, member in enumerate(members, start=1):
        if isinstance(member, str | Path):
            for path in expand_paths(Path(member)):
                sources += _tables(path)
        else:
            sources.append(RecordSource(f"table {number}", as_frame(member)))
    return sources


def in_parts(sources: list[RecordSource], max_rows: int) -> list[RecordSource]:
    """The same sources, with Parquet files of more than `max_rows` rows split into parts."""
    parts: list[RecordSource] = []
    for source in sources:
        rows = 0
        if isinstance(source.table, Path) and is_parquet(source.table):
            with contextlib.suppress(PolarsError):  # a damaged file is reported when it is read
                rows = parquet_rows(source.table)
        if rows <= max_rows:
            parts.append(source)
        else:
            parts += [replace(source, part=(first, max_rows)) for first in range(0, rows, max_rows)]
    return parts


def is_parquet(path: Path) -> bool:
    """Whether a file is a Parquet file."""
    check_regular(path)
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def expand_paths(path: Path) -> list[Path]:
    """The file itself; the tables in a folder and its subfolders; or the files that match a pattern, by name."""
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.is_file() and _is_table(file))
        if not found:
            raise InputError(f"The folder {path} holds no table: give one with CSV, Excel, Parquet or JSON files.")
        return found
    if not path.exists() and glob.has_magic(str(path)):
        found = sorted(Path(file) for file in glob.iglob(str(path), recursive=True) if Path(file).is_file())  # noqa: PTH207
        if not found:
            raise InputError(f"No file matches {path}: check the pattern.")
        return found
    return [path]


def _is_table(file: Path) -> bool:
    name = file.name.lower().removesuffix(".gz")
    return name.endswith(_ENDINGS) and not name.startswith((".", "~$"))


def _tables(path: Path) -> list[RecordSource]:
    if not is_workbook(path):
        return [RecordSource(str(path), path)]
    sheets = sheet_names(path)
    if not sheets:
        raise InputError(f"{path} is empty: give a workbook with a header and rows.")
    if len(sheets) == 1:
        return [RecordSource(str(path), path, sheets[0])]
    return [RecordSource(f"{path} [{sheet}]", path, sheet, is_one_of_several=True) for sheet in sheets]
