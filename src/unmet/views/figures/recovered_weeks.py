"""Lost and recorded energy per week, of all regions or one; on separate scales, so that small losses are visible."""

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
LABELS = 5  # number of labelled weeks
PALE = "rgba(31, 41, 51, 0.5)"
WEEK_MS = 7 * 86_400_000
MANY = 80  # weeks above which bars are too thin for outlines and caps
NAME = 20  # characters of a region's name, so that the menu fits a phone
CUT = 0.45  # opacity of a week that the records cover only in part


def _choices(report: LostTables) -> list[str]:
    """The regions to choose from, largest loss first; none if there is only one."""
    weeks = report.weeks["week"].n_unique()
    number = min(max(MAX_BARS // max(weeks, 1), MIN_REGIONS), MAX_REGIONS)
    return report.ranked_regions()["unique_id"].head(number).to_list() if report.summary["regions"] > 1 else []


def _draw(report: LostTables) -> go.Figure:
    names = [ALL, *_choices(report)]
    every = report.weeks.filter(pl.col("unique_id") == ALL).sort("week")
    units = [energy_unit(_most(every[column])) for column in ("lost_kwh_high", "observed_kwh")]
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.6, 0.4], vertical_spacing=0.06)
    for name in names:
        _add_bars(figure, report, name, units)
    days = every["week"].to_list()
    figure.update_xaxes(
        tickformat="%d %b<br>%Y", tick0=days[0], hoverformat="%d %b %Y", tickangle=0, tickfont={"size": 12},
        dtick=WEEK_MS * -(-len(days) // LABELS),
    )  # fmt: skip
    gap = 0.0 if len(days) > MANY else 0.25
    layout(figure, 500, legend_above=False).update_layout(bargap=gap, showlegend=False)
    figure.update_xaxes(title="Week from Monday, local time", row=2, col=1)
    for row, (what, (unit, _)) in enumerate(zip(("Lost", "Recorded"), units, strict=True), start=1):
        figure.update_yaxes(title=f"{what} [{unit}]", tickformat=",", rangemode="tozero", row=row, col=1)
    return figure if len(names) == 1 else figure.update_layout(updatemenus=[_menu(names)], margin_t=64)


def _add_bars(figure: go.Figure, report: LostTables, name: str, units: list[tuple[str, float]]) -> None:
    """Add the bars of one region. Only the bars of all regions together are visible at first."""
    part, cut = report.weeks.filter(pl.col("unique_id") == name).sort("week"), report.cut_weeks()
    days = part["week"].to_list()
    faint = [CUT if day in cut else 1.0 for day in days]
    (lost_unit, lost_size), (seen_unit, seen_size) = units
    edge, whisker = _strokes(len(days))
    lost, low, high = ((part[column] / lost_size).round(3) for column in ("lost_kwh", "lost_kwh_low", "lost_kwh_high"))
    figure.add_bar(
        x=days, y=lost.to_list(), name="Lost", row=1, col=1, visible=name == ALL,
        marker={"color": LOST, "opacity": faint, "line": edge},
        error_y={
            "type": "data", "array": (high - lost).round(3).to_list(), "arrayminus": (lost - low).round(3).to_list(),
            **whisker,
        },
        customdata=[f"{a:,.1f} to {b:,.1f}" for a, b in zip(low, high, strict=True)],
        hovertemplate=f"%{{y:,.1f}} {lost_unit} (%{{customdata}})",
    )  # fmt: skip
    figure.add_bar(
        x=days, y=(part["observed_kwh"] / seen_size).round(3).to_list(), name="Recorded", row=2, col=1,
        visible=name == ALL, marker={"color": OBSERVED, "opacity": faint, "line": edge},
        hovertemplate=f"%{{y:,.1f}} {seen_unit}",
    )  # fmt: skip


def _strokes(weeks: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Styles of outlines and whiskers; with many weeks, bars are so thin that these would hide them."""
    if weeks > MANY:
        return {"width": 0}, {"thickness": 0.8, "width": 0, "color": PALE}
    return {}, {"thickness": 1.2, "width": 2, "color": TEXT}


def _most(values: pl.Series) -> float:
    return float(values.max() or 0.0)  # type: ignore[arg-type]


def _menu(names: list[str]) -> dict[str, object]:
    """A menu that shows the bars of one region."""
    labels = ["All regions", *(f"Region {short(name, NAME)}" for name in names[1:])]
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
        f"The menu shows one of the {regions} regions alone. " if regions <= shown else
        f"The menu shows one of the {shown} regions that lost the most alone. "
    )  # fmt: skip
    pale = "Pale weeks are only partly covered by the records. " if report.cut_weeks() else ""
    return (
        f"Energy lost, with {percent(report.interval)} ranges, above energy recorded; their scales differ. "
        f"{choose}{pale}All weeks are in weeks.csv."
    )


RECOVERED_WEEKS = Figure("recovered-weeks", "Week by week", _draw, _caption)
