"""True and observed demand over time in the most and the least censored region."""

from __future__ import annotations

import datetime as dt

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from unmet.simulation.queues import queue_named
from unmet.study.censoring import CensoringStudy
from unmet.views.figures.base import Figure
from unmet.views.theme import LOST, OBSERVED, layout, percent

__all__ = ["REGION_DEMAND"]

FIRST_VIEW = dt.timedelta(days=10)  # part of the time axis that is shown at first


def _extremes(study: CensoringStudy) -> list[tuple[str, float]]:
    """The most and the least censored region, each with its share of censored hours [%]."""
    censored = study.worst_cell.censored_hours_percent_by_region
    order = sorted(range(len(censored)), key=censored.__getitem__)
    names = study.regions.centres["unique_id"]
    return [(names[i], censored[i]) for i in (order[-1], order[0])]


def _draw(study: CensoringStudy) -> go.Figure:
    panel = study.worst_cell.panel
    titles = [f"Region {name}: {censored:.0f} % of hours censored" for name, censored in _extremes(study)]
    figure = make_subplots(rows=2, shared_xaxes=True, subplot_titles=titles, vertical_spacing=0.12)
    for row, (name, _) in enumerate(_extremes(study), start=1):
        part = panel.filter(pl.col("unique_id") == name)
        hours = part["ds"].dt.convert_time_zone(study.city.time_zone).dt.replace_time_zone(None).to_list()
        for label, y, colour, fill in (
            ("Observed", part["y"], OBSERVED, "tozeroy"),
            ("True (with the lost part)", part["y_true"], LOST, "tonexty"),
        ):
            figure.add_scatter(
                x=hours, y=y.round(1).to_list(), name=label, legendgroup=label, showlegend=row == 1, fill=fill,
                line={"color": colour, "width": 1.2, "shape": "hv"}, hovertemplate="%{y:.0f} kWh", row=row, col=1,
            )  # fmt: skip
        figure.update_yaxes(title="Demand [kWh]", rangemode="tozero", row=row, col=1)
    first = study.city.period[0].replace(tzinfo=None)
    figure.update_xaxes(range=[first, first + FIRST_VIEW], tickformat="%a\n%d %b")
    figure.update_xaxes(title="Day, local time", row=2, col=1)
    layout(figure, 560)
    return figure.update_layout(legend_y=1.07, margin_t=80)


def _caption(study: CensoringStudy) -> str:
    cell = study.worst_cell
    return (
        f"Hourly demand in the most and the least censored region, {queue_named(cell.queue).title.lower()} at "
        f"{percent(cell.penetration)} electric cars. The first {FIRST_VIEW.days} days are shown; drag the axis or "
        "zoom out for the rest."
    )


REGION_DEMAND = Figure("region-demand", "What the records show, and what they hide", _draw, _caption)
