"""Map of the sites, in kilometres around their mean; the area of a circle is the energy lost at its site."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from unmet.geo import Projection
from unmet.views.figures.base import Figure
from unmet.views.figures.map_labels import add_labels
from unmet.views.figures.map_layers import (
    MAX_DOTS,
    MAX_HOVERS,
    add_layers,
    compact,
    far_away,
    map_frame,
    shows_outlines,
)
from unmet.views.lost_tables import TOP_SITES, LostTables
from unmet.views.theme import FAINT, LOST, TEXT, count, energy, percent, short

__all__ = ["SITE_MAP", "has_positions"]

LARGEST = 46  # diameter of the site that lost the most [px]
SMALLEST = 7  # diameter of the smallest circle [px]
MIN_DRIVERS = 0.5  # with fewer lost drivers than this, a site counts as having lost none
MAX_DOUBTFUL = 3  # sites with doubtful positions that are named


def has_positions(report: LostTables) -> bool:
    """Whether there is anything to draw: at least two sites with positions."""
    return _placed(report).height > 1


def _placed(report: LostTables) -> pl.DataFrame:
    """Sites with positions, their rank, their distance from the middle, and whether it is implausibly `far`."""
    rows = report.ranked_sites().with_columns(rank=pl.int_range(1, pl.len() + 1))
    placed = rows.filter(pl.col("lat").is_not_null() & pl.col("lon").is_not_null())
    middle = Projection(_median(placed["lat"]), _median(placed["lon"]))
    east, north = middle.to_km(placed["lat"], placed["lon"])
    return placed.with_columns(far=pl.Series(far_away(east, north)), away_km=pl.Series(np.hypot(east, north)))


def _draw(report: LostTables) -> go.Figure:
    placed = _placed(report)
    sites, off_map = placed.filter(~pl.col("far")).head(MAX_DOTS), placed.filter("far")
    origin = Projection.around(sites["lat"], sites["lon"])
    east, north = origin.to_km(sites["lat"], sites["lon"])
    lost = sites["lost_kwh"].to_numpy()
    size = np.maximum(LARGEST * np.sqrt(lost / max(lost.max(), 1e-9)), SMALLEST)
    lost_any = (sites["lost_arrivals"] >= MIN_DRIVERS).to_numpy()
    figure = go.Figure()
    box = map_frame(figure, east, north)
    add_layers(figure, report.layers, origin, box)
    for name, rows, colour, opacity in (
        ("lost drivers", lost_any, LOST, 0.55),
        ("lost no driver", ~lost_any, FAINT, 0.6),
    ):
        figure.add_scatter(
            x=compact(east[rows]), y=compact(north[rows]), mode="markers", name=f"Site that {name}",
            marker={
                "size": compact(size[rows]), "color": colour, "opacity": opacity, "line": {"width": 1, "color": TEXT},
            },
            customdata=[_hover(row) for row in sites.filter(rows).iter_rows(named=True)],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    worst = np.flatnonzero(lost_any & (sites["rank"] <= TOP_SITES).to_numpy())
    ranks = [str(sites["rank"][int(i)]) for i in worst]
    add_labels(figure, east[worst], north[worst], ranks, size[worst], box)
    _list_far(figure, off_map)
    return figure


def _list_far(figure: go.Figure, far: pl.DataFrame) -> None:
    """List sites off the map in a corner, because their positions are usually mistakes."""
    if far.is_empty():
        return
    names = [
        f"{_escape(short(str(name), 24))}: {km:,.0f} km away" for name, km in far.select("label", "away_km").iter_rows()
    ]
    more = [f"and {len(names) - MAX_DOUBTFUL} more"] if len(names) > MAX_DOUBTFUL else []
    figure.add_annotation(
        x=0.01, y=0.99, xref="paper", yref="paper", xanchor="left", yanchor="top", showarrow=False, align="left",
        text="<br>".join(["<b>Off the map: check these positions</b>", *names[:MAX_DOUBTFUL], *more]),
        bgcolor="#fff4d6", bordercolor="#e69f00", borderpad=6, font={"size": 12, "color": TEXT},
    )  # fmt: skip


def _hover(row: dict[str, Any]) -> str:
    if row["rank"] > MAX_HOVERS:
        return _escape(short(str(row["label"]), 40))
    cars = count(row["capacity"], "car")
    low, high = energy(row["lost_kwh_low"]), energy(row["lost_kwh_high"])
    return (
        f"<b>{_escape(str(row['label']))}</b><br>{energy(row['lost_kwh'])} lost ({low} to {high})<br>full "
        f"{percent(row['full_share'], 1)} of the time, {cars} at once"
    )


def _escape(text: str) -> str:
    """Escape a name: it comes from the user's files, and Plotly interprets markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _median(values: pl.Series) -> float:
    return float(values.median() or 0.0)  # type: ignore[arg-type]


def _caption(report: LostTables) -> str:
    placed = _placed(report)
    hidden, far = report.sites.height - placed.height, int(placed["far"].sum())
    missing = f" {count(hidden, 'site')} without a position cannot be shown." if hidden else ""
    off = f" {count(far, 'site')} so far away that the position looks wrong {'is' if far == 1 else 'are'} not drawn."
    dotted = " Dotted lines surround the stations of a region." if shows_outlines(report.layers) else ""
    more = placed.height - far - MAX_DOTS
    dropped = f" {more:,} sites that lost the least are not drawn." if more > 0 else ""
    return (
        "The larger a circle's area, the more energy its site lost. Numbers are ranks in the table above. "
        f"Distances are from the mean of all sites.{dotted}{missing}{dropped}{off if far else ''}"
    )


def _alternative(report: LostTables) -> str:
    worst = [
        f"{label} ({energy(kwh)})"
        for label, kwh in _placed(report).head(TOP_SITES).select("label", "lost_kwh").iter_rows()
        if kwh > 0
    ]
    return f"Map of {count(report.sites.height, 'site')}. " + (
        f"The largest circles are {', '.join(worst)}." if worst else "No site lost energy."
    )


SITE_MAP = Figure("site-map", "Where it was lost", _draw, _caption, alt=_alternative)
