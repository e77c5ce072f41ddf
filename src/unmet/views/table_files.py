"""Tables of a run in further formats: CSV and Excel for people, GeoJSON for maps, beside Parquet for verbs."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from unmet.errors import InputError

__all__ = ["FORMATS", "parse_formats", "write_geojson", "write_table_files"]

FORMATS = ("csv", "parquet", "xlsx")
EXCEL_ROWS = 1_048_575  # below the row of heads
FOR_VERBS = frozenset({"lost_draws"})  # tables that only other verbs read
SMALL = 100_000  # rows up to which a table is written as CSV without being asked for


def parse_formats(text: str | None) -> frozenset[str] | None:
    """The formats asked for, as "csv,xlsx"; None if it is left to the verb."""
    if text is None:
        return None
    asked = frozenset(part.strip().lower() for part in text.split(",") if part.strip())
    if not asked or not asked <= set(FORMATS):
        raise InputError(f"--tables {text!r} makes no sense: give some of {', '.join(FORMATS)}, as csv,xlsx.")
    return asked


def write_table_files(folder: Path, asked: frozenset[str] | None) -> list[str]:
    """Write each Parquet table of a folder in the other formats too, where it is not there yet.

    Args:
        folder: of a run that is being written.
        asked: formats; if None, CSV of tables that are not large. Parquet stays, since other verbs read it.

    Returns:
        Notes on tables that a format cannot hold.
    """
    notes = []
    for path in sorted(folder.glob("*.parquet")):
        if path.stem in FOR_VERBS:
            continue
        table = pl.read_parquet(path)
        flat = table.select(pl.exclude(pl.List, pl.Struct, pl.Array, pl.Object))
        wants_csv = flat.height <= SMALL if asked is None else "csv" in asked
        if wants_csv and not path.with_suffix(".csv").exists():
            flat.write_csv(path.with_suffix(".csv"))
        if asked and "xlsx" in asked and not path.with_suffix(".xlsx").exists():
            if flat.height > EXCEL_ROWS:
                notes.append(f"{path.stem} has {flat.height:,} rows, more than Excel holds: it is not written as xlsx.")
            else:
                _write_excel(flat, path.with_suffix(".xlsx"), path.stem)
        if {"lat", "lon"} <= set(flat.columns) and not path.with_suffix(".geojson").exists():
            write_geojson(flat, path.with_suffix(".geojson"))
    return notes


def write_geojson(table: pl.DataFrame, path: Path) -> None:
    """Write the rows that have a position (`lat, lon`, degrees) as points with all other columns."""
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


def _write_excel(table: pl.DataFrame, path: Path, sheet: str) -> None:
    """Write a table for Excel, which knows no time zones, and where text that begins with = must stay text."""
    from xlsxwriter import Workbook

    zoned = [name for name, kind in table.schema.items() if isinstance(kind, pl.Datetime) and kind.time_zone]
    plain = table.with_columns(pl.col(zoned).dt.convert_time_zone("UTC").dt.replace_time_zone(None))
    floats = [name for name, kind in plain.schema.items() if kind.is_float()]
    plain = plain.with_columns(pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in floats)
    options = {"strings_to_formulas": False, "strings_to_urls": False}
    with Workbook(str(path), options) as book:
        plain.write_excel(book, worksheet=sheet[:31], freeze_panes=(1, 1), autofit=plain.height <= 5000)
