"""Map of stations, regions and trip ends, in kilometres around the centre of the stations."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import polars as pl
from numpy.typing import NDArray

from unmet.city.places import LAND
from unmet.city.places import ORIGIN as CITY_CENTRE
from unmet.geo import Projection, haversine_km
from unmet.study.censoring import CensoringStudy
from unmet.views.figures.base import Figure
from unmet.views.theme import REGION_COLOURS, TEXT, layout, percent

__all__ = ["STATION_MAP"]

SHOWN_ENDS = 6000  # about this many ends of trips are drawn
COAST_REACH_KM = 40  # the coast is drawn if stations are this near to Copenhagen


def _draw(study: CensoringStudy) -> go.Figure:
    stations = study.city.stations.join(study.regions.of_station, on="station_id")
    origin = Projection.around(stations["lat"], stations["lon"])
    cell = study.worst_cell
    figure = go.Figure()
    if haversine_km(*origin, *CITY_CENTRE) < COAST_REACH_KM:
        for outline in LAND:
            x, y = origin.to_km(*zip(*outline, outline[0], strict=True))
            figure.add_scatter(
                x=x, y=y, mode="lines", fill="toself", fillcolor="#f4f2ec", line={"color": "#cfc9b8", "width": 1},
                hoverinfo="skip",
            )  # fmt: skip
    ends = study.city.trips.select("end_lat", "end_lon")
    ends = ends.gather_every(max(1, ends.height // SHOWN_ENDS))
    x_all, y_all = origin.to_km(ends["end_lat"], ends["end_lon"])
    figure.add_scattergl(
        x=x_all.round(2), y=y_all.round(2), mode="markers", name="End of a trip",
        marker={"size": 2.5, "color": "#9aa4ae", "opacity": 0.5}, hoverinfo="skip",
    )  # fmt: skip
    outlined = {"width": 1, "color": TEXT}
    for i, (region, lat, lon, n_stations, plugs) in enumerate(study.regions.centres.rows()):
        colour = REGION_COLOURS[i % len(REGION_COLOURS)]
        part = stations.filter(pl.col("unique_id") == region)
        x, y = origin.to_km(part["lat"], part["lon"])
        figure.add_scatter(
            x=x.round(3), y=y.round(3), mode="markers", name=region, legendgroup=region, showlegend=False,
            marker={"size": _diameter(part["plugs"].to_numpy()), "color": colour, "line": outlined},
            customdata=part.select("station_id", "plugs", "power_kw").rows(),
            hovertemplate="%{customdata[0]}: %{customdata[1]} plugs of %{customdata[2]} kW<extra></extra>",
        )  # fmt: skip
        censored = cell.censored_hours_percent_by_region[i]
        (cx,), (cy,) = origin.to_km([lat], [lon])
        figure.add_scatter(
            x=[cx], y=[cy], mode="markers", showlegend=False, legendgroup=region,
            marker={"symbol": "square", "size": 13, "color": colour, "line": {"width": 2, "color": "white"}},
            hovertemplate=f"{region}: {n_stations} stations, {plugs} plugs, {censored:.0f} % censored<extra></extra>",
        )  # fmt: skip
        figure.add_annotation(
            x=cx, y=cy, text=f"<b>{region}</b> {censored:.0f} %", showarrow=False, yshift=18,
            bgcolor="rgba(255,255,255,0.85)", borderpad=2, font={"size": 12, "color": TEXT},
        )  # fmt: skip
    for axis, title, points in (("xaxis", "East", x_all), ("yaxis", "North", y_all)):
        # The few trips that end far away would shrink the map.
        low, high = float(np.quantile(points, 0.002)), float(np.quantile(points, 0.998))
        figure.update_layout(
            {axis: {"title": f"{title} of the centre of the stations [km]", "range": [low - 2, high + 2]}}
        )
    figure.update_xaxes(showgrid=False, zeroline=False, constrain="domain")
    figure.update_yaxes(scaleanchor="x", showgrid=False, constrain="domain")
    layout(figure, 820, legend_above=False)
    return figure.update_layout(hovermode="closest", showlegend=False)


def _diameter(plugs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Diameter of a station's circle [px]; 4.6 for one plug, 16 for ten."""
    return np.asarray(3 + 1.6 * plugs**0.9)


def _caption(study: CensoringStudy) -> str:
    cell = study.worst_cell
    stations = study.city.stations
    synthetic = " The paper's stations were scraped from a map in 2021; these are synthetic."
    synthetic = synthetic if study.city.is_built_in else ""
    return (
        f"{stations.height} stations with {stations['plugs'].sum():,} plugs (circles, larger with more plugs) in "
        f"{study.regions.centres.height} regions (squares at their centres, numbered from west to east); grey dots are "
        f"ends of trips. The percentage is the share of hours in which the region lost demand, {cell.queue} at "
        f"{percent(cell.penetration)} electric cars.{synthetic}"
    )


STATION_MAP = Figure("station-map", "Stations and regions", _draw, _caption)
