"""Display of objects in notebooks: single figures and tables of the report."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import plotly.graph_objects as go
import polars as pl

from unmet.demand.panel import Panel
from unmet.errors import InputError
from unmet.estimation.lost_demand import LostDemand
from unmet.views.figures.base import Figure
from unmet.views.figures.daily_energy import DAILY_ENERGY
from unmet.views.figures.lost_week import LOST_WEEK
from unmet.views.figures.plan_gain import PLAN_GAIN
from unmet.views.figures.plan_map import PLAN_MAP
from unmet.views.figures.recovered_regions import RECOVERED_REGIONS
from unmet.views.figures.recovered_weeks import RECOVERED_WEEKS
from unmet.views.figures.site_map import SITE_MAP, has_positions
from unmet.views.first_screen import first_screen
from unmet.views.lost_report import LostReport
from unmet.views.lost_tables import LostTables
from unmet.views.page import PageTable
from unmet.views.plan_text import headline, plan_facts, planned_site_rows, site_heads
from unmet.views.stored import StoredRuns
from unmet.views.theme import count, energy

__all__ = ["html_of", "plot_of"]

PAST_HOURS = 48  # hours drawn before a forecast
MAX_ROWS = 10  # rows of a plan's table
LOST_FIGURES: dict[str, Figure] = {
    "map": SITE_MAP,
    "when": LOST_WEEK,
    "weeks": RECOVERED_WEEKS,
    "regions": RECOVERED_REGIONS,
}
PLAN_PLOTS: dict[str, Figure] = {"gain": PLAN_GAIN, "map": PLAN_MAP}


@dataclass(frozen=True, slots=True)
class _PanelView:
    """A panel in the form that figures of records expect."""

    panel: Panel


@singledispatch
def plot_of(thing: Any, *args: Any, **options: Any) -> go.Figure:
    """A figure of an object.

    Args:
        thing: a fitted `LostDemand` or runs (`what` is map, when, weeks or regions), a `Panel` (recorded energy per
            day), a plan (`what` is gain or map), a `Forecast`, or a fitted `Forecaster` (with the arguments of
            `forecast`).
        *args: arguments for that class, such as `what`.
        **options: keyword arguments for that class.
    """
    from unmet.planning.result import Plan

    if isinstance(thing, Plan):
        return _plot_named(PLAN_PLOTS, thing, "a plan", *args, **options)
    from unmet.models.forecast import Forecast
    from unmet.models.forecaster import Forecaster  # slow to import, so it comes last

    if isinstance(thing, Forecaster):
        return _plot_forecast(thing.forecast(*args, **options))
    if isinstance(thing, Forecast):
        return _plot_forecast(thing)
    raise TypeError(f"There is no figure of a {type(thing).__name__}.")


@plot_of.register
def _(lost: LostDemand, what: str | None = None) -> go.Figure:
    lost._check_fitted()
    return _plot_lost(LostReport.of(lost), what)


@plot_of.register
def _(panel: Panel) -> go.Figure:
    return DAILY_ENERGY.draw(_PanelView(panel))


@plot_of.register
def _(runs: StoredRuns, what: str | None = None) -> go.Figure:
    if runs.lost is not None:
        return _plot_lost(runs.lost, what)
    from unmet.views.report import report_figures

    figure, result = report_figures(runs)[0]
    return figure.draw(result)


def _plot_lost(tables: LostTables, what: str | None) -> go.Figure:
    return _plot_named(LOST_FIGURES, tables, "lost demand", what or ("map" if has_positions(tables) else "weeks"))


def _plot_named(figures: dict[str, Figure], thing: Any, name: str, what: str | None = None) -> go.Figure:
    chosen = what or next(iter(figures))
    if chosen not in figures:
        raise InputError(f"There is no figure {chosen!r} of {name}: choose one of {', '.join(figures)}.")
    return figures[chosen].draw(thing)


def _plot_forecast(forecast: Any) -> go.Figure:
    from unmet.views.figures.forecast_fan import FORECAST_FAN
    from unmet.views.model_report import ForecastReport

    last = pl.col("ds") > pl.col("ds").max() - pl.duration(hours=PAST_HOURS)
    return FORECAST_FAN.draw(ForecastReport(forecast.model, forecast.hours, forecast.past.filter(last)))


@singledispatch
def html_of(thing: Any) -> str:
    """An object as a small piece of HTML: the answer, its numbers, and the first rows of its table."""
    from unmet.planning.result import Plan

    if isinstance(thing, Plan):
        table = PageTable(site_heads(thing), planned_site_rows(thing)[:MAX_ROWS], "")
        return _block(headline(thing), plan_facts(thing), _table_html(table))
    regions = getattr(thing, "regions_", None)
    if regions is None:
        return f"<pre>{html.escape(repr(thing))}</pre>"
    levels = ", ".join(f"{100 * level:g} %" for level in thing.levels)
    hint = "Fitted. <code>.forecast(hours=48).plot()</code> draws the hours ahead."
    return _block(type(thing).__name__, [(str(len(regions)), "regions"), (levels, "quantiles")], hint)


@html_of.register
def _(lost: LostDemand) -> str:
    if not hasattr(lost, "recovered_"):
        return f"<pre>{html.escape(repr(lost))}</pre>"
    return _lost_html(LostReport.of(lost))


@html_of.register
def _(panel: Panel) -> str:
    first, last = panel.period
    numbers = [
        (f"{panel.sessions.height:,}", "sessions"),
        (energy(float(panel.sessions["energy_kwh"].sum())), "recorded"),
        (f"{panel.stations.height:,}", f"stations at {count(panel.sites.height, 'site')}"),
        (f"{panel.regions.centres.height:,}", "regions"),
    ]
    heading = f"Records from {first:%d %B %Y} to {last:%d %B %Y}, {panel.time_zone} time"
    return _block(heading, numbers, "".join(f"<li>{html.escape(note)}</li>" for note in panel.notes))


@html_of.register
def _(runs: StoredRuns) -> str:
    if runs.lost is not None:
        return _lost_html(runs.lost)
    summary = runs.runs[0].summary if runs.runs else {}
    return _block(str(summary.get("answer", "Runs")), [(run.kind, run.folder.name) for run in runs.runs], "")


def _lost_html(tables: LostTables) -> str:
    opening = first_screen(tables)
    section = opening["before"][0]
    warning = f"<p><b>{html.escape(opening['warning'])}</b></p>" if opening["warning"] else ""
    table = _table_html(section.table) if section.table else ""
    return _block(opening["headline"], opening["facts"], warning + table)


def _table_html(table: PageTable) -> str:
    head = "".join(f"<th>{html.escape(text)}</th>" for text in table.heads)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_flat(cell))}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _flat(cell: Any) -> str:
    return cell if isinstance(cell, str) else " ".join(part for part in cell if part)


def _block(heading: str, numbers: Sequence[tuple[str, str]], rest: str) -> str:
    """A heading, numbers, and `rest`, which is HTML."""
    cells = "".join(
        f'<div style="margin-right:2em"><b style="font-size:1.3em">{html.escape(value)}</b><br>'
        f'<span style="opacity:.7">{html.escape(text)}</span></div>'
        for value, text in numbers
    )
    return (
        f'<div><p style="font-size:1.1em"><b>{html.escape(heading)}</b></p>'
        f'<div style="display:flex;flex-wrap:wrap;gap:.6em 0">{cells}</div>{rest}</div>'
    )
