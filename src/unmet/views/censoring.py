"""The censoring study as a page, as Markdown and as a table for the terminal."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unmet import __version__
from unmet.runs import write_json
from unmet.simulation.queues import queue_named
from unmet.study.censoring import CensoringStudy
from unmet.views.figures import CENSORING_FIGURES
from unmet.views.page import PageTable, render_page
from unmet.views.terminal import report_grid, say
from unmet.views.theme import percent

__all__ = ["censoring_markdown", "censoring_page", "censoring_summary", "print_censoring", "write_censoring"]

DAY = dt.timedelta(days=1)
MAX_PERCENTAGES = 12  # regions in a line of text; the paper has 10


def _rows(study: CensoringStudy) -> list[tuple[str, list[tuple[str, str]]]]:
    """Rows of text: the title of a queue and, for each penetration, our censored hours and those of the paper."""
    rows = []
    for queue in study.queues:
        pairs = []
        for penetration in study.penetrations:
            paper = study.paper_percent(queue, penetration)
            ours = f"{study.cell(queue, penetration).censored_hours_percent:.1f}"
            pairs.append((ours, "" if paper is None else f"{paper:.1f}"))
        rows.append((queue_named(queue).title, pairs))
    return rows


def _descending(percentages: Sequence[float]) -> str:
    """The largest percentages as text, in descending order."""
    return ", ".join(f"{value:.0f}" for value in sorted(percentages, reverse=True)[:MAX_PERCENTAGES]) + " %"


def _with_paper(ours: str, paper: str) -> str:
    return f"{ours} ({paper})" if paper else ours


def _headline(study: CensoringStudy) -> str:
    cell = study.worst_cell
    return (
        f"With {percent(cell.penetration)} electric cars, {queue_named(cell.queue).title.lower()}, this city turns "
        f"drivers away in {cell.censored_hours_percent:.0f} % of all hours"
    )


def censoring_page(study: CensoringStudy) -> str:
    """The study as a self-contained HTML page."""
    cell = study.worst_cell
    worst = max(cell.censored_hours_percent_by_region)
    first, last = study.city.period
    return render_page(
        study,
        CENSORING_FIGURES,
        title="unmet: how much charging demand a city loses",
        headline=_headline(study),
        lead=(
            "A station whose plugs are all taken does not record the drivers who leave. In this simulated city every "
            "driver is known, served or lost, under "
            f"{len(study.queues)} queues and {len(study.penetrations)} shares of electric cars."
        ),
        facts=(
            (
                percent(cell.lost_share_of_energy, 1),
                f"of the energy wanted is lost ({queue_named(cell.queue).title.lower()})",
            ),
            (f"{cell.lost_arrivals:,}", f"of {cell.arrivals:,} arrivals find no plug"),
            (f"{worst:.0f} %", "of hours are censored in the worst region"),
            (f"{study.city.stations['plugs'].sum():,}", f"plugs at {study.city.stations.height} stations"),
        ),
        table=PageTable(
            ("Hours in which demand is lost [%], by share of electric cars", *(percent(p) for p in study.penetrations)),
            [(title, *pairs) for title, pairs in _rows(study)],
            "Large: this city. Small and grey: the paper's Table 1." if study.city.is_built_in else "",
        ),
        footer=f"unmet {__version__}, seed {study.seed}, {first:%d %B %Y} to {last - DAY:%d %B %Y}.",
    )


def censoring_markdown(study: CensoringStudy) -> str:
    """The study's tables as Markdown."""
    paper_note = " (paper)" if study.city.is_built_in else ""
    head = (
        f"| hours in which demand is lost, %{paper_note} | " + " | ".join(percent(p) for p in study.penetrations) + " |"
    )
    lines = [f"# {_headline(study)}", "", head, "| --- |" + " ---: |" * len(study.penetrations)]
    for title, pairs in _rows(study):
        lines.append(f"| {title} | " + " | ".join(_with_paper(*pair) for pair in pairs) + " |")
    cell = study.worst_cell
    lines += ["", f"By region, {cell.queue} at {percent(cell.penetration)}:", ""]
    lines += ["| region | stations | plugs | hours in which demand is lost, % |", "| --- | ---: | ---: | ---: |"]
    regions = study.regions.centres.select("unique_id", "stations", "plugs").iter_rows()
    for (name, stations, plugs), censored in zip(regions, cell.censored_hours_percent_by_region, strict=True):
        lines.append(f"| {name} | {stations} | {plugs} | {censored:.1f} |")
    if paper := study.paper_regions(cell):
        ours = _descending(cell.censored_hours_percent_by_region)
        lines += ["", f"In descending order: {ours}; the paper's clusters: {_descending(paper)}."]
    lines += ["", f"unmet {__version__}, seed {study.seed}; written by `unmet study censoring`."]
    return "\n".join(lines) + "\n"


def censoring_summary(study: CensoringStudy) -> dict[str, Any]:
    """The summary of the study, as written to JSON."""
    return {
        "cells": study.rows(),
        "regions": study.regions.centres.to_dicts(),
        "rows_set_aside": study.city.rejected.height,
        "notes": study.city.notes(),
    }


def write_censoring(study: CensoringStudy, folder: Path) -> None:
    """Write the study into a folder: the page, the tables, the summary."""
    (folder / "study.html").write_text(censoring_page(study), encoding="utf-8")
    (folder / "study.md").write_text(censoring_markdown(study), encoding="utf-8")
    study.table().write_parquet(folder / "cells.parquet")
    write_json(folder / "summary.json", censoring_summary(study))
    if not study.city.rejected.is_empty():
        study.city.rejected.write_parquet(folder / "rejected.parquet")


def print_censoring(study: CensoringStudy, out: Path, *, as_json: bool) -> None:
    """Print the study: a table for people, or one line of JSON."""
    if as_json:
        timed = [row | {"seconds": round(cell.seconds, 3)} for row, cell in zip(study.rows(), study.cells, strict=True)]
        print(json.dumps(censoring_summary(study) | {"cells": timed}))
        return
    cell = study.worst_cell
    paper_note = " (the paper's)" if study.city.is_built_in else ""
    report_grid(
        f"Hours in which demand is lost, %{paper_note}, by share of electric cars",
        ["queue", *(percent(p) for p in study.penetrations)],
        [
            [queue, *(_with_paper(*pair) for pair in pairs)]
            for queue, (_, pairs) in zip(study.queues, _rows(study), strict=True)
        ],
    )
    print(
        f"By region, {cell.queue} at {percent(cell.penetration)}: {_descending(cell.censored_hours_percent_by_region)}"
    )
    if paper := study.paper_regions(cell):
        print(f"The paper's clusters: {_descending(paper)}")
    print(f"Energy lost there: {percent(cell.lost_share_of_energy, 1)} of {cell.true_kwh / 1000:,.0f} MWh wanted.")
    print(f"Figures and tables: {out / 'study.html'} (open it in a browser)")
    say(f"{len(study.cells)} simulations took {study.seconds:.1f} s.")
