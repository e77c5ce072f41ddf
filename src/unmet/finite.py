"""Write NaN and infinity as null, in tables and in JSON, so that a run contains neither."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl

__all__ = ["null_not_finite", "plain_json"]


def null_not_finite(folder: Path) -> None:
    """Replace NaN and infinity by null in all Parquet files of a folder and its subfolders."""
    for path in sorted(folder.rglob("*.parquet")):
        floats = [name for name, dtype in pl.read_parquet_schema(path).items() if dtype.is_float()]
        finite = [pl.col(name).is_finite().all(ignore_nulls=True).alias(name) for name in floats]
        if floats and not all(pl.scan_parquet(path).select(finite).collect().row(0)):
            table = pl.read_parquet(path)
            table.with_columns(
                pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in floats
            ).write_parquet(path)


def plain_json(value: Any) -> Any:
    """A value with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {name: plain_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
