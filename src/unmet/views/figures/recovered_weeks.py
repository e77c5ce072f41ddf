"""Lost and recorded energy per week, of all regions or one, on separate scales so that small losses are visible."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from unmet.estimation.tables import ALL
from unmet.views.figures.base import Figure
from unmet.views.lost_tables import LostTables
from unmet.views.theme import LOST, OBSERVED, TEXT, energy_unit, layout, percent, short

__all__ = ["RECOVERED_WEEKS"]

MAX_REGIONS = 40  # regions in the menu
MIN_REGIONS, MAX_BARS = 5, 2000  # fewest regions in the menu, and most bars (weeks times regions), for a small page
MAX_LABELS = 5  # weeks that are labelled on the axis
PALE = "rgba(31, 41, 51, 0.5)"
WEEK_MS = 7 * 86_400_000
MAX_OUTLINED = 80  # with more weeks, bars are too thin for outlines and whiskers with caps
MAX_NAME = 20  # characters of a region's name, so that the menu fits a phone
PARTIAL_OPACITY = 0.45  # opacity of a week that the records cover only in part


def _choices(report: LostTables) -> list[str]:
    """The regions in the menu, largest loss first; empty if there is only one region."""
    weeks = report.weeks["week"].n_unique()
    n_regions = min(max(MAX_BARS // max(weeks, 1), MIN_REGIONS), MAX_REGIONS)
    return report.ranked_regions()["unique_id"].head(n_regions).to_list() if report.summary["regions"] > 1 else []


def _draw(report: LostTables) -> go.Figure:
    names = [ALL, *_choices(report)]
    totals = report.weeks.filter(pl.col("unique_id") == ALL).sort("week")
    units = [energy_unit(_maximum(totals[column])) for column in ("lost_kwh_high", "observed_kwh")]
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.6, 0.4], vertical_spacing=0.06)
    for name in names:
        _add_bars(figure, report, name, units)
    days = totals["week"].to_list()
    figure.update_xaxes(
        tickformat="%d %b<br>%Y", tick0=days[0], hoverformat="%d %b %Y", tickangle=0, tickfont={"size": 12},
        dtick=WEEK_MS * -(-len(days) // MAX_LABELS),
    )  # fmt: skip
    gap = 0.0 if len(days) > MAX_OUTLINED else 0.25
    layout(figure, 500, legend_above=False).update_layout(bargap=gap, showlegend=False)
    figure.update_xaxes(title="Week from Monday, local time", row=2, col=1)
    for row, (what, (unit, _)) in enumerate(zip(("Lost", "Recorded"), units, strict=True), start=1):
        figure.update_yaxes(title=f"{what} [{unit}]", tickformat=",", rangemode="tozero", row=row, col=1)
    return figure if len(names) == 1 else figure.update_layout(updatemenus=[_menu(names)], margin_t=64)


def _add_bars(figure: go.Figure, report: LostTables, name: str, units: list[tuple[str, float]]) -> None:
    """Add the bars of one region. Only the bars of all regions together are visible at first."""
    part, partial = report.weeks.filter(pl.col("unique_id") == name).sort("week"), report.partial_weeks()
    days = part["week"].to_list()
    opacity = [PARTIAL_OPACITY if day in partial else 1.0 for day in days]
    (lost_unit, lost_size), (seen_unit, seen_size) = units
    edge, whisker = _strokes(len(days))
    lost, low, high = ((part[column] / lost_size).round(3) for column in ("lost_kwh", "lost_kwh_low", "lost_kwh_high"))
    figure.add_bar(
        x=days, y=lost.to_list(), name="Lost", row=1, col=1, visible=name == ALL,
        marker={"color": LOST, "opacity": opacity, "line": edge},
        error_y={
            "type": "data", "array": (high - lost).round(3).to_list(), "arrayminus": (lost - low).round(3).to_list(),
            **whisker,
        },
        customdata=[f"{a:,.1f} to {b:,.1f}" for a, b in zip(low, high, strict=True)],
        hovertemplate=f"%{{y:,.1f}} {lost_unit} (%{{customdata}})",
    )  # fmt: skip
    figure.add_bar(
        x=days, y=(part["observed_kwh"] / seen_size).round(3).to_list(), name="Recorded", row=2, col=1,
        visible=name == ALL, marker={"color": OBSERVED, "opacity": opacity, "line": edge},
        hovertemplate=f"%{{y:,.1f}} {seen_unit}",
    )  # fmt: skip


def _strokes(weeks: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Styles of outlines and whiskers; with many weeks, bars are so thin that these would hide them."""
    if weeks > MAX_OUTLINED:
        return {"width": 0}, {"thickness": 0.8, "width": 0, "color": PALE}
    return {}, {"thickness": 1.2, "width": 2, "color": TEXT}


def _maximum(values: pl.Series) -> float:
    return float(values.max() or 0.0)  # type: ignore[arg-type]


def _menu(names: list[str]) -> dict[str, object]:
    """A menu that shows the bars of one region; each region has two traces, see `_add_bars`."""
    labels = ["All regions", *(f"Region {short(name, MAX_NAME)}" for name in names[1:])]
    buttons = [
        {"label": label, "method": "update", "args": [{"visible": [i == j // 2 for j in range(2 * len(names))]}]}
        for i, label in enumerate(labels)
    ]
    return {
        "buttons": buttons, "x": 0, "xanchor": "left", "y": 1.03, "yanchor": "bottom", "bgcolor": "#ffffff",
        "bordercolor": "#c5ccd3", "pad": {"t": 0, "b": 0},
    }  # fmt: skip


def _caption(report: LostTables) -> str:
    regions, shown = report.summary["regions"], len(_choices(report))
    choose = "" if regions == 1 else (
        f"Choose one of the {regions} regions in the menu. " if regions <= shown else
        f"Choose one of the {shown} regions that lost the most in the menu. "
    )  # fmt: skip
    pale = "Pale weeks are only partly covered by the records. " if report.partial_weeks() else ""
    return (
        f"Top: energy lost, with {percent(report.interval)} ranges. Bottom: energy recorded, on another scale. "
        f"{choose}{pale}All weeks are in weeks.csv."
    )


RECOVERED_WEEKS = Figure("recovered-weeks", "Week by week", _draw, _caption)
