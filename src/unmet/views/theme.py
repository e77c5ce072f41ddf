"""Colours and fonts of all figures, and numbers as text.

The colours are from the palette of Okabe and Ito, which colour-blind people can tell apart.
"""

from __future__ import annotations

import math

import plotly.graph_objects as go

__all__ = [
    "FAINT",
    "FORECAST",
    "LOST",
    "MODEL_STYLE",
    "OBSERVED",
    "QUEUE_STYLE",
    "REGION_COLOURS",
    "TEXT",
    "about",
    "about_energy",
    "count",
    "energy",
    "energy_unit",
    "layout",
    "percent",
    "short",
]

TEXT = "#1f2933"
FAINT = "#8a94a0"
OBSERVED = "#0072B2"
LOST = "#D55E00"
FORECAST = ("#009E73", "rgba(0, 158, 115, 0.22)")  # line, band

QUEUE_STYLE: dict[str, tuple[str, str]] = {  # colour, marker
    "gas-station": ("#009E73", "diamond"),
    "three-hour": ("#E69F00", "square"),
    "first-come": ("#0072B2", "circle"),
    "reservation": ("#CC79A7", "triangle-up"),
}

MODEL_STYLE: dict[str, tuple[str, str]] = {  # colour, marker
    "gaussian": ("#999999", "square"),
    "tobit": ("#E69F00", "diamond"),
    "quantile": ("#0072B2", "circle"),
    "censored-quantile": ("#D55E00", "triangle-up"),
    "exposure": ("#009E73", "star"),
    "oracle": ("#1f2933", "x"),
    "seen-over-exposed": ("#CC79A7", "triangle-down"),
    "poisson": ("#56B4E9", "hexagon"),
    "cqrnn": ("#7F3C8D", "pentagon"),
    "identity-graph": ("#8a6d3b", "cross"),
}

REGION_COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F3C8D", "#8a6d3b", "#44AA99", "#999933",
)  # fmt: skip

_FONT = "Inter, 'Helvetica Neue', Arial, sans-serif"


def percent(share: float, digits: int = 0) -> str:
    """A share as text, 0.05 as "5 %"."""
    return f"{100 * share:.{digits}f} %"


def energy(kwh: float) -> str:
    """An energy as text in the unit that suits it, 12345 as "12.3 MWh"."""
    if abs(kwh) < 1000:
        return f"{kwh:,.0f} kWh"
    return f"{kwh / 1000:,.{0 if abs(kwh) >= 100_000 else 1}f} MWh"


def about(mean: float, low: float, high: float) -> tuple[str, str]:
    """A number and its interval as text, with no more digits than the interval allows.

    Example:
        >>> about(2964.8, 1283.9, 5568.8)
        ('3,000', '1,300 to 5,600')
    """
    digits = 2 if high - low > 0.2 * mean else 3
    value, lower, upper = (_significant(number, digits) for number in (mean, low, high))
    return value, f"{lower} to {upper}"


def about_energy(mean: float, low: float, high: float) -> tuple[str, str]:
    """An energy and its interval as text, in the unit that suits the mean.

    Example:
        >>> about_energy(20689.0, 8903.5, 38806.3)
        ('21 MWh', '8.9 to 39 MWh')
    """
    unit, size = energy_unit(mean)
    value, span = about(mean / size, low / size, high / size)
    return f"{value} {unit}", f"{span} {unit}"


def energy_unit(max_kwh: float) -> tuple[str, float]:
    """The unit that suits energies up to `max_kwh`, and its size [kWh]."""
    return ("MWh", 1000.0) if max_kwh >= 10_000 else ("kWh", 1.0)


def _significant(value: float, digits: int) -> str:
    """A number rounded to some significant digits, 1283.9 as "1,300"; numbers below 0.05 are 0."""
    if abs(value) < 0.05:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    return f"{rounded:,.{max(0, min(places, 1))}f}".removesuffix(".0")


def count(number: int, one: str) -> str:
    """A number with its noun, such as "1 site" or "2 sites"."""
    return f"{number:,} {one if number == 1 else one + 's'}"


def short(name: str, max_length: int = 28) -> str:
    """A name shortened to fit next to an axis."""
    return name if len(name) <= max_length else f"{name[: max_length - 12]}…{name[-11:]}"


def layout(figure: go.Figure, height: int = 420, *, legend_above: bool = True) -> go.Figure:
    """Apply the unmet theme to a figure."""
    figure.update_layout(
        template="plotly_white",
        height=height,
        font={"family": _FONT, "size": 14, "color": TEXT},
        margin={"l": 70, "r": 24, "t": 48 if legend_above else 24, "b": 56},
        hoverlabel={"font_family": _FONT},
        hovermode="x unified",
    )
    if legend_above:
        figure.update_layout(legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"})
    figure.update_xaxes(showline=True, linecolor="#c5ccd3", ticks="outside", tickcolor="#c5ccd3", title_standoff=12)
    figure.update_yaxes(zeroline=False, gridcolor="#e8ebee", title_standoff=10)
    return figure
