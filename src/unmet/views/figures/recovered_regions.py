"""The share of demand that each region lost, the largest on top."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from unmet.views.figures.base import Figure
from unmet.views.lost_tables import LostTables
from unmet.views.theme import LOST, TEXT, energy, layout, percent

__all__ = ["RECOVERED_REGIONS"]

MAX_REGIONS = 15
MAX_NAME = 20  # longest name of a region, or of a place in it, that fits a phone [characters]
ROW_PX = 44  # height of a bar with its label


def _shown(report: LostTables) -> pl.DataFrame:
    return report.ranked_regions().head(MAX_REGIONS).sort("lost_share", "unique_id", descending=[True, False])


def _draw(report: LostTables) -> go.Figure:
    regions = _shown(report)
    share, low, high = ((100 * regions[name]).round(2) for name in ("lost_share", "lost_share_low", "lost_share_high"))
    rows = list(range(regions.height))
    figure = go.Figure(
        go.Bar(
            x=share.to_list(), y=rows, orientation="h", marker_color=LOST, width=0.4,
            error_x={
                "type": "data", "array": (high - share).to_list(), "arrayminus": (share - low).to_list(),
                "thickness": 1.4, "width": 4, "color": TEXT,
            },
            customdata=[
                f"{name}<br>{energy(lost)} lost, {energy(observed)} recorded<br>{share_low:.1f} to {share_high:.1f}"
                for (name, lost, observed), share_low, share_high in zip(
                    regions.select("unique_id", "lost_kwh", "observed_kwh").iter_rows(), low, high, strict=True
                )
            ],
            hovertemplate="%{customdata} % of demand<extra></extra>",
        )
    )  # fmt: skip
    # Labels are above the bars, so that long names leave room for the bars in a narrow window.
    places = report.region_places()
    for row, (name, kwh) in enumerate(regions.select("unique_id", "lost_kwh").iter_rows()):
        where = f", {_cut(places[name].removeprefix('around '), MAX_NAME)}" if name in places else ""
        figure.add_annotation(
            x=0, y=row, text=f"{_cut(name, MAX_NAME)}{where}: {energy(kwh)}", showarrow=False, xanchor="left",
            yanchor="bottom", yshift=9, font={"size": 13, "color": TEXT},
        )  # fmt: skip
    figure.update_xaxes(title="Lost energy [% of all energy wanted]", rangemode="tozero", ticksuffix=" %")
    figure.update_yaxes(
        title="Region, with its lost energy", range=[regions.height - 0.5, -0.9], showgrid=False, showticklabels=False
    )
    layout(figure, 110 + ROW_PX * regions.height, legend_above=False)
    return figure.update_layout(hovermode="closest", margin_l=40)


def _cut(name: str, max_length: int) -> str:
    return name if len(name) <= max_length else f"{name[: max_length - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"


def _caption(report: LostTables) -> str:
    shown, all_regions = _shown(report).height, report.regions.height
    which = f"The {shown} of {all_regions} regions that lost the most. " if shown < all_regions else ""
    return (
        f"{which}Each name is followed by the busiest place, if known, and the lost energy. Whiskers are "
        f"{percent(report.interval)} ranges. All regions are in regions.csv."
    )


RECOVERED_REGIONS = Figure("recovered-regions", "Region by region", _draw, _caption)
