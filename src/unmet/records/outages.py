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


def check_outages(source: Any, stations: pl.Series) -> Checked:
    """Outages that can be used: at one of the stations, and with an end after the start."""
    rules = (
        RowRule("end", pl.col("end") > pl.col("start"), "is not after the start"),
        RowRule("station_id", pl.col("station_id").is_in(stations.implode()), "is none of the stations"),
    )
    checked = check(source, OUTAGE_TABLE, rules)
    kept = checked.kept
    if "plug_id" not in kept.columns:
        kept = kept.with_columns(pl.lit(None, pl.String).alias("plug_id"))
    return Checked(kept.select("station_id", "plug_id", "start", "end"), checked.rejected, checked.filled)
