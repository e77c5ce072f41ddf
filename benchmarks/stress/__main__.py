"""Run the stress tests: `python -m benchmarks.stress [--seeds 5] [--cases base,heavy] [--workers 2]`.

Every case is simulated with several seeds, and its lost demand is estimated from the records alone. A run of all cases
writes docs/results/lost-stress.md; a run of some cases prints the page.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.report import write_or_print
from benchmarks.stress.arrivals import Case
from benchmarks.stress.cases import CASES
from benchmarks.stress.measure import Run, measure
from benchmarks.stress.report import page

PAGE = Path(__file__).parents[2] / "docs" / "results" / "lost-stress.md"


def main() -> None:
    """Run the chosen cases, show progress, and write or print the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stress", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="simulated networks per case")
    parser.add_argument("--cases", help="names of cases, separated by commas; all by default")
    parser.add_argument("--workers", type=int, default=2, help="number of processes")
    options = parser.parse_args()
    cases = _cases(options.cases)
    jobs = [(case, seed) for case in cases for seed in range(1, options.seeds + 1)]
    runs: list[Run] = []
    with ProcessPoolExecutor(options.workers) as pool:
        for run in pool.map(measure, *zip(*jobs, strict=True)):
            runs.append(run)
            _show(run, len(runs), len(jobs))
    text = page(cases, runs, f"python -m benchmarks.stress --seeds {options.seeds}")
    write_or_print(text, PAGE, complete=len(cases) == len(CASES))


def _cases(names: str | None) -> list[Case]:
    """The cases with these names, or all."""
    if names is None:
        return list(CASES)
    known = {case.name: case for case in CASES}
    if unknown := [name for name in names.split(",") if name not in known]:
        sys.exit(f"There is no case {unknown[0]}: choose among {', '.join(known)}.")
    return [known[name] for name in names.split(",")]


def _show(run: Run, done: int, total: int) -> None:
    """Print one line of progress."""
    print(
        f"[{done}/{total}] {run.case} {run.seed}: energy {run.kwh:.2f} ({run.kwh_low:.2f}-{run.kwh_high:.2f}) "
        f"{'inside' if run.inside else 'OUTSIDE'}, drivers {run.drivers:.2f}, weeks "
        f"{run.weeks_inside}/{run.weeks}, self-check {run.self_check:.2f}, waiting {run.waiting:.2f}, "
        f"spill {run.spill:.2f}, plain {run.plain:.2f}{', warns' if run.warns else ''} [{run.components}] "
        f"{run.seconds:.1f} s",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    main()
