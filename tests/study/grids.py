"""Small scenes and grids for tests of studies. As a script, the module runs the grid into a folder."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import psutil

from unmet.study.cells import Run, RunResult, plan_runs
from unmet.study.execute import Progress, execute
from unmet.study.results import study_cells
from unmet.study.scenes import Scene
from unmet.study.store import Store

MONDAY = dt.datetime(2019, 9, 2, tzinfo=dt.UTC)
DRAWS = 16
FEW = ("gaussian", "censored-quantile", "oracle")  # one of each kind, for grids that are run again and again
MODELS = ("gaussian", "tobit", "quantile", "censored-quantile", "oracle")


def small_scene(queue: str = "first-come", seed: int = 0, hours: int = 400, regions: int = 2) -> Scene:
    """A noisy daily wave of demand in each region, of which at most 10 kWh per hour are observed.

    Draws of lost energy scatter around the truth.
    """
    rng = np.random.default_rng(seed)
    ds = pl.datetime_range(MONDAY, MONDAY + dt.timedelta(hours=hours - 1), "1h", time_zone="UTC", eager=True)
    wave = 1.2 + np.sin(np.arange(hours) * 2 * np.pi / 24)
    parts = []
    for region in range(regions):
        true = (5 + region) * wave * rng.gamma(8, 1 / 8, hours)
        seen = np.minimum(true, 10.0)
        part = {
            "unique_id": [f"r{region}"] * hours,
            "ds": ds,
            "y": seen,
            "y_true": true,
            "arrivals": rng.poisson(seen),
            "censored": true > 10.0,
            "lost_kwh_before": 0.9 * (true - seen),
        }
        draws = (true - seen)[:, None] * rng.gamma(10, 1 / 10, (1, DRAWS))
        drawn = pl.Series("lost_draws", draws.astype(np.float32), dtype=pl.Array(pl.Float32, DRAWS))
        parts.append(pl.DataFrame(part).with_columns(drawn))
    positions = pl.DataFrame(
        {"unique_id": [f"r{r}" for r in range(regions)], "lat": [55.6] * regions, "lon": [12.5] * regions}
    )
    return Scene({"queue": queue, "penetration": 0.05}, pl.concat(parts), positions, "UTC")


def cities_of(queue: str, number: int = 3) -> list[Scene]:
    """The same queue in several cities."""
    return [replace(small_scene(queue, 10 + city), city=city) for city in range(number)]


def small_grid(models: tuple[str, ...] = MODELS, runs: int = 2, epochs: int = 4) -> tuple[list[Scene], list[Run]]:
    """Two scenes, each model with the linear backbone."""
    scenes = [small_scene("first-come", 1), small_scene("gas-station", 2)]
    return scenes, plan_runs(scenes, models, ["linear"], runs, 1, epochs)


def fake_result(run: Run, loss: float = 1.0, **measures: float) -> RunResult:
    """An invented result, without any training."""
    names = ("icp", "mil", "mil_true", "bias_percent", "crps", "tilted_loss_kwh", "icp_most_censored")
    row = dict(run.labels) | {"model": run.model, "backbone": run.backbone, "seed": run.seed, "city": run.city}
    row |= {"scene": run.scene, "tilted_loss": loss, "tilted_loss_true": loss}
    return RunResult(row | dict.fromkeys(names, 0.5) | measures, None, 2.0)


def perform_grid(folder: Path, **options) -> Progress:
    """Run a few models of the small grid as a study does, and write their cells."""
    scenes, runs = small_grid(FEW)
    store = Store(folder)
    progress = execute(runs, scenes, store, **options)
    study_cells(runs, store).write_parquet(folder / "cells.parquet")
    return progress


def digests_of_runs(folder: Path) -> dict[str, str]:
    """A hash of each result."""
    return {file.name: _digest(file) for file in sorted((folder / "runs").glob("*.parquet"))}


def digests(folder: Path) -> dict[str, str]:
    """A hash of each result, and of the cells."""
    return digests_of_runs(folder) | {"cells": _digest(folder / "cells.parquet")}


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def pool_processes(of: int) -> list[psutil.Process]:
    """The living workers of a study."""
    found = psutil.Process(of).children()
    alive = [child for child in found if child.status() != psutil.STATUS_ZOMBIE]
    return [child for child in alive if "popen_loky" in " ".join(child.as_dict(["cmdline"])["cmdline"] or ())]


def perform_until(folder: Path, workers: int, runs: int) -> None:
    """Run the grid, kill a worker halfway if there are several, and pause after some runs.

    The test that started this process then knows exactly how many results are stored when it kills the process.
    """
    killed: list[psutil.Process] = []

    def pause(progress: Progress) -> None:
        if workers > 1 and progress.done >= runs // 2 and not killed:
            killed.extend(pool_processes(os.getpid())[:1])
            killed[0].kill()
        if progress.done >= runs:
            (folder / "paused").touch()
            signal.pause()

    perform_grid(folder, workers=workers, on_progress=pause)


if __name__ == "__main__":
    perform_until(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
