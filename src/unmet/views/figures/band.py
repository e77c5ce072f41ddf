"""A forecast over time: the interval as a band, and lines on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import plotly.graph_objects as go
import polars as pl

from unmet.models.forecaster import Forecaster, quantile_column
from unmet.views.theme import FORECAST

__all__ = ["Line", "add_forecast", "local_times"]


class Line(NamedTuple):
    """A line over time."""

    name: str
    times: list[Any]
    values: pl.Series
    colour: str
    dash: str = "solid"


def local_times(frame: pl.DataFrame, time_zone: str) -> list[Any]:
    """The hours of a table in local time."""
    return frame["ds"].dt.convert_time_zone(time_zone).dt.replace_time_zone(None).to_list()


def add_forecast(figure: go.Figure, row: int, model: Forecaster, forecast: pl.DataFrame, lines: list[Line]) -> None:
    """Draw a forecast (`ds, mean` and quantiles of one region) and further lines into a row of a figure."""
    times = local_times(forecast, model.time_zone_)
    low, high = (forecast[quantile_column(model.levels[end])].round(1).to_list() for end in (0, -1))
    place = {"row": row, "col": 1}
    figure.add_scatter(x=times, y=high, line={"width": 0}, showlegend=False, hoverinfo="skip", **place)
    figure.add_scatter(
        x=times, y=low, line={"width": 0}, fill="tonexty", fillcolor=FORECAST[1], hoverinfo="skip",
        name=f"{100 * (model.levels[-1] - model.levels[0]):.0f} % interval", legendgroup="interval",
        showlegend=row == 1, **place,
    )  # fmt: skip
    for line in [*lines, Line("Expected (mean)", times, forecast["mean"], FORECAST[0])]:
        figure.add_scatter(
            x=line.times, y=line.values.round(1).to_list(), name=line.name, legendgroup=line.name, showlegend=row == 1,
            line={"color": line.colour, "width": 1.6, "dash": line.dash}, hovertemplate="%{y:.0f} kWh", **place,
        )  # fmt: skip
    figure.update_yaxes(title="Demand [kWh]", rangemode="tozero", **place)
