"""Training by chunks and by windows on the same data: `python -m benchmarks.windows` (half an hour).

Prints the table of docs/results/chunk-and-window.md, which is copied there by hand.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import polars as pl

from unmet.city.build import build_city
from unmet.demand.regions import Regions
from unmet.evaluation.score import score, with_actual
from unmet.models.forecaster import Forecaster
from unmet.models.likelihoods import LEVELS
from unmet.models.training import Training
from unmet.simulation.scenario import Scenario
from unmet.study.censoring import run_censoring

SEEDS = 3
WINDOWS = replace(Training(), by="window", batch=64, epochs=60)
LIKELIHOODS = ("quantile",)


def default_panel() -> tuple[pl.DataFrame, Regions]:
    """The panel of the built-in city at first-come 5 %: 2,184 hours of 10 regions."""
    city = build_city(None, None, None, "Europe/Copenhagen", 1)
    study = run_censoring(city, ["first-come"], [0.05], scenario=Scenario(seed=1))
    return study.cells[0].panel, study.regions


def losses(panel: pl.DataFrame, regions: Regions, likelihood: str, training: Training) -> tuple[list[float], float]:
    """Tilted loss on true demand of the test part for each seed, and training time per seed [s]."""
    model = Forecaster(
        "tgcn", likelihood, seeds=SEEDS, horizon=1, training=training, calibrate=False, floor=None,
        time_zone="Europe/Copenhagen", workers=1,
    )  # fmt: skip
    started = time.perf_counter()
    model.fit(panel, regions.centres)
    seconds = (time.perf_counter() - started) / SEEDS
    scale = dict(zip(model.regions_, model.encoding_.scale, strict=True))
    rows = with_actual(model.predict(panel, model.split_.fit_end, each=True), panel, "y_true", scale)
    return [score(part, LEVELS)["tilted_loss"] for _, part in rows.group_by("seed", maintain_order=True)], seconds


def main() -> None:
    """Print the table."""
    panel, regions = default_panel()
    print("| likelihood | training | seed 1 | seed 2 | seed 3 | mean | seconds per seed |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for likelihood in LIKELIHOODS:
        means = {}
        for name, training in (("chunk", Training()), ("window", WINDOWS)):
            found, seconds = losses(panel, regions, likelihood, training)
            means[name] = float(np.mean(found))
            cells = " | ".join(f"{loss:.4f}" for loss in found)
            print(f"| {likelihood} | {name} | {cells} | {means[name]:.4f} | {seconds:.0f} |", flush=True)
        difference = 100 * (means["chunk"] / means["window"] - 1)
        print(f"| {likelihood} | chunk over window | | | | {difference:+.1f} % | |", flush=True)


if __name__ == "__main__":
    main()
