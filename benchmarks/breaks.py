"""How fast forecasts adapt to a break in demand: `python -m benchmarks.breaks [--set Dundee]`.

Artificial breaks are added to real records: on random days, half of the regions close, close for ten days, halve or
double. The default forecaster is fitted to the hours before, and forecasts the weeks after, with and without its
detection of breaks. The last fifth of the records is not used: it is held out for `benchmarks.forecasts`. A run of all
sets writes docs/results/breaks.md.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from unittest.mock import patch

import numpy as np
import polars as pl

from benchmarks.data_sets import BOULDER, DUNDEE, JPL, LUGANO, Source, chosen_sources
from benchmarks.forecasts import read_panel
from benchmarks.report import write_or_print
from unmet import Forecaster
from unmet.evaluation.measures import tilted_loss
from unmet.models.direct.engine import Engine
from unmet.models.quantile_levels import LEVELS, quantile_column
from unmet.models.series import read_series

PAGE = Path(__file__).parents[1] / "docs" / "results" / "breaks.md"
SOURCES = (Source("Caltech", "acn_caltech_2019-*"), DUNDEE, BOULDER, JPL, LUGANO)
KINDS = {"nothing": "no change", "closed": "closes for good", "pause": "closes for ten days", "half": "halves",
         "double": "doubles"}  # fmt: skip
USED, FITTED = 0.8, 0.75  # share of the hours that is used, and share of these that the model is fitted to
HORIZONS = (24, 168)
SCORED = 14 * 24  # hours after the break that are scored
DAY = 24  # hours
FOUR_WEEKS = 28 * DAY


@dataclass(frozen=True, slots=True)
class BreakScores:
    """Scores of one set, kind of break and horizon, over the two weeks after the break in regions that had one."""

    name: str
    kind: str
    horizon: int
    loss: tuple[float, float]  # with and without the detection of breaks [kWh per region-hour]
    bias: tuple[float, float]  # mean forecast minus demand, over the demand without the break
    regions: int


def with_breaks(demand: np.ndarray, kind: str, first: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Demand with a break in half of the regions, and the hour of each break; -1 where there is none.

    `demand` has shape (hours, regions); breaks begin at or after the hour `first`.
    """
    hours, regions = demand.shape
    result, start = demand.copy(), np.full(regions, -1)
    for r in rng.permutation(regions)[: -(-regions // 2)]:
        begin = first + DAY * int(rng.integers(0, max((hours - first - SCORED) // DAY, 1)))
        end = begin + 10 * DAY if kind == "pause" else hours
        start[r] = begin
        if kind in ("closed", "pause"):
            result[begin:end, r] = 0
        elif kind == "half":  # each hour keeps all of its demand or loses it
            result[begin:, r] *= rng.random(hours - begin) < 0.5
        elif kind == "double":  # plus the demand of four weeks earlier, at the same hour of the week
            result[begin:, r] += np.nan_to_num(demand[begin - FOUR_WEEKS : hours - FOUR_WEEKS, r])
    return result, start


def measure(source: Source, seed: int = 1) -> list[BreakScores]:
    """All kinds of breaks in one set of records."""
    panel = read_panel(source)
    whole = read_series(panel.table)
    hours = int(whole.hours * USED)
    demand, times = whole.demand[:hours], whole.times()[:hours]
    model = Forecaster("stacked", "quantile", shares=(FITTED - 0.1, 0.1), time_zone=panel.time_zone)
    model.fit(_table(demand, times, whole.names))
    rng, found = np.random.default_rng(seed), []
    for kind in KINDS:
        changed, start = with_breaks(demand, kind, int(hours * FITTED), rng)
        table = _table(changed, times, whole.names)
        for horizon in HORIZONS:
            forecasts = [_grid(model.hindcast(table, horizon), hours, whole.names)]
            with patch.object(Engine, "breaks", lambda *_: None):
                forecasts.append(_grid(model.hindcast(table, horizon), hours, whole.names))
            found.append(_scores(source.name, kind, horizon, forecasts, changed, demand, start))
    return found


def _scores(name: str, kind: str, horizon: int, forecasts: list[np.ndarray], changed: np.ndarray, demand: np.ndarray,
            start: np.ndarray) -> BreakScores:  # fmt: skip
    """Scores of two forecasts, (hours, regions, levels + 1) each, over the hours after the breaks."""
    hour = np.arange(len(demand))[:, None]
    scored = (start >= 0) & (hour >= start) & (hour < start + SCORED) & np.isfinite(changed)
    losses, biases = [], []
    for grid in forecasts:
        loss = tilted_loss(changed, grid[..., :-1], LEVELS).sum(axis=-1)
        losses.append(float(loss[scored].mean()))
        biases.append(float((grid[..., -1] - changed)[scored].sum() / max(demand[scored].sum(), 1e-9)))
    return BreakScores(name, kind, horizon, (losses[0], losses[1]), (biases[0], biases[1]), int((start >= 0).sum()))


def _table(demand: np.ndarray, times: pl.Series, names: tuple[str, ...]) -> pl.DataFrame:
    frames = [pl.DataFrame({"unique_id": name, "ds": times, "y": demand[:, i]}) for i, name in enumerate(names)]
    return pl.concat(frames).filter(pl.col("y").is_not_nan())


def _grid(frame: pl.DataFrame, hours: int, names: tuple[str, ...]) -> np.ndarray:
    """Quantiles and mean, (hours, regions, levels + 1); the forecasts are of the last hours."""
    columns = [*map(quantile_column, LEVELS), "mean"]
    grid = np.full((hours, len(names), len(columns)), np.nan)
    for i, name in enumerate(names):
        own = frame.filter(pl.col("unique_id") == name).sort("ds").select(columns).to_numpy()
        grid[hours - len(own) :, i] = own
    return grid


TEXT = """Public records of towns and car parks, without the last fifth of their hours, which stays held out. The
default forecaster is fitted to the first three quarters. In the last quarter, half of the regions have a break, each on
its own random day: they close for good or for ten days, lose the demand of each hour with probability 1/2, or also get
the demand of four weeks earlier. Scores are those of the two weeks after the break, in the regions that had one: loss
(pinball, summed over three levels) with the detection of breaks relative to without it, and bias (forecast minus actual
energy, over the energy without the break) without and with it. `no change` shows the cost of the detection: days drawn
in the same way, without a break."""


def page(found: list[BreakScores], command: str) -> str:
    """The results as Markdown."""
    lines = ["# How fast forecasts adapt to a break", "", fill(f"Written by `{command}`. {TEXT}", 120), "",
             "| the region | set | regions | hours ahead | loss | bias without | bias with |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    rows = [row for kind in KINDS for row in found if row.kind == kind]
    lines += [
        f"| {KINDS[row.kind]} | {row.name} | {row.regions} | {row.horizon} "
        f"| {100 * (row.loss[0] / row.loss[1] - 1):+.1f} % | {100 * row.bias[1]:+.0f} % | {100 * row.bias[0]:+.0f} % |"
        for row in rows
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure one data set or all, and print or write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.breaks", description=__doc__)
    parser.add_argument("--set", help="only this data set; by default all")
    options = parser.parse_args()
    found = [row for source in chosen_sources(SOURCES, options.set) for row in measure(source)]
    write_or_print(page(found, "python -m benchmarks.breaks"), PAGE, complete=options.set is None)


if __name__ == "__main__":
    main()
