"""What plans gain, relative to the plan made from the true demand, and what they promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from unmet.views.figures.base import Figure
from unmet.views.theme import FAINT, layout, percent

if TYPE_CHECKING:
    from unmet.study.planning import PlanningStudy

__all__ = ["METHOD_STYLE", "PLANNING_PROMISES", "PLANNING_SHARE"]

METHOD_STYLE = {  # what the plan is made from; title, colour, marker
    "observed": ("Recorded demand", "#999999", "square"),
    "time-full": ("Time full (current practice)", "#E69F00", "diamond"),
    "censored-quantile": ("Censored quantile model", "#D55E00", "triangle-up"),
    "exposure": ("Exposure-aware estimate", "#009E73", "star"),
    "truth": ("The truth", "#1f2933", "x"),
}

KWH_PER_MWH = 1000.0
PROMISE_COLOURS = ("#0072B2", "#009E73")  # one per share of electric cars; further shares are not drawn


def _draw(study: PlanningStudy) -> go.Figure:
    shares = study.table["penetration"].unique(maintain_order=True).to_list()
    figure = make_subplots(
        cols=len(shares), shared_yaxes=True, horizontal_spacing=0.04,
        subplot_titles=[f"{percent(share)} electric cars" for share in shares],
    )  # fmt: skip
    for column, penetration in enumerate(shares, start=1):
        cells = study.table.filter(pl.col("penetration") == penetration)
        for method, (name, colour, marker) in METHOD_STYLE.items():
            own = cells.filter(pl.col("method") == method)
            if method == "truth" or own.is_empty():
                continue
            mean = own.group_by("plugs", maintain_order=True).agg(pl.col("share").mean())
            figure.add_scatter(
                x=mean["plugs"].to_list(), y=mean["share"].to_list(), mode="lines+markers", name=name,
                line={"color": colour, "width": 2.5}, marker={"symbol": marker, "size": 10},
                legendgroup=method, showlegend=column == 1, row=1, col=column,
                hovertemplate="%{y:.3f}<extra>" + name + "</extra>",
            )  # fmt: skip
            figure.add_scatter(
                x=own["plugs"].to_list(), y=own["share"].to_list(), mode="markers", legendgroup=method,
                showlegend=False,
                marker={"symbol": "circle", "size": 5, "color": colour, "opacity": 0.45}, hoverinfo="skip",
                row=1, col=column,
            )  # fmt: skip
    figure.add_hline(1.0, line={"color": FAINT, "dash": "dash"})
    plugs = study.table["plugs"].unique().sort().to_list()
    figure.update_xaxes(title="Plugs added", type="log", tickvals=plugs, ticktext=[str(n) for n in plugs])
    figure.update_yaxes(title="Gain relative to the plan from the truth", col=1)
    layout(figure, 460)
    return figure.update_layout(
        margin={"t": 90}, legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.12, "yanchor": "bottom"}
    )


def _caption(study: PlanningStudy) -> str:
    cities = study.table["seed"].n_unique()
    return (
        "Every plan is simulated in its city with the same trips. Its gain is the decrease in lost energy, relative to "
        f"that of the plan from the truth (dashed). Lines are means of {cities} cities; small dots are single cities."
    )


PLANNING_SHARE = Figure("planning-share", "What plans achieve", _draw, _caption)


def _draw_promises(study: PlanningStudy) -> go.Figure:
    own = study.table.filter(pl.col("method") == "exposure").sort("realised_kwh")
    figure = go.Figure()
    highest = (
        float(own.select(pl.max_horizontal("realised_kwh", "promised_kwh_high").max()).item()) / KWH_PER_MWH * 1.05
    )
    figure.add_scatter(
        x=[0, highest], y=[0, highest], mode="lines", line={"color": FAINT, "dash": "dash"}, name="As promised"
    )
    for penetration, colour in zip(own["penetration"].unique(maintain_order=True), PROMISE_COLOURS, strict=False):
        part = own.filter(pl.col("penetration") == penetration)
        promised = part["promised_kwh"]
        figure.add_scatter(
            x=(part["realised_kwh"] / KWH_PER_MWH).to_list(), y=(promised / KWH_PER_MWH).to_list(), mode="markers",
            marker={"color": colour, "size": 9}, name=f"{percent(penetration)} electric cars",
            error_y={"type": "data", "array": ((part["promised_kwh_high"] - promised) / KWH_PER_MWH).to_list(),
                     "arrayminus": ((promised - part["promised_kwh_low"]) / KWH_PER_MWH).to_list(), "thickness": 1.5},
        )  # fmt: skip
    figure.update_xaxes(title="Gain achieved [MWh in the period]", rangemode="tozero")
    figure.update_yaxes(title="Gain promised, with 90 % interval [MWh]", rangemode="tozero")
    return layout(figure, 460).update_layout(hovermode="closest")


def _caption_promises(study: PlanningStudy) -> str:
    return "The gain that plans made from records alone promise, against the gain that they achieve; a point per plan."


PLANNING_PROMISES = Figure("planning-promises", "Promised and achieved", _draw_promises, _caption_promises)
