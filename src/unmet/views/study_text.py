"""The tables of a study as Markdown, with the paper's numbers next to ours."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from unmet import __version__
from unmet.evaluation.measures import mean_of
from unmet.models.forecaster import quantile_column
from unmet.models.likelihoods import LEVELS
from unmet.views.study_report import StudyReport, model_title
from unmet.views.theme import percent

__all__ = ["application_rows", "between", "of_truth", "study_markdown"]


def between(low: int, high: int) -> str:
    """A range of whole numbers as text."""
    return str(high) if low == high else f"{low} to {high}"


def application_rows(report: StudyReport) -> list[tuple[str, float, float]]:
    """True, observed and forecast energy of the most censored region [kWh], each also as a share of the truth."""
    if report.hours is None:
        return []
    first = report.hours.filter(pl.col("model") == report.models()[0])
    true = float(first["y_true"].sum())
    found = [("True", true), ("Observed", float(first["y"].sum()))]
    for model in report.models():
        part = report.hours.filter(pl.col("model") == model)
        mean = mean_of(part.select(map(quantile_column, LEVELS)).to_numpy(), LEVELS)
        found.append((model_title(model), float(mean.sum())))
    return [(name, kwh, kwh / true if true else math.nan) for name, kwh in found]


def of_truth(share: float, digits: int = 0) -> str:
    """A share in percent; a dash if it is unknown."""
    return "-" if math.isnan(share) else percent(share, digits)


def study_markdown(report: StudyReport) -> str:
    """The tables of a study: ours, the paper's, the difference, and the gap closed."""
    experiment = report.experiment
    lines = [f"# {experiment.title}", "", experiment.about, ""]
    heads = [report.column_name(value) for value in report.columns]
    if report.hours is not None:
        lines += [
            "| energy in held-out hours of the most censored region | kWh | of the truth |",
            "| --- | ---: | ---: |",
        ]
        lines += [f"| {name} | {kwh:,.0f} | {of_truth(share, 1)} |" for name, kwh, share in application_rows(report)]
        lines.append("")
    for measure, title in _measures(report):
        models = [
            model for model in report.models() if measure not in _LOSS_MEASURES or report.has_measure(model, measure)
        ]
        if not models:
            continue
        lines += [f"## {title}", ""]
        for name, group in report.groups():
            lines += [f"| {name} | " + " | ".join(heads) + " |", "| --- |" + " ---: |" * len(heads)]
            for model in models:
                cells = [report.cell(group, model, value) for value in report.columns]
                lines.append(f"| {model_title(model)} | " + " | ".join(_text(cell, measure) for cell in cells) + " |")
                paper = f"paper_{measure}"
                if any(cell and cell.get(paper) is not None for cell in cells):
                    theirs = [_number(cell, paper) for cell in cells]
                    apart = [_difference(cell, measure, paper) for cell in cells]
                    lines.append("| the paper's | " + " | ".join(theirs) + " |")
                    lines.append("| difference | " + " | ".join(apart) + " |")
            lines.append("")
    lines += [
        f"{_counted(report)} ± is one standard deviation over scenes. Gap closed is (quantile - model) / (quantile - "
        "oracle) of the mean tilted losses. If quantile - oracle is under 5 % of the oracle's loss, there is hardly "
        "any gap to close, and both the gap closed and p are in brackets. p is the p-value of a paired t-test that "
        "compares the tilted losses of the model and of the quantile model on the same scenes.",
        "",
        f"unmet {__version__}; written by `unmet study {experiment.name}`.",
    ]
    return "\n".join(lines) + "\n"


def _counted(report: StudyReport) -> str:
    """A sentence on the number of scenes and runs per cell."""
    scenes, runs = (sorted(set(report.cells[name].to_list())) for name in ("scenes", "runs"))
    return (
        f"A cell has {between(scenes[0], scenes[-1])} scenes and {between(runs[0], runs[-1])} runs. A scene is a city, "
        "or an operator in it, and counts once, however many networks learn from it."
    )


def _measures(report: StudyReport) -> list[tuple[str, str]]:
    """The measures to show, in order; for market shares, measures in units of true demand come first."""
    if report.experiment.across != "share":
        return [(name, title) for name, title in _MEASURES if name not in _TRUE_UNITS]
    seen = "in units of the largest demand that the operator observed"
    titles = dict(_MEASURES)
    return [
        *((name, titles[name]) for name in _TRUE_UNITS),
        *((name, f"{title}, {seen}" if f"{name}_true" in _TRUE_UNITS else title) for name, title in _MEASURES
          if name not in _TRUE_UNITS),
    ]  # fmt: skip


_TRUE_UNITS = ("tilted_loss_true", "mil_true")


_MEASURES = (
    ("tilted_loss_true", "Tilted loss on true demand, in units of the largest true demand"),
    ("mil_true", "Mean interval length (MIL), in units of the largest true demand"),
    ("tilted_loss", "Tilted loss on true demand"),
    ("icp", "Share of true demand inside the 90 % interval (ICP)"),
    ("icp_most_censored", "The same in the most censored region"),
    ("mil", "Mean interval length (MIL)"),
    ("bias_percent", "Bias of the energy forecast, % of true energy"),
    ("gap_closed", "Gap closed"),
    ("p_value", "p-value of the difference from the quantile model"),
    ("lost_of_true", "Energy lost in the test part, estimated over true"),
    ("lost_inside", "Share of runs whose 90 % interval contains the energy lost"),
    ("lost_all_of_true", "Energy lost in all hours, estimated over true"),
    ("lost_all_inside", "Share of runs whose 90 % interval contains the energy lost in all hours"),
)


_LOSS_MEASURES = ("lost_of_true", "lost_inside", "lost_all_of_true", "lost_all_inside")  # only some models estimate it


def _text(cell: dict[str, Any] | None, measure: str) -> str:
    if cell is None or cell[measure] is None or math.isnan(cell[measure]):
        return "-"
    if measure == "bias_percent":
        return f"{cell[measure]:+.1f}"
    if measure == "gap_closed":
        shown = f"{cell[measure]:.2f}" if abs(cell[measure]) < 10 else "-"
        return shown if cell["judged"] else f"({shown})"
    if measure in _LOSS_MEASURES:
        return f"{cell[measure]:.2f}"
    if measure == "p_value":
        shown = "<0.001" if cell[measure] < 0.001 else f"{cell[measure]:.3f}"
        return shown if cell["judged"] or cell["judged"] is None else f"({shown})"
    spread = cell.get(f"{measure}_std")
    return f"{cell[measure]:.3f}" + (f" ± {spread:.3f}" if spread is not None else "")


def _number(cell: dict[str, Any] | None, name: str) -> str:
    return "-" if cell is None or cell[name] is None else f"{cell[name]:.3f}"


def _difference(cell: dict[str, Any] | None, ours: str, theirs: str) -> str:
    return "-" if cell is None or cell[theirs] is None else f"{cell[ours] - cell[theirs]:+.3f}"
