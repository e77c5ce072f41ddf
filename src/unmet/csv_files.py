"""Read CSV and Parquet files as cells with line numbers. Each line of a CSV is a row, so any part can be read alone.

Operators' exports, with their encodings, title lines and multi-line cells, are read by `unmet.records.formats`.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import polars as pl
from polars.exceptions import PolarsError

from unmet.errors import InputError
from unmet.files import COPIES, REMEDY, Unpacked, check_regular
from unmet.memory import require_bytes
from unmet.parquet_files import read_parquet

__all__ = [
    "LINE",
    "REJECTED",
    "CsvRows",
    "csv_header",
    "csv_lines",
    "csv_rows",
    "no_rejected",
    "open_file",
    "read_frame",
    "with_lines",
]

LINE = "__line__"  # column with the line of the file that a row came from
REJECTED = {"line": pl.UInt32, "column": pl.String, "value": pl.String, "reason": pl.String}
"""Columns of a table of rejected rows."""
MAX_LINE_BYTES = 1 << 20  # a file without line breaks must not fill the memory
_SEPARATORS = ",;\t"


class CsvRows(NamedTuple):
    """Rows of a CSV: their cells as text, their line numbers, and the rows that do not fit the header."""

    cells: pl.DataFrame
    line: pl.Series  # UInt64: a file of GPS points can have more than 2^32 lines
    malformed: pl.DataFrame  # rows with a wrong number of fields: as REJECTED, with `line` as UInt64


def no_rejected() -> pl.DataFrame:
    """An empty table of rejected rows."""
    return pl.DataFrame(schema=REJECTED)


def with_lines(frame: pl.DataFrame, first: int) -> pl.DataFrame:
    """The frame with a column of line numbers that count from `first`."""
    return frame.drop(LINE, strict=False).with_row_index(LINE, offset=first)


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO | None]:
    """Open a CSV file, gzipped or not, as bytes; yields None for a Parquet file, which is read by its path.

    Raises:
        InputError: the file is missing, empty or truncated.
    """
    check_regular(path)
    try:
        with path.open("rb") as file:
            head = file.read(4)
            file.seek(0)
            if not head:
                raise InputError(f"{path} is empty: give a CSV or Parquet file with a header.")
            if head == b"PAR1":
                yield None
            elif head[:2] == b"\x1f\x8b":
                with io.BufferedReader(Unpacked(file, path), 1 << 20) as unpacked:
                    yield unpacked
            else:
                yield file
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"Cannot read {path}: {error}. Check that the file is whole.") from None


def read_frame(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read a CSV file (gzipped or not) or a Parquet file.

    Returns:
        The rows with their line numbers, and the rows with a wrong number of fields. Cells of a CSV stay text.
    """
    try:
        with open_file(path) as file:
            if file is None:
                return with_lines(read_parquet(path), 1), no_rejected()
            require_bytes(COPIES * path.stat().st_size, str(path), REMEDY)
            data = file.read()
            text = data.decode("utf-8-sig")
    except (PolarsError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0][:200]
        raise InputError(f"{path} is neither a CSV in UTF-8 nor a Parquet file ({reason}).") from None
    if "\x00" in text[:100_000]:
        raise InputError(f"{path} is a binary file: give a CSV or Parquet file.")
    if not text.strip():
        raise InputError(f"{path} is empty: give a CSV or Parquet file with a header.")
    header, *lines = csv_lines(io.BytesIO(data))
    separator, names = csv_header(header)
    if not names:
        raise InputError(f"{path} begins with an empty line: the first line must name the columns.")
    # Reversed, so that the first of several columns with the same name wins.
    positions = {name: position for position, name in reversed(list(enumerate(names)))}
    rows = csv_rows(lines, 2, separator, len(names), positions)
    frame = rows.cells.drop(LINE, strict=False).insert_column(0, rows.line.cast(pl.UInt32).alias(LINE))
    return frame, rows.malformed.cast(pl.Schema(REJECTED))


