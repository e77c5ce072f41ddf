"""The share of demand that each region lost, the largest on top."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from unmet.views.figures.base import Figure
from unmet.views.recovery_report import RecoveryReport
from unmet.views.theme import LOST, TEXT, energy, layout, percent, short

__all__ = ["RECOVERED_REGIONS"]

MOST = 30


def _shown(report: RecoveryReport) -> pl.DataFrame:
    return report.regions().head(MOST).sort("lost_share", "unique_id", descending=[True, False])


def _draw(report: RecoveryReport) -> go.Figure:
    regions = _shown(report)
    share, low, high = ((100 * regions[name]).round(2) for name in ("lost_share", "lost_share_low", "lost_share_high"))
    rows = list(range(regions.height))
    labels = [f"{short(name)} ({energy(kwh)})" for name, kwh in regions.select("unique_id", "lost_kwh").iter_rows()]
    figure = go.Figure(
        go.Bar(
            x=share.to_list(), y=rows, orientation="h", marker_color=LOST, width=0.66,
            error_x={
                "type": "data", "array": (high - share).to_list(), "arrayminus": (share - low).to_list(),
                "thickness": 1.4, "width": 4, "color": TEXT,
            },
            customdata=[
                f"{name}<br>{energy(lost)} lost, {energy(seen)} seen<br>{a:.1f} to {b:.1f}"
                for (name, lost, seen), a, b in zip(
                    regions.select("unique_id", "lost_kwh", "observed_kwh").iter_rows(), low, high, strict=True
                )
            ],
            hovertemplate="%{customdata} % of true demand<extra></extra>",
        )
    )  # fmt: skip
    figure.update_xaxes(title="Lost energy, of all that was wanted [%]", rangemode="tozero", ticksuffix=" %")
    figure.update_yaxes(
        title="Region (energy lost)", tickvals=rows, ticktext=labels, autorange="reversed", showgrid=False,
        ticklabelstandoff=6,
    )  # fmt: skip
    layout(figure, 130 + 30 * regions.height, legend_above=False)
    return figure.update_layout(hovermode="closest", margin_l=100 + 7 * max(map(len, labels)))


def _caption(report: RecoveryReport) -> str:
    shown, number = _shown(report).height, report.regions().height
    some = f"The {shown} of {number} regions that lost most. " if shown < number else ""
    return f"{some}Whiskers hold the truth with a probability of about {percent(report.recovery.interval)}."


RECOVERED_REGIONS = Figure("recovered-regions", "Where demand was lost", _draw, _caption)
