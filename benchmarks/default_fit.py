"""The default forecaster: time to fit Dundee, and how it grows with hours and regions."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.data_sets import DATA, DUNDEE
from benchmarks.forecasts import read_panel
from benchmarks.report import Result
from benchmarks.training import random_panel
from unmet import Forecaster

TITLE = "Fit of the default forecaster"
TEXT = """`Forecaster("stacked", "quantile")`, one thread, seconds of processor time, after compilation. The larger
panels are random, with demand in most hours. With linear growth, time would grow by the same factor as
region-hours."""

YEAR = 8_760  # hours
SIZES = ((10, YEAR), (35, YEAR), (35, 2 * YEAR))  # regions, hours


def run() -> list[Result]:
    """Fits of Dundee and of panels of growing size."""
    _seconds(random_panel(3, 2_000)[0])  # compile
    found = []
    if DATA.is_dir():
        seconds = _seconds(read_panel(DUNDEE).table)
        found.append(Result("fit on Dundee, a year of 10 regions", f"{seconds:.1f} s", "under 90 s", seconds < 90))
    times = [_seconds(random_panel(*size)[0]) for size in SIZES]
    for size, took in zip(SIZES[1:], times[1:], strict=True):
        growth, years = size[0] * size[1] / (SIZES[0][0] * SIZES[0][1]), size[1] // YEAR
        found.append(
            Result(
                f"fit of {size[0]} regions over {years} year{'s' if years > 1 else ''}, {growth:.1f} times the "
                "region-hours of 10 regions over a year",
                f"{took:.1f} s, {took / times[0]:.1f} times {times[0]:.1f} s",
                "no worse than linear",
                took <= growth * times[0],
            )
        )
    return found


def _seconds(table: Any) -> float:
    started = time.process_time()
    Forecaster("stacked", "quantile", time_zone="UTC").fit(table)
    return time.process_time() - started
