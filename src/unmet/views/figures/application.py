"""True, observed and predicted demand in the most censored region."""

from __future__ import annotations

import datetime as dt

import plotly.graph_objects as go
import polars as pl

from unmet.study.cells import ORACLE, UNAWARE
from unmet.views.figures.band import local_times
from unmet.views.figures.base import Figure
from unmet.views.study_report import StudyReport, model_title
from unmet.views.theme import FAINT, MODEL_STYLE, TEXT, layout

__all__ = ["APPLICATION"]

FIRST_VIEW = dt.timedelta(days=7)  # part of the time axis that is shown at first
VISIBLE_MODELS = (UNAWARE, "censored-quantile")  # shown at first, besides the model with the interval


def _hours(report: StudyReport) -> pl.DataFrame:
    if report.hours is None:
        raise ValueError("the study kept no forecasts")
    return report.hours


def _draw(report: StudyReport) -> go.Figure:
    hours, zone = _hours(report), report.experiment.scenes[0].time_zone
    figure = go.Figure()
    # The oracle is left out, because it was trained on true demand. The last model also has its interval drawn, before
    # the lines, so that it lies below them.
    models = [model for model in report.models() if model != ORACLE] or report.models()
    band = models[-1]
    part = hours.filter(pl.col("model") == band).sort("ds")
    colour = MODEL_STYLE.get(band, ("#444444", ""))[0]
    for column, fill in (("q0.95", None), ("q0.05", "tonexty")):
        figure.add_scatter(
            x=local_times(part, zone), y=part[column].round(1).to_list(), line={"width": 0}, fill=fill,
            hoverinfo="skip", fillcolor=_faint(colour), name=f"90 % interval, {model_title(band).lower()}",
            showlegend=fill is not None,
        )  # fmt: skip
    for model in models:
        part = hours.filter(pl.col("model") == model).sort("ds")
        figure.add_scatter(
            x=local_times(part, zone), y=part["q0.5"].round(1).to_list(), name=model_title(model),
            line={"color": MODEL_STYLE.get(model, ("#444444", ""))[0], "width": 2}, hovertemplate="%{y:.0f} kWh",
            visible=True if model in VISIBLE_MODELS or model == band else "legendonly",
        )  # fmt: skip
    part = hours.filter(pl.col("model") == models[0]).sort("ds")
    for name, column, colour, dash in (("Observed", "y", FAINT, "dot"), ("True", "y_true", TEXT, "solid")):
        figure.add_scatter(
            x=local_times(part, zone), y=part[column].round(1).to_list(), name=name, hovertemplate="%{y:.0f} kWh",
            line={"color": colour, "width": 1.6, "dash": dash},
        )  # fmt: skip
    first = min(local_times(hours, zone))
    figure.update_xaxes(title="Day, local time", range=[first, first + FIRST_VIEW], tickformat="%a\n%d %b")
    figure.update_yaxes(title="Demand [kWh]", rangemode="tozero")
    return layout(figure, 460)


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.18)"


def _caption(report: StudyReport) -> str:
    region = _hours(report)["unique_id"][0]
    return (
        f"Region {region}, the most censored one: held-out hours, each forecast one hour ahead (medians, averaged over "
        f"the runs). The first {FIRST_VIEW.days} days are shown; drag the axis for the rest, and click names in the "
        "legend for more models."
    )


APPLICATION = Figure("application", "True, observed and predicted demand", _draw, _caption)
