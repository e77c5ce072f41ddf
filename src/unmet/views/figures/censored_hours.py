"""Censored hours against penetration, one line per queue, with the paper's points."""

from __future__ import annotations

import plotly.graph_objects as go

from unmet.simulation.queues import queue_named
from unmet.study.censoring import CensoringStudy
from unmet.views.figures.base import Figure
from unmet.views.theme import FAINT, QUEUE_STYLE, TEXT, layout

__all__ = ["CENSORED_HOURS"]


def _draw(study: CensoringStudy) -> go.Figure:
    figure = go.Figure()
    shares = [100 * p for p in study.penetrations]
    for queue in study.queues:
        colour, marker = QUEUE_STYLE.get(queue, (TEXT, "cross"))
        title = queue_named(queue).title
        ours = [study.cell(queue, p).censored_hours_percent for p in study.penetrations]
        figure.add_scatter(
            x=shares,
            y=ours,
            name=title,
            mode="lines+markers",
            line={"color": colour, "width": 2.5},
            marker={"symbol": marker, "size": 9},
            hovertemplate="%{y:.1f} %",
        )
        if not study.city.is_built_in:
            continue
        figure.add_scatter(
            x=shares,
            y=[study.paper_percent(queue, p) for p in study.penetrations],
            name=f"{title}, paper",
            showlegend=False,
            mode="lines+markers",
            line={"color": colour, "width": 1.5, "dash": "dot"},
            marker={"symbol": f"{marker}-open", "size": 10, "line_width": 2},
            hovertemplate="%{y:.1f} %",
        )
    if study.city.is_built_in:  # an entry of the legend only
        figure.add_scatter(
        x=[None], y=[None], name="The paper's", mode="lines+markers",
        line={"color": FAINT, "width": 1.5, "dash": "dot"},
        marker={"symbol": "circle-open", "size": 10, "line_width": 2},
    )  # fmt: skip
    figure.update_xaxes(title="Electric cars [% of the city's cars]", tickvals=shares)
    figure.update_yaxes(title="Hours in which demand is lost [%]", rangemode="tozero")
    return layout(figure, 460)


def _caption(study: CensoringStudy) -> str:
    known = [(c.censored_hours_percent, study.paper_percent(c.queue, c.penetration)) for c in study.cells]
    differences = [abs(ours - paper) for ours, paper in known if paper is not None]
    if not differences:
        return "Share of hours in which any station turned a driver away."
    return (
        "Share of hours in which any station turned a driver away: this city (filled) and the paper's Table 1 (open). "
        f"Mean absolute difference {sum(differences) / len(differences):.1f} percentage points, largest "
        f"{max(differences):.1f}. The trips are synthetic; the paper's are GPS records that are not public."
    )


CENSORED_HOURS = Figure("censored-hours", "How often demand is lost", _draw, _caption)
