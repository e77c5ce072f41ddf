"""Average demand by hour of day and by weekday, with the lost part."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from unmet.simulation.queues import queue_named
from unmet.study.censoring import CensoringStudy
from unmet.views.figures.base import Figure
from unmet.views.theme import LOST, OBSERVED, layout, percent

__all__ = ["DEMAND_PROFILE"]

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def _draw(study: CensoringStudy) -> go.Figure:
    local = pl.col("ds").dt.convert_time_zone(study.city.time_zone)
    city = (
        study.worst_cell.panel.group_by("ds")
        .agg(pl.col("y", "y_true").sum().round(6))  # rounded, since the order of summation may differ
        .with_columns(hour=local.dt.hour(), weekday=local.dt.weekday(), day=local.dt.date())
    )
    by_hour = city.group_by("hour").agg(pl.col("y", "y_true").mean()).sort("hour")
    by_day = city.group_by("day", "weekday").agg(pl.col("y", "y_true").sum())
    by_weekday = by_day.group_by("weekday").agg(pl.col("y", "y_true").mean()).sort("weekday")
    figure = make_subplots(rows=2, subplot_titles=("By hour of the day", "By day of the week"), vertical_spacing=0.22)
    hours = by_hour["hour"].to_list()
    days = [_WEEKDAYS[d - 1] for d in by_weekday["weekday"]]
    for row, x, part in ((1, hours, by_hour), (2, days, by_weekday)):
        for name, y, colour in (
            ("Observed", part["y"], OBSERVED),
            ("Lost", part["y_true"] - part["y"], LOST),
        ):
            figure.add_bar(
                x=x, y=(y / 1000).round(4).to_list(), name=name, marker_color=colour, legendgroup=name,
                showlegend=row == 1, hovertemplate="%{y:.2f} MWh", row=row, col=1,
            )  # fmt: skip
    figure.update_xaxes(title="Hour, local time", dtick=3, row=1, col=1)
    figure.update_xaxes(title="Weekday", row=2, col=1)
    figure.update_yaxes(title="Demand [MWh per hour]", row=1, col=1)
    figure.update_yaxes(title="Demand [MWh per day]", row=2, col=1)
    layout(figure, 640)
    return figure.update_layout(barmode="stack", legend_y=1.06, margin_t=80)


def _caption(study: CensoringStudy) -> str:
    cell = study.worst_cell
    return (
        f"{queue_named(cell.queue).title}, {percent(cell.penetration)} electric: "
        f"{percent(cell.lost_share_of_energy, 1)} of the energy wanted is lost. Mean over "
        f"{cell.panel['ds'].n_unique():,} hours, booked at the hour of arrival."
    )


DEMAND_PROFILE = Figure("demand-profile", "When demand is lost", _draw, _caption)
