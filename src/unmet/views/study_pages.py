"""A study as a page, as Markdown, as tables and in the terminal: our results, the paper's, and the differences."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from unmet import __version__
from unmet.runs import atomic_file
from unmet.study.cells import ORACLE, UNAWARE
from unmet.study.execute import Progress
from unmet.study.experiments import Experiment
from unmet.study.outline import StudyOutline
from unmet.study.results import study_cells, training_seconds
from unmet.study.store import Store
from unmet.views.figures import APPLICATION_FIGURES, STUDY_FIGURES
from unmet.views.figures.study_gap import STUDY_GAP
from unmet.views.page import PageTable, render_page
from unmet.views.study_report import StudyReport, model_title
from unmet.views.study_text import application_rows, between, of_truth, study_markdown
from unmet.views.terminal import report_grid, say

__all__ = ["print_study", "print_study_plan", "study_report", "write_study"]


def study_report(experiment: Experiment, store: Store, progress: Progress) -> StudyReport:
    """The results of the finished runs of an experiment."""
    runs = list(experiment.runs)
    cells = study_cells(runs, store)
    if not cells.is_empty() and not experiment.built_in:
        paper = [name for name in cells.columns if name.startswith("paper_")]
        cells = cells.with_columns(pl.lit(None, pl.Float64).alias(name) for name in paper)
    # Only forecasts of the first backbone are shown: means over several would belong to no model.
    kept = [run for run in runs if run.keep_hours and run.backbone == runs[0].backbone and store.has(run)]
    hours = _mean_hours(experiment, [(run.model, store.hours(run)) for run in kept]) if kept else None
    failed = tuple(f"{_label(run.labels)} {run.model} seed {run.seed}: {why}" for run, why in progress.failed.items())
    seconds = sum(store.seconds(run) for run in runs if store.has(run))
    return StudyReport(experiment, cells, seconds, failed, hours)


def _mean_hours(experiment: Experiment, parts: list[tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    """Forecasts for the most censored region, averaged over the runs of each model, with observed and true demand."""
    scene = experiment.scenes[0]
    frames = [
        hours.filter(pl.col("unique_id") == scene.most_censored).with_columns(model=pl.lit(m)) for m, hours in parts
    ]
    quantiles = [name for name in frames[0].columns if name.startswith("q")]
    mean = pl.concat(frames).group_by("model", "unique_id", "ds", maintain_order=True).agg(pl.col(quantiles).mean())
    return mean.join(
        scene.panel.select("unique_id", "ds", "y", "y_true"), on=["unique_id", "ds"], maintain_order="left"
    )


def write_study(report: StudyReport, folder: Path) -> None:
    """Write the tables, the page and the Markdown of a study."""
    with atomic_file(folder / "cells.parquet") as draft:
        report.cells.write_parquet(draft)
    if report.hours is not None:
        with atomic_file(folder / "forecasts.parquet") as draft:
            report.hours.write_parquet(draft)
    with atomic_file(folder / "study.md") as draft:
        draft.write_text(study_markdown(report), encoding="utf-8")
    with atomic_file(folder / "study.html") as draft:
        draft.write_text(_page(report), encoding="utf-8")


def _best(report: StudyReport) -> tuple[str, float] | None:
    """The model that closes the most of the gap on average, and how much; None if there is no gap to close."""
    closed = {model: report.closed(model) for model in report.models() if model not in (UNAWARE, ORACLE)}
    known = {model: value for model, value in closed.items() if value is not None}
    best = max(known, key=known.__getitem__) if known else None
    return (best, known[best]) if best else None


def _headline(report: StudyReport) -> str:
    best = _best(report)
    if best is None:
        return report.experiment.title
    if best[1] <= 0:
        return "No model closes any of the gap between records and truth"
    return f"{model_title(best[0])} closes {100 * best[1]:.0f} % of the gap between records and truth"


def _page(report: StudyReport) -> str:
    experiment = report.experiment
    runs = report.cells["runs"]
    best = _best(report)
    cells = report.cells.select("judged", "backbone", *report.labels).unique()
    facts = [
        *([(f"{100 * best[1]:.0f} %", f"of the gap closed by {model_title(best[0]).lower()}")] if best else []),
        (f"{int(cells['judged'].sum())} of {cells.height}", "scenes have a gap of 5 % or more of the oracle's loss"),
        (f"{report.cells['runs'].sum():,}", f"training runs, {report.seconds / 60:.0f} minutes on one core in total"),
    ]
    figures = APPLICATION_FIGURES if report.hours is not None else STUDY_FIGURES
    if not cells["judged"].any():
        figures = tuple(figure for figure in figures if figure.name != STUDY_GAP.name)
    return render_page(
        report,
        figures,
        title=f"unmet: {experiment.title.lower()}",
        headline=_headline(report),
        lead=" ".join(
            [
                experiment.about,
                f"{between(int(runs.min() or 0), int(runs.max() or 0))} runs per cell.",  # type: ignore[arg-type]
                *_recovered(report),
            ]
        ),
        facts=facts,
        table=_application_table(report) if report.hours is not None else _loss_table(report),
        footer=f"unmet {__version__}.",
    )  # fmt: skip


def _loss_table(report: StudyReport) -> PageTable:
    heads = ("Tilted loss on true demand", *(report.column_name(value) for value in report.columns))
    rows = []
    for name, group in report.groups():
        for model in report.models():
            cells = [report.cell(group, model, value) for value in report.columns]
            title = model_title(model)
            rows.append((title if name == report.experiment.across else f"{name}: {title.lower()}", *map(_pair, cells)))
    note = "Large: this study. Small and grey: the paper's, and the difference." if report.experiment.built_in else ""
    return PageTable(heads, rows, note)


def _application_table(report: StudyReport) -> PageTable:
    return PageTable(
        ("Energy in held-out hours of the most censored region", "kWh", "of the truth"),
        [(name, f"{kwh:,.0f}", of_truth(share)) for name, kwh, share in application_rows(report)],
        "Models: the mean implied by their quantiles. The excess over observed demand is what to plan for.",
    )


def _pair(cell: dict[str, Any] | None) -> str | tuple[str, str]:
    if cell is None:
        return "-"
    unit = _loss_column(cell)
    ours = f"{cell[unit]:.3f}"
    paper = cell[f"paper_{unit}"]
    return ours if paper is None else (ours, f"{paper:.3f} ({cell[unit] - paper:+.3f})")


def summary_cells(report: StudyReport, experiment: Experiment, store: Store) -> list[dict[str, Any]]:
    """The cells as written to JSON, with the training time of each [s]."""
    seconds = training_seconds(experiment.runs, store)
    labels = [name for name, _ in experiment.runs[0].labels]
    found = []
    for cell in report.cells.iter_rows(named=True):
        key = (*((name, cell[name]) for name in labels), cell["model"], cell["backbone"])
        values = {**cell, "seconds": round(seconds.get(key, 0.0), 3)}
        found.append({name: None if _is_nan(value) else value for name, value in values.items()})
    return found


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def print_study(report: StudyReport, store: Store, out: Path, *, as_json: bool) -> None:
    """Print the study: tables for people, or one line of JSON."""
    if as_json:
        cells = summary_cells(report, report.experiment, store)
        print(
            json.dumps({"cells": cells, "failed": list(report.failed), "out": str(out)}, allow_nan=False, default=str)
        )
        return
    inside = [
        text
        for text, shown in (
            ("the paper's", report.cells.select(pl.col("^paper_tilted_loss.*$").count()).sum_horizontal()[0] > 0),
            ("gap closed", bool(report.cells["judged"].any())),
        )
        if shown
    ]
    print("Tilted loss on true demand" + (f" ({'; '.join(inside)})" if inside else ""))
    for name, group in report.groups():
        rows = []
        for model in report.models():
            terms = [_terminal(report.cell(group, model, value)) for value in report.columns]
            rows.append([model_title(model), *terms])
        heads = ["model", *(report.column_name(value) for value in report.columns)]
        report_grid(name, heads, rows)
    for name, kwh, share in application_rows(report):
        print(f"{name}: {kwh:,.0f} kWh, {of_truth(share)} of the truth")
    print("".join(f"{line}\n" for line in _recovered(report)), end="")
    for line in report.failed:
        say(f"Failed: {line}")
    print(f"Figures and tables: {out / 'study.html'} (open it in a browser)")


def _recovered(report: StudyReport) -> list[str]:
    """Sentences on the energy lost in all hours, for models that estimate it."""
    lines = []
    for _, group in report.groups():
        for model in report.models():
            cells = [(value, report.cell(group, model, value)) for value in report.columns]
            shares = [
                f"{cell['lost_all_of_true']:.2f} at {report.column_name(value)}"
                for value, cell in cells
                if cell is not None and cell["lost_all_of_true"] is not None
            ]
            if shares:
                lines.append(f"{model_title(model)}, estimated over true lost energy: {', '.join(shares)}.")
    return lines


def _terminal(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "-"
    unit = _loss_column(cell)
    paper = cell[f"paper_{unit}"]
    inside = [f"{paper:.3f}"] if paper is not None else []
    if cell["judged"] and cell["model"] not in (UNAWARE, ORACLE):
        inside.append(f"{cell['gap_closed']:.2f}")
    return f"{cell[unit]:.3f}" + (f" ({'; '.join(inside)})" if inside else "")


def _loss_column(cell: dict[str, Any]) -> str:
    """The loss to show; for market shares, the loss in units of true demand."""
    return "tilted_loss_true" if cell.get("share") is not None else "tilted_loss"


def print_study_plan(outline: StudyOutline, store: Store, workers: int, *, as_json: bool) -> None:
    """Print the cells of a study, how many of their runs are done, and how long the rest will take."""
    kept = outline.kept(store)
    left = sum(cell.runs - number for cell, number in kept.items())
    estimate, each = outline.seconds(store, workers)
    if as_json:
        listed = [
            {**dict(c.labels), "model": c.model, "backbone": c.backbone, "runs": c.runs, "kept": number}
            for c, number in kept.items()
        ]
        print(json.dumps({"cells": listed, "runs_left": left, "estimated_seconds": round(estimate, 1)}))
        return
    rows = [[f"{_label(c.labels)} {c.model} {c.backbone}", str(c.runs), str(number)] for c, number in kept.items()]
    report_grid(f"{outline.title}: {len(kept)} cells", ["cell", "runs", "kept"], rows)
    print(
        f"{left} runs are left: about {estimate / 60:.0f} minutes with {workers} at a time, including scenes; "
        f"one takes about {each:.1f} s."
    )


def _label(labels: Sequence[tuple[str, Any]]) -> str:
    return " ".join(f"{100 * value:g} %" if isinstance(value, float) else str(value) for _, value in labels)
