"""Training and held-out loss by epoch."""

from __future__ import annotations

import plotly.graph_objects as go

from unmet.views.figures.base import Figure
from unmet.views.model_report import ModelReport
from unmet.views.theme import FAINT, FORECAST, layout

__all__ = ["LEARNING"]


def _draw(report: ModelReport) -> go.Figure:
    figure = go.Figure()
    for i, (seed, losses) in enumerate(report.losses.items()):
        epochs = list(range(1, len(losses) + 1))
        for which, name, colour in ((0, "Training", FAINT), (1, "Held-out hours", FORECAST[0])):
            figure.add_scatter(
                x=epochs, y=[round(pair[which], 5) for pair in losses], name=name, legendgroup=name, showlegend=i == 0,
                line={"color": colour, "width": 1.3}, hovertemplate=f"seed {seed}: %{{y:.4f}}",
            )  # fmt: skip
    figure.update_xaxes(title="Epoch")
    figure.update_yaxes(title="Loss, summed over regions")
    return layout(figure, 360)


def _caption(report: ModelReport) -> str:
    ahead = report.model.horizon > 1
    return (
        "Loss in units of each region's largest observed demand, one line per seed. The weights with the lowest loss "
        "on held-out hours are kept."
        + (" These hours are forecast one hour ahead and a whole horizon ahead; both losses count." if ahead else "")
    )


LEARNING = Figure("learning", "Training", _draw, _caption)
