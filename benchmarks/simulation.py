"""The simulator: trips per second compared with SimPy, the censoring study, the built-in city."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from benchmarks.report import Result
from benchmarks.simpy_city import simpy_city
from unmet.city.build import City, build_city
from unmet.simulation import engine
from unmet.simulation.queues import queue_named
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import draw, plugs_of, prepare, rules_of
from unmet.study.censoring import run_censoring

TITLE = "Simulator"
TEXT = """The engine and SimPy simulate the same model with the same random numbers (first-come, 2 % electric) and must
serve and lose the same drivers. Both are timed without building the city or the tables: the engine as the best of five
runs, since one takes a fraction of a second, and SimPy in a single run."""


def run() -> list[Result]:
    """All benchmarks of the simulator."""
    return [_city(), _compared_with_simpy(build_city()), *_study(), _help()]


def _timed(*arguments: str, **environment: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=os.environ | environment)
    return time.perf_counter() - started


def _city() -> Result:
    code = "from unmet.city.build import built_in_trips; built_in_trips(1)"
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as compiled:
        fresh = _timed("-c", code, UNMET_CACHE=cache, NUMBA_CACHE_DIR=compiled)
        again = _timed("-c", code, UNMET_CACHE=cache, NUMBA_CACHE_DIR=compiled)
    found = f"{fresh:.1f} s with nothing compiled or cached, {again:.1f} s from the cache (start of Python included)"
    return Result("the built-in city, 1.56 million trips", found, "under 15 s", fresh < 15)


def _compared_with_simpy(city: City) -> Result:
    scenario = Scenario(queue="first-come", penetration=0.02)
    itinerary = prepare(city)
    drawn = draw(itinerary, scenario)
    trips = itinerary.trips._replace(uniform=drawn.uniform)
    rows = np.flatnonzero(drawn.electric[trips.vehicle])
    admit, rules = queue_named(scenario.queue).admit, rules_of(scenario)
    seconds = []
    for _ in range(5):
        tries = np.zeros(len(drawn.soc), np.int64)
        cars = engine.Cars(drawn.soc.copy(), tries, drawn.capacity_kwh, drawn.range_km, drawn.home_kw)
        plugs = plugs_of(city.stations)
        started = time.perf_counter()
        log = engine.run(admit, rows, trips, cars, plugs, rules)
        seconds.append(time.perf_counter() - started)
    env, outcome = simpy_city(itinerary, drawn, scenario)
    started = time.perf_counter()
    env.run()
    peer = time.perf_counter() - started
    lost = int((log[:, 2] < 0).sum())
    if (outcome["served"], outcome["lost"]) != (len(log) - lost, lost):
        raise AssertionError(f"SimPy found {outcome}, the engine {len(log) - lost} served and {lost} lost")
    ours, theirs = len(rows) / min(seconds), len(rows) / peer
    found = f"{ours / theirs:.0f} times ({ours / 1e6:.1f} million and {theirs / 1e3:.0f} thousand trips per second)"
    return Result("trips per second, engine over SimPy", found, "at least 80 times", ours / theirs >= 80)


def _study() -> list[Result]:
    started = time.perf_counter()
    study = run_censoring(build_city())
    whole = time.perf_counter() - started
    alone = sum(cell.seconds for cell in study.cells)
    found = f"{whole:.1f} s, the trips read from the cache; the cells are {alone:.1f} s of work, two at a time"
    return [Result("all 15 cells of `unmet study censoring`, without figures", found, "under 20 s", whole < 20)]


def _help() -> Result:
    seconds = [_timed("-m", "unmet", "--help") for _ in range(5)]
    return Result(
        "`unmet --help`, median of five", f"{np.median(seconds):.2f} s", "under 0.5 s", np.median(seconds) < 0.5
    )
