"""Numbers that leave: a run holds no NaN and no infinity; what is unknown is null."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

__all__ = ["NotFiniteError", "check_finite"]


class NotFiniteError(RuntimeError):
    """A result holds what is no number: a defect of the program, whatever the input was."""


def check_finite(folder: Path) -> None:
    """Look at every number of the tables (Parquet) and documents (JSON) below a folder.

    Raises:
        NotFiniteError: one is NaN or infinite; names the file, and the column.
    """
    for path in sorted(folder.rglob("*.parquet")):
        for name in _columns_not_finite(path):
            raise NotFiniteError(f"{path.relative_to(folder)} has numbers in {name} that are not finite")
    for path in sorted(folder.rglob("*.json")):
        try:
            json.loads(path.read_bytes(), parse_constant=_refuse)
        except NotFiniteError as error:
            raise NotFiniteError(f"{path.relative_to(folder)} has a number that is {error}") from None


def _columns_not_finite(path: Path) -> list[str]:
    table = pl.scan_parquet(path)
    looks = [
        look.is_finite().all(ignore_nulls=True).alias(name)
        for name, dtype in table.collect_schema().items()
        if (look := _floats(name, dtype)) is not None
    ]
    if not looks:
        return []
    found = table.select(looks).collect().row(0, named=True)
    return [name for name, fine in found.items() if not fine]


def _floats(name: str, dtype: Any) -> pl.Expr | None:
    """The numbers of a column, if it has any that can be not finite."""
    if dtype.is_float():
        return pl.col(name)
    inner = getattr(dtype, "inner", None)
    if inner is not None and inner.is_float():
        return pl.col(name).explode()
    return None


def _refuse(text: str) -> Any:
    raise NotFiniteError(text)
