"""Map of the sites, in kilometres around their mean; a circle's area is the energy that its site lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from unmet.geo import Projection
from unmet.views.figures.base import Figure
from unmet.views.lost_report import MOST, LostReport
from unmet.views.theme import FAINT, LOST, TEXT, count, energy, layout, percent

__all__ = ["SITE_MAP", "has_positions"]

LARGEST = 46  # diameter of the site that lost most [px]
SMALLEST = 7
AIR_KM, AIR = 0.3, 0.08  # around the outermost sites, beside a part of their extent
SOMEBODY = 0.5  # lost drivers from which a site counts as one that lost some
WIDTH, HEIGHTS = 920, (380, 760)  # of the plot, and least and greatest height of the figure [px]


def has_positions(report: LostReport) -> bool:
    """Whether there is anything to draw: at least two sites with positions."""
    return _placed(report).height > 1


def _placed(report: LostReport) -> pl.DataFrame:
    rows = report.ranked_sites().with_columns(rank=pl.int_range(1, pl.len() + 1))
    return rows.filter(pl.col("lat").is_not_null() & pl.col("lon").is_not_null())


def _draw(report: LostReport) -> go.Figure:
    sites = _placed(report)
    origin = Projection.around(sites["lat"], sites["lon"])
    east, north = origin.to_km(sites["lat"], sites["lon"])
    lost = sites["lost_kwh"].to_numpy()
    size = np.maximum(LARGEST * np.sqrt(lost / max(lost.max(), 1e-9)), SMALLEST)
    some = (sites["lost_arrivals"] >= SOMEBODY).to_numpy()
    figure = go.Figure()
    for name, rows, colour, opacity in (("lost drivers", some, LOST, 0.55), ("lost no driver", ~some, FAINT, 0.6)):
        figure.add_scatter(
            x=east[rows].round(3), y=north[rows].round(3), mode="markers", name=f"Site that {name}",
            marker={"size": size[rows], "color": colour, "opacity": opacity, "line": {"width": 1, "color": TEXT}},
            customdata=[_hover(row) for row in sites.filter(rows).iter_rows(named=True)],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    for i in np.flatnonzero(some & (sites["rank"] <= MOST).to_numpy()):
        figure.add_annotation(
            x=east[i], y=north[i], text=f"<b>{sites['rank'][int(i)]}</b>", showarrow=False, borderpad=1,
            bgcolor="rgba(255, 255, 255, 0.75)", font={"size": 13, "color": TEXT},
        )  # fmt: skip
    ranges = []
    for update, title, values in ((figure.update_xaxes, "East [km]", east), (figure.update_yaxes, "North [km]", north)):
        air = AIR_KM + AIR * float(np.ptp(values))
        ranges.append((float(values.min()) - air, float(values.max()) + air))
        update(title=title, range=ranges[-1], constrain="domain")
    # A kilometre is as long in both directions.
    figure.update_yaxes(scaleanchor="x", scaleratio=1, constraintoward="top")
    (left, right), (bottom, top) = ranges
    height = 120 + WIDTH * (top - bottom) / (right - left)
    layout(figure, int(np.clip(height, *HEIGHTS)))
    figure.update_xaxes(gridcolor="#e8ebee")
    return figure.update_layout(hovermode="closest")


def _hover(row: dict[str, Any]) -> str:
    cars = count(row["capacity"], "car")
    low, high = energy(row["lost_kwh_low"]), energy(row["lost_kwh_high"])
    return (
        f"<b>{_escape(str(row['label']))}</b><br>{energy(row['lost_kwh'])} lost ({low} to {high})<br>full "
        f"{percent(row['full_share'], 1)} of the time, {cars} at once"
    )


def _escape(text: str) -> str:
    """Names come from outside, and Plotly reads markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _caption(report: LostReport) -> str:
    hidden = report.sites.height - _placed(report).height
    missing = f" {count(hidden, 'site')} without a position cannot be shown." if hidden else ""
    return (
        "The larger a circle's area, the more energy its site lost. Numbers are the ranks of the table above. "
        f"Distances are from the mean of all sites.{missing}"
    )


SITE_MAP = Figure("site-map", "Where it was lost", _draw, _caption)
