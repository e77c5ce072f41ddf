"""The page of the stress tests: whether the criteria are met, and a table by case, failing cases first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

import numpy as np

from benchmarks.stress.arrivals import Case
from benchmarks.stress.measure import Run

__all__ = ["page"]

CLOSE, ROUGH = (0.93, 1.07), (0.8, 1.2)
"""Target range of the mean of estimated over true lost energy; the rough one is for arrivals that are not Poisson."""
MIN_TOTALS, MIN_WEEKS, MAX_HALF_WIDTH = 0.8, 0.85, 0.12
KINDS = {
    "right": "the model is right",
    "hard": "arrivals are more or less regular than Poisson",
    "structure": "drivers react to full sites, or the records differ from what happened",
}
INTRODUCTION = """The simulator (`benchmarks/stress/`) shares no code with the package, and its lost demand is known.
The estimator sees only the records and has its default settings; restarts by the same user are joined first, as when
records are read from files."""
COLUMNS = """Ratios are estimated over true lost energy: mean and range over networks. `inside` counts networks whose 90
% interval of the total contains the truth; `weeks` is the share of region-weeks (with losses, true or estimated) whose
interval does; `half-width` is that of the interval of the total, over the estimate; `warns` counts networks whose
self-check is so far from 1 that the page warns. `plain` is the mean ratio of a plain count at every site: arrivals per
hour with a free plug, times the hours without one. `lost` is the true share of energy that was lost. Failing cases come
first."""

LIMITS = """
- **single-plugs**: a site with one plug is either empty or full, so no recorded driver ever found a car there. Networks
  in which drivers stay away from a full site and networks in which they do not have the same records, and only the
  prior from other towns decides. `single-plugs-told` is the same network with that question answered: what remains is
  the error of the rest of the estimator. In real towns drivers do stay away (the plain count finds up to 1.9 times too
  many, [towns](towns.md)), so the prior expects a loss that this simulator does not have, and its intervals include the
  truth.
- **balking**: drivers are put off by the last free plug as much as by a full site. In real towns arrivals fall further
  when a site is full, and the estimator extends the fall. The records end at the last free plug and cannot tell the
  two apart. The self-check warns in most runs.
- **Half-widths**: in **small** networks, chance alone exceeds 12 %. In **light** ones, most of the loss is at a few
  sites that are seldom full, so their own profiles and the share of drivers who divert are uncertain. Sites with a
  **single plug** have no self-check, so their errors keep the prior from real towns (30 % per site).
