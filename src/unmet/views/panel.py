"""A demand panel as a page, as a folder of tables and as tables for the terminal."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from unmet import __version__
from unmet.demand.stored import with_measures, write_panel
from unmet.estimation.tables import station_hour_table
from unmet.runs import write_json
from unmet.views.figures import PANEL_FIGURES
from unmet.views.first_screen import first_screen, method
from unmet.views.harmless import spreadsheet_safe
from unmet.views.lost_report import LostReport
from unmet.views.page import render_page
from unmet.views.recovery import print_lost, provenance, say_how_read
from unmet.views.stored import BY_REGION, SENSITIVITY, WEEKS
from unmet.views.terminal import print_summary, say

__all__ = ["panel_page", "panel_summary", "print_panel", "write_panel_page"]


def panel_summary(report: LostReport, records: dict[str, Any]) -> dict[str, Any]:
    """The summary of a panel and its lost demand, as written to JSON; `records` says how the records were read."""
    table, stations = report.table, report.panel.stations
    return {
        **{name: value for name, value in records.items() if name != "mapping"},
        "sessions": report.panel.sessions.height,
        "energy_kwh": round(float(report.panel.sessions["energy_kwh"].sum()), 3),
        "capacity": int(stations["capacity"].sum()),
        "capacity_from": dict(stations["capacity_from"].value_counts(sort=True).iter_rows()),
        "mean_exposure": round(float(table["exposure"].to_numpy().mean()), 6),
        "censored_hours_percent": round(100 * float(table["censored"].to_numpy().mean()), 3),
        **report.for_machines(),
    }


def panel_page(report: LostReport, records: dict[str, Any]) -> str:
    """The panel as a self-contained HTML page."""
    return render_page(
        report,
        PANEL_FIGURES,
        title="unmet: a demand panel",
        footer=f"unmet {__version__}, seed {report.summary['seed']}.",
        after=[method(report), provenance(report, records)],
        **first_screen(report),
    )


def write_panel_page(
    report: LostReport, rejected: pl.DataFrame, records: dict[str, Any], folder: Path
) -> dict[str, Any]:
    """Write a panel and its lost demand into a folder: tables, the page and the summary, which is returned.

    Args:
        report: report of the estimator fitted to the panel.
        rejected: rows of the records that were set aside.
        records: how the records were read, and counts of rows that were used or set aside.
        folder: an existing folder.
    """
    stations = with_measures(report.panel.stations, report.stations)
    write_panel(report.panel, folder, table=report.table, stations=stations, sites=report.sites)
    flat = stations.select(pl.exclude(pl.List, pl.Struct, pl.Array))
    spreadsheet_safe(flat).write_csv(folder / "stations.csv")
    spreadsheet_safe(report.sites).write_csv(folder / "sites.csv")
    for name, table in ((BY_REGION, report.regions), (WEEKS, report.weeks), (SENSITIVITY, report.sensitivity)):
        table.write_parquet(folder / f"{name}.parquet")
        spreadsheet_safe(table).write_csv(folder / f"{name}.csv")
    fitted = report.lost
    station_hours = station_hour_table(fitted.panel_, fitted.network_, fitted.rows_, fitted.recovered_)
    station_hours.write_parquet(folder / "station_hours.parquet")
    if not rejected.is_empty():
        rejected.write_parquet(folder / "rejected.parquet")
        spreadsheet_safe(rejected).write_csv(folder / "rejected.csv")
    if records["mapping"]:
        (folder / "mapping.yaml").write_text(records["mapping"], encoding="utf-8")
    summary = panel_summary(report, records)
    write_json(folder / "summary.json", summary)
    (folder / "panel.html").write_text(panel_page(report, records), encoding="utf-8")
    return summary


def print_panel(report: LostReport, summary: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """Print the summary of a panel: tables for people, or one line of JSON."""
    if as_json:
        print_summary("", summary | {"out": str(out)}, as_json=True)
        return
    names = (
        "rows_in", "rows_kept", "rows_set_aside", "formats", "quality", "outages", "time_zone", "sessions",
        "energy_kwh", "first_hour", "last_hour", "stations", "sites", "regions", "capacity", "capacity_from",
        "mean_exposure", "censored_hours_percent",
    )  # fmt: skip
    shown = {name: summary[name] for name in names} | {"formats": dict(Counter(summary["formats"].values()))}
    print_summary("Panel", shown | {"out": str(out)}, as_json=False)
    print_lost(report)
    say_how_read(summary)
    for note in (*summary["record_notes"], *report.notes()):
        say(note)
    print(f"Panel and figures: {out / 'panel.html'} (open it in a browser)")
