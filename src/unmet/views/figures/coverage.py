"""Coverage of the interval at each horizon."""

from __future__ import annotations

import plotly.graph_objects as go

from unmet.views.figures.base import Figure
from unmet.views.model_report import ModelReport
from unmet.views.theme import FAINT, FORECAST, layout

__all__ = ["COVERAGE"]


def _draw(report: ModelReport) -> go.Figure:
    rows = report.unseen.horizons
    names = [_name(row["from_hour"], row["to_hour"]) for row in rows]
    share = 100 * (report.model.levels[-1] - report.model.levels[0])
    figure = go.Figure()
    figure.add_bar(
        x=names, y=[round(100 * row["coverage"], 1) for row in rows], marker_color=FORECAST[0], showlegend=False,
        text=[f"{100 * row['coverage']:.0f}" for row in rows], textposition="inside",
        insidetextanchor="end", textfont={"color": "white"},
        hovertemplate="%{y:.1f} %",
    )  # fmt: skip
    figure.add_hline(
        share,
        line={"color": FAINT, "dash": "dash"},
        annotation_text=f"{share:.0f} % intended",
        annotation_position="top left",
    )
    figure.update_xaxes(title="Hours ahead")
    figure.update_yaxes(title="Hours inside the interval [%]", range=[0, 108])
    return layout(figure, 360, legend_above=False)


def _name(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _caption(report: ModelReport) -> str:
    against = "true" if report.unseen.against == "y_true" else "observed"
    return (
        f"Share of held-out region-hours whose {against} demand is inside the interval, by hours ahead. Hours without "
        "demand are weighted by the forecast probability of no demand, if the model gives one."
    )


COVERAGE = Figure("coverage", "How often the interval is right", _draw, _caption)
