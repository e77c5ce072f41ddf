"""A fitted model as a page, as a folder and as tables for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from unmet import __version__
from unmet.errors import InputError
from unmet.evaluation.evaluate import THINNED, TRUE, Evaluation
from unmet.evaluation.rivals import PEERS, SIMPLE, TABLE
from unmet.files import read_json
from unmet.models.storage import write_model
from unmet.runs import write_json
from unmet.views.figures import MODEL_FIGURES
from unmet.views.figures.coverage import COVERAGE
from unmet.views.figures.forecast_week import FORECAST_WEEK
from unmet.views.model_report import ModelReport, worse_sentence
from unmet.views.page import PageSection, PageTable, render_page
from unmet.views.terminal import print_summary, report_grid, say
from unmet.views.theme import percent

__all__ = ["print_model", "worse_than_table", "write_evaluation", "write_fit"]

METRICS = "metrics.json"
MAX_ROWS = 20  # regions in the table of a page


def model_summary(report: ModelReport) -> dict[str, Any]:
    """The summary of a fitted model and its scores, as written to JSON."""
    model = report.model
    trained: dict[str, Any] = {}
    if report.losses:
        trained = {"seeds": len(report.losses), "epochs": [len(losses) for losses in report.losses.values()]}
    return {
        "backbone": model.backbone,
        "likelihood": model.likelihood,
        **trained,
        "seed": model.seed,
        "regions": len(model.regions_),
        "horizon": model.horizon,
        "finished": model.finished_,
        "notes": list(model.notes_),
        "unseen": report.evaluation.summary() if report.evaluation else None,
    }


def write_fit(report: ModelReport, folder: Path) -> None:
    """Write a fitted model into a run folder: the model, its scores and the page."""
    (folder / "model").mkdir()
    write_model(report.model, folder / "model")
    if not report.model.set_aside_.is_empty():
        report.model.set_aside_.write_parquet(folder / "rejected.parquet")
    write_evaluation(report, folder)


def write_evaluation(report: ModelReport, folder: Path) -> None:
    """Write the scores of a model: `metrics.json`, the forecasts one hour ahead and the page."""
    write_json(folder / METRICS, model_summary(report))
    if report.evaluation:
        report.evaluation.hours.write_parquet(folder / "unseen.parquet")
    (folder / "report.html").write_text(_model_page(report), encoding="utf-8")


def _model_page(report: ModelReport) -> str:
    model, evaluation = report.model, report.evaluation
    left_out = set() if report.losses else {"learning"}
    if evaluation is None:
        left_out |= {FORECAST_WEEK.name, COVERAGE.name}
    elif not evaluation.horizons:
        left_out |= {COVERAGE.name}
    lead = (
        f"Learned from {len(model.regions_)} regions, {model.split_.first:%d %B %Y} to "
        f"{model.split_.fit_end:%d %B %Y}. "
        + ("" if model.finished_ else "Training was stopped before its end: these are the best weights so far. ")
        + (f"Tested on later hours, against {_scored(evaluation)}. " if evaluation else
           "No hours were left to test it on. ")
        + " ".join(model.notes_)
    )  # fmt: skip
    return render_page(
        report,
        [figure for figure in MODEL_FIGURES if figure.name not in left_out],
        title="unmet: a fitted model",
        headline=_model_headline(evaluation),
        lead=lead,
        facts=_model_facts(report),
        table=_region_table(report),
        warning=_worse_regions(evaluation),
        after=_sections_after(report),
        footer=f"unmet {__version__}, {model.title}, seed {model.seed}.",
    )


def _model_headline(evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return "The model is fitted, but not tested yet"
    rows = evaluation.comparison.by_horizon().filter(pl.col("rival") == TABLE.name)
    skill = 1 - float(rows["model_kwh"].sum()) / max(float(rows["rival_kwh"].sum()), 1e-12)
    if abs(skill) < 0.005:
        return "Forecasts are as good as a table of the last eight weeks, not better"
    return (
        f"Forecasts are {percent(abs(skill))} {'better' if skill > 0 else 'WORSE'} than a table of the last eight weeks"
    )


def _scored(evaluation: Evaluation) -> str:
    """What the forecasts are scored against, in words."""
    return {
        TRUE: "the true demand of the simulation",
        THINNED: "observed demand, after the forecast of true demand was reduced to the share of drivers that could "
        "be served in each hour",
    }.get(evaluation.scored_as, "observed demand")


def _model_facts(report: ModelReport) -> list[tuple[str, str]]:
    model, evaluation = report.model, report.evaluation
    if evaluation is None:
        return [(str(len(model.regions_)), "regions"), (str(model.horizon), "hours ahead")]
    rows = evaluation.comparison.by_horizon().filter(pl.col("rival") == TABLE.name).to_dicts()
    facts = [
        (
            f"{abs(100 * row['skill']):.0f} % {'better' if row['skill'] >= 0 else 'worse'}",
            f"than the table, {_ahead(row['horizon'])}",
        )
        for row in ([rows[0], rows[-1]] if len(rows) > 1 else rows)
    ]
    share = percent(model.levels[-1] - model.levels[0])
    overall = evaluation.overall
    return [
        *facts,
        (percent(overall["coverage"]), f"of later hours inside the {share} interval"),
        (f"{overall['bias_percent']:+.0f} %", "forecast energy, compared with actual energy"),
    ]


def _ahead(hours: int) -> str:
    return {1: "an hour ahead", 24: "a day ahead", 168: "a week ahead"}.get(hours, f"{hours} hours ahead")


def _worse_regions(evaluation: Evaluation | None) -> str:
    return worse_sentence(evaluation.comparison.worse_regions() if evaluation else [])


def worse_than_table(model: Path) -> tuple[str, ...]:
    """Regions in which a table of past weeks was better on held-out hours, as `unmet fit` wrote next to its model."""
    path = next((folder / METRICS for folder in (model, model.parent) if (folder / METRICS).is_file()), None)
    if path is None:
        return ()
    try:
        unseen = read_json(path)["unseen"] or {}
        return tuple(map(str, unseen.get("worse_than_table", ())))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path} is damaged: fit the model again with --overwrite.") from None


def _region_table(report: ModelReport) -> PageTable:
    if not report.evaluation:
        return PageTable(("Region",), [], "")
    compared = report.evaluation.comparison.by_region()
    horizons = compared["horizon"].unique().sort().to_list()
    heads = ("Region", "kWh per hour", *(f"error, {_ahead(h)}" for h in horizons), "inside", "energy")
    scores = {row["unique_id"]: row for row in report.evaluation.regions}
    order = [*compared["unique_id"].unique(maintain_order=True).to_list()]
    order += [name for name in scores if name not in order]
    changes = {
        (row["unique_id"], row["horizon"]): f"{-100 * row['skill']:+.0f} %" for row in compared.iter_rows(named=True)
    }
    rows = [
        (
            name,
            f"{scores[name]['mean_kwh']:.1f}",
            *(changes.get((name, horizon), "-") for horizon in horizons),
            percent(scores[name]["coverage"]),
            _bias(scores[name]["bias_percent"]),
        )
        for name in order[:MAX_ROWS]
    ]
    left = len(order) - len(rows)
    note = (
        "Worst first. Error (pinball loss): compared with a table of the last eight weeks; below 0, the model is "
        "better. Inside: share of hours inside the interval. Energy: forecast compared with actual energy."
    )
    return PageTable(heads, rows, note + (f" {left} more regions are in metrics.json." if left else ""))


def _bias(value: float) -> str:
    return "-" if value != value else f"{value:+.0f} %"


def _sections_after(report: ModelReport) -> list[PageSection]:
    """The sections below the figures: a comparison with other forecasts, and the measures that papers report."""
    if not report.evaluation:
        return []
    compared = report.evaluation.comparison.by_horizon()
    titles = {rival.name: rival.title for rival in (*SIMPLE, *PEERS)}
    rivals = PageTable(
        ("Compared with", "hours ahead", "its loss, kWh", "ours, kWh", "ours is better by"),
        [
            (titles[row["rival"]], str(row["horizon"]), f"{row['rival_kwh']:.2f}", f"{row['model_kwh']:.2f}",
             f"{100 * row['skill']:+.1f} %")
            for row in compared.iter_rows(named=True)
        ],
        "Pinball loss summed over quantiles and regions, over the hours that both forecast.",
    )  # fmt: skip
    rows = [("1", *_measures(report.evaluation.overall))]
    rows += [(_span(row), *_measures(row)) for row in report.evaluation.horizons[1:]]
    heads = ("Hours ahead", "tilted loss", "ICP", "MIL", "CRPS, kWh", "bias")
    papers = PageTable(heads, rows, "Tilted loss and MIL in units of each region's largest observed demand.")
    return [
        PageSection("rivals", "Compared with readily available forecasts", table=rivals),
        PageSection("measures", "Measures as papers report them", table=papers),
    ]


def _span(row: dict[str, Any]) -> str:
    first, last = row["from_hour"], row["to_hour"]
    return str(first) if first == last else f"{first} to {last}"


def print_model(report: ModelReport, out: Path, *, as_json: bool) -> None:
    """Print the summary of a fitted model: tables for people, or one line of JSON."""
    summary = model_summary(report) | {"out": str(out)}
    if as_json:
        print_summary("", summary, as_json=True)
        return
    if "epochs" in summary:
        summary["epochs"] = f"{min(summary['epochs'])} to {max(summary['epochs'])}"
    print_summary("Model", {k: v for k, v in summary.items() if k not in ("unseen", "notes")}, as_json=False)
    for note in report.model.notes_:
        say(note)
    if evaluation := report.evaluation:
        rows = [["1", *_measures(evaluation.overall)]]
        rows += [[_span(row), *_measures(row)] for row in evaluation.horizons[1:]]
        heads = ["hours ahead", "tilted loss", "ICP", "MIL", "CRPS, kWh", "bias"]
        report_grid(f"Held-out hours, scored against {evaluation.scored_as}", heads, rows)
        compared = evaluation.comparison.by_horizon()
        heads = ["compared with", "hours ahead", "its loss, kWh", "ours, kWh", "ours is better by"]
        cells = [
            [row["rival"], str(row["horizon"]), f"{row['rival_kwh']:.2f}", f"{row['model_kwh']:.2f}",
             f"{100 * row['skill']:+.1f} %"]
            for row in compared.iter_rows(named=True)
        ]  # fmt: skip
        report_grid("Compared with readily available forecasts", heads, cells)
        if sentence := _worse_regions(evaluation):
            say(sentence)
    else:
        say("No hours were left to test the model on.")
    print(f"Figures: {out / 'report.html'} (open it in a browser)")


def _measures(row: dict[str, Any]) -> list[str]:
    return [
        f"{row['tilted_loss']:.3f}",
        f"{row['icp']:.3f}",
        f"{row['mil']:.3f}",
        f"{row['crps_kwh']:.2f}",
        f"{row['bias_percent']:+.1f} %",
    ]
