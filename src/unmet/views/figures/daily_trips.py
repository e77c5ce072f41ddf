"""Trips per day over the period."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import polars as pl

from unmet.study.censoring import CensoringStudy
from unmet.views.figures.base import Figure
from unmet.views.theme import FAINT, OBSERVED, layout

__all__ = ["DAILY_TRIPS"]


def _draw(study: CensoringStudy) -> go.Figure:
    day = pl.col("start_time").dt.convert_time_zone(study.city.time_zone).dt.date()
    daily = study.city.trips.group_by(day.alias("day")).len("trips").sort("day")
    weekend = daily["day"].dt.weekday() >= 6
    figure = go.Figure()
    for name, rows, colour in (("Weekday", ~weekend, OBSERVED), ("Weekend", weekend, FAINT)):
        part = daily.filter(rows)
        figure.add_bar(x=part["day"].to_list(), y=part["trips"].to_list(), name=name, marker_color=colour)
    figure.update_traces(hovertemplate="%{x|%a %d %b}: %{y:,} trips<extra></extra>")
    figure.update_xaxes(title="Day", tickformat="%d %b")
    figure.update_yaxes(title="Trips per day", tickformat=",", rangemode="tozero")
    layout(figure, 380)
    return figure.update_layout(hovermode="closest", bargap=0.15)


def _caption(study: CensoringStudy) -> str:
    trips = study.city.trips
    per_car = trips.group_by("vehicle_id").len()["len"]
    text = f"{trips.height:,} trips of {len(per_car):,} cars, a median of {np.median(per_car):.0f} trips per car."
    return text + " As in the paper, 14-20 October is a holiday." if study.city.is_built_in else text


DAILY_TRIPS = Figure("daily-trips", "Trips per day", _draw, _caption)
