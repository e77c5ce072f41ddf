"""Training and forecasting: chunks compared with windows and with a plain network, and growth with regions."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import torch

from benchmarks.plain_tgcn import PlainTGCN, pass_over_windows
from benchmarks.report import Result
from benchmarks.windows import default_panel
from unmet.demand.calendar import hours_between
from unmet.models import training as trainer
from unmet.models.backbones import BACKBONES
from unmet.models.encoding import Encoding
from unmet.models.forecaster import Forecaster
from unmet.models.graph import Graph, region_graph
from unmet.models.likelihoods import LIKELIHOODS
from unmet.models.network import ForecastNetwork
from unmet.models.series import read_positions, read_series
from unmet.models.training import Task, Training

TITLE = "Training and forecasting"
TEXT = """The T-GCN with the quantile loss on the built-in city at first-come 5 % (2,184 hours of 10 regions), one
thread. A pass is one epoch over all 1,579 targets of the training part. The plain network is the same one written with
`nn.LSTM` on windows of 168 hours, batches of 256. PyTorch Geometric Temporal, another obvious peer, needs torch-sparse,
which has no build for this version of torch. Growth of time and memory is measured on random panels of 700 hours, each
in a process of its own."""

REGIONS = (10, 100, 1_000, 5_000)


def run() -> list[Result]:
    """All benchmarks of training."""
    panel, regions = default_panel()
    return [*_passes(panel, regions.centres), _ten_seeds(panel, regions.centres), _week(), *_growth()]


def _passes(panel: pl.DataFrame, positions: pl.DataFrame) -> list[Result]:
    series = read_series(panel)
    train_hours, fit_hours = int(0.8 * series.hours), int(0.9 * series.hours)
    encoding = Encoding.of(series, train_hours, "Europe/Copenhagen", marks_unknown=False)
    data = encoding.encode(series)
    likelihood = LIKELIHOODS.named("quantile")()
    graph = region_graph(read_positions(positions, series.names), len(series.names))

    def one_pass(training: Training) -> float:
        network = ForecastNetwork(BACKBONES.named("tgcn")(encoding.shape(168), Graph(graph)), likelihood.outputs)
        task = Task(data, encoding, likelihood, 168, 1, train_hours, fit_hours, replace(training, epochs=1))
        started = time.perf_counter()
        trainer.train(network, task, 1)
        return time.perf_counter() - started

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    one_pass(Training())
    chunk = min(one_pass(Training()) for _ in range(10))
    window = one_pass(Training.as_in_paper())
    plain = PlainTGCN(torch.from_numpy(graph.toarray().astype(np.float32)), data.values.shape[-1], 3)
    started = time.perf_counter()
    pass_over_windows(plain, data.values, data.y, 168, train_hours, torch.tensor(likelihood.levels), 256)
    peer = time.perf_counter() - started
    torch.set_num_threads(threads)
    return [
        Result(
            "a pass over all targets, chunks over windows",
            f"{window / chunk:.0f} times ({chunk:.3f} s and {window:.1f} s, validation included)",
            "at least 30 times",
            window >= 30 * chunk,
        ),
        Result(
            "a pass over all targets, chunks over the plain network on windows",
            f"{peer / chunk:.0f} times ({chunk:.3f} s and {peer:.1f} s)",
            "at least 30 times",
            peer >= 30 * chunk,
        ),
    ]


def _ten_seeds(panel: pl.DataFrame, positions: pl.DataFrame) -> Result:
    started = time.perf_counter()
    Forecaster("tgcn", "censored-quantile", seeds=10, time_zone="Europe/Copenhagen").fit(panel, positions)
    seconds = time.perf_counter() - started
    return Result(
        "fit of ten T-GCN seeds, 168 hours ahead, calibrated", f"{seconds:.0f} s", "under 240 s", seconds < 240
    )


def random_panel(regions: int, hours: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Random demand with a daily rhythm in regions spread over a country, and their positions."""
    rng = np.random.default_rng(1)
    names = pl.Series([f"r{i:05d}" for i in range(regions)])
    first = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    times = hours_between(first, first + dt.timedelta(hours=hours))
    rhythm = 1 + np.sin(2 * np.pi * np.arange(hours) / 24)
    y = rng.poisson(5 * rhythm, (regions, hours)) * rng.gamma(4, 5, (regions, hours))
    panel = pl.DataFrame(
        {
            "unique_id": names.gather(np.repeat(np.arange(regions), hours)),
            "ds": pl.concat([times] * regions),
            "y": y.ravel(),
        }
    )
    return panel, pl.DataFrame(
        {"unique_id": names, "lat": 55 + 2 * rng.random(regions), "lon": 9 + 3 * rng.random(regions)}
    )


def _week() -> Result:
    panel, positions = random_panel(1_000, 500)
    model = Forecaster("tgcn", "quantile", seeds=10, training=Training(epochs=1), calibrate=False).fit(panel, positions)
    started = time.perf_counter()
    forecast = model.forecast(panel, hours=168).table
    seconds = time.perf_counter() - started
    assert forecast.height == 168_000
    return Result(
        "forecast of a week for 1,000 regions, mean of ten seeds", f"{seconds:.2f} s", "under 2 s", seconds < 2
    )


def _growth() -> list[Result]:
    found = {}
    for regions in REGIONS:
        code = f"from benchmarks.training import measure; measure({regions})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        found[regions] = json.loads(done.stdout)
    shown = {
        name: ", ".join(f"{value[name]:.3g} {unit} for {regions:,}" for regions, value in found.items())
        for name, unit in (("seconds", "s"), ("gib", "GiB"))
    }
    slope = {
        name: float(np.polyfit(np.log(REGIONS), np.log([found[regions][name] for regions in REGIONS]), 1)[0])
        for name in ("seconds", "gib")
    }
    last = found[REGIONS[-1]]["seconds"] / found[REGIONS[-2]]["seconds"]
    return [
        Result(
            f"an epoch against the number of regions ({shown['seconds']})",
            f"grows with exponent {slope['seconds']:.2f} (least squares); from {REGIONS[-2]:,} to {REGIONS[-1]:,} "
            f"regions {last:.1f} times",
            "an exponent of 1.05 at most",
            slope["seconds"] <= 1.05,
        ),
        Result(
            f"peak memory of training ({shown['gib']})",
            f"grows with exponent {slope['gib']:.2f} (least squares)",
            "an exponent of 1.05 at most",
            slope["gib"] <= 1.05,
        ),
    ]


def measure(regions: int) -> None:
    """Print the time per epoch and the memory of training on a random panel with some number of regions."""
    panel, positions = random_panel(regions, 700)
    times: list[float] = []
    model = Forecaster("tgcn", "quantile", seeds=1, horizon=1, training=Training(epochs=5), calibrate=False, workers=1)
    model.fit(panel, positions, on_progress=lambda _: times.append(time.perf_counter()))
    seconds = sorted(np.diff(times[:5]))[1]  # of the epochs after the first, which warms up
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(json.dumps({"seconds": seconds, "gib": int(status["VmHWM"].split()[0]) / 2**20}))
