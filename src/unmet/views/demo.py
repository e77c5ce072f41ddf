"""The demonstration of `unmet demo`: records of the built-in city, its lost demand, and a plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from unmet.city.build import City
from unmet.demand.panel import Panel
from unmet.estimation.lost_demand import LostDemand
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate
from unmet.views.lost_report import LostReport
from unmet.views.recovery import write_recovery
from unmet.views.report import write_report
from unmet.views.stored import read_runs
from unmet.views.table_files import write_table_files
from unmet.views.terminal import next_step, report_grid
from unmet.views.theme import about, about_energy, energy

__all__ = ["STORY", "Story", "print_story", "tell_story"]

STORY = "lost-demand.html"
"""File name of the report."""
REGIONS = "10"
PLUGS = 20  # plugs to plan
DRAWS = 60  # fewer than usual, so that the demonstration is quick


@dataclass(frozen=True, slots=True)
class Story:
    """The estimate from the records, the truth that only a simulation knows, and a plan."""

    lost: LostReport
    true_kwh: float
    true_drivers: int
    plan: str
    """The result of the plan in one sentence."""


def tell_story(city: City, queue: str, penetration: float, seed: int, folder: Path) -> Story:
    """Simulate a city, estimate its lost demand from the records, and plan; writes the runs and a report."""
    outcome = simulate(prepare(city), Scenario(queue=queue, penetration=penetration, seed=seed))
    lost = outcome.arrivals.filter(pl.col("outcome") == "lost")
    panel = Panel(outcome.sessions, outcome.stations, regions=REGIONS, time_zone=city.time_zone)
    # In the simulation, lost drivers wanted to charge to 80 %.
    fitted = LostDemand(energies="to-80", draws=DRAWS, seed=seed).fit(panel)
    report = LostReport.of(fitted)
    runs = [folder / "recovered"]
    runs[0].mkdir()
    write_recovery(report, None, None, runs[0])
    runs.append(folder / "plan")
    answer = _plan(fitted, runs[1])
    for run in runs:
        write_table_files(run, None)
    write_report(read_runs(runs), folder / STORY, None, "The built-in city")
    return Story(report, float(lost["wanted_kwh"].sum()), lost.height, answer)


def _plan(fitted: LostDemand, folder: Path) -> str:
    """Write a plan, and return its result in one sentence."""
    from unmet.planning.plan import plan
    from unmet.views.plan import write_plan

    folder.mkdir()
    return str(write_plan(plan(fitted, plugs=PLUGS), folder)["answer"])


def print_story(story: Story, out: Path) -> None:
    """Print lost demand, estimated and true, the plan, and where to look next."""
    summary = story.lost.summary
    value, span = about_energy(**summary["lost_kwh"])
    drivers, drivers_span = about(**summary["lost_arrivals"])
    report_grid(
        "Lost demand, which the records of that city do not show",
        ["", "lost energy", "90 % interval", "lost drivers", "90 % interval"],
        [
            ["estimated from the records", value, span, drivers, drivers_span],
            ["true, known to the simulation", energy(story.true_kwh), "", f"{story.true_drivers:,}", ""],
        ],
    )
    if story.plan:
        print(f"Plan: {story.plan}.")
    print(f"Report: {out / STORY} (open it in a browser)")
    runs = " ".join(str(out / name) for name in ("recovered", "plan") if (out / name).is_dir())
    next_step(f"`unmet serve {runs}` explores the city and these runs.")