"""


@dataclass(frozen=True, slots=True)
class Row:
    """The results for all networks of one case."""

    case: Case
    runs: Sequence[Run]

    def mean(self, what: str) -> float:
        """Mean over networks; NaN if nothing is known."""
        values = np.array([getattr(run, what) for run in self.runs], float)
        return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")

    @property
    def target(self) -> tuple[float, float]:
        """Range in which the mean should be."""
        return ROUGH if self.case.kind == "hard" else CLOSE

    @property
    def weeks_inside(self) -> float:
        """Share of region-weeks whose interval contains the truth."""
        return sum(run.weeks_inside for run in self.runs) / max(sum(run.weeks for run in self.runs), 1)

    @property
    def failures(self) -> list[str]:
        """Which criteria of a single case are not met."""
        found = []
        mean, (low, high) = self.mean("kwh"), self.target
        warned = self.case.kind == "hard" and all(run.warns for run in self.runs)
        if not low <= mean <= high and not warned:
            found.append(f"mean {mean:.2f} is not in {low:g}-{high:g}")
        if self.case.kind == "right" and self.mean("half_width") > MAX_HALF_WIDTH:
            found.append(
                f"half-width over {100 * MAX_HALF_WIDTH:.0f} % (known rates would give "
                f"{100 * self.mean('chance'):.0f} %)"
            )
        return found

    @property
    def verdict(self) -> str:
        """In a few words, whether this case meets its targets."""
        low, high = self.target
        met = "met" if low <= self.mean("kwh") <= high else "outside, but every run warns"
        return "; ".join(self.failures) or met


def page(cases: Sequence[Case], runs: Sequence[Run], command: str) -> str:
    """The page as Markdown."""
    rows = [Row(case, [run for run in runs if run.case == case.name]) for case in cases]
    rows.sort(key=lambda row: (not row.failures, list(KINDS).index(row.case.kind)))
    seeds = len({run.seed for run in runs})
    return "\n".join(
        [
            "# Lost demand in simulated networks",
            "",
            fill(f"Written by `{command}`. Every case is simulated with {seeds} seeds. {INTRODUCTION}", 120),
            "",
            *_criteria(rows, runs),
            "",
            "## By case",
            "",
            fill(COLUMNS, 120),
            "",
            "| case | target | estimate / truth | drivers | inside | weeks | half-width | self-check | warns | waiting "
            "| spill | plain | lost | verdict |",
            "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
            *(_line(row) for row in rows),
            "",
            "## What the records of failing cases cannot show",
            LIMITS,
            "## What the cases are",
            "",
            "| case | kind | what it is |",
            "| --- | --- | --- |",
            *(f"| {row.case.name} | {row.case.kind} | {row.case.title} |" for row in rows),
            "",
            *(f"- `{kind}`: {text}." for kind, text in KINDS.items()),
            "",
        ]
    )


def _line(row: Row) -> str:
    """One case."""
    ratios, count = [run.kwh for run in row.runs], len(row.runs)
    low, high = row.target
    return (
        f"| {row.case.name} | {low:g}-{high:g} | {row.mean('kwh'):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) "
        f"| {row.mean('drivers'):.2f} | {sum(run.inside for run in row.runs)} of {count} "
        f"| {100 * row.weeks_inside:.0f} % | {100 * row.mean('half_width'):.0f} % "
        f"| {row.mean('self_check'):.2f} | {sum(run.warns for run in row.runs)} "
        f"| {row.mean('waiting'):.2f} | {row.mean('spill'):.2f} | {row.mean('plain'):.2f} "
        f"| {100 * row.mean('true_share'):.1f} % | {row.verdict} |"
    )


def _criteria(rows: Sequence[Row], runs: Sequence[Run]) -> list[str]:
    """The criteria, and whether each is met."""
    exact = [row for row in rows if row.case.kind != "hard"]
    hard = [row for row in rows if row.case.kind == "hard"]
    right = [row for row in rows if row.case.kind == "right"]
    close = [row for row in exact if CLOSE[0] <= row.mean("kwh") <= CLOSE[1]]
    rough = [row for row in hard if ROUGH[0] <= row.mean("kwh") <= ROUGH[1] or all(run.warns for run in row.runs)]
    narrow = [row for row in right if row.mean("half_width") <= MAX_HALF_WIDTH]
    networks = {run.network: [other for other in runs if other.network == run.network] for run in runs}
    inside = float(sum(np.mean([run.inside for run in same]) for same in networks.values()))
    weeks = float(sum(np.mean([run.weeks_inside for run in same]) for same in networks.values()))
    weeks_all = float(sum(np.mean([run.weeks for run in same]) for same in networks.values()))
    plain = [row for row in rows if abs(np.log(row.mean("plain"))) < abs(np.log(row.mean("kwh")))]
    lines = [
        (f"mean of every case except hard ones within {CLOSE[0]:g}-{CLOSE[1]:g}",
         f"{len(close)} of {len(exact)} cases", len(close) == len(exact)),
        (f"hard cases within {ROUGH[0]:g}-{ROUGH[1]:g}, or every run warns", f"{len(rough)} of {len(hard)} cases",
         len(rough) == len(hard)),
        (f"intervals of totals contain the truth in {100 * MIN_TOTALS:.0f} % of networks",
         f"{100 * inside / len(networks):.0f} % of {len(networks)}", inside / len(networks) >= MIN_TOTALS),
        (f"intervals of region-weeks contain it in {100 * MIN_WEEKS:.0f} %",
         f"{100 * weeks / weeks_all:.0f} % of {weeks_all:,.0f}", weeks / weeks_all >= MIN_WEEKS),
        (f"half-width at most {100 * MAX_HALF_WIDTH:.0f} % where the model is right",
         f"{100 * np.mean([row.mean('half_width') for row in right]) if right else np.nan:.0f} % on average; "
         f"{len(narrow)} of {len(right)} cases", len(narrow) == len(right)),
    ]  # fmt: skip
    return [
        "| target | found | met |",
        "| --- | --- | --- |",
        *(f"| {target} | {found} | {'yes' if met else 'NO'} |" for target, found, met in lines),
        "",
        fill(
            f"There are {len(runs)} runs of {len(networks)} independent networks: cases that differ in the records "
            "alone (restarts, wrong tables, missing ids) share their drivers at the same seed, and count once in both "
            "coverages. Networks of different cases with the same seed still share the places and sizes of their "
            "sites. "
            f"The plain count is nearer to the truth than the estimate in {len(plain)} of {len(rows)} cases"
            + (f" ({', '.join(row.case.name for row in plain)})." if plain else "."),
            120,
        ),
    ]
