"""Share of the gap between records and truth that each model closes, in cells with a gap."""

from __future__ import annotations

import plotly.graph_objects as go

from unmet.study.cells import ORACLE, UNAWARE
from unmet.study.results import MIN_GAP
from unmet.views.figures.base import Figure
from unmet.views.study_report import StudyReport, model_title
from unmet.views.theme import FAINT, MODEL_STYLE, layout, percent

__all__ = ["STUDY_GAP"]

NEAR_ONE = 0.8  # from here on, a label above its bar would touch the dashed line at 1
MIN_SHOWN, MAX_SHOWN = -1.0, 1.25  # bars are cut off beyond these; they are labelled with their values


def _draw(report: StudyReport) -> go.Figure:
    # Title, group and column of the cells in which the gap is large enough to compare models
    judged = [
        (f"{name}, {report.column_name(column)}", group, column)
        for name, group in report.groups()
        for column in report.columns
        if any(cell and cell["judged"] for model in report.models() if (cell := report.cell(group, model, column)))
    ]
    figure = go.Figure()
    for model in report.models():
        if model in (UNAWARE, ORACLE):
            continue
        cells = [report.cell(group, model, column) for _, group, column in judged]
        values = [None if cell is None else cell["gap_closed"] for cell in cells]
        figure.add_bar(
            x=[name for name, _, _ in judged],
            y=[None if v is None else min(max(v, MIN_SHOWN), MAX_SHOWN) for v in values],
            name=model_title(model), marker_color=MODEL_STYLE.get(model, ("#444444", ""))[0],
            text=["" if v is None else f"{v:.2f}" for v in values], cliponaxis=False,
            # The dashed line would strike through the label of a bar that ends there.
            textposition=["inside" if v is not None and NEAR_ONE < v < MAX_SHOWN else "outside" for v in values],
            insidetextfont={"color": "white"}, textangle=0,
            hovertemplate=f"{model_title(model)}: %{{text}}<extra></extra>",
        )  # fmt: skip
    figure.add_hline(1.0, line={"color": FAINT, "dash": "dash"})
    figure.update_xaxes(title="Cell")
    figure.update_yaxes(title="Gap closed", range=[MIN_SHOWN - 0.15, MAX_SHOWN + 0.15])
    return layout(figure, 420).update_layout(hovermode="closest")


def _caption(report: StudyReport) -> str:
    return (
        "How much of the gap between the quantile model that ignores censoring (0) and the oracle, which is trained on "
        f"the truth (1, dashed), each model closes. Cells in which the gap is under "
        f"{percent(MIN_GAP)} of the oracle's loss are left out: there is hardly anything to close. "
        f"Bars are cut off at {MIN_SHOWN:g} and {MAX_SHOWN:g}."
    )


STUDY_GAP = Figure("gap-closed", "How much of the gap is closed", _draw, _caption)
