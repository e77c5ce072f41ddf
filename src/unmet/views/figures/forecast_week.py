"""Forecasts of held-out hours, one hour ahead, next to actual demand."""

from __future__ import annotations

import datetime as dt

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from unmet.evaluation.measures import mean_of
from unmet.models.quantile_levels import quantile_column
from unmet.views.figures.band import Line, add_forecast, local_times
from unmet.views.figures.base import Figure
from unmet.views.model_report import ModelReport
from unmet.views.theme import LOST, OBSERVED, layout

__all__ = ["FORECAST_WEEK"]

FIRST_VIEW = dt.timedelta(days=7)  # part of the time axis that is shown at first


def _regions(report: ModelReport) -> list[str]:
    """The region that lost the most demand, and the one with the worst forecast.

    If the truth is unknown, the region with the most observed demand replaces the first.
    """
    hours = report.unseen.hours
    measure = (
        (pl.col("y_true") - pl.col("y")).fill_nan(0).sum()
        if "y_true" in hours.columns
        else pl.col("y").fill_nan(0).sum()
    )
    order = hours.group_by("unique_id").agg(measure.alias("size")).sort("size", "unique_id", descending=[True, False])
    names = order["unique_id"].to_list()
    worst = report.unseen.comparison.by_region()["unique_id"].to_list()
    return list(dict.fromkeys([names[0], *worst[:1]]))


def _draw(report: ModelReport) -> go.Figure:
    model, hours = report.model, report.unseen.hours
    names = _regions(report)
    titles = [f"Region {name}" for name in names]
    figure = make_subplots(rows=len(names), shared_xaxes=True, subplot_titles=titles, vertical_spacing=0.12)
    for row, name in enumerate(names, start=1):
        part = hours.filter(pl.col("unique_id") == name).sort("ds")
        times = local_times(part, model.time_zone_)
        lines = [Line("Observed", times, part["y"], OBSERVED, "dot")]
        if "y_true" in part.columns:
            lines.append(Line("True", times, part["y_true"], LOST))
        if "mean" not in part.columns:
            columns = [quantile_column(level) for level in model.levels]
            part = part.with_columns(mean=mean_of(part.select(columns).to_numpy(), model.levels))
        add_forecast(figure, row, model, part, lines)
    first = min(local_times(hours, model.time_zone_))
    figure.update_xaxes(range=[first, first + FIRST_VIEW], tickformat="%a\n%d %b")
    figure.update_xaxes(title="Day, local time", row=len(names), col=1)
    return layout(figure, 300 * len(names)).update_layout(legend_y=1.07, margin_t=80)


def _caption(report: ModelReport) -> str:
    what = "demand was lost" if "y_true" in report.unseen.hours.columns else "demand was observed"
    return (
        f"Held-out hours, each forecast one hour ahead, in the region in which the most {what}, and where the model is "
        f"worst compared with the table of past weeks. The first {FIRST_VIEW.days} days are shown; drag the axis for "
        "the rest."
    )


FORECAST_WEEK = Figure("forecast-week", "Forecast and actual demand", _draw, _caption)
