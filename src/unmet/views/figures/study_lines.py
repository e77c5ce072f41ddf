"""Measures of each model by penetration or market share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from unmet.views.figures.base import Figure
from unmet.views.study_report import StudyReport, model_title
from unmet.views.theme import FAINT, MODEL_STYLE, layout

__all__ = ["STUDY_INTERVALS", "STUDY_LOSS"]

IN_UNITS = ("tilted_loss", "mil")  # with market shares, these are shown in units of true, not observed demand


def _lines(measures: list[tuple[str, str, float | None]]) -> Callable[[StudyReport], go.Figure]:
    """Draw measures (name, axis title, reference line) in columns, the groups of the grid in rows."""

    def draw(report: StudyReport) -> go.Figure:
        groups = list(report.groups())
        columns = report.columns
        names = [report.column_name(value) for value in columns]
        several = len(groups) > 1
        titles = [name if several else "" for name, _ in groups for _ in measures]
        figure = make_subplots(
            rows=len(groups), cols=len(measures), subplot_titles=titles, vertical_spacing=0.2 / len(groups),
            horizontal_spacing=0.12,
        )  # fmt: skip
        for row, (_, group) in enumerate(groups, start=1):
            for col, (measure, title, reference) in enumerate(measures, start=1):
                for model in report.models():
                    cells = [report.cell(group, model, value) for value in columns]
                    column = f"{measure}_true" if measure in IN_UNITS and _by_share(report) else measure
                    _add_line(figure, names, cells, column, model, row, col, first=row == 1 and col == 1)
                figure.update_yaxes(title=title, row=row, col=col)
                if reference is not None:
                    figure.add_hline(reference, line={"color": FAINT, "dash": "dot"}, row=row, col=col)
        across = {"penetration": "Share of electric cars", "share": "Market share", "removed": "Energy turned away"}
        for col in range(1, len(measures) + 1):
            title = across.get(report.experiment.across, report.experiment.across)
            figure.update_xaxes(title=title, row=len(groups), col=col)
        return layout(figure, 120 + 280 * len(groups)).update_layout(
            legend_y=1 + 0.13 / len(groups), margin_t=90, hovermode="closest"
        )

    return draw


def _add_line(
    figure: go.Figure, names: list[str], cells: list[dict[str, Any] | None], measure: str, model: str, row: int,
    col: int, *, first: bool,
) -> None:  # fmt: skip
    """Add the line of a model to a subplot; `cells` has one entry per name on the x axis, `first` shows the legend."""
    colour, marker = MODEL_STYLE.get(model, ("#444444", "star"))
    values = [None if cell is None or cell[measure] is None else round(cell[measure], 4) for cell in cells]
    spread = [None if cell is None else cell.get(f"{measure}_std") for cell in cells]
    figure.add_scatter(
        x=names, y=values, mode="lines+markers", name=model_title(model), legendgroup=model, showlegend=first,
        line={"color": colour, "width": 2}, marker={"symbol": marker, "size": 8},
        error_y={"array": [s or 0 for s in spread], "thickness": 1} if any(spread) else None,
        hovertemplate=f"{model_title(model)}: %{{y:.3f}}<extra></extra>", row=row, col=col,
    )  # fmt: skip


def _by_share(report: StudyReport) -> bool:
    return report.experiment.across == "share"


def _unit(report: StudyReport) -> str:
    return f"in units of each region's largest {'true' if _by_share(report) else 'observed'} demand"


def _loss_caption(report: StudyReport) -> str:
    return (
        f"Tilted loss on true demand, {_unit(report)}, summed over regions and the "
        "0.05, 0.5 and 0.95 quantiles; whiskers are one standard deviation over scenes. Lower is better."
    )


def _interval_caption(report: StudyReport) -> str:
    return (
        "Left: share of hours with true demand inside the 90 % interval in the most censored region, as in the paper "
        f"(dotted: 0.9). Right: mean length of the interval over all regions, {_unit(report)}."
    )


STUDY_LOSS = Figure(
    "tilted-loss",
    "How far forecasts are from true demand",
    _lines([("tilted_loss", "Tilted loss", None)]),
    _loss_caption,
)
STUDY_INTERVALS = Figure(
    "intervals",
    "How often intervals are right, and how long they are",
    _lines([("icp_most_censored", "Coverage (ICP)", 0.9), ("mil", "Mean interval length (MIL)", None)]),
    _interval_caption,
)
