"""Lost demand as a page, as a folder of tables and as tables for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from unmet import __version__
from unmet.demand.stored import PANEL_FOLDER, write_panel
from unmet.estimation.by_area import AddedUp
from unmet.planning.hidden import hidden_drivers, write_hidden
from unmet.runs import write_json
from unmet.views.figures import RECOVERY_FIGURES
from unmet.views.figures.recovered_regions import RECOVERED_REGIONS
from unmet.views.figures.site_map import SITE_MAP, has_positions
from unmet.views.first_screen import first_screen, method, site_rows
from unmet.views.harmless import spreadsheet_safe
from unmet.views.lost_report import LostReport
from unmet.views.lost_tables import LostTables
from unmet.views.page import PageSection, render_page
from unmet.views.terminal import print_summary, report_grid, say
from unmet.views.theme import about, count, energy, percent

__all__ = [
    "lost_tables",
    "print_lost",
    "print_recovery",
    "provenance",
    "recovery_page",
    "say_how_read",
    "write_recovery",
    "write_tables",
]


def lost_tables(source: LostTables | AddedUp) -> dict[str, pl.DataFrame]:
    """The tables of lost demand that are written as files, by name."""
    return {
        "stations": source.stations,
        "sites": source.sites,
        "weeks": source.weeks,
        "regions": source.regions,
        "sensitivity": source.sensitivity,
    }


def write_tables(tables: dict[str, pl.DataFrame], rejected: pl.DataFrame | None, folder: Path) -> None:
    """Write tables, and rejected rows if there are any, as Parquet and as CSV that is safe in a spreadsheet."""
    if rejected is not None and not rejected.is_empty():
        tables = tables | {"rejected": rejected}
    for name, table in tables.items():
        table.write_parquet(folder / f"{name}.parquet")
        spreadsheet_safe(table).write_csv(folder / f"{name}.csv")


def write_recovery(
    report: LostReport, rejected: pl.DataFrame | None, records: dict[str, Any] | None, folder: Path
) -> dict[str, Any]:
    """Write lost demand into a folder: tables, the page and the summary, which is returned.

    The panel with its draws of lost energy is kept for `unmet fit`, and the draws of lost drivers for `unmet plan`.

    Args:
        report: report of a fitted estimator.
        rejected: rows of the records that were set aside; None if an existing panel was read.
        records: how the records were read, and counts of rows that were used or set aside; None likewise.
        folder: an existing folder.
    """
    write_tables(lost_tables(report), rejected, folder)
    report.hours.write_parquet(folder / "hours.parquet")
    (folder / PANEL_FOLDER).mkdir()
    write_panel(report.panel, folder / PANEL_FOLDER, table=report.table)
    write_hidden(hidden_drivers(report.lost), report.panel, folder)
    kept = {name: value for name, value in (records or {}).items() if name != "mapping"}
    summary = report.for_machines() | {"records": kept or None}
    write_json(folder / "summary.json", summary)
    (folder / "recovery.html").write_text(recovery_page(report, records), encoding="utf-8")
    return summary


def recovery_page(report: LostReport, records: dict[str, Any] | None = None) -> str:
    """Lost demand as a self-contained HTML page."""
    left_out = set()
    if report.summary["regions"] == 1:
        left_out.add(RECOVERED_REGIONS.name)
    if not has_positions(report):
        left_out.add(SITE_MAP.name)
    return render_page(
        report,
        [figure for figure in RECOVERY_FIGURES if figure.name not in left_out],
        title="unmet: lost demand",
        footer=f"unmet {__version__}, seed {report.summary['seed']}.",
        after=[method(report), provenance(report, records)],
        **first_screen(report),
    )


def provenance(report: LostReport, records: dict[str, Any] | None) -> PageSection:
    """The section on the sources and options of the page."""
    lost, panel = report.lost, report.panel
    items = []
    if records is not None:
        files = ", ".join(f"{Path(name).name} ({form})" for name, form in records["formats"].items())
        items.append(f"Files: {files}.")
        items.append(
            f"Rows: {records['rows_in']:,} read, {records['rows_kept']:,} kept, {records['rows_set_aside']:,} set aside"
            f"{' (rejected.csv says why)' if records['rows_set_aside'] else ''}."
        )
        items += [str(line) for line in (*records.get("readings", ()), *records["record_notes"])]
    else:
        items.append("Read from an existing panel.")
    shares = {"waiting": lost.waiting, "spill": lost.spill}
    options = ", ".join(
        f"{name} {'estimated' if value is None else f'set to {value:g}'}" for name, value in shares.items()
    )
    items.append(
        f"Options: {options}, energies {lost.energies}, {lost.draws} draws, seed {lost.seed}, {percent(lost.interval)} "
        f"ranges; local time is {panel.time_zone}{f', holidays of {panel.country}' if panel.country else ''}."
    )
    return PageSection("provenance", "What it was made from", items=items)


def print_recovery(report: LostTables, summary: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """Print the summary of lost demand: tables for people, or one line of JSON."""
    if as_json:
        print_summary("", summary | {"out": str(out)}, as_json=True)
        return
    print_lost(report)
    table = report.sensitivity
    report_grid(
        "Under other assumptions",
        ["", "lost energy", "lost drivers"],
        [[name, energy(kwh), f"{drivers:,.0f}"] for name, kwh, drivers in table.iter_rows()],
    )
    records = summary["records"] or {}
    say_how_read(records)
    for note in (*records.get("record_notes", ()), *report.notes()):
        say(note)
    print(f"Lost demand and figures: {out / 'recovery.html'} (open it in a browser)")


def say_how_read(records: dict[str, Any]) -> None:
    """Print how the records were read and on what evidence, one line for each kind of reading."""
    if lines := records.get("readings", ()):
        say("How the records were read:")
    for line in lines:
        say(f"  {line}")


def print_lost(report: LostTables) -> None:
    """Print the answer and the sites that lost the most; a warning comes first."""
    summary = report.summary
    if warning := report.warning():
        say(warning)
    level = percent(report.interval)
    check = summary["self_check"]
    kwh, drivers = about(**summary["lost_kwh"]), about(**summary["lost_arrivals"])
    report_grid(
        f"Lost demand, {summary['hours']:,} hours at {count(summary['sites'], 'site')}",
        ["", "energy, kWh", f"{level} interval", "drivers", f"{level} interval"],
        [
            ["recorded", f"{summary['seen_kwh']:,.0f}", "", f"{summary['seen_arrivals']:,}", ""],
            ["lost", *kwh, *drivers],
        ],
    )
    share, low, high = (100 * value for value in report.lost_share())
    print_summary(
        "",
        {
            "lost, of all energy wanted": f"{share:.1f} % ({low:.1f} to {high:.1f} %)",
            "self-check (1 is perfect)": "not possible"
            if check is None
            else f"{check['ratio']:.2f} ({check['low']:.2f} to {check['high']:.2f})",
            "wait until served": percent(summary["waiting"], 1),
            "charge nearby instead": percent(summary["spill"], 1),
        },
        as_json=False,
    )
    if rows := site_rows(report):
        report_grid(
            "Sites that lost the most",
            ["", "lost, kWh", f"{level} interval", "drivers", f"{level} interval", "time full", "cars at once"],
            [[row["name"], *row["kwh"], *row["drivers"], row["full"], row["capacity"]] for row in rows],
        )
