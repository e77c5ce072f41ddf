"""Station ids that differ only in spelling: `ST008` and `st008`, `0008` and `8`, `101.0` and `101`."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

__all__ = ["alike_note", "respell_ids"]

_SHOWN = 3  # groups of ids in a note


def _plain(ids: pl.Expr) -> pl.Expr:
    """Ids in lower case, without outer blanks, leading zeros, or the `.0` that spreadsheets add to whole numbers."""
    bare = ids.str.strip_chars().str.to_lowercase().str.replace(r"^(\d+)\.0+$", "${1}")
    return bare.str.replace(r"^0+(.)", "${1}")


def respell_ids(ids: pl.Series, known: Collection[str]) -> tuple[pl.Series, str | None]:
    """Ids in the spelling of the table of stations, and a sentence about those that differed.

    Ids that are in the table, and ids that match several of its rows, are not changed.
    """
    distinct = ids.drop_nulls().unique(maintain_order=True).to_frame("id")
    unknown = distinct.filter(~pl.col("id").is_in(list(known)))
    if unknown.is_empty():
        return ids, None
    table = pl.DataFrame({"table_id": sorted(known)}, schema={"table_id": pl.String})
    table = table.with_columns(_plain(pl.col("table_id")).alias("plain")).filter(pl.len().over("plain") == 1)
    joined = unknown.with_columns(_plain(pl.col("id")).alias("plain")).join(table, on="plain", maintain_order="left")
    if joined.is_empty():
        return ids, None
    spelled = dict(joined.select("id", "table_id").rows())
    rows = int(ids.is_in(list(spelled)).sum())
    example = "{} is listed as {}".format(*joined.select("id", "table_id").row(0))
    note = (
        f"{joined.height:,} stations of {rows:,} sessions are spelled differently in the table of stations "
        f"({example}): they differ only in case, leading zeros or a final .0, and are taken for the same."
    )
    return ids.replace(spelled), note


def alike_note(ids: pl.Series) -> str | None:
    """A sentence about stations whose ids differ only in their spelling."""
    groups = (
        ids.to_frame("id")
        .lazy()
        .drop_nulls()
        .unique()
        .sort("id")
        .group_by(_plain(pl.col("id")).alias("plain"), maintain_order=True)
        .agg("id")
        .filter(pl.col("id").list.len() > 1)
        .collect()
    )
    if groups.is_empty():
        return None
    shown = ", ".join(" and ".join(names) for names in groups["id"].head(_SHOWN))
    more = ", and more" if groups.height > _SHOWN else ""
    return (
        f"The ids of {groups['id'].list.len().sum():,} stations differ only in case, leading zeros or a final .0 "
        f"({shown}{more}), and are kept apart. If they are the same stations, give a table with --stations that lists "
        "each of them once: its spelling is then used for all."
    )
