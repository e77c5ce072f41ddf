"""Tables of a run in further formats: CSV and Excel for people, GeoJSON for maps, next to Parquet for commands."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from unmet.errors import InputError
from unmet.views.harmless import spreadsheet_safe

__all__ = ["FORMATS", "parse_formats", "workbook", "write_geojson", "write_table_files"]

FORMATS = ("csv", "parquet", "xlsx")
EXCEL_ROWS = 1_048_575  # most rows of a sheet, without the heading
CREATED = dt.datetime(2000, 1, 1)  # creation time of every workbook, so that the same run gives the same bytes
FOR_COMMANDS = frozenset({"lost_draws"})  # tables that only other commands read
MAX_DEFAULT_CSV_ROWS = 100_000  # larger tables are written as CSV only on request


def parse_formats(text: str | None) -> frozenset[str] | None:
    """The formats named in a text such as "csv,xlsx"; None, for the default, if there is no text."""
    if text is None:
        return None
    formats = frozenset(part.strip().lower() for part in text.split(",") if part.strip())
    if not formats or not formats <= set(FORMATS):
        raise InputError(f"--tables {text!r} makes no sense: give some of {', '.join(FORMATS)}, such as csv,xlsx.")
    return formats


def write_table_files(folder: Path, formats: frozenset[str] | None) -> list[str]:
    """Write each Parquet table of a folder in other formats as well, unless the file exists.

    Args:
        folder: folder of a run that is being written.
        formats: formats to write; if None, small tables as CSV. The Parquet files stay, since other commands read them.

    Returns:
        Notes on tables that are too large for a format.
    """
    notes = []
    for path in sorted(folder.glob("*.parquet")):
        if path.stem in FOR_COMMANDS:
            continue
        table = pl.read_parquet(path)
        flat = table.select(pl.exclude(pl.List, pl.Struct, pl.Array, pl.Object))
        wants_csv = flat.height <= MAX_DEFAULT_CSV_ROWS if formats is None else "csv" in formats
        if wants_csv and not path.with_suffix(".csv").exists():
            spreadsheet_safe(flat).write_csv(path.with_suffix(".csv"))
        if formats and "xlsx" in formats and not path.with_suffix(".xlsx").exists():
            if flat.height > EXCEL_ROWS:
                notes.append(f"{path.stem} has {flat.height:,} rows, more than Excel holds: it is not written as xlsx.")
            else:
                _write_excel(flat, path.with_suffix(".xlsx"), path.stem)
        if {"lat", "lon"} <= set(flat.columns) and not path.with_suffix(".geojson").exists():
            write_geojson(flat, path.with_suffix(".geojson"))
    return notes


def write_geojson(table: pl.DataFrame, path: Path) -> None:
    """Write the rows that have a position (`lat, lon` [degree]) as points, with all other columns as properties."""
    times = [name for name, kind in table.schema.items() if kind.is_temporal()]
    plain = table.with_columns(pl.col(times).cast(pl.String)).with_columns(
        pl.col(pl.Float64, pl.Float32).fill_nan(None)
    )
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [row.pop("lon"), row.pop("lat")]},
            "properties": row,
        }
        for row in plain.drop_nulls(["lat", "lon"]).iter_rows(named=True)
    ]
    document = {"type": "FeatureCollection", "features": features}
    path.write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), encoding="utf-8")


@contextmanager
def workbook(path: Path) -> Iterator[Any]:
    """A workbook to write, in which text that starts with = stays text, and the time of creation is fixed."""
    from xlsxwriter import Workbook

    with Workbook(str(path), {"strings_to_formulas": False, "strings_to_urls": False}) as book:
        book.set_properties({"created": CREATED})
        yield book


def _write_excel(table: pl.DataFrame, path: Path, sheet: str) -> None:
    """Write a table for Excel, which has no time zones."""
    zoned = [name for name, kind in table.schema.items() if isinstance(kind, pl.Datetime) and kind.time_zone]
    plain = table.with_columns(pl.col(zoned).dt.convert_time_zone("UTC").dt.replace_time_zone(None))
    floats = [name for name, kind in plain.schema.items() if kind.is_float()]
    plain = plain.with_columns(pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in floats)
    with workbook(path) as book:
        plain.write_excel(book, worksheet=sheet[:31], freeze_panes=(1, 1), autofit=plain.height <= 5000)
