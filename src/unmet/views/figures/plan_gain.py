"""Energy recovered against plugs added, with its interval, the plan and the knee."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from unmet.views.figures.base import Figure
from unmet.views.theme import FAINT, FORECAST, TEXT, count, energy, energy_unit, layout, percent

if TYPE_CHECKING:
    from unmet.planning.plan import Plan

__all__ = ["PLAN_GAIN"]


def _draw(plan: Plan) -> go.Figure:
    curve = plan.tables.curve
    unit, size = energy_unit(float(curve["gain_kwh_high"].max() or 0.0))  # type: ignore[arg-type]
    plugs = curve["plugs"].to_list()
    gain, low, high = ((curve[name] / size).to_list() for name in ("gain_kwh", "gain_kwh_low", "gain_kwh_high"))
    line, band = FORECAST
    figure = go.Figure()
    figure.add_scatter(x=plugs, y=high, mode="lines", line={"width": 0}, showlegend=False, hoverinfo="skip")
    figure.add_scatter(
        x=plugs, y=low, mode="lines", line={"width": 0}, fill="tonexty", fillcolor=band,
        name=f"{percent(plan.interval)} range", hoverinfo="skip",
    )  # fmt: skip
    figure.add_scatter(
        x=plugs, y=gain, mode="lines+markers", line={"color": line, "width": 3}, marker={"size": 5}, name="Recovered",
        customdata=[[energy(value * size) for value in values] for values in zip(gain, low, high, strict=True)],
        hovertemplate="%{customdata[0]} per week (%{customdata[1]} to %{customdata[2]})<extra></extra>",
    )  # fmt: skip
    lost = plan.lost_kwh / size
    figure.add_scatter(
        x=[plugs[0], plugs[-1]], y=[lost, lost], mode="lines", name="All lost energy", hoverinfo="skip",
        line={"color": FAINT, "dash": "dot", "width": 1.5},
    )  # fmt: skip
    # The plan is labelled above the curve, the knee below [px].
    for at, text, shift in ((plan.plugs, "this plan", -42), (plan.knee, "knee", 46)):
        if at is None or at not in plugs or (text == "knee" and at == plan.plugs):
            continue
        figure.add_annotation(
            x=at, y=gain[plugs.index(at)], text=f"<b>{text}</b>: {count(at, 'plug')}", ax=0, ay=shift, arrowcolor=TEXT,
            arrowwidth=1.2, bgcolor="rgba(255, 255, 255, 0.8)", font={"size": 13},
        )  # fmt: skip
    figure.update_xaxes(title="Plugs added", rangemode="tozero")
    figure.update_yaxes(title=f"Energy recovered per week [{unit}]", rangemode="tozero")
    return layout(figure, 440)


def _caption(plan: Plan) -> str:
    knee = (
        f" The knee, at {count(plan.knee, 'plug')}, is where the curve is highest above the line between its ends: "
        "each further plug gains less than the average of those before."
        if plan.knee
        else ""
    )
    return (
        "Plugs are added one by one where the next recovers the most. The band contains the truth with a probability "
        f"of {percent(plan.interval)}. If the estimate is off, the whole curve is too high or too low.{knee}"
    )


PLAN_GAIN = Figure("gain", "What more plugs would recover", _draw, _caption)
