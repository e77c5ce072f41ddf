"""Forecasts of real records beside what is readily available: `python -m benchmarks.forecasts [--set Dundee]`.

Six public data sets, rolling origins over the last fifth of the hours: an hour, a day and a week ahead. The default
forecaster, a table of the last eight weeks, last week's value, LightGBM on lags, and AutoETS and MSTL of statsforecast
forecast the same hours. A run of all sets writes docs/results/forecasts.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import polars as pl

from unmet import Forecaster
from unmet.demand.panel import Panel
from unmet.estimation.lost_demand import LostDemand
from unmet.evaluation.compare import HORIZONS, compare
from unmet.evaluation.evaluate import evaluate
from unmet.evaluation.rivals import PEERS, SIMPLE
from unmet.evaluation.score import score, with_actual
from unmet.models.series import read_series
from unmet.records.sessions import read_sessions

DATA = Path(__file__).parents[2] / "shared" / "data"
PAGE = Path(__file__).parents[1] / "docs" / "results" / "forecasts.md"
FITTED = 0.8  # share of the hours to learn from
WORSE = 1.05
TITLES = {rival.name: rival.title for rival in (*SIMPLE, *PEERS)}
MOST_SUMS = 6  # origins from which draws are summed over a week


@dataclass(frozen=True, slots=True)
class Source:
    """Records of one data set."""

    name: str
    files: str  # pattern
    stations: str | None = None


SOURCES = (
    Source("Dundee", "dundee_*", "dundee_locations.csv"),
    Source("Boulder", "boulder_*", "boulder_locations.csv"),
    Source("Caltech", "acn_caltech_2019-*"),
    Source("JPL", "acn_jpl_*"),
    Source("SAP", "sap_france_*"),
    Source("Lugano", "lugano_*", "lugano_colonnine.csv"),
)


@dataclass(frozen=True, slots=True)
class Result:
    """What was found on one data set."""

    name: str
    regions: int
    hours: int
    zeros: float  # share of region-hours without demand
    losses: list[dict[str, Any]]  # rival, horizon, model_kwh, rival_kwh, skill
    measures: list[dict[str, Any]]  # horizon, coverage, icp, bias_percent
    regions_worse: list[dict[str, Any]]  # horizon, worse, active: regions over 5 % worse than the table
    seconds: dict[str, float]
    true_demand: list[dict[str, Any]]  # of the forecast of true demand: rival, horizon, model_kwh, rival_kwh, skill
    fully_exposed: dict[str, float] | None
    week_sums: dict[str, float]  # origins, inside


def measure(source: Source) -> Result:
    """Fit the default on the first four fifths, and let everyone forecast the rest."""
    files = sorted((DATA / "sessions").glob(source.files))
    if not files:
        sys.exit(f"There are no records of {source.name}: {DATA} is missing.")
    records = read_sessions(files, stations=None if source.stations is None else DATA / "stations" / source.stations)
    panel = Panel(records.sessions, records.stations, time_zone=records.time_zone)
    table, seconds = panel.table, {}
    shares, zone = (FITTED - 0.1, 0.1), panel.time_zone
    Forecaster("stacked", "quantile", shares=shares, time_zone=zone).fit(_short(table))  # compile
    begun = time.process_time()
    model = Forecaster("stacked", "quantile", shares=shares, time_zone=zone).fit(table)
    seconds["fit"] = time.process_time() - begun
    begun = time.process_time()
    made = {h: model.hindcast(table, h) for h in HORIZONS}
    seconds["forecast the last fifth"] = time.process_time() - begun
    begun = time.process_time()
    model.forecast(table)
    seconds["forecast a week"] = time.process_time() - begun
    actual = read_series(table, names=model.regions_)
    rivals = [rival for rival in (*SIMPLE, *PEERS) if rival.is_installed()]
    since, levels = model.split_.fit_end, model.levels
    compared = compare(made.__getitem__, actual, actual.demand, since, levels, HORIZONS, zone, rivals)
    scale = dict(zip(model.regions_, model.scale_.tolist(), strict=True))
    measures = []
    for horizon in HORIZONS:
        found = score(with_actual(made[horizon], actual.table(), "target", scale), levels)
        measures.append({"horizon": horizon} | {name: found[name] for name in ("coverage", "icp", "bias_percent")})
    worse = (
        compared.by_region()
        .group_by("horizon", maintain_order=True)
        .agg(worse=(pl.col("model_kwh") > WORSE * pl.col("rival_kwh")).sum(), active=pl.len())
    )
    true, exposed = _true_demand(panel, shares)
    return Result(
        source.name, len(model.regions_), actual.hours, float(np.mean(actual.demand == 0)),
        compared.by_horizon().to_dicts(), measures, worse.sort("horizon").to_dicts(),
        seconds | compared.seconds, true, exposed, _week_sums(model, table),
    )  # fmt: skip


def _short(table: pl.DataFrame) -> pl.DataFrame:
    """Ten weeks of the panel, on which compiled functions are compiled before anything is timed."""
    first = table["ds"].min()
    return table.filter(pl.col("ds") < first + pl.duration(weeks=10))  # type: ignore[operator]


def _true_demand(panel: Any, shares: tuple[float, float]) -> tuple[list[dict[str, Any]], dict[str, float] | None]:
    """The default as `unmet fit` has it: forecasts of true demand, thinned by each hour's exposure."""
    table = LostDemand().fit(panel).panel_table()
    model = Forecaster(shares=shares, time_zone=panel.time_zone).fit(table)
    found = evaluate(model, table, ahead=HORIZONS)
    return found.comparison.by_horizon().to_dicts(), found.fully_exposed


