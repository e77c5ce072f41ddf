"""Tables of plugs out of order."""

from __future__ import annotations

from typing import Any

import polars as pl

from unmet.records.formats.base import OUTAGES
from unmet.tables import Checked, Column, RowRule, Table, check_table

__all__ = ["OUTAGE_TABLE", "check_outages", "merge_outages"]

OUTAGE_TABLE = Table(
    "outages",
    (
        Column("station_id", "text", "", "the station"),
        Column("plug_id", "text", "", "plug of the station", required=False),
        Column("start", "time", "UTC", "start of the outage of one plug"),
        Column("end", "time", "UTC", "end of the outage"),
    ),
)


def check_outages(source: Any, stations: pl.Series) -> Checked:
    """Check a table of outages: each is at one of the stations and ends after its start."""
    rules = (
        RowRule("end", pl.col("end") > pl.col("start"), "is not after the start"),
        RowRule("station_id", pl.col("station_id").is_in(stations.implode()), "is not one of the stations"),
    )
    checked = check_table(source, OUTAGE_TABLE, rules)
    kept = checked.kept
    if "plug_id" not in kept.columns:
        kept = kept.with_columns(pl.lit(None, pl.String).alias("plug_id"))
    return Checked(kept.select("station_id", "plug_id", "start", "end"), checked.rejected, checked.filled)


def merge_outages(outages: pl.DataFrame) -> pl.DataFrame:
    """Merge outages (columns of OUTAGES) of one plug that overlap or touch; sorted by plug and time.

    Rows of several files may be given together. Rows without a plug are not merged, since they may be of different
    plugs; periods without length are dropped.
    """
    plug = ["station_id", "plug_id"]
    if outages.is_empty():
        return pl.DataFrame(schema=OUTAGES)
    periods = outages.select(*OUTAGES).cast(pl.Schema(OUTAGES)).filter(pl.col("start") < pl.col("end"))
    known = periods.filter(pl.col("plug_id").is_not_null()).sort(*plug, "start")
    covered = pl.col("end").cum_max().shift().over(plug)  # until when an earlier outage lasts
    merged = (
        known.with_columns((pl.col("start") > covered).fill_null(value=True).cum_sum().alias("period"))
        .group_by(*plug, "period")
        .agg(pl.col("start").min(), pl.col("end").max())
        .select(*OUTAGES)
    )
    return pl.concat([merged, periods.filter(pl.col("plug_id").is_null())]).sort(*plug, "start", "end")
