"""State of charge over time at plugs of three powers, as in the paper's example."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from unmet.simulation.battery import soc_after_charging
from unmet.simulation.fleet import EV_MODELS
from unmet.study.censoring import CensoringStudy
from unmet.views.figures.base import Figure
from unmet.views.theme import FAINT, layout

__all__ = ["CHARGING_CURVES"]

# Power [kW], colour and dash of each line
LINES = ((7.0, "#0072B2", "solid"), (22.0, "#E69F00", "dash"), (50.0, "#009E73", "dot"))


def _draw(study: CensoringStudy) -> go.Figure:
    car = EV_MODELS[0]
    hours = np.linspace(0, 12, 721)
    figure = go.Figure()
    for power, colour, dash in LINES:
        soc = [100 * soc_after_charging(0.0, h, car.battery_kwh, power, False) for h in hours]
        figure.add_scatter(
            x=hours, y=soc, name=f"{power:g} kW", line={"color": colour, "dash": dash, "width": 2.5},
            hovertemplate="%{y:.0f} %",
        )  # fmt: skip
    figure.add_hline(y=80, line={"color": FAINT, "width": 1, "dash": "dot"})
    figure.update_xaxes(title="Time at the plug [h]", dtick=1, range=[0, 12])
    figure.update_yaxes(title="State of charge [%]", range=[0, 103], dtick=20)
    return layout(figure, 380)


def _caption(study: CensoringStudy) -> str:
    car = EV_MODELS[0]
    return (
        f"A {car.name} ({car.battery_kwh:g} kWh) from empty: full power to 80 %, a quarter of it above. The paper's "
        "printed formula lets the state of charge fall back to 80 % when charging slows down; this curve is continuous "
        "(the option `literal` gives the printed curve)."
    )


CHARGING_CURVES = Figure("charging-curves", "Charging curves", _draw, _caption)
