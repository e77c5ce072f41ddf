"""A demand panel as a page, as a folder of tables and as a table for the terminal."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from unmet import __version__
from unmet.demand.panel import Panel
from unmet.demand.stored import write_regions
from unmet.runs import write_json
from unmet.views.figures import PANEL_FIGURES
from unmet.views.page import PageTable, render_page
from unmet.views.terminal import report, report_grid, say
from unmet.views.theme import percent, short

__all__ = ["panel_page", "panel_summary", "print_panel", "write_panel"]

MOST = 10
HOUR = dt.timedelta(hours=1)


def panel_summary(panel: Panel, records: dict[str, Any]) -> dict[str, Any]:
    """What the panel holds, for machines; `records` says what became of the rows that were read."""
    first, last = panel.period
    table = panel.table
    return records | {
        "sessions": panel.sessions.height,
        "energy_kwh": round(float(panel.sessions["energy_kwh"].sum()), 3),
        "first_hour": f"{first:%Y-%m-%dT%H:%MZ}",
        "last_hour": f"{last - HOUR:%Y-%m-%dT%H:%MZ}",
        "stations": panel.stations.height,
        "plugs": int(panel.stations["plugs"].sum()),
        "plugs_from": dict(panel.stations["plugs_from"].value_counts(sort=True).iter_rows()),
        "plugs_unsure_at_stations": int((~panel.stations["plugs_sure"]).sum()),
        "regions": panel.regions.centres.height,
        "hours": table["ds"].n_unique(),
        "mean_exposure": round(float(table["exposure"].mean() or 0.0), 6),  # type: ignore[arg-type]
        "censored_hours_percent": round(100 * float(table["censored"].mean() or 0.0), 3),  # type: ignore[arg-type]
        "arrivals_lost_at_full_stations": round(float(panel.exposure.lost.sum()), 1),
        "energy_lost_at_full_stations_kwh": round(float(panel.stations["lost_kwh"].sum()), 1),
        "waiting": round(panel.exposure.waiting, 4),
        "spill": round(panel.exposure.spill, 4),
        "most_saturated": _most_saturated(panel).to_dicts(),
        "notes": list(panel.notes),
    }


def _most_saturated(panel: Panel) -> pl.DataFrame:
    worst = panel.stations.sort("full_share", "station_id", descending=[True, False]).head(MOST)
    return worst.select(
        "station_id",
        "plugs",
        "plugs_from",
        "sessions",
        pl.col("full_share").round(4),
        pl.col("lost_arrivals", "lost_kwh").round(1),
    )


def _worst_rows(panel: Panel) -> list[list[str]]:
    return [
        [
            short(str(row["station_id"])),
            str(row["plugs"]),
            row["plugs_from"],
            f"{row['sessions']:,}",
            percent(row["full_share"], 1),
            f"{row['lost_arrivals']:,.0f}",
            f"{row['lost_kwh']:,.0f}",
        ]
        for row in _most_saturated(panel).iter_rows(named=True)
    ]


def _spilled(panel: Panel) -> str:
    """A sentence on drivers who are seen elsewhere, where there are any."""
    if not panel.exposure.spill > 0:
        return ""
    return (
        f" Of the drivers who find no plug and do not wait, {percent(panel.exposure.spill)} are taken to be seen at "
        "another station or another time instead."
    )


def panel_page(panel: Panel, summary: dict[str, Any]) -> str:
    """The panel as a self-contained HTML page."""
    lost, seen = summary["arrivals_lost_at_full_stations"], summary["sessions"]
    first, last = panel.period
    return render_page(
        panel,
        PANEL_FIGURES,
        title="unmet: a demand panel",
        headline=f"About {lost:,.0f} drivers, {percent(lost / (seen + lost), 1)} of all, found no plug and were lost",
        lead=(
            f"From {seen:,} sessions at {summary['stations']:,} stations, {first:%d %B %Y} to {last - HOUR:%d %B %Y}. "
            "Arrivals while a plug was free are all in the records; those while none was free are not, and are "
            f"estimated from the time for which each station was full. {' '.join(panel.notes)}{_spilled(panel)}"
        ),
        facts=(
            (f"{summary['energy_kwh'] / 1000:,.0f} MWh", "recorded"),
            (percent(seen / (seen + lost), 1), "of the arrivals at these stations are in the records"),
            (f"{summary['censored_hours_percent']:.1f} %", "of region-hours lost a driver more likely than not"),
            (f"{summary['rows_set_aside']:,}", f"of {summary['rows_in']:,} rows set aside"),
        ),
        table=PageTable(
            ("Most saturated stations", "plugs", "known from", "sessions", "time full", "drivers lost", "lost, kWh"),
            _worst_rows(panel),
            f"{summary['plugs_unsure_at_stations']} stations have a number of plugs that is inferred and not sure: "
            "they may have more, and then were full for less."
            if summary["plugs_unsure_at_stations"]
            else "",
        ),
        footer=f"unmet {__version__}.",
    )  # fmt: skip


def write_panel(panel: Panel, rejected: pl.DataFrame, records: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write a panel into a folder: its tables, the rows that were set aside, the summary (given back) and the page."""
    mapping = records["mapping"]
    if mapping:
        (folder / "mapping.yaml").write_text(mapping, encoding="utf-8")
    summary = panel_summary(panel, {name: value for name, value in records.items() if name != "mapping"})
    panel.table.write_parquet(folder / "panel.parquet")
    panel.stations.write_parquet(folder / "stations.parquet")
    panel.station_hours().write_parquet(folder / "station_hours.parquet")
    if not rejected.is_empty():
        rejected.write_parquet(folder / "rejected.parquet")
    write_json(folder / "summary.json", summary)
    write_regions(panel.regions, panel.time_zone, folder)
    (folder / "panel.html").write_text(panel_page(panel, summary), encoding="utf-8")
    return summary


def print_panel(panel: Panel, summary: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """The summary of a panel: tables for people, or one line of JSON."""
    if as_json:
        report("", summary | {"out": str(out)}, as_json=True)
        return
    left_out = {"most_saturated", "notes", "record_notes"}
    shown = {k: v for k, v in summary.items() if k not in left_out}
    shown["formats"] = dict(Counter(summary["formats"].values()))
    report("Panel", shown | {"out": str(out)}, as_json=False)
    heads = ["station", "plugs", "known from", "sessions", "time full", "drivers lost", "lost, kWh"]
    report_grid("Most saturated stations", heads, _worst_rows(panel))
    for note in (*summary["record_notes"], *panel.notes):
        say(note)
    print(f"Panel and figures: {out / 'panel.html'} (open it in a browser)")
