"""Seen and lost energy a week, of all regions or of one."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from unmet.models.recover import ALL
from unmet.views.figures.base import Figure
from unmet.views.recovery_report import RecoveryReport
from unmet.views.theme import LOST, OBSERVED, TEXT, layout, percent, short

__all__ = ["RECOVERED_WEEKS"]

MOST = 40  # regions to choose from
LABELS = 12  # weeks that are labelled
WEEK_MS = 7 * 86_400_000
AIR = 1.06  # above the highest whisker, which would be cut off otherwise
CUT = 0.45  # opacity of a week of which a part is missing


def _unit(report: RecoveryReport) -> tuple[str, float]:
    weeks = report.recovery.weeks
    most = float(weeks["true_kwh"].max() or 0.0)  # type: ignore[arg-type]
    return ("MWh", 1000.0) if most >= 10_000 else ("kWh", 1.0)


def _draw(report: RecoveryReport) -> go.Figure:
    names = [ALL, *report.regions()["unique_id"].head(MOST)]
    weeks, (unit, size), cut = report.recovery.weeks, _unit(report), report.cut_weeks()
    figure = go.Figure()
    for name in names:
        part = weeks.filter(pl.col("unique_id") == name).sort("week")
        days = part["week"].to_list()
        seen, lost, low, high = (
            (part[column] / size).round(3) for column in ("observed_kwh", "lost_kwh", "lost_kwh_low", "lost_kwh_high")
        )
        faint = [CUT if day in cut else 1.0 for day in days]
        shown = name == ALL
        figure.add_bar(
            x=days, y=seen.to_list(), name="Seen", marker={"color": OBSERVED, "opacity": faint}, visible=shown,
            hovertemplate=f"%{{y:,.1f}} {unit}",
        )  # fmt: skip
        figure.add_bar(
            x=days, y=lost.to_list(), name=f"Lost, with its {percent(report.recovery.interval)} interval",
            marker={"color": LOST, "opacity": faint}, visible=shown,
            error_y={
                "type": "data", "array": (high - lost).to_list(), "arrayminus": (lost - low).to_list(),
                "thickness": 1.4, "width": 4, "color": TEXT,
            },
            customdata=[f"{a:,.1f} to {b:,.1f}" for a, b in zip(low, high, strict=True)],
            hovertemplate=f"%{{y:,.1f}} {unit} (%{{customdata}})",
        )  # fmt: skip
    figure.update_xaxes(
        title="Week, from Monday on, local time", tickformat="%d %b<br>%Y", tick0=days[0], hoverformat="%d %b %Y",
        dtick=WEEK_MS * -(-len(days) // LABELS),
    )  # fmt: skip
    figure.update_yaxes(title=f"Energy [{unit} a week]", tickformat=",")
    layout(figure, 420).update_layout(barmode="stack", bargap=0.25, legend_traceorder="normal")
    tops = [float(weeks.filter(pl.col("unique_id") == name)["true_kwh_high"].max() or 0) / size for name in names]  # type: ignore[arg-type]
    figure.update_yaxes(range=[0, AIR * tops[0]])
    return figure if len(names) == 2 else figure.update_layout(updatemenus=[_menu(names, tops)])


def _menu(names: list[str], tops: list[float]) -> dict[str, object]:
    """A menu that shows the two bars of one region."""
    labels = ["All regions", *(f"Region {short(name)}" for name in names[1:])]
    buttons = [
        {
            "label": label,
            "method": "update",
            "args": [{"visible": [i == j // 2 for j in range(2 * len(names))]}, {"yaxis.range": [0, AIR * top]}],
        }
        for i, (label, top) in enumerate(zip(labels, tops, strict=True))
    ]
    return {
        "buttons": buttons, "x": 1, "xanchor": "right", "y": 1.03, "yanchor": "bottom", "bgcolor": "#ffffff",
        "bordercolor": "#c5ccd3", "pad": {"t": 0, "b": 0},
    }  # fmt: skip


def _caption(report: RecoveryReport) -> str:
    regions = report.recovery.hours["unique_id"].n_unique()
    choose = "" if regions == 1 else (
        f"The menu shows one of the {regions} regions alone. " if regions <= MOST else
        f"The menu shows one of the {MOST} regions that lost most alone. "
    )  # fmt: skip
    pale = "Pale weeks are cut off by the beginning or the end of the hours shown. " if report.cut_weeks() else ""
    return f"Energy in the records, and on top of it what they do not show. {choose}{pale}All are in weeks.parquet."


RECOVERED_WEEKS = Figure("recovered-weeks", "What was seen and what was lost", _draw, _caption)
