"""Map of a plan: sites that get plugs, new sites, and all others, in kilometres around their mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    far_positions,
    map_frame,
)
from unmet.views.theme import FAINT, FORECAST, OBSERVED, TEXT, count, energy, short

if TYPE_CHECKING:
    from unmet.planning.plan import Plan

__all__ = ["PLAN_MAP", "plan_has_positions"]

LARGEST, SMALLEST = 46, 7  # diameters of circles [px]
MIN_CHOSEN = 14  # smallest diameter of a site that labelled plugs [px]
MAX_LABELS = 30  # sites with a number beside their circle
MAX_NAMED = 5  # sites that the alternative text names


def plan_has_positions(plan: Plan) -> bool:
    """Whether there is anything to draw."""
    return _placed(plan).height > 1


def _placed(plan: Plan) -> pl.DataFrame:
    """Sites with plausible positions."""
    placed = plan.tables.sites.filter(pl.col("lat").is_not_null() & pl.col("lon").is_not_null())
    return placed.filter(~far_positions(placed["lat"], placed["lon"]))


def _drawn(plan: Plan) -> pl.DataFrame:
    """Sites on the map: if there are very many, those that get plugs, and the others that lose the most."""
    order = ["plugs_added", "lost_kwh", "site_id"]
    placed = _placed(plan)
    return placed if placed.height <= MAX_DOTS else placed.sort(order, descending=True).head(MAX_DOTS)


def _draw(plan: Plan) -> go.Figure:
    sites = _drawn(plan)
    origin = Projection.around(sites["lat"], sites["lon"])
    east, north = origin.to_km(sites["lat"], sites["lon"])
    gain, added = sites["gain_kwh"].to_numpy(), sites["plugs_added"].to_numpy()
    size = np.where(added > 0, np.maximum(LARGEST * np.sqrt(gain / max(gain.max(), 1e-9)), MIN_CHOSEN), SMALLEST)
    is_new = sites["is_new"].to_numpy()
    figure = go.Figure()
    box = map_frame(figure, east, north)
    add_layers(figure, getattr(plan, "layers", None), origin, box)  # only plans read from a run have layers
    for name, rows, colour, opacity, symbol in (
        ("No change", added == 0, FAINT, 0.5, "circle"),
        ("Gets plugs", (added > 0) & ~is_new, FORECAST[0], 0.6, "circle"),
        ("New site", (added > 0) & is_new, OBSERVED, 0.7, "square"),
    ):
        if not rows.any():
            continue
        figure.add_scatter(
            x=compact(east[rows]), y=compact(north[rows]), mode="markers", name=name,
            marker={"size": compact(size[rows]), "color": colour, "opacity": opacity, "symbol": symbol,
                    "line": {"width": 1, "color": TEXT if name != "No change" else FAINT}},
            customdata=[
                _hover(row) if i < MAX_HOVERS else _name(row)
                for i, row in enumerate(sites.filter(pl.Series(rows)).iter_rows(named=True))
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    labelled = np.flatnonzero(added > 0)[:MAX_LABELS]
    add_labels(figure, east[labelled], north[labelled], [f"+{added[i]}" for i in labelled], size[labelled], box)
    return figure


def _name(row: dict[str, Any]) -> str:
    """The name of a site, escaped: it comes from the user's files, and Plotly interprets markup."""
    name = short(str(row["name"] or row["site_id"]), 60)
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _hover(row: dict[str, Any]) -> str:
    name = _name(row)
    if not row["plugs_added"]:
        return f"<b>{name}</b><br>{count(row['plugs_now'], 'plug')}, loses {energy(row['lost_kwh'])} per week"
    return (
        f"<b>{name}</b><br>{row['plugs_now']} + {row['plugs_added']} plugs<br>recovers {energy(row['gain_kwh'])} per "
        f"week ({energy(row['gain_kwh_low'])} to {energy(row['gain_kwh_high'])})"
    )


def _caption(plan: Plan) -> str:
    hidden = plan.tables.sites.height - _placed(plan).height
    missing = f" {count(hidden, 'site')} without a plausible position cannot be shown." if hidden else ""
    more = _placed(plan).height - MAX_DOTS
    dropped = f" {more:,} sites that get no plugs and lose the least are not drawn." if more > 0 else ""
    return (
        "Numbers are plugs to add. The larger a circle's area, the more energy its plugs recover. Distances are from "
        f"the mean of all sites.{missing}{dropped}"
    )


def _alternative(plan: Plan) -> str:
    chosen = plan.tables.sites.filter(pl.col("plugs_added") > 0).head(MAX_NAMED)
    name = pl.col("name").fill_null(pl.col("site_id"))
    sites = [f"{label} (+{added})" for label, added in chosen.select(name, "plugs_added").iter_rows()]
    return f"Map of the plan. Plugs go to {', '.join(sites)}." if sites else "Map of the sites; no plug is added."


PLAN_MAP = Figure("plan-map", "Where they go", _draw, _caption, alt=_alternative)
