"""How other readings of the paper change the results: `python -m benchmarks.readings` writes docs/results/readings.md.

Each reading is an option. Its effect on Table 1 is measured on all fifteen cells; its effect on Table 3 on the losses
of the quantile models at first-come 5 %, in the built-in city of seed 1, with one network each.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unmet.city.build import City, build_city
from unmet.simulation.scenario import Curve, Scenario, TurnedAway
from unmet.study.cells import perform, plan_runs
from unmet.study.censoring import run_censoring
from unmet.study.paper import CENSORED_HOURS_PERCENT, PENETRATIONS, QUEUES, TILTED_LOSS
from unmet.study.scenes import total_scenes

PAGE = Path(__file__).parents[1] / "docs" / "results" / "readings.md"
KNOWN_CARS = 32_664  # cars in the paper's data
MODELS = ("quantile", "censored-quantile")


class Reading(NamedTuple):
    """One way to read the paper."""

    title: str
    option: str
    scenario: Scenario
    cars: int | None = None  # number of cars that a penetration is a share of


READINGS = (
    Reading("default", "", Scenario()),
    Reading("a car that is turned away keeps its charge and decides again", "`--turned-away keep`",
            Scenario(turned_away=TurnedAway.KEEP)),
    Reading("5 % means all of the cars in the data", "`--cars 653280`", Scenario(), round(KNOWN_CARS / 0.05)),
    Reading("the charging curve as printed", "`--curve literal`", Scenario(curve=Curve.LITERAL)),
    Reading("the same, also for lost energy", "`--curve literal-lost`", Scenario(curve=Curve.LITERAL_LOST)),
)  # fmt: skip


def city_of(reading: Reading) -> City:
    """The built-in city, with the number of cars of a reading."""
    return build_city(cars=reading.cars)


def rows(reading: Reading) -> tuple[list[str], list[str]]:
    """A reading's row in the table of censored hours, and in that of losses."""
    city = city_of(reading)
    study = run_censoring(city, scenario=reading.scenario)
    difference = np.array([study.cell(q, p).censored_hours_percent for q in QUEUES for p in PENETRATIONS]) - np.array(
        [v for q in QUEUES for v in CENSORED_HOURS_PERCENT[q]]
    )
    at_five_percent = [study.cell(q, 0.05) for q in QUEUES]
    hours = [f"{cell.censored_hours_percent:.1f}" for cell in at_five_percent]
    lost = f"{100 * at_five_percent[-1].lost_share_of_energy:.1f}"
    head = [reading.title, reading.option]
    first = [*head, *hours, f"{np.abs(difference).mean():.1f}", f"{np.abs(difference).max():.1f}", lost]
    return first, [*head, *losses(city, reading)]


def losses(city: City, reading: Reading) -> list[str]:
    """Tilted losses of the models at first-come 5 %."""
    (scene,) = total_scenes(city, ["first-come"], [0.05], base=reading.scenario, estimated=False)
    return [f"{perform(run, scene).row['tilted_loss']:.3f}" for run in plan_runs([scene], MODELS, ["tgcn"], 1, 1)]


def main() -> None:
    """Measure every reading and write the page."""
    measured = []
    for reading in READINGS:
        measured.append(rows(reading))
        print(*measured[-1], file=sys.stderr, flush=True)
    paper = ["the paper", "", *(f"{CENSORED_HOURS_PERCENT[q][-1]}" for q in QUEUES), "", "", ""]
    published = ["the paper", "", *(f"{TILTED_LOSS['first-come'][model][-1][0]:.3f}" for model in MODELS)]
    lines = ["# Other readings of the paper", "", "Hours in which demand is lost at 5 %, in percent:", ""]
    lines += _table(
        ["reading", "option", *QUEUES, "mean difference from Table 1", "largest", "energy lost, first-come"],
        [*(first for first, _ in measured), paper],
    )
    lines += ["", "Tilted loss at first-come 5 %, one network each:", ""]
    lines += _table(["reading", "option", *MODELS], [*(second for _, second in measured), published])
    lines += ["", "Written by `python -m benchmarks.readings`."]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _table(heads: list[str], cells: list[list[str]]) -> list[str]:
    rule = ["---", "---", *["---:"] * (len(heads) - 2)]
    return ["| " + " | ".join(row) + " |" for row in (heads, rule, *cells)]


if __name__ == "__main__":
    main()
