"""Operators' files, plain or gzipped, with any common separator and encoding: their kind and their rows."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
import zlib
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from unmet.csv_files import LINE, REJECTED, no_rejected
from unmet.errors import InputError
from unmet.files import Unpacked, check_regular
from unmet.parquet_files import parquet_schema, read_parquet
from unmet.records.formats.base import Head
from unmet.records.formats.excel import is_workbook, read_sheet, sheet_columns, sheet_names
from unmet.tables import MAX_TEXT_BYTES

__all__ = ["read_head", "read_table", "read_text"]

_HEAD_BYTES = 1 << 16  # unpacked
_HEADER_ROWS = 50  # rows in which to look for a header
_SEPARATORS = ",;\t|"
_PACKED = {
    b"PK": "a zip file, or a workbook of another name: unpack it, or name it .xlsx",
    b"BZ": "packed with bzip2: unpack it",
    b"(\xb5": "packed: unpack it",
}


def read_head(path: Path, sheet: str | None = None) -> Head:
    """Read the beginning of a file, or of one sheet of a workbook: its kind, encoding, separator and columns."""
    if is_workbook(path):
        sheets = [sheet] if sheet is not None else sheet_names(path)
        if not sheets:
            raise InputError(f"{path} is empty: give a workbook with a header and rows.")
        return Head(path, "excel", _checked_names(path, sheet_columns(path, sheets[0])), "", sheet=sheets[0])
    start = _read_bytes(path, _HEAD_BYTES)
    if not start.strip():
        raise InputError(f"{path} is empty: give a file with a header and rows, or leave it out.")
    if start[:4] == b"PAR1":
        return Head(path, "parquet", _checked_names(path, _parquet_columns(path)), "")
    encoding = _encoding(start, path)
    text = _decode(start, encoding, whole=False).lstrip("\ufeff")
    if "\x00" in text[:4096]:
        raise InputError(f"{path} is a binary file: give a CSV, Parquet or JSON file.")
    if not text.strip():
        raise InputError(f"{path} is empty: give a file with a header and rows, or leave it out.")
    if text.lstrip()[:1] in {"{", "["}:
        return Head(path, "json", (), text, encoding)
    try:
        separator, columns = _header(text)
    except csv.Error as error:
        raise _unreadable(path, error) from None
    return Head(path, "csv", _checked_names(path, columns), text, encoding, separator)


def _checked_names(path: Path, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The names of columns; a huge one is refused, because names are compared with each other."""
    longest = max(map(len, columns), default=0)
    if longest > MAX_TEXT_BYTES:
        raise InputError(f"{path} has a column name of {longest:,} characters: check that its first line is a header.")
    return columns


def read_text(head: Head) -> str:
    """The whole text of a file."""
    data = _read_bytes(head.path)
    try:
        return _decode(data, head.encoding, whole=True).lstrip("\ufeff")
    except UnicodeDecodeError:
        return _decode(data, "cp1252", whole=True)


def read_table(head: Head) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows of a CSV, Excel or Parquet file with their lines, and the rows with a wrong number of fields.

    Cells of a CSV file or a sheet stay text. Names of columns are stripped, columns without a name are left out, and
    blank lines are skipped.
    """
    if head.kind == "excel":
        return read_sheet(head.path, head.sheet or "")
    if head.kind == "parquet":
        try:
            first = 1 if head.part is None else head.part[0] + 1
            frame = read_parquet(head.path, head.part).rename(str.strip)
            return frame.with_row_index(LINE, offset=first), no_rejected()
        except (PolarsError, OSError) as error:
            raise _unreadable(head.path, error) from None
    if head.kind == "json":
        raise InputError(f"{head.path} is a JSON file of no known format: give a CSV or Parquet file.")
    try:
        frame, rejected = _read_csv(head)
    except (csv.Error, PolarsError) as error:
        raise _unreadable(head.path, error) from None
    named = [column for column in frame if not column.name.startswith(_UNNAMED)]  # not by name: one may be "*"
    return pl.DataFrame(named), rejected


_UNNAMED = "__unnamed__"  # prefix of the names given to columns that have none, or that of an earlier column


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
    return InputError(f"Cannot read {path} ({reason}): check that the file is whole, and export it again.")


def _read_bytes(path: Path, max_bytes: int = -1) -> bytes:
    """The first bytes of a file, or all, unpacked; raises `InputError` for archives other than gzip."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start[:2] != b"\x1f\x8b":
                for magic, what in _PACKED.items():
                    # CSV files may begin with the first two bytes too, so the third one must also match.
                    if start.startswith(magic) and start[2:3] in (b"\x03", b"h", b"/"):
                        raise InputError(f"{path} is {what}.")
                return file.read(max_bytes)
            with Unpacked(file, path) as unpacked:
                return unpacked.read(max_bytes)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}: check the path.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None


