"""The report: the results of all given runs, in one file that can be sent to others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from unmet import __version__
from unmet.errors import InputError
from unmet.runs import atomic_file
from unmet.views.figures.base import Figure
from unmet.views.figures.recovered_regions import RECOVERED_REGIONS
from unmet.views.figures.recovered_weeks import RECOVERED_WEEKS
from unmet.views.figures.site_map import SITE_MAP, has_positions
from unmet.views.first_screen import MIN_DRIVERS, first_screen, method
from unmet.views.lost_tables import TOP_SITES, LostTables
from unmet.views.page import PageSection, PageTable, render_page
from unmet.views.page_weight import light_page
from unmet.views.report_sections import build, csv_of, forecast_section, quality, sources, when, with_download
from unmet.views.stored import StoredRuns
from unmet.views.theme import about, percent

__all__ = ["SalesPrice", "report_figures", "report_page", "write_report"]

MAX_REGIONS = 12  # regions in the table
MAX_BYTES = 6_000_000  # small enough to email
MADE_WITH = "Made with unmet"  # in the footer, by which an existing report is recognised
ASSUMED_PRICE = 0.1
"""Price per kWh at which lost sales are shown if no price is given."""


@dataclass(frozen=True, slots=True)
class SalesPrice:
    """The sales price of a kWh."""

    price: float
    currency: str = ""

    @classmethod
    def checked(cls, price: float, currency: str) -> SalesPrice:
        """Check a price, and return it with its currency."""
        if not (math.isfinite(price) and price > 0):
            raise InputError(f"A price of {price:g} per kWh makes no sense: give one over 0, such as 0.35.")
        return cls(price, currency.strip()[:12])

    def of(self, kwh: float, low: float, high: float) -> tuple[str, str]:
        """An energy in money, and its range."""
        value, span = about(kwh * self.price, low * self.price, high * self.price)
        unit = f" {self.currency}" if self.currency else ""
        return f"{value}{unit}", f"{span}{unit}"


def report_page(runs: StoredRuns, money: SalesPrice | None = None, title: str = "") -> str:
    """One self-contained HTML page on all runs, of at most 6 MB; sections without data are left out."""
    opening = _opening(runs, money)

    def render(sections: Sequence[PageSection]) -> str:
        return render_page(
            None,
            (),
            title=title or "unmet: demand that charging records do not show",
            footer=f"{title + '. ' if title else ''}{MADE_WITH} {__version__}.",
            before=sections,
            contents=True,
            **opening,
        )

    return light_page(render, _sections(runs, money), MAX_BYTES)


def write_report(runs: StoredRuns, out: Path, money: SalesPrice | None, title: str) -> dict[str, Any]:
    """Write the report to a file, atomically, and return its summary."""
    _check_replaceable(out)
    page = report_page(runs, money, title)
    with atomic_file(out) as draft:
        draft.write_text(page, encoding="utf-8")
    summary: dict[str, Any] = {
        "answer": str(_opening(runs, money)["headline"]).replace("\N{NO-BREAK SPACE}", " "),
        "runs": [f"{run.kind}: {run.folder}" for run in runs.runs],
        "sections": [section.heading for section in _sections(runs, None)],
        "megabytes": round(len(page.encode()) / 1e6, 1),
        "out": str(out),
    }
    return summary


def _check_replaceable(out: Path) -> None:
    """Refuse to replace a file that is not a report."""
    size = out.stat().st_size if out.is_file() else 0
    if size > 10 * MAX_BYTES or (size and MADE_WITH.encode() not in out.read_bytes()):
        raise InputError(f"{out} is not a report, so it is not replaced: delete it, or name another file with --out.")


def report_figures(runs: StoredRuns) -> list[tuple[Figure, object]]:
    """All figures of the report, each with the result that it draws."""
    return [pair for section in _sections(runs, None) for pair in section.figures]


def _opening(runs: StoredRuns, money: SalesPrice | None) -> dict[str, Any]:
    """The answer: lost demand if there is a run of it, else the plan, else the forecast."""
    if runs.lost is not None:
        opening = first_screen(runs.lost)
        del opening["before"]
        recorded, lost, drivers, share = opening["facts"]
        return opening | {"facts": [lost, drivers, _money_fact(runs.lost, money), share, recorded]}
    if runs.plan is not None:
        summary = runs.plan.summary
        value, span = about(**summary["gain_kwh_per_week"])
        return {
            "headline": summary["answer"],
            "lead": "A plan of where to add plugs, from the demand that records do not show.",
            "facts": [
                (f"{summary['plugs']:,}", f"plugs at {summary['sites']:,} sites"),
                (f"{value} kWh", f"recovered per week, {span}"),
                (
                    percent(summary["served_share_after"], 1),
                    f"of demand served, {percent(summary['served_share'], 1)} now",
                ),
            ],
        }
    if runs.forecast is not None:
        section = forecast_section(runs.forecast)
        totals = runs.forecast.totals()
        return {
            "headline": section.paragraphs[0],
            "lead": "A forecast of charging demand, with intervals.",
            "facts": [(f"{totals.height:,}", "regions"), (str(totals["unique_id"][0]), "is the busiest")],
        }
    raise ValueError("a report needs a run")


def _money_fact(lost: LostTables, money: SalesPrice | None) -> tuple[str, str]:
    """Lost sales with their range; at a price of 0.10 per kWh if none is given."""
    ends = _mean_low_high(lost.summary["lost_kwh"])
    if money is None:
        value, span = SalesPrice(ASSUMED_PRICE).of(*ends)
        return value, f"of sales lost, {span}, for every {ASSUMED_PRICE:.2f} charged per kWh"
    value, span = money.of(*ends)
    return value, f"of sales lost, {span}, at {money.price:g} {money.currency} per kWh".replace("  ", " ")


def _sections(runs: StoredRuns, money: SalesPrice | None) -> list[PageSection]:
    sections = []
    lost = runs.lost
    if lost is not None:
        sections += [_where(lost, money), *when(lost), *_certainty(lost)]
    if runs.plan is not None:
        sections.append(build(runs.plan, lost))
    if runs.forecast is not None:
        sections.append(forecast_section(runs.forecast, lost.region_places() if lost else None))
    if lost is not None:
        sections += [_regions(lost), _weeks(lost), quality(lost), method(lost)]
    return [*sections, sources(runs)]


def _where(lost: LostTables, money: SalesPrice | None) -> PageSection:
    """The sites that lost the most, with the map."""
    section: PageSection = first_screen(lost)["before"][0]
    figures = [(SITE_MAP, lost)] if has_positions(lost) else []
    if section.table is None:
        return replace(section, figures=figures)
    table: PageTable = section.table
    if money is not None:
        worst = lost.ranked_sites().filter(pl.col("lost_arrivals") >= MIN_DRIVERS).head(TOP_SITES)
        cells = [money.of(*row) for row in worst.select("lost_kwh", "lost_kwh_low", "lost_kwh_high").iter_rows()]
        heads = [*table.heads[:2], f"Lost sales{f' [{money.currency}]' if money.currency else ''}", *table.heads[2:]]
        unit = f" {money.currency}"
        plain = [(value.removesuffix(unit), span.removesuffix(unit)) for value, span in cells]
        rows = [[*row[:2], cell, *row[2:]] for row, cell in zip(table.rows, plain, strict=True)]
        table = replace(table, heads=heads, rows=rows)
    note = table.note.replace("All sites are in sites.csv and stations.csv.", "The download holds all sites.")
    table = replace(table, note=note, csv=csv_of(lost.ranked_sites().drop("label")), file="sites.csv")
    return replace(section, table=table, figures=figures)


def _certainty(lost: LostTables) -> list[PageSection]:
    """The section on how certain the estimate is: self-check, other assumptions, notes."""
    _, *rest = first_screen(lost)["before"]
    return [
        with_download(part, lost.sensitivity, "sensitivity.csv") if part.name == "sensitivity" else part
        for part in rest
    ]


def _regions(lost: LostTables) -> PageSection:
    ranked, places = lost.ranked_regions(), lost.region_places()
    rows = [
        (
            (str(row["unique_id"]), places.get(row["unique_id"], "")),
            about(row["lost_kwh"], row["lost_kwh_low"], row["lost_kwh_high"]),
            f"{row['observed_kwh']:,.0f}",
            percent(row["lost_share"], 1),
        )
        for row in ranked.head(MAX_REGIONS).iter_rows(named=True)
    ]
    more = ranked.height - len(rows)
    note = f"{more:,} further regions are in the download." if more > 0 else ""
    table = PageTable(
        ("Region", "Lost energy [kWh]", "Recorded [kWh]", "Lost share"), rows, note, csv=csv_of(ranked),
        file="regions.csv",
    )  # fmt: skip
    figures = [(RECOVERED_REGIONS, lost)] if ranked.height > 1 and _is_any_lost(lost) else []
    return PageSection("regions", "Regions", table=table, figures=figures)


def _is_any_lost(lost: LostTables) -> bool:
    return bool(lost.summary["lost_arrivals"]["high"] >= MIN_DRIVERS)


def _weeks(lost: LostTables) -> PageSection:
    weeks = lost.weeks.filter(pl.col("unique_id") == "all").sort("week")
    rows = [
        (
            f"{row['week']:%d %b %Y}",
            about(row["lost_kwh"], row["lost_kwh_low"], row["lost_kwh_high"]),
            f"{row['observed_kwh']:,.0f}",
        )
        for row in weeks.sort("lost_kwh", descending=True).head(5).iter_rows(named=True)
    ]
    heads = ("Week from", "Lost energy [kWh]", "Recorded [kWh]")
    some = "The weeks that lost the most. " if _is_any_lost(lost) else ""
    note = f"{some}The download holds all weeks, by region."
    table = PageTable(heads, rows, note, csv=csv_of(lost.weeks), file="weeks.csv")
    return PageSection("weeks", "Weeks", table=table, figures=[(RECOVERED_WEEKS, lost)])


def _mean_low_high(interval: dict[str, float]) -> tuple[float, float, float]:
    return interval["mean"], interval["low"], interval["high"]
