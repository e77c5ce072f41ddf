"""A fitted model and its forecasts as pages, as folders and as tables for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unmet import __version__
from unmet.models.backbones import BACKBONES
from unmet.models.likelihoods import LIKELIHOODS
from unmet.models.storage import write_model
from unmet.runs import write_json
from unmet.views.figures import FORECAST_FIGURES, MODEL_FIGURES
from unmet.views.figures.coverage import COVERAGE
from unmet.views.figures.forecast_week import FORECAST_WEEK
from unmet.views.model_report import ForecastReport, ModelReport
from unmet.views.page import PageTable, render_page
from unmet.views.terminal import report, report_grid, say
from unmet.views.theme import percent

__all__ = ["print_forecast", "print_model", "write_evaluation", "write_fit", "write_forecast"]


def model_summary(shown: ModelReport) -> dict[str, Any]:
    """What was fitted and how good it is, for machines."""
    model = shown.model
    return {
        "backbone": model.backbone,
        "likelihood": model.likelihood,
        "seeds": len(model.seeds_),
        "seed": model.seed,
        "regions": len(model.regions_),
        "horizon": model.horizon,
        "epochs": [len(losses) for losses in model.losses_],
        "finished": model.finished_,
        "notes": list(model.notes_),
        "unseen": shown.evaluation.summary() if shown.evaluation else None,
    }


def write_fit(shown: ModelReport, folder: Path) -> None:
    """Write a fitted model into a run folder: the model, its measures and the page."""
    (folder / "model").mkdir()
    write_model(shown.model, folder / "model")
    if not shown.model.set_aside_.is_empty():
        shown.model.set_aside_.write_parquet(folder / "rejected.parquet")
    write_evaluation(shown, folder)


def write_evaluation(shown: ModelReport, folder: Path) -> None:
    """Write how good a model is: `metrics.json`, the forecasts one hour ahead and the page."""
    write_json(folder / "metrics.json", model_summary(shown))
    if shown.evaluation:
        shown.evaluation.hours.write_parquet(folder / "unseen.parquet")
    (folder / "report.html").write_text(_model_page(shown), encoding="utf-8")


def _model_page(shown: ModelReport) -> str:
    model, evaluation = shown.model, shown.evaluation
    name = f"{BACKBONES.named(model.backbone).title}, {LIKELIHOODS.named(model.likelihood).title.lower()}"
    share = percent(model.levels[-1] - model.levels[0])
    left_out = set()
    if evaluation is None:
        left_out = {FORECAST_WEEK.name, COVERAGE.name}
    elif not evaluation.horizons:
        left_out = {COVERAGE.name}
    truth = "true" if evaluation and evaluation.against == "y_true" else "observed"
    overall = evaluation.overall if evaluation else {}
    headline = f"{name}: fitted" if not evaluation else (
        f"{name}: {percent(overall['icp'])} of {truth} demand lies inside the {share} interval"
    )  # fmt: skip
    epochs = [len(losses) for losses in model.losses_]
    lead = (
        f"Fitted on {len(model.regions_)} regions, {model.split_.first:%d %B %Y} to {model.split_.fit_end:%d %B %Y}, "
        f"from {len(model.seeds_)} seeds ({min(epochs)} to {max(epochs)} epochs). "
        + ("" if model.finished_ else "Training was stopped before its end: these are the best weights so far. ")
        + (f"All numbers are of hours after that, forecast one hour ahead, against {truth} demand. " if evaluation else
           "No hours were left to test it on. ")
        + " ".join(model.notes_)
    )  # fmt: skip
    facts = [
        (f"{overall['tilted_loss']:.3f}", "tilted loss, scaled, summed over regions and quantiles"),
        (f"{overall['icp']:.3f}", f"of unseen hours inside the interval (ICP; {share} promised)"),
        (f"{overall['mil']:.3f}", "mean interval length, scaled (MIL)"),
        (f"{overall['bias_percent']:+.1f} %", f"bias of the energy forecast, of {truth} energy"),
    ] if evaluation else [(str(len(model.seeds_)), "seeds"), (str(len(model.regions_)), "regions")]  # fmt: skip
    return render_page(
        shown,
        [figure for figure in MODEL_FIGURES if figure.name not in left_out],
        title="unmet: a fitted model",
        headline=headline,
        lead=lead,
        facts=facts,
        table=_region_table(shown),
        footer=f"unmet {__version__}, seed {model.seed}.",
    )


def _region_table(shown: ModelReport) -> PageTable:
    heads = ("Region", "demand, kWh an hour", "tilted loss", "ICP", "MIL, kWh", "CRPS, kWh", "bias")
    if not shown.evaluation:
        return PageTable(heads, [], "")
    rows = [
        (
            row["unique_id"],
            f"{row['mean_kwh']:.1f}",
            f"{row['tilted_loss']:.4f}",
            f"{row['icp']:.3f}",
            f"{row['mil_kwh']:.1f}",
            f"{row['crps_kwh']:.2f}",
            "-" if row["bias_percent"] != row["bias_percent"] else f"{row['bias_percent']:+.1f} %",
        )
        for row in shown.evaluation.regions[:MOST_ROWS]
    ]
    left = len(shown.evaluation.regions) - len(rows)
    note = "Tilted loss in units of the region's largest observed demand. Bias: mean forecast beyond what came."
    return PageTable(heads, rows, note + (f" {left} more regions are in metrics.json." if left else ""))


MOST_ROWS = 20


def print_model(shown: ModelReport, out: Path, *, as_json: bool) -> None:
    """The summary of a fitted model: tables for people, or one line of JSON."""
    summary = model_summary(shown) | {"out": str(out)}
    if as_json:
        report("", summary, as_json=True)
        return
    summary["epochs"] = f"{min(summary['epochs'])} to {max(summary['epochs'])}"
    report("Model", {k: v for k, v in summary.items() if k not in ("unseen", "notes")}, as_json=False)
    for note in shown.model.notes_:
        say(note)
    if evaluation := shown.evaluation:
        truth = "true" if evaluation.against == "y_true" else "observed"
        rows = [["1", *_measures(evaluation.overall)]]
        rows += [[f"{row['from_hour']} to {row['to_hour']}", *_measures(row)] for row in evaluation.horizons[1:]]
        heads = ["hours ahead", "tilted loss", "ICP", "MIL", "CRPS, kWh", "bias"]
        report_grid(f"Unseen hours, against {truth} demand", heads, rows)
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


def write_forecast(shown: ForecastReport, folder: Path) -> dict[str, Any]:
    """Write a forecast into a folder: its table, the summary (given back) and the page."""
    totals = shown.totals()
    zone = shown.model.time_zone
    peak = totals.row(0, named=True)
    hours = shown.forecast["ds"]
    first, last = hours.sort()[0], hours.sort()[-1]
    summary = {
        "first_hour": f"{first:%Y-%m-%dT%H:%MZ}",
        "last_hour": f"{last:%Y-%m-%dT%H:%MZ}",
        "hours": shown.forecast["ds"].n_unique(),
        "regions": totals.height,
        "expected_kwh": round(float(totals["kwh"].sum()), 1),
        "most_in": peak["unique_id"],
        "most_kwh": round(peak["kwh"], 1),
        "time_zone": zone,
        "seed": shown.model.seed,
        "version": __version__,
    }
    shown.forecast.write_parquet(folder / "forecast.parquet")
    shown.past.write_parquet(folder / "past.parquet")
    write_json(folder / "summary.json", summary | {"by_region": totals.select("unique_id", "kwh").to_dicts()})
    local = totals["peak"].dt.convert_time_zone(zone)
    page = render_page(
        shown,
        FORECAST_FIGURES,
        title="unmet: a forecast",
        headline=f"{summary['expected_kwh'] / 1000:,.1f} MWh are wanted in the next {summary['hours']} hours",
        lead=(
            f"Demand for charging in {totals.height} regions from {first:%d %B %Y, %H:%M} UTC on, seen and unseen, as "
            f"{BACKBONES.named(shown.model.backbone).title} with "
            f"{LIKELIHOODS.named(shown.model.likelihood).title.lower()} expects it."
        ),
        facts=(
            (f"{summary['expected_kwh'] / 1000:,.1f} MWh", "expected in all regions"),
            (str(peak["unique_id"]), f"is the busiest region, with {peak['kwh'] / 1000:,.1f} MWh"),
            (f"{peak['peak_kwh']:,.0f} kWh", f"is its peak, {local[0]:%a %d %b, %H:%M} local time"),
        ),
        table=PageTable(
            ("Region", "expected, kWh", "peak hour, kWh", "at, local time"),
            [
                (row["unique_id"], f"{row['kwh']:,.0f}", f"{row['peak_kwh']:,.0f}", f"{when:%a %d %b, %H:%M}")
                for row, when in zip(totals.head(MOST_ROWS).iter_rows(named=True), local, strict=False)
            ],
            f"{totals.height - MOST_ROWS} more regions are in summary.json." if totals.height > MOST_ROWS else "",
        ),
        footer=f"unmet {__version__}, seed {shown.model.seed}.",
    )
    (folder / "forecast.html").write_text(page, encoding="utf-8")
    return summary


def print_forecast(summary: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """The summary of a forecast."""
    report("Forecast", summary | {"out": str(out)}, as_json=as_json)
    if not as_json:
        print(f"Forecast and figures: {out / 'forecast.html'} (open it in a browser)")