def _week_sums(model: Any, table: pl.DataFrame) -> dict[str, float]:
    """How often the 90 % interval of a week's energy, all regions together, contains it."""
    first, last = model.split_.fit_end, table["ds"].max()
    weeks = int((last - first).total_seconds() // 3600 // 168)
    step = max(1, weeks // MOST_SUMS)
    inside = tried = 0
    for week in range(0, weeks, step):
        origin = first + pl.duration(weeks=week)
        past = table.filter(pl.col("ds") < origin)
        _, draws = model.draw(past, 200)
        came = table.filter((pl.col("ds") >= origin) & (pl.col("ds") < origin + pl.duration(weeks=1)))["y"].sum()
        low, high = np.quantile(draws.sum(axis=(1, 2)), (0.05, 0.95))
        inside, tried = inside + int(low <= came <= high), tried + 1
    return {"origins": tried, "inside": inside}


def page(results: list[Result], command: str) -> str:
    """The results as Markdown."""
    return "\n".join(
        ["# Forecasts beside what is readily available", "", fill(f"Written by `{command}`. {INTRODUCTION}", 120), "",
         *_criteria(results), "", "## Loss by set and horizon", "", fill(LOSS, 120), "", *_losses(results), "",
         "## Coverage, bias, regions", "", fill(COVERAGE, 120), "", *_measures(results), "",
         "## Forecasts of true demand", "", fill(TRUE, 120), "", *_true(results), "",
         "## Seconds of one core", "", fill(SECONDS, 120), "", *_seconds(results), ""]
    )  # fmt: skip


INTRODUCTION = """Six public data sets, as `unmet panel` makes panels of them with its defaults: up to ten regions where
stations have positions, else one for each station. Everyone learns from the first four fifths of the hours, and
forecasts each hour of the last fifth from the hours that were known an hour, a day and a week before it. The forecaster
is `Forecaster("stacked", "quantile")`, which forecasts observed demand as the others do. Its members, the 13 weeks and
200 neighbours of its distributions and the rule for zeros were chosen while looking at the losses of Dundee, Boulder,
Caltech, JPL and Lugano; SAP was held out until they were fixed."""
LOSS = """Pinball loss summed over the levels 0.05, 0.5 and 0.95 and over regions, in kWh an hour. In brackets, the loss
of the default against it, in percent: below zero the default is better. statsforecast is fitted anew on the last eight
weeks of each region at 2 to 12 origins, and compared on the few hours that it forecast. The criterion counts the better
of table and LightGBM."""
COVERAGE = """Coverage of the 90 % interval: zeros count by the forecast's chance of no demand, so that a right forecast
covers 0.90 even where most hours are zero; in brackets the plain share of hours inside, ends included, which is 0.95
for a right forecast whose lower end is 0. Bias: sum of the forecast means over the sum of demand, of all weeks. Worse:
regions whose loss is over 5 % above the table's, of those where the table has a loss. Week sums: how often the 90 %
interval of a week's energy in all regions, from 200 draws, contained it."""
TRUE = """`Forecaster()`, the default of `unmet fit`, forecasts true demand. Its forecasts are thinned by the exposure
of each hour and scored on observed demand, beside the table of observed demand; and scored as they are over hours of
full exposure. Both favour and hurt it in their own way: exposure is low in hours that turned out busy."""
SECONDS = """Seconds of one core, one thread each. LightGBM: nine models (three levels, three horizons) of 400,000
rows at most. statsforecast: 2 to 12 origins, 24 fits or two per region."""


def _best(result: Result, horizon: int) -> tuple[float, float]:
    """Loss of the default, and of the better of table and LightGBM."""
    rows = [row for row in result.losses if row["horizon"] == horizon and row["rival"] in ("table", "lightgbm")]
    return rows[0]["model_kwh"], min(row["rival_kwh"] for row in rows)


def _criteria(results: list[Result]) -> list[str]:
    change = {r.name: np.mean([_best(r, h)[0] / _best(r, h)[1] - 1 for h in HORIZONS]) for r in results}
    cells = {(r.name, h): _best(r, h)[0] / _best(r, h)[1] - 1 for r in results for h in HORIZONS}
    mean, worst = float(np.mean(list(change.values()))), max(cells, key=lambda key: cells[key])
    cover = {(r.name, row["horizon"]): row["coverage"] for r in results for row in r.measures}
    outside = [f"{name} {h} h {value:.3f}" for (name, h), value in cover.items() if not 0.87 <= value <= 0.93]
    bias = [np.mean([row["bias_percent"] for row in r.measures]) for r in results]
    worse = [
        (sum(row["worse"] for row in r.regions_worse), sum(row["active"] for row in r.regions_worse)) for r in results
    ]
    bad, all_regions = sum(a for a, _ in worse), sum(b for _, b in worse)
    found = f"{min(cover.values()):.3f}-{max(cover.values()):.3f}"
    size, off = float(np.mean(np.abs(bias))), float(np.mean(bias))
    top = cells[worst]
    lines = [
        ("loss at least 2 % below the better of table and LightGBM, mean over sets", f"{100 * mean:+.1f} %",
         mean <= -0.02),
        ("never more than 2 % above it", f"at most {100 * top:+.1f} % ({worst[0]}, {worst[1]} h)", top <= 0.02),
        ("coverage 0.87-0.93 by set and horizon", ", ".join(outside) or found, not outside),
        ("bias of weekly sums within 5 %, mean over sets", f"{off:+.1f} % (mean size {size:.1f} %)", abs(off) <= 5),
        ("at most one region in ten over 5 % worse than the table", f"{bad} of {all_regions} regions and horizons",
         bad <= 0.1 * all_regions),
    ]  # fmt: skip
    return ["| asked for | found | met |", "| --- | --- | --- |"] + [
        f"| {asked} | {found} | {'yes' if met else 'NO'} |" for asked, found, met in lines
    ]


def _losses(results: list[Result]) -> list[str]:
    names = list(dict.fromkeys(row["rival"] for result in results for row in result.losses))
    lines = [
        "| set | hours ahead | default | " + " | ".join(TITLES[name] for name in names) + " | best of two |",
        "| --- | ---: | ---: |" + " ---: |" * (len(names) + 1),
    ]
    for result in results:
        for horizon in HORIZONS:
            rows = {row["rival"]: row for row in result.losses if row["horizon"] == horizon}
            cells = [
                f"{rows[name]['rival_kwh']:.2f} ({-100 * rows[name]['skill']:+.1f})" if name in rows else "-"
                for name in names
            ]
            own, best = _best(result, horizon)
            both = f"{best:.2f} ({100 * (own / best - 1):+.1f})"
            lines.append(f"| {result.name} | {horizon} | {own:.2f} | {' | '.join(cells)} | {both} |")
    return lines


def _measures(results: list[Result]) -> list[str]:
    lines = ["| set | regions | zero hours | hours ahead | coverage | bias | worse | week sums inside |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for result in results:
        for row in result.measures:
            worse = next((w for w in result.regions_worse if w["horizon"] == row["horizon"]), {"worse": 0, "active": 0})
            sums = f"{result.week_sums['inside']:.0f} of {result.week_sums['origins']:.0f}"
            lines.append(
                f"| {result.name} | {result.regions} | {100 * result.zeros:.0f} % | {row['horizon']} "
                f"| {row['coverage']:.3f} ({row['icp']:.3f}) | {row['bias_percent']:+.1f} % "
                f"| {worse['worse']} of {worse['active']} | {sums if row['horizon'] == 168 else ''} |"
            )
    return lines


def _true(results: list[Result]) -> list[str]:
    lines = ["| set | hours ahead | thinned, kWh | table, kWh | change | fully exposed hours: coverage, bias |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for result in results:
        for row in (row for row in result.true_demand if row["rival"] == "table"):
            exposed = result.fully_exposed
            said = (
                f"{exposed['coverage']:.3f}, {exposed['bias_percent']:+.1f} %"
                if exposed and row["horizon"] == 1
                else ""
            )
            lines.append(
                f"| {result.name} | {row['horizon']} | {row['model_kwh']:.2f} | {row['rival_kwh']:.2f} "
                f"| {-100 * row['skill']:+.1f} % | {said} |"
            )
    return lines


def _seconds(results: list[Result]) -> list[str]:
    names = list(dict.fromkeys(name for result in results for name in result.seconds))
    heads = [TITLES.get(name, f"default: {name}") for name in names]
    return [
        "| set | " + " | ".join(heads) + " |",
        "| --- |" + " ---: |" * len(names),
        *(
            f"| {r.name} | " + " | ".join(f"{r.seconds.get(n, float('nan')):.1f}" for n in names) + " |"
            for r in results
        ),
    ]


def main() -> None:
    """Measure what was asked for, and write or print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecasts", description=__doc__)
    parser.add_argument("--set", help="only this one; all if not given")
    parser.add_argument(
        "--keep", type=Path, help="folder of results by set; those that are there are not measured again"
    )
    asked = parser.parse_args()
    chosen = [source for source in SOURCES if asked.set in (None, source.name, source.name.lower())]
    if not chosen:
        sys.exit(f"There is no set {asked.set}: choose among {', '.join(source.name for source in SOURCES)}.")
    results = []
    for source in chosen:
        path = asked.keep / f"{source.name}.json" if asked.keep else None
        if path and path.is_file():
            results.append(Result(**json.loads(path.read_text(encoding="utf-8"))))
            continue
        results.append(measure(source))
        print(f"{source.name}: {results[-1].losses}", file=sys.stderr, flush=True)
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(asdict(results[-1])), encoding="utf-8")
    everything = page(results, "python -m benchmarks.forecasts")
    if asked.set is not None:
        print(everything)
        return
    PAGE.write_text(everything, encoding="utf-8")
    print(f"Written to {PAGE}")


if __name__ == "__main__":
    main()
