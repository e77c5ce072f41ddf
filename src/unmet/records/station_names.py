"""Names of stations in the rows of a session file, for files that come without a table of stations."""

from __future__ import annotations

import polars as pl

from unmet.csv_files import LINE
from unmet.records.station_columns import known_columns
from unmet.records.stations import STATIONS

__all__ = ["with_names"]

MAX_OTHER_SHARE = 0.25  # share of a station's rows that may have another name: some are renamed, or misspelt


def with_names(places: pl.DataFrame | None, raw: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame | None:
    """Stations with names from their session rows, if each station has one; otherwise `places`, unchanged.

    Args:
        places: `station_id` and other columns, or None.
        raw: cells of a file, with LINE.
        kept: its sessions, with LINE and `station_id`.
    """
    column = known_columns(raw.drop(LINE), STATIONS).get("name")
    if column is None or (places is not None and "name" in places.columns):
        return places
    cells = raw.select(pl.col(LINE).cast(pl.UInt32), name=pl.col(column).cast(pl.String).str.strip_chars())
    rows = kept.select(pl.col(LINE).cast(pl.UInt32), "station_id").join(cells, on=LINE, how="left")
    counts = rows.filter(pl.col("name") != "").group_by("station_id", "name").len()
    first = counts.sort("len", "name", descending=[True, False]).group_by("station_id", maintain_order=True)
    names = first.agg(pl.first("name"), share=pl.first("len") / pl.sum("len")).sort("station_id")
    # If stations have several names, the column names something smaller than a station, such as posts or plugs.
    if names.is_empty() or names["share"].min() < 1 - MAX_OTHER_SHARE:  # type: ignore[operator]
        return places
    found = names.filter(pl.col("name") != pl.col("station_id")).drop("share")
    return found if places is None else places.join(found, on="station_id", how="full", coalesce=True)
