"""Figures of the live city: where demand is lost, day by day, and by hour of the day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
import polars as pl

from unmet.geo import Projection
from unmet.views.figures.base import Figure
from unmet.views.figures.map_layers import MapLayers, add_layers, map_frame, region_outlines
from unmet.views.theme import FAINT, LOST, OBSERVED, TEXT, energy, layout, percent

if TYPE_CHECKING:
    from unmet.views.app.live_city import Answer

__all__ = ["ALL", "CITY_DAYS", "CITY_HOURS", "CITY_MAP", "CURVE_HEIGHT", "MAP_HEIGHT", "CityView"]

ALL = "all"
SCALE = [[0, "#fbe9d9"], [0.5, "#e8833a"], [1, "#8c3200"]]
LARGEST, SMALLEST = 34, 8  # size of a station's circle [px]
MAX_LOST_PERCENT = 40  # end of the colour scale [% lost]
CLICK_PX = 10  # a click this close to a station selects the station, not its region
MAP_HEIGHT, CURVE_HEIGHT = 640, 290  # [px]


@dataclass(frozen=True)
class CityView:
    """An answer, and the part of it that is shown."""

    answer: Answer
    region: str = ALL
    station: str | None = None
    layers: MapLayers | None = None
    """Lines under the map."""

    @property
    def rows(self) -> slice:
        """The rows of `Answer.day_kwh` and `Answer.hour_kwh` that are shown."""
        if self.region == ALL:
            return slice(None)
        at = self.answer.regions.index(self.region)
        return slice(at, at + 1)

    @property
    def where(self) -> str:
        """The region in words."""
        return "all regions" if self.region == ALL else f"region {self.region}"


def _map(view: CityView) -> go.Figure:
    stations = view.answer.stations
    origin = Projection.around(stations["lat"], stations["lon"])
    east, north = origin.to_km(stations["lat"], stations["lon"])
    figure = go.Figure()
    box = map_frame(figure, east, north)
    _add_regions(figure, view, origin)
    add_layers(figure, view.layers, origin, box)
    lost, own = stations["lost_kwh"].to_numpy(), stations["is_own"].to_numpy()
    share = lost / np.maximum(lost + stations["observed_kwh"].to_numpy(), 1e-9)
    size = np.maximum(LARGEST * np.sqrt(lost / max(lost[own].max(initial=0), 1e-9)), SMALLEST)
    edge = np.where((stations["station_id"] == (view.station or "")).to_numpy(), 4.0, 1.0)
    rows = stations.to_dicts()
    for name, shown in (("Own station", own), ("Competitor's station", ~own)):
        if not shown.any():
            continue
        colour = {"color": (100 * share[shown]).round(1), "colorscale": SCALE, "cmin": 0, "cmax": MAX_LOST_PERCENT,
                  "showscale": True,
                  "colorbar": {"title": {"text": "Demand lost [%]", "side": "top"}, "orientation": "h", "thickness": 10,
                               "len": 0.5, "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}}  # fmt: skip
        figure.add_scatter(
            x=east[shown].round(3), y=north[shown].round(3), mode="markers", name=name,
            marker={"size": size[shown], "line": {"width": edge[shown], "color": TEXT},
                    **(colour if name == "Own station" else {"color": FAINT, "opacity": 0.5})},
            customdata=[[row["station_id"], row["unique_id"], _hover(row)] for row in np.array(rows, object)[shown]],
            hovertemplate="%{customdata[2]}<extra></extra>",
        )  # fmt: skip
    return figure.update_layout(height=None, margin_t=70, clickmode="event", showlegend=False, hoverdistance=CLICK_PX)


def _add_regions(figure: go.Figure, view: CityView, origin: Projection) -> None:
    """Draw regions as areas, in the order of the answer: the number of a clicked trace identifies its region."""
    outlines = dict(region_outlines(view.answer.stations.select("unique_id", "lat", "lon")))
    rows = {row["unique_id"]: row for row in view.answer.region_rows().iter_rows(named=True)}
    for name in view.answer.regions:
        ring = outlines.get(name, np.empty((0, 2)))
        east, north = origin.to_km(ring[:, 1], ring[:, 0])
        lost, observed = (float(rows[name][column]) if name in rows else 0.0 for column in ("lost_kwh", "observed_kwh"))
        chosen = name == view.region
        figure.add_scatter(
            x=east.round(3), y=north.round(3), mode="lines", fill="toself", hoveron="fills", name=name,
            fillcolor="rgba(0, 114, 178, 0.22)" if chosen else "rgba(110, 125, 140, 0.10)",
            line={"color": OBSERVED if chosen else FAINT, "width": 2.5 if chosen else 1},
            text=f"Region {name}: {energy(lost)} lost ({percent(lost / max(lost + observed, 1e-9), 1)})",
            hoverinfo="text",
        )  # fmt: skip


def _hover(row: dict[str, object]) -> str:
    lost, observed = float(row["lost_kwh"]), float(row["observed_kwh"])  # type: ignore[arg-type]
    return (
        f"<b>Station {row['station_id']}</b>, region {row['unique_id']}<br>{row['plugs']} plugs<br>{energy(lost)} lost "
        f"({percent(lost / max(lost + observed, 1e-9), 1)}), {row['lost']} drivers"
    )


def _days(view: CityView) -> go.Figure:
    observed, lost = (grid[view.rows].sum(axis=0).round(1) for grid in view.answer.day_kwh)
    days = view.answer.days.to_list()
    figure = go.Figure()
    for name, values, colour in (("Recorded", observed, OBSERVED), ("Lost", lost, LOST)):
        figure.add_bar(x=days, y=values, name=name, marker_color=colour, hovertemplate="%{y:,.0f} kWh")
    figure.update_yaxes(title="Demand [kWh per day]", rangemode="tozero", tickformat=",")
    return layout(figure, CURVE_HEIGHT).update_layout(barmode="stack", bargap=0.1, margin_b=36)


def _hours(view: CityView) -> go.Figure:
    observed, lost = (grid[view.rows].sum(axis=0).round(2) for grid in view.answer.hour_kwh)
    figure = go.Figure()
    for name, values, colour in (("Recorded", observed, OBSERVED), ("Lost", lost, LOST)):
        figure.add_bar(x=list(range(24)), y=values, name=name, marker_color=colour, hovertemplate="%{y:,.1f} kWh")
    figure.update_xaxes(title="Hour of the day, local time", dtick=3)
    figure.update_yaxes(title="Demand [kWh per hour]", rangemode="tozero")
    return layout(figure, CURVE_HEIGHT).update_layout(barmode="stack", bargap=0.1)


def _totals_in_words(view: CityView) -> str:
    own = view.answer.stations.filter("is_own")
    part = own if view.region == ALL else own.filter(pl.col("unique_id") == view.region)
    return (
        f"In {view.where}, {energy(float(part['lost_kwh'].sum()))} of charging demand is lost and "
        f"{energy(float(part['observed_kwh'].sum()))} is recorded."
    )


def _map_caption(view: CityView) -> str:
    return (
        "The larger a circle, the more energy its station loses; the darker, the larger the share of its demand that "
        "is lost. Click a region to see it over time, or a station to change its plugs."
    )


CITY_MAP = Figure("city-map", "Where demand is lost", _map, _map_caption, alt=_totals_in_words)
CITY_DAYS = Figure("city-days", "Day by day", _days, _totals_in_words)
CITY_HOURS = Figure("city-hours", "Hour by hour", _hours, _totals_in_words)
