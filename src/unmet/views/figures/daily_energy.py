"""Recorded energy per day over the period."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from unmet.views.figures.base import Figure
from unmet.views.lost_report import LostReport
from unmet.views.theme import OBSERVED, layout

__all__ = ["DAILY_ENERGY"]


def _draw(report: LostReport) -> go.Figure:
    day = pl.col("ds").dt.convert_time_zone(report.panel.time_zone).dt.date()
    daily = report.panel.table.group_by(day.alias("day")).agg(pl.col("y").sum()).sort("day")
    figure = go.Figure(
        go.Bar(
            x=daily["day"].to_list(), y=daily["y"].round(1).to_list(), marker_color=OBSERVED,
            hovertemplate="%{x|%a %d %b %Y}: %{y:,.0f} kWh<extra></extra>",
        )
    )  # fmt: skip
    figure.update_xaxes(title="Day, local time")
    figure.update_yaxes(title="Recorded energy [kWh per day]", tickformat=",", rangemode="tozero")
    layout(figure, 340, legend_above=False)
    return figure.update_layout(hovermode="closest", bargap=0.05)


def _caption(report: LostReport) -> str:
    sessions = report.panel.sessions
    return f"{sessions.height:,} sessions with {sessions['energy_kwh'].sum():,.0f} kWh."


DAILY_ENERGY = Figure("daily-energy", "Recorded energy", _draw, _caption)