def _parquet_columns(path: Path) -> tuple[str, ...]:
    try:
        return tuple(name.strip() for name in parquet_schema(path))
    except (PolarsError, OSError) as error:
        raise _unreadable(path, error) from None


def _encoding(start: bytes, path: Path) -> str:
    """The encoding of a text file, from its first bytes: UTF-16, UTF-8, or else Windows-1252."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # In UTF-16, every other byte of Latin text is 0.
    even, odd = start[::2].count(0), start[1::2].count(0)
    if max(even, odd) > 0.3 * len(start) and min(even, odd) < 0.02 * len(start):
        return "utf-16-be" if even > odd else "utf-16-le"
    if even + odd:
        raise InputError(f"{path} is a binary file: give a CSV, Parquet or JSON file.")
    try:
        _decode(start, "utf-8", whole=False)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _decode(data: bytes, encoding: str, *, whole: bool) -> str:
    """Decode bytes. Unless they are the `whole` file, they may end within a character."""
    if encoding == "cp1252":
        data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return codecs.getincrementaldecoder(encoding)("strict").decode(data, final=whole)
    except UnicodeDecodeError:
        if encoding.startswith("utf-8"):
            raise
        # A few bytes are undefined in cp1252 but not in latin-1; half a character at the end of UTF-16 is replaced.
        return data.decode("latin-1" if encoding == "cp1252" else encoding, errors="replace")


def _header(text: str) -> tuple[str, tuple[str, ...]]:
    """The separator of a CSV file, and its headings."""
    bare = re.sub(r'"[^"]*"', "", text).strip()  # without quoted text
    lines = re.split(r"[\r\n]+", bare, maxsplit=_HEADER_ROWS)[:_HEADER_ROWS]
    # Titles may come first: a header has two separators or more, if any line has.
    first = next((line for line in lines if max(map(line.count, _SEPARATORS)) > 1), lines[0])
    separator = max(_SEPARATORS, key=first.count)
    return separator, tuple(name.strip().strip("\ufeff") for name in _first_row(text, separator)[0])


def _first_row(text: str, separator: str) -> tuple[list[str], int, int]:
    """The header, the number of lines before it, and the line on which it ends.

    The header is the first row with three cells or more, or two or one if no row has more: a title may come before.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    found: list[tuple[list[str], int, int]] = []
    before = 0
    for row in itertools.islice(reader, _HEADER_ROWS):
        if any(row):
            found.append((row, before, reader.line_num))
            if _filled(row) >= 3:
                break
        before = reader.line_num
    return max(found, key=lambda row: _filled(row[0]), default=([], before, before))


def _filled(row: list[str]) -> int:
    """Number of cells that are not blank; three are enough for a header, so more count as three."""
    return min(sum(1 for cell in row if cell.strip()), 3)


def _names(columns: tuple[str, ...]) -> list[str]:
    """Unique names of a frame's columns; empty names and repetitions are marked as unnamed."""
    names: list[str] = []
    for number, column in enumerate(columns):
        names.append(column if column and column not in names else f"{_UNNAMED}{number}")
    return names


