"""How close cities of other seeds are to the paper's Tables 1 and 2: `python -m benchmarks.calibration`.

Writes the table of seeds into docs/city.md, between two comments. The city was calibrated with seeds 1 to 3.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from unmet.city.build import build_city
from unmet.simulation.scenario import Scenario
from unmet.study.censoring import CensoringStudy, run_censoring
from unmet.study.paper import CENSORED_HOURS_BY_REGION_PERCENT

PAGE = Path(__file__).parents[1] / "docs" / "city.md"
BEGIN, END = "<!-- seeds -->", "<!-- end of seeds -->"
SEEDS = range(1, 7)
HEADS = (
    "seed", "mean difference from Table 1", "largest", "from Table 2, by rank",
    "most, second and least censored region, mean of regions (first-come, 5 %)",
)  # fmt: skip


def row(study: CensoringStudy) -> str:
    """The row of one seed."""
    from_table_1 = np.array(
        [c.censored_hours_percent - (study.paper_percent(c.queue, c.penetration) or 0.0) for c in study.cells]
    )
    regions = np.sort(study.cell("first-come", 0.05).censored_hours_percent_by_region)
    from_table_2 = np.abs(regions - np.sort(CENSORED_HOURS_BY_REGION_PERCENT["first-come"][-1])).mean()
    named = f"{regions[-1]:.0f} %, {regions[-2]:.0f} %, {regions[0]:.1f} %, {regions.mean():.1f} %"
    numbers = (f"{v:.1f}" for v in (np.abs(from_table_1).mean(), np.abs(from_table_1).max(), from_table_2))
    return f"| {study.seed} | {' | '.join(numbers)} | {named} |"


def main() -> None:
    """Simulate every seed and write the table."""
    lines = [f"| {' | '.join(HEADS)} |", "| --- | ---: | ---: | ---: | --- |"]
    for seed in SEEDS:
        lines.append(row(run_censoring(build_city(seed=seed), scenario=Scenario(seed=seed))))
        print(lines[-1], file=sys.stderr, flush=True)
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
