"""Energy a day over the period."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from unmet.demand.panel import Panel
from unmet.views.figures.base import Figure
from unmet.views.theme import OBSERVED, layout

__all__ = ["DAILY_ENERGY"]


def _draw(panel: Panel) -> go.Figure:
    day = pl.col("ds").dt.convert_time_zone(panel.time_zone).dt.date()
    daily = panel.table.group_by(day.alias("day")).agg(pl.col("y").sum()).sort("day")
    figure = go.Figure(
        go.Bar(
            x=daily["day"].to_list(), y=daily["y"].round(1).to_list(), marker_color=OBSERVED,
            hovertemplate="%{x|%a %d %b %Y}: %{y:,.0f} kWh<extra></extra>",
        )
    )  # fmt: skip
    figure.update_xaxes(title="Day, local time")
    figure.update_yaxes(title="Observed energy [kWh a day]", tickformat=",", rangemode="tozero")
    layout(figure, 340, legend_above=False)
    return figure.update_layout(hovermode="closest", bargap=0.05)


def _caption(panel: Panel) -> str:
    return f"{panel.sessions.height:,} sessions with {panel.sessions['energy_kwh'].sum():,.0f} kWh."


DAILY_ENERGY = Figure("daily-energy", "Observed energy", _draw, _caption)
