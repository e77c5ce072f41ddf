"""Occupancy by hour of the week, a row a station."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import polars as pl
from numpy.typing import NDArray

from unmet.demand.booking import spread
from unmet.demand.calendar import HOURS_A_WEEK, hour_of_week, hours_between
from unmet.demand.panel import Panel
from unmet.views.figures.base import Figure
from unmet.views.theme import layout, short

__all__ = ["OCCUPANCY", "SHOWN_STATIONS", "occupancy_by_week"]

SHOWN_STATIONS = 40
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def occupancy_by_week(panel: Panel, stations: pl.DataFrame) -> NDArray[np.float64]:
    """Share of a station's plugs that are taken, (stations, hours of the local week)."""
    first, last = panel.period
    hours = hours_between(first, last)
    own = panel.sessions.join(stations.select("station_id"), on="station_id", how="semi")
    rows = pl.Series(np.arange(stations.height))
    station = own["station_id"].replace_strict(stations["station_id"], rows, return_dtype=pl.Int64)
    start, end = (own[name].dt.epoch("ms").to_numpy(writable=True) for name in ("start", "end"))
    car_hours = spread(
        station.to_numpy(writable=True),
        start,
        end,
        (end - start) / 3.6e6,
        stations.height,
        int(first.timestamp() * 1000),
        len(hours),
    )
    week = hour_of_week(hours, panel.time_zone).to_numpy()
    taken = np.zeros((stations.height, HOURS_A_WEEK))
    np.add.at(taken.T, week, car_hours.T)
    days = np.bincount(week, minlength=HOURS_A_WEEK).clip(1)
    return np.asarray(taken / days / stations["plugs"].to_numpy()[:, None], float)


def _shown(panel: Panel) -> pl.DataFrame:
    return panel.stations.sort("full_share", "station_id", descending=[True, False]).head(SHOWN_STATIONS)


def _draw(panel: Panel) -> go.Figure:
    stations = _shown(panel)
    share = occupancy_by_week(panel, stations)
    names = [f"{short(s)} ({p})" for s, p in stations.select("station_id", "plugs").iter_rows()]
    rows = np.arange(len(names))
    labels = [f"{DAYS[h // 24]} {h % 24:02d}:00" for h in range(HOURS_A_WEEK)]
    figure = go.Figure(
        go.Heatmap(
            z=(100 * share).round(1), x=np.arange(HOURS_A_WEEK), y=rows, colorscale="Blues", zmin=0, zmax=100,
            customdata=[[f"{name}<br>{label}" for label in labels] for name in stations["station_id"]], ygap=1,
            hovertemplate="%{customdata}: %{z:.0f} % of plugs taken<extra></extra>",
            colorbar={"title": "Plugs taken [%]", "ticksuffix": " %"},
        )
    )  # fmt: skip
    figure.update_xaxes(title="Hour of the week, local time", tickvals=np.arange(0, 168, 24), ticktext=list(DAYS))
    figure.update_yaxes(title="Station (plugs)", autorange="reversed", showgrid=False, tickvals=rows, ticktext=names)
    layout(figure, 170 + 19 * stations.height, legend_above=False)
    return figure.update_layout(hovermode="closest", margin_l=230)


def _caption(panel: Panel) -> str:
    shown = min(SHOWN_STATIONS, panel.stations.height)
    return (
        f"The {shown} most saturated of {panel.stations.height} stations, the worst on top. A car takes its plug until "
        "its session ends, charging or idle. Where a row is dark for hours, drivers go unseen."
    )


OCCUPANCY = Figure("occupancy", "When plugs are taken", _draw, _caption)
