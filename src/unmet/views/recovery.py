"""Recovered demand as a page, as a folder of tables and as tables for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unmet import __version__
from unmet.runs import write_json
from unmet.views.figures import RECOVERY_FIGURES
from unmet.views.figures.recovered_regions import RECOVERED_REGIONS
from unmet.views.page import PageTable, render_page
from unmet.views.recovery_report import RecoveryReport
from unmet.views.terminal import report, report_grid, say
from unmet.views.theme import energy, percent, short

__all__ = ["print_recovery", "write_recovery"]

MOST_ROWS = 20
AT_STATIONS = 0.95  # share of the lost energy at stations below which it is told where the rest is


def write_recovery(shown: RecoveryReport, folder: Path, seed: int) -> dict[str, Any]:
    """Write recovered demand into a folder: its tables, the summary (given back) and the page."""
    made, summary = shown.recovery, shown.summary() | {"seed": seed}
    made.hours.write_parquet(folder / "hours.parquet")
    made.weeks.write_parquet(folder / "weeks.parquet")
    made.regions.write_parquet(folder / "regions.parquet")
    if not made.stations.is_empty():
        made.stations.write_parquet(folder / "stations.parquet")
    write_json(folder / "summary.json", summary)
    (folder / "recovery.html").write_text(_page(shown, summary), encoding="utf-8")
    return summary


def _page(shown: RecoveryReport, summary: dict[str, Any]) -> str:
    first, last = shown.recovery.hours["ds"].sort()[0], shown.recovery.hours["ds"].sort()[-1]
    low, high = (100 * summary[f"lost_share_{end}"] for end in ("low", "high"))
    regions = "1 region" if summary["regions"] == 1 else f"{summary['regions']:,} regions"
    headline = (
        f"{energy(summary['lost_kwh'])} of charging demand ({percent(summary['lost_share'], 1)}, between {low:.1f} and "
        f"{high:.1f} %) went unseen"
    )
    return render_page(
        shown,
        [figure for figure in RECOVERY_FIGURES if summary["regions"] > 1 or figure.name != RECOVERED_REGIONS.name],
        title="unmet: recovered demand",
        headline=headline if summary["lost_kwh"] > 0 else "No charging demand went unseen",
        lead=(
            f"In {regions} from {first:%d %B %Y} to {last:%d %B %Y}. Records hold the drivers who found a free plug. "
            "How many came while none was free, or went to others, is estimated from how busy the same hours were when "
            f"they could be seen. Intervals hold the truth with a probability of {percent(summary['interval'])} where "
            "drivers are as the estimate takes them to be; `unmet study thinning` tests that on your records. "
            + " ".join(summary["notes"])
        ),
        facts=(
            (energy(summary["observed_kwh"]), "in the records"),
            (energy(summary["lost_kwh"]), f"lost, {_between(summary, 'lost_kwh', energy)}"),
            (
                f"{summary['lost_arrivals']:,.0f}",
                f"drivers were not seen, {_between(summary, 'lost_arrivals', _number)}",
            ),
            (
                percent(summary["lost_from_calendar"] + summary["lost_from_neighbours"]),
                f"of the lost energy is borrowed: {percent(summary['lost_from_calendar'])} from other hours of "
                f"the week, {percent(summary['lost_from_neighbours'])} from neighbours",
            ),
        ),
        table=_table(shown),
        footer=f"unmet {__version__}, seed {summary['seed']}.",
    )


def _table(shown: RecoveryReport) -> PageTable:
    """Stations that lost most, or regions where nothing is known of stations."""
    at_stations = not shown.recovery.stations.is_empty()
    table = shown.stations() if at_stations else shown.regions()
    rows: list[list[str | tuple[str, str]]] = [
        [
            *([short(str(row["station_id"]))] if at_stations else []),
            short(str(row["unique_id"])),
            _number(row["observed_kwh"]),
            (_number(row["lost_kwh"]), _between(row, "lost_kwh", _number)),
            (percent(row["lost_share"], 1), f"{100 * row['lost_share_low']:.1f} to {100 * row['lost_share_high']:.1f}"),
        ]
        for row in table.head(MOST_ROWS).iter_rows(named=True)
    ]
    heads = [*(["Station", "region"] if at_stations else ["Region"]), "seen, kWh", "lost, kWh", "lost, of all wanted"]
    file = "stations.parquet" if at_stations else "regions.parquet"
    left = table.height - len(rows)
    note = f"{left:,} more are in {file}." if left else f"All are in {file}."
    if not at_stations:
        note += " What stations lost is told for a panel that was made from records."
    elif table["lost_kwh"].sum() < AT_STATIONS * float(shown.recovery.total_kwh.mean):
        note += " Drivers who went to competitors are not among those that stations lost."
    return PageTable(heads, rows, note, "Stations that lost most" if at_stations else "Regions in numbers")


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _between(row: dict[str, Any], name: str, form: Any) -> str:
    return f"{form(row[f'{name}_low'])} to {form(row[f'{name}_high'])}"


def print_recovery(summary: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """The summary of recovered demand: tables for people, or one line of JSON."""
    if as_json:
        report("", summary | {"out": str(out)}, as_json=True)
        return
    rows = [["observed", _number(summary["observed_kwh"]), "", _number(summary["observed_arrivals"]), ""]]
    rows += [
        [
            name,
            *(
                text
                for unit in ("kwh", "arrivals")
                for text in (_number(summary[f"{name}_{unit}"]), _between(summary, f"{name}_{unit}", _number))
            ),
        ]
        for name in ("lost", "true")
    ]
    sure = percent(summary["interval"])
    report_grid(
        f"Recovered demand, {summary['hours']:,} hours of {summary['regions']:,} regions",
        ["", "energy, kWh", f"{sure} interval", "arrivals", f"{sure} interval"],
        rows,
    )
    low, high = (100 * summary[f"lost_share_{end}"] for end in ("low", "high"))
    report(
        "",
        {
            "lost, of true energy": f"{percent(summary['lost_share'], 1)} ({low:.1f} to {high:.1f} %)",
            "of it borrowed from other hours": percent(summary["lost_from_calendar"], 1),
            "of it borrowed from neighbours": percent(summary["lost_from_neighbours"], 1),
        },
        as_json=False,
    )
    for key, title in (("regions", "Regions that lost most"), ("stations", "Stations that lost most")):
        if told := summary[f"{key}_most_lost"]:
            report_grid(title, ["", "lost, kWh", f"{sure} interval", "of true energy"], [_worst(row) for row in told])
    for note in summary["notes"]:
        say(note)
    print(f"Recovered demand and figures: {out / 'recovery.html'} (open it in a browser)")


def _worst(row: dict[str, Any]) -> list[str]:
    name = str(row.get("station_id", row.get("unique_id")))[:30]
    return [name, _number(row["lost_kwh"]), _between(row, "lost_kwh", _number), percent(row["lost_share"], 1)]
