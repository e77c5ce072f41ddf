"""When demand is lost: energy by day of the week and hour of the day."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from unmet.views.figures.base import Figure
from unmet.views.lost_tables import LostTables
from unmet.views.theme import energy, layout, percent

__all__ = ["DAY_NAMES", "LOST_WEEK", "lost_when"]

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HALF = 0.5  # share of the loss within the part of the day that is named
SCALE = [[0, "rgba(213, 94, 0, 0.04)"], [0.5, "rgba(213, 94, 0, 0.55)"], [1, "rgb(150, 55, 0)"]]


def _draw(report: LostTables) -> go.Figure:
    week = report.week_hours
    z = week["lost_kwh"].to_numpy().reshape(7, 24)
    figure = go.Figure(
        go.Heatmap(
            z=np.round(z, 2), x=list(range(24)), y=[day[:3] for day in DAY_NAMES], colorscale=SCALE, zmin=0, xgap=1,
            ygap=1, customdata=[[f"{day}, {h} to {h + 1} h" for h in range(24)] for day in DAY_NAMES],
            hovertemplate="%{customdata}: %{z:.1f} kWh lost<extra></extra>",
            colorbar={"title": {"text": "Lost [kWh per hour]", "side": "right"}, "thickness": 14},
        )
    )  # fmt: skip
    figure.update_xaxes(
        title="Hour of the day, local time", tickvals=list(range(0, 24, 3)), showgrid=False, zeroline=False
    )
    figure.update_yaxes(autorange="reversed", showgrid=False)
    layout(figure, 320, legend_above=False)
    return figure.update_layout(hovermode="closest", margin_l=48)


def lost_when(report: LostTables) -> str:
    """One sentence on when most demand is lost; empty if none is."""
    lost = report.week_hours["lost_kwh"].fill_null(0.0).to_numpy().reshape(7, 24)
    total = float(lost.sum())
    if total <= 0:
        return ""
    first, last = _worst_hours(lost.sum(axis=0))
    share = float(lost[:, first:last].sum()) / total
    day, hour = divmod(int(lost.argmax()), 24)
    weekend = float(lost[5:].sum()) / total
    return (
        f"{percent(share)} of the loss falls between {first} and {last} o'clock, {percent(weekend)} on Saturdays and "
        f"Sundays. The worst hour is {DAY_NAMES[day]} from {hour} to {hour + 1} o'clock, with "
        f"{energy(lost[day, hour])} lost on average."
    )


def _worst_hours(by_hour: NDArray[np.float64]) -> tuple[int, int]:
    """The shortest part of the day with at least half of the loss; among several, the one with the largest loss."""
    sums = np.concatenate([[0.0], np.cumsum(by_hour)])
    for length in range(1, 25):
        inside = sums[length:] - sums[:-length]
        if inside.max() >= HALF * sums[-1]:
            return int(inside.argmax()), int(inside.argmax()) + length
    return 0, 24


def _caption(report: LostTables) -> str:
    missing = int(report.week_hours["lost_kwh"].null_count())
    gaps = f" {missing} hours of the week do not occur in the records." if missing else ""
    return f"Mean energy lost at all sites together in each hour of the week, {report.time_zone} time.{gaps}"


def _alternative(report: LostTables) -> str:
    return f"Lost energy by day of the week and hour of the day. {lost_when(report)}"


LOST_WEEK = Figure("lost-week", "When it was lost", _draw, _caption, alt=_alternative)
