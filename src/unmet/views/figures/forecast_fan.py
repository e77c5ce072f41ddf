"""The forecast of the hours ahead, in the busiest regions."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from unmet.views.figures.band import Line, add_forecast, local_times
from unmet.views.figures.base import Figure
from unmet.views.model_report import ForecastReport
from unmet.views.theme import OBSERVED, layout

__all__ = ["FORECAST_FAN"]

MAX_REGIONS = 4
PAST_HOURS = 48  # hours drawn before the forecast


def _draw(report: ForecastReport) -> go.Figure:
    names = report.busiest()[:MAX_REGIONS]
    zone = report.model.time_zone_
    figure = make_subplots(
        rows=len(names), shared_xaxes=True, subplot_titles=[f"Region {name}" for name in names],
        vertical_spacing=0.25 / len(names),
    )  # fmt: skip
    for row, name in enumerate(names, start=1):
        part = report.expected().filter(pl.col("unique_id") == name).sort("ds")
        past = report.past.filter(pl.col("unique_id") == name).sort("ds").tail(PAST_HOURS)
        observed = Line("Observed so far", local_times(past, zone), past["demand"], OBSERVED)
        add_forecast(figure, row, report.model, part, [observed])
    figure.update_xaxes(tickformat="%a\n%d %b")
    figure.update_xaxes(title="Day, local time", row=len(names), col=1)
    return layout(figure, 90 + 210 * len(names)).update_layout(legend_y=1.0 + 0.1 / len(names), margin_t=80)


def _caption(report: ForecastReport) -> str:
    what = "true demand" if report.model.forecasts_true else "demand"
    totals = report.totals()
    named, all_kwh = min(MAX_REGIONS, totals.height), float(totals["kwh"].sum())
    named_kwh = float(totals["kwh"].head(named).sum())
    share = "all" if named == totals.height else f"{named_kwh / 1000:,.1f}"
    return (
        f"Forecast of {what} in the {named} regions with the most expected demand, after {PAST_HOURS} observed hours. "
        f"Together, they account for {share} of the {all_kwh / 1000:,.1f} MWh above. All regions and hours are in "
        "forecast.parquet."
    )


FORECAST_FAN = Figure("forecast-fan", "The hours ahead", _draw, _caption)
