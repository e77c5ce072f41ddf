"""Occupancy by hour of the week, one row per site."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import polars as pl
from numpy.typing import NDArray

from unmet.demand.booking import spread
from unmet.demand.calendar import HOURS_A_WEEK, hour_of_week, hours_between
from unmet.demand.panel import Panel
from unmet.views.figures.base import Figure
from unmet.views.lost_report import LostReport
from unmet.views.theme import layout, short

__all__ = ["DAYS", "OCCUPANCY", "SHOWN_SITES", "occupancy_by_week"]

SHOWN_SITES = 40
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def occupancy_by_week(panel: Panel, sites: pl.DataFrame) -> NDArray[np.float64]:
    """Mean share of each site's capacity that is taken, (sites, hours of the local week).

    Args:
        panel: the records.
        sites: the sites to show, with `site_id` and `capacity`.
    """
    first, last = panel.period
    hours = hours_between(first, last)
    site_of = panel.stations.select("station_id", "site_id").join(sites.select("site_id"), on="site_id", how="semi")
    sessions = panel.sessions.join(site_of, on="station_id", maintain_order="left")
    rows = pl.Series(np.arange(sites.height))
    site = sessions["site_id"].replace_strict(sites["site_id"], rows, return_dtype=pl.Int64)
    start_ms, end_ms = (sessions[name].dt.epoch("ms").to_numpy(writable=True) for name in ("start", "end"))
    car_hours = spread(
        site.to_numpy(writable=True),
        start_ms,
        end_ms,
        amount=(end_ms - start_ms) / 3.6e6,  # hours
        groups=sites.height,
        first_ms=int(first.timestamp() * 1000),
        hours=len(hours),
    )
    week = hour_of_week(hours, panel.time_zone).to_numpy()
    taken = np.zeros((sites.height, HOURS_A_WEEK))
    np.add.at(taken.T, week, car_hours.T)
    weeks = np.bincount(week, minlength=HOURS_A_WEEK).clip(1)
    return np.asarray(taken / weeks / sites["capacity"].to_numpy()[:, None], float)


def _shown(report: LostReport) -> pl.DataFrame:
    return report.ranked_sites().head(SHOWN_SITES)


def _draw(report: LostReport) -> go.Figure:
    sites = _shown(report)
    share = occupancy_by_week(report.panel, sites)
    names = [f"{short(str(name))} ({capacity})" for name, capacity in sites.select("label", "capacity").iter_rows()]
    rows = np.arange(len(names))
    labels = [f"{DAYS[h // 24]} {h % 24:02d}:00" for h in range(HOURS_A_WEEK)]
    figure = go.Figure(
        go.Heatmap(
            z=(100 * share).round(1), x=np.arange(HOURS_A_WEEK), y=rows, colorscale="Blues", zmin=0, zmax=100,
            customdata=[[f"{name}<br>{label}" for label in labels] for name in names], ygap=1,
            hovertemplate="%{customdata}: %{z:.0f} % of plugs taken<extra></extra>",
            colorbar={"title": {"text": "Plugs taken [%]", "side": "right"}, "ticksuffix": " %"},
        )
    )  # fmt: skip
    figure.update_xaxes(title="Hour of the week, local time", tickvals=np.arange(0, 168, 24), ticktext=list(DAYS))
    figure.update_yaxes(
        title="Site (cars at once)", autorange="reversed", showgrid=False, tickvals=rows, ticktext=names,
        tickfont={"size": 12},
    )  # fmt: skip
    layout(figure, 170 + 19 * sites.height, legend_above=False)
    return figure.update_layout(hovermode="closest", margin_l=60 + 7 * max(map(len, names)))


def _caption(report: LostReport) -> str:
    all_sites = report.sites.height
    shown = min(SHOWN_SITES, all_sites)
    which = f"The {shown} of {all_sites} sites that lost the most" if shown < all_sites else "All sites"
    return (
        f"{which}, the greatest loss on top. A car occupies its plug until its session ends, charging or idle. Where a "
        "row is dark for hours, drivers are likely to be turned away."
    )


OCCUPANCY = Figure("occupancy", "When plugs are taken", _draw, _caption, wide=True)
