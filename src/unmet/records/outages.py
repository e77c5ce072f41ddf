"""Plugs out of order, as a table of one's own."""

from __future__ import annotations

from typing import Any

import polars as pl

from unmet.tables import Checked, Column, RowRule, Table, check

__all__ = ["OUTAGE_TABLE", "check_outages"]

OUTAGE_TABLE = Table(
    "outages",
    (
        Column("station_id", "text", "", "the station"),
        Column("plug_id", "text", "", "which of its plugs", required=False),
        Column("start", "time", "UTC", "from when one plug is out of order"),
        Column("end", "time", "UTC", "until when"),
    ),
)


def check_outages(source: Any) -> Checked:
    """Outages that can be used: with a station, and an end after the start."""
    checked = check(source, OUTAGE_TABLE, (RowRule("end", pl.col("end") > pl.col("start"), "is not after the start"),))
    kept = checked.kept
    if "plug_id" not in kept.columns:
        kept = kept.with_columns(pl.lit(None, pl.String).alias("plug_id"))
    return Checked(kept.select("station_id", "plug_id", "start", "end"), checked.rejected, checked.filled)