def csv_header(line: bytes) -> tuple[str, list[str]]:
    """The separator and the column names of a CSV, from its first line.

    Raises:
        UnicodeDecodeError: the line is not UTF-8.
    """
    text = line.decode("utf-8-sig")
    separator = max(_SEPARATORS, key=text.count)
    return separator, next(csv.reader([text], delimiter=separator), [])


def csv_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, ending in LF, CR LF or (if the first one does) CR; overlong lines come in pieces of 1 MB."""
    first = file.readline(MAX_LINE_BYTES)
    if b"\r" not in first.rstrip(b"\r\n"):
        yield first
        yield from iter(lambda: file.readline(MAX_LINE_BYTES), b"")
        return
    rest = first
    while True:
        *lines, rest = rest.split(b"\r")
        yield from (line + b"\n" for line in lines)
        if len(rest) > MAX_LINE_BYTES:
            yield rest
            rest = b""
        if not (more := file.read(MAX_LINE_BYTES)):
            break
        rest += more
    if rest:
        yield rest


def csv_rows(lines: list[bytes], first: int, separator: str, width: int, wanted: Mapping[str, int]) -> CsvRows:
    """Split lines of a CSV into cells. Each line is parsed on its own, so the size of a batch does not matter.

    Args:
        lines: lines of the file, without its header.
        first: line number of the first of these lines.
        separator: character between cells.
        width: number of cells in the header.
        wanted: columns to read, as {name: position}.
    """
    text = b"".join(lines)
    separators = separator.encode()
    # Polars is much faster, but only splits cells as the csv module does if there are no quotes and no odd line ends.
    is_plain = width > 1 and b'"' not in text and text.count(b"\r") == text.count(b"\r\n") and _is_utf8(text)
    # Where lines end in CR, a single LF within one of them is part of a cell.
    is_plain = is_plain and text.count(b"\n") == sum(line.endswith(b"\n") for line in lines)
    if lines and is_plain and all(line.count(separators) == width - 1 for line in lines):
        frame = pl.read_csv(
            text,
            has_header=False,
            separator=separator,
            quote_char=None,
            infer_schema=False,
            columns=sorted(wanted.values()),
        )
        frame.columns = sorted(wanted, key=wanted.__getitem__)
        line = pl.arange(first, first + len(lines), dtype=pl.UInt64, eager=True)
        # `select` is not used, because a column named "*" would mean all columns.
        return CsvRows(pl.DataFrame([frame[name] for name in wanted]), line, pl.DataFrame(schema=_REJECTED_64_BIT))
    rows = _fields(lines, separator)
    fits = [i for i, row in enumerate(rows) if len(row) == width]
    cells = {name: pl.Series([rows[i][j] or None for i in fits], dtype=pl.String) for name, j in wanted.items()}
    malformed = []
    for i, row in enumerate(rows):
        if len(row) != width and lines[i].strip():
            reason = f"has {len(row)} fields where the header has {width}" if row else "is not CSV in UTF-8"
            malformed.append((first + i, "", lines[i].decode(errors="replace").strip()[:200], reason))
    line = pl.Series([first + i for i in fits], dtype=pl.UInt64)
    return CsvRows(pl.DataFrame(cells), line, pl.DataFrame(malformed, schema=_REJECTED_64_BIT, orient="row"))


_REJECTED_64_BIT = REJECTED | {"line": pl.UInt64}


def _fields(lines: list[bytes], separator: str) -> list[list[str]]:
    """The fields of each line; an empty list for a line that is not a CSV row on its own."""
    try:
        rows = list(csv.reader((line.decode() for line in lines), delimiter=separator))
        if len(rows) == len(lines):  # no quoted cell continued past the end of a line
            return rows
        if len(lines) == 1:
            return [[]]
    except (UnicodeDecodeError, csv.Error):
        if len(lines) == 1:
            return [[]]
    return [_fields([line], separator)[0] for line in lines]


def _is_utf8(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False
