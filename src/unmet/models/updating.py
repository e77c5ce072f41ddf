"""Updating: append the records of the last days to a panel in seconds, without estimating all of it again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from unmet.csv_files import read_frame
from unmet.demand.calendar import whole_days
from unmet.demand.panel import Panel
from unmet.demand.stored import holds_panel, load_panel, read_panel
from unmet.errors import InputError
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.panel_table import panel_table
from unmet.records.sessions import read_sessions
from unmet.tables import as_frame

__all__ = ["updated_table"]

WINDOW = dt.timedelta(weeks=13)
"""Length of the earlier records from which the loss of the new hours is estimated: a season, not all years."""


def updated_table(panel: Path, new: Sequence[Any]) -> pl.DataFrame:
    """The table of a panel, with its last days completed and continued by new records.

    For a panel folder, `new` are session records. They may overlap with the panel's records: sessions with the same
    station and start are replaced by the new ones. For a table of your own, `new` are further rows, which replace the
    rows of the table from their first hour on.

    Args:
        panel: a folder that `unmet panel` or `unmet recover` wrote, or a CSV or Parquet table.
        new: files (or frames) of the last days.
    """
    stored = read_panel(panel)
    folder = stored.source.parent
    if not (panel.is_dir() and holds_panel(folder)):
        return _appended(stored.table, new)
    full = load_panel(folder)
    records = read_sessions(list(new), stations=full.stations.select("station_id", "lat", "lon", "power_kw", "plugs"),
                           time_zone=full.time_zone)  # fmt: skip
    if records.sessions.is_empty():
        raise InputError("None of the new records belongs to a station of the panel: give sessions of its stations.")
    cut, _ = whole_days(records.sessions["start"])  # hours from here on are taken from the new estimate
    if cut > full.period[1]:
        raise InputError(
            f"The panel ends on {full.period[1]:%Y-%m-%d}, and the new records begin on {cut:%Y-%m-%d}: give the "
            "records in between as well."
        )
    columns = [name for name in full.sessions.columns if name in records.sessions.columns]
    before = full.sessions.filter(pl.col("start") >= cut - WINDOW)
    sessions = pl.concat([before.select(columns), records.sessions.select(columns)], how="vertical_relaxed")
    sessions = sessions.unique(["station_id", "start"], keep="last", maintain_order=True).sort("start", "station_id")
    recent = Panel(
        sessions, full.stations.select("station_id", "lat", "lon", "power_kw", "plugs", "name"), regions=full.regions,
        time_zone=full.time_zone, country=full.country, market=full.market,
    )  # fmt: skip
    table = recent.table
    if "lost_draws" in stored.table.columns:
        table = panel_table(LostDemand().fit(recent))
    return _joined(stored.table, table, cut)


def _appended(table: pl.DataFrame, new: Sequence[Any]) -> pl.DataFrame:
    """Append rows to a table that is not a panel folder."""
    parts = [read_frame(Path(part))[0] if isinstance(part, str | Path) else as_frame(part) for part in new]
    rows = pl.concat(parts, how="diagonal_relaxed")
    missing = [name for name in ("unique_id", "ds", "y") if name not in rows.columns]
    if missing:
        raise InputError(
            f"The new rows have no column {', '.join(missing)}: a table of your own is continued by rows of unique_id, "
            "ds and y. To continue it by session records, make the panel with `unmet panel`."
        )
    kind = table.schema["ds"]
    if rows.schema["ds"] != kind:
        rows = rows.with_columns(pl.col("ds").str.to_datetime() if rows.schema["ds"] == pl.String else pl.col("ds"))
        rows = rows.with_columns(pl.col("ds").cast(kind))
    return _joined(table, rows, rows["ds"].min())


def _joined(table: pl.DataFrame, new: pl.DataFrame, cut: Any) -> pl.DataFrame:
    """Rows of the table before `cut`, and the new ones from it on."""
    columns = [name for name in table.columns if name in new.columns]
    later = new.select(columns).filter(pl.col("ds") >= cut)
    return pl.concat([table.select(columns).filter(pl.col("ds") < cut), later], how="vertical_relaxed")
