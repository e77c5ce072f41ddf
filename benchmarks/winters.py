"""Christmas in records of less than a year: `python -m benchmarks.winters [--set JPL]`.

Public records, cut to the months from May to New Year, all before the last fifth of each set (Caltech's only winter is
its last fifth). The default forecaster is fitted up to mid-November and forecasts the rest a day and a week ahead,
with and without knowledge of free days. The prior of their quietness is the mean of the other sets. A run of all sets
writes docs/results/winters.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from unittest.mock import patch

import numpy as np
import polars as pl

from benchmarks.data_sets import BOULDER, DUNDEE, JPL, LUGANO, SAP, Source, chosen_sources
from benchmarks.forecasts import read_panel
from benchmarks.report import write_or_print
from unmet import Forecaster
from unmet.evaluation.measures import bias_percent, tilted_loss
from unmet.models.direct import free_days as rules
from unmet.models.quantile_levels import LEVELS, quantile_column

PAGE = Path(__file__).parents[1] / "docs" / "results" / "winters.md"
CALTECH = Source("Caltech", "acn_caltech_2019-*")
SOURCES = (JPL, SAP, BOULDER, DUNDEE, LUGANO, CALTECH)
WINTERS = {"JPL": (2019,), "SAP": (2017, 2018, 2019), "Boulder": (2018, 2019), "Dundee": (2017,), "Caltech": (2019,)}
SEEN = 0.8  # share of the days from which quietness is taken
FITTED = 0.8  # share of the months from May on to fit on
HORIZONS = (24, 168)
MIN_GAP = 0.15  # a set whose Sundays differ less from weekdays says nothing about days that are between the two


@dataclass(frozen=True, slots=True)
class Days:
    """A panel, its daily sums, and the quietness that its days before the last fifth show."""

    table: pl.DataFrame
    zone: str
    sundays: float  # demand of Sundays over that of weekdays
    quietness: dict[str, tuple[float, int]]  # by kind of free day, with the number of days; 0: weekday, 1: Sunday


@dataclass(frozen=True, slots=True)
class Winter:
    """Forecasts of the last fifth of the months to New Year, with free days known and unknown."""

    name: str
    year: int
    horizon: int
    loss: tuple[float, float]  # [kWh per hour, summed over regions]
    bias: tuple[float, float]  # [%]


def read_days(source: Source) -> Days:
    """The panel of a set, and its quietness without a prior."""
    panel = read_panel(source)
    local = pl.col("ds").dt.convert_time_zone(panel.time_zone).dt.date()
    daily = panel.table.group_by(day=local).agg(pl.col("y").sum()).sort("day")
    days, demand = daily["day"].to_list(), daily["y"].to_numpy()
    seen = int(len(days) * SEEN)
    free = rules.free_days(days[:seen], rules.known_country(panel.time_zone))
    number = {kind: sum(day in dates and day.weekday() < 5 for day in days[:seen]) for kind, dates in free.items()}
    with patch.object(rules, "PRIOR_DAYS", 1e-9):
        found = rules.quietness(demand[:seen], days[:seen], free)
    weekday = np.array([day.weekday() for day in days[:seen]])
    sundays = demand[:seen][weekday == 6].mean() / demand[:seen][weekday < 5].mean()
    return Days(panel.table, panel.time_zone, float(sundays), {kind: (found[kind], number[kind]) for kind in free})


def mean_quietness(sets: Sequence[Days]) -> dict[str, float]:
    """The mean over sets of the quietness of each kind; kinds that none has shown keep the prior of the package."""
    result = {}
    for kind, prior in rules.PRIOR.items():
        shown = [
            days.quietness[kind][0]
            for days in sets
            if days.quietness[kind][1] and (kind == rules.GREAT or abs(1 - days.sundays) > MIN_GAP)
        ]
        result[kind] = float(np.mean(shown)) if shown else prior
    return result


def measure(name: str, year: int, days: Days, prior: dict[str, float]) -> list[Winter]:
    """Forecast one winter with free days known, and unknown."""
    first, last = dt.datetime(year, 5, 1, tzinfo=dt.UTC), dt.datetime(year + 1, 1, 2, tzinfo=dt.UTC)
    table = days.table.filter((pl.col("ds") >= first) & (pl.col("ds") < last))
    found: dict[int, list[tuple[float, float]]] = {horizon: [] for horizon in HORIZONS}
    for known in (True, False):
        with (
            patch.object(rules, "PRIOR", prior),
            patch.object(rules, "free_days", rules.free_days if known else lambda *_: {}),
        ):
            model = Forecaster("stacked", "quantile", shares=(FITTED - 0.1, 0.1), time_zone=days.zone)
            model.fit(table)
            assert bool(model.quietness_) == known
            for horizon in HORIZONS:
                rows = model.hindcast(table, horizon).join(table, on=["unique_id", "ds"])
                loss = tilted_loss(rows["y"].to_numpy(), rows.select(map(quantile_column, LEVELS)).to_numpy(), LEVELS)
                hours = rows["ds"].n_unique()
                bias = bias_percent(rows["y"].to_numpy(), rows["mean"].to_numpy())
                found[horizon].append((float(loss.sum()) / hours, bias))
    return [Winter(name, year, horizon, (a[0], b[0]), (a[1], b[1])) for horizon, (a, b) in found.items()]


TEXT = """Free days are forecast between a weekday (quietness 0), a Sunday (1) and a closed day (2). The first table has
the quietness that each set shows before its last fifth, and in how many weekdays; sets whose Sundays are within 15 % of
weekdays count for the first kind only. The prior of the package is the mean, rounded. The second table is a test on
records of eight months that have never seen a Christmas: fitted up to mid-November, forecast to New Year, with a prior
that is the mean of the other sets. The kinds of days were chosen after looking at all of these days, those of Caltech's
last fifth included."""


def page(sets: dict[str, Days], winters: list[Winter], command: str) -> str:
    """The results as Markdown."""
    kinds = list(rules.PRIOR)
    lines = ["# Free days in records of less than a year", "", fill(f"Written by `{command}`. {TEXT}", 120), "",
             "| set | Sundays / weekdays | " + " | ".join(kinds) + " |",
             "| --- | ---: |" + " ---: |" * len(kinds)]  # fmt: skip
    for name, days in sets.items():
        cells = [f"{q:.2f} ({n})" if n else "-" for q, n in (days.quietness[kind] for kind in kinds)]
        lines.append(f"| {name} | {days.sundays:.2f} | {' | '.join(cells)} |")
    mean = mean_quietness(list(sets.values()))
    lines.append("| mean | | " + " | ".join(f"{mean[kind]:.2f}" for kind in kinds) + " |")
    lines.append("| prior of the package | | " + " | ".join(f"{rules.PRIOR[kind]:.2f}" for kind in kinds) + " |")
    lines += ["", "| set | winter | hours ahead | loss with free days known | bias: unknown | known |",
              "| --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    lines += [
        f"| {row.name} | {row.year} | {row.horizon} | {100 * (row.loss[0] / row.loss[1] - 1):+.1f} % "
        f"| {row.bias[1]:+.1f} % | {row.bias[0]:+.1f} % |"
        for row in sorted(winters, key=lambda row: row.loss[1] / row.loss[0])
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure the winters of one data set or all, and print or write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.winters", description=__doc__)
    parser.add_argument("--set", help="only the winters of this data set; by default all")
    options = parser.parse_args()
    sets = {source.name: read_days(source) for source in SOURCES}
    winters = []
    for source in chosen_sources([source for source in SOURCES if source.name in WINTERS], options.set):
        prior = mean_quietness([days for name, days in sets.items() if name != source.name])
        for year in WINTERS[source.name]:
            winters += measure(source.name, year, sets[source.name], prior)
    write_or_print(page(sets, winters, "python -m benchmarks.winters"), PAGE, complete=options.set is None)


if __name__ == "__main__":
    main()
