"""Censored hours by region next to the paper's clusters, both in descending order."""

from __future__ import annotations

import plotly.graph_objects as go

from unmet.simulation.queues import queue_named
from unmet.study.censoring import CensoringStudy
from unmet.views.figures.base import Figure
from unmet.views.theme import FAINT, OBSERVED, layout, percent

__all__ = ["REGION_BARS"]


def _draw(study: CensoringStudy) -> go.Figure:
    cell = study.worst_cell
    figure = go.Figure()
    ours = sorted(zip(study.regions.centres["unique_id"], cell.censored_hours_percent_by_region, strict=True),
                  key=lambda pair: -pair[1])  # fmt: skip
    rank = list(range(1, len(ours) + 1))
    figure.add_bar(
        x=rank, y=[censored for _, censored in ours], name="This city", marker_color=OBSERVED,
        text=[f"{censored:.0f}" for _, censored in ours], textposition="outside",
        customdata=[name for name, _ in ours], hovertemplate="region %{customdata}: %{y:.1f} %",
    )  # fmt: skip
    if paper_percents := study.paper_regions(cell):
        paper = sorted(enumerate(paper_percents), key=lambda pair: -pair[1])
        figure.add_bar(
            x=list(range(1, len(paper) + 1)), y=[censored for _, censored in paper], name="Paper", marker_color=FAINT,
            text=[f"{censored:.0f}" for _, censored in paper], textposition="outside",
            customdata=[str(cluster) for cluster, _ in paper], hovertemplate="cluster %{customdata}: %{y:.1f} %",
        )  # fmt: skip
    figure.update_xaxes(title="Region, from the most to the least censored", dtick=1)
    figure.update_yaxes(title="Hours in which demand is lost [%]", rangemode="tozero")
    return layout(figure, 400)


def _caption(study: CensoringStudy) -> str:
    cell = study.worst_cell
    censored = cell.censored_hours_percent_by_region
    paired = " Regions and the paper's clusters are different places, so they are paired by rank."
    return (
        f"{queue_named(cell.queue).title}, {percent(cell.penetration)} electric: from {min(censored):.1f} % to "
        f"{max(censored):.1f} % of hours are censored, {sum(censored) / len(censored):.1f} % on average."
        f"{paired if study.city.is_built_in else ''}"
    )


REGION_BARS = Figure("region-bars", "Where demand is lost", _draw, _caption)
