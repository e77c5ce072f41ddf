"""Excel workbooks: their sheets, and the rows of a sheet as raw cells.

A header may follow a title and empty lines: it is the first row with at least three cells, or two if no row has more.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import fastexcel
import polars as pl

from unmet.csv_files import LINE, REJECTED
from unmet.errors import InputError
from unmet.files import COPIES, REMEDY
from unmet.memory import require_bytes

__all__ = ["is_workbook", "read_sheet", "sheet_columns", "sheet_names"]

_HEADER_ROWS = 50  # rows in which to look for a header


def is_workbook(path: Path) -> bool:
    """Whether a file is an Excel or OpenDocument workbook: by its name, and as a zip archive or an old Excel file."""
    if path.suffix.lower() not in {".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"} or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(4)
    return start[:2] == b"PK" or start == b"\xd0\xcf\x11\xe0"


def sheet_names(path: Path) -> list[str]:
    """The names of a workbook's sheets that are not empty."""
    book = _opened(path)
    return [name for name in book.sheet_names if not _cells(path, book, name, max_rows=_HEADER_ROWS).is_empty()]


def sheet_columns(path: Path, sheet: str) -> tuple[str, ...]:
    """The names in the header of a sheet."""
    top = _cells(path, _opened(path), sheet, max_rows=_HEADER_ROWS)
    return _header(top.row(_header_row(top))) if top.height else ()


def read_sheet(path: Path, sheet: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows of a sheet with their lines, and an empty table of rejected rows.

    Cells are text, with dates such as 2018-01-31 09:05:00. Empty rows and columns without a name are left out.
    """
    cells = _cells(path, _opened(path), sheet)
    header = _header_row(cells.head(_HEADER_ROWS))
    names = _header(cells.row(header))
    body = cells.slice(header + 1).with_row_index(LINE, offset=header + 2)  # lines count from 1
    body = body.filter(~pl.all_horizontal(pl.exclude(LINE).is_null()))
    unique = [name if name and name not in names[:place] else f"__unnamed__{place}" for place, name in enumerate(names)]
    body.columns = [LINE, *unique]
    return body.select(LINE, *(name for name in unique if not name.startswith("__unnamed__"))), pl.DataFrame(
        schema=REJECTED
    )


def _opened(path: Path) -> fastexcel.ExcelReader:
    """Open a workbook; raises `InputError` if it is damaged or would not fit into memory."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                size = sum(part.file_size for part in packed.infolist())
            require_bytes(COPIES * size, f"{path}, unpacked,", REMEDY)
        return fastexcel.read_excel(path)
    except InputError:
        raise
    # `zipfile` raises NotImplementedError for a compression that it does not know.
    except (fastexcel.FastExcelError, OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise InputError(
            f"Cannot read {path} ({str(error).splitlines()[0][:200]}): save it again, or as CSV."
        ) from None


def _cells(path: Path, book: fastexcel.ExcelReader, sheet: str, max_rows: int | None = None) -> pl.DataFrame:
    """The cells of a sheet as text, header included; only the first rows if `max_rows` is given."""
    try:
        return book.load_sheet(sheet, header_row=None, n_rows=max_rows, dtypes="string").to_polars()
    except fastexcel.FastExcelError as error:
        if max_rows is not None:
            return pl.DataFrame()  # a chart, or an empty sheet
        reason = str(error).splitlines()[0][:200]
        raise InputError(f"Cannot read sheet {sheet!r} of {path} ({reason}): save it again, or as CSV.") from None


def _header_row(top: pl.DataFrame) -> int:
    """Index of the header among the first rows."""
    filled = [sum(cell is not None for cell in row) for row in top.rows()]
    return next((number for number, cells in enumerate(filled) if cells >= min(3, max(filled))), 0)


def _header(row: tuple[str | None, ...]) -> tuple[str, ...]:
    return tuple((cell or "").strip() for cell in row)
