"""Exposure of the regions by hour of the week."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import polars as pl

from unmet.views.figures.base import Figure
from unmet.views.figures.occupancy import DAYS
from unmet.views.lost_report import LostReport
from unmet.views.theme import layout, short

__all__ = ["EXPOSURE_WEEK"]

SHOWN_REGIONS = 40  # regions with the lowest exposure


def _draw(report: LostReport) -> go.Figure:
    week_hour = ((pl.col("weekday").cast(pl.Int64) - 1) * 24 + pl.col("hour")).alias("week_hour")
    mean = report.table.group_by("unique_id", week_hour).agg(pl.col("exposure").mean())
    lowest = mean.group_by("unique_id").agg(pl.col("exposure").mean()).sort("exposure", "unique_id").head(SHOWN_REGIONS)
    names = lowest["unique_id"].to_list()
    wide = mean.pivot("week_hour", index="unique_id", values="exposure")
    rows = wide.join(lowest.select("unique_id"), on="unique_id", how="right", maintain_order="right")
    hours = [h for h in range(168) if str(h) in wide.columns]
    z = rows.select(str(h) for h in hours).to_numpy()
    figure = go.Figure(
        go.Heatmap(
            z=(100 * z).round(1), x=hours, y=np.arange(len(names)), colorscale="Cividis",
            zmin=0, zmax=100, ygap=1, customdata=[[str(name)] * z.shape[1] for name in names],
            hovertemplate="%{customdata}: %{z:.0f} % of arrivals recorded<extra></extra>",
            colorbar={"title": {"text": "Recorded [%]", "side": "right"}, "ticksuffix": " %"},
        )
    )  # fmt: skip
    figure.update_xaxes(title="Hour of the week, local time", tickvals=np.arange(0, 168, 24), ticktext=list(DAYS))
    figure.update_yaxes(
        title="Region",
        autorange="reversed",
        showgrid=False,
        tickvals=np.arange(len(names)),
        ticktext=[short(str(name)) for name in names],
    )
    layout(figure, 190 + 22 * len(names), legend_above=False)
    return figure.update_layout(hovermode="closest", margin_l=150)


def _caption(report: LostReport) -> str:
    return (
        "Exposure: the share of drivers wanting to charge who could be served and therefore appear in the records. "
        f"Over all regions and hours it is {100 * float(report.table['exposure'].to_numpy().mean()):.1f} %."
    )


EXPOSURE_WEEK = Figure("exposure", "How much of the demand was recorded", _draw, _caption, wide=True)