def _read_csv(head: Head) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read with Polars, which is fast, or row by row if rows are not lines or have a wrong number of fields."""
    is_plain = head.encoding.startswith("utf-8") and "\n" in head.text
    with head.path.open("rb") as file:
        is_plain = is_plain and file.read(2) != b"\x1f\x8b"  # not gzipped
    source: Path | bytes = head.path if is_plain else _as_utf8(head)
    _, before, header_end = _first_row(head.text, head.separator)
    names = _names(head.columns)
    try:
        frame = _polars_csv(source, head.separator, skip_lines=before)
    except PolarsError as error:
        if isinstance(source, Path) and "utf-8" in str(error):  # another encoding that the beginning did not show
            source = _as_utf8(head)
        return _read_row_by_row(source, head.separator, names, header_end)
    if frame.width != len(names):
        return _read_row_by_row(source, head.separator, names, header_end)
    frame.columns = names
    if _count_newlines(source) > frame.height + header_end and _has_broken_cells(frame):
        return _read_row_by_row(source, head.separator, names, header_end)
    frame = frame.with_row_index(LINE, offset=header_end + 1)
    if frame.height and frame[names[-1]].null_count():  # Polars pads short rows with nulls
        return _without_short_rows(frame, source, head.separator, len(names))
    return frame, no_rejected()


def _polars_csv(source: Path | bytes, separator: str, skip_lines: int) -> pl.DataFrame:
    return pl.read_csv(source, separator=separator, infer_schema=False, skip_lines=skip_lines, raise_if_empty=False)


def _as_utf8(head: Head) -> bytes:
    r"""The whole file in UTF-8, with lines that end in \n."""
    data = _read_bytes(head.path)
    if head.encoding.startswith("utf-8") and "\n" in head.text:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return _decode(data, "cp1252", whole=True).encode()
        return data.removeprefix(codecs.BOM_UTF8)
    text = read_text(head)
    if "\n" not in head.text:
        text = text.replace("\r", "\n")
    return text.encode("utf-8", errors="replace")


def _count_newlines(source: Path | bytes) -> int:
    if isinstance(source, bytes):
        return source.count(b"\n")
    with source.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 24), b""))


def _has_broken_cells(frame: pl.DataFrame) -> bool:
    """Whether cells contain line breaks, so that rows are not lines."""
    return any(column.str.contains("\n", literal=True).any() for column in frame)


def _without_short_rows(
    frame: pl.DataFrame, source: Path | bytes, separator: str, width: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Reject rows with fewer fields than the header. Polars pads them, so the fields of their lines are counted."""
    header_end = frame[LINE][0] - 1
    names = frame.columns[1:]
    blank = frame.drop(LINE).select(pl.all_horizontal(pl.all().is_null())).to_series()
    try:
        raw = pl.read_csv(  # each line as one cell
            source, separator="\x01", quote_char=None, has_header=False, infer_schema=False, skip_lines=header_end
        )
    except PolarsError:
        return _read_row_by_row(source, separator, names, header_end)
    if raw.width != 1 or raw.height != frame.height:
        return _read_row_by_row(source, separator, names, header_end)
    lines = raw.to_series()
    suspects = (frame[names[-1]].is_null() & ~blank).arg_true()
    text = lines.gather(suspects)
    bare = text.str.replace_all(r'"[^"]*"', "")
    fields = bare.str.count_matches(separator, literal=True) + 1
    short = fields < width
    rejected = pl.DataFrame(
        {
            "line": frame[LINE].gather(suspects.filter(short)),
            "column": pl.Series([""] * int(short.sum()), dtype=pl.String),
            "value": text.filter(short).str.strip_chars("\r").str.slice(0, 200),
            "reason": fields.filter(short).cast(pl.String).to_frame("n").select(_fields_reason(width))["n"],
        },
        schema=REJECTED,
    )
    if rejected.is_empty() and not blank.any():
        return frame, rejected
    keep = ~blank
    if not rejected.is_empty():
        keep = keep & ~frame[LINE].is_in(rejected["line"].implode())
    return frame.filter(keep), rejected


def _fields_reason(width: int) -> pl.Expr:
    return pl.format("has {} fields where the header has {}", "n", pl.lit(width)).alias("n")


def _read_row_by_row(
    source: Path | bytes, separator: str, names: list[str], header_end: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read a CSV file with Python's reader: slower, but rows may span lines or have a wrong number of fields.

    Args:
        source: path, or contents in UTF-8.
        separator: character between cells.
        names: names of the columns.
        header_end: line on which the header ends.
    """
    data = source if isinstance(source, bytes) else source.read_bytes()
    text = io.StringIO(data.decode("utf-8-sig", errors="replace"), newline="")
    csv.field_size_limit(1 << 30)  # the default, 128 kB, would raise an error
    reader = csv.reader(text, delimiter=separator)
    rows: list[list[str]] = []
    lines: list[int] = []
    rejected: list[tuple[int, str, str, str]] = []
    for row in reader:
        if not any(row) or reader.line_num <= header_end:
            continue
        while len(row) > len(names) and not row[-1]:
            row.pop()  # a surplus separator at the end
        if len(row) == len(names):
            rows.append(row)
            lines.append(reader.line_num)
        else:
            reason = f"has {len(row)} fields where the header has {len(names)}"
            rejected.append((reader.line_num, "", separator.join(row)[:200], reason))
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    frame = frame.select(pl.Series(LINE, lines, pl.UInt32), pl.all())
    return frame, pl.DataFrame(rejected, schema=REJECTED, orient="row")
