"""The paper's counterfactual study: how much demand a city loses, by queue and penetration."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import polars as pl

from unmet.city.build import City
from unmet.demand.regions import Regions, kmeans_regions
from unmet.demand.simulated import simulated_panel
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import Itinerary, prepare, simulate
from unmet.study.paper import CENSORED_HOURS_BY_REGION_PERCENT, CENSORED_HOURS_PERCENT, PENETRATIONS, QUEUES

__all__ = ["Cell", "CensoringStudy", "paper_percent", "run_censoring"]

WORKERS = 2  # cells at a time; each runs in a thread that releases the interpreter lock


@dataclass(frozen=True, slots=True)
class Cell:
    """The result for one queue at one penetration."""

    queue: str
    penetration: float
    censored_hours_percent: float
    censored_hours_percent_by_region: tuple[float, ...]  # in the order of the regions
    arrivals: int
    lost_arrivals: int
    lost_share_of_energy: float
    true_kwh: float
    trips: int
    vehicles: int
    panel: pl.DataFrame
    seconds: float

    def summary(self) -> dict[str, Any]:
        """The cell without its panel, and without the time it took, so that the same seed gives the same bytes."""
        return {
            "queue": self.queue,
            "penetration": self.penetration,
            "censored_hours_percent": round(self.censored_hours_percent, 3),
            "censored_hours_percent_by_region": [round(p, 3) for p in self.censored_hours_percent_by_region],
            "arrivals": self.arrivals,
            "lost_arrivals": self.lost_arrivals,
            "lost_share_of_energy": round(self.lost_share_of_energy, 5),
            "true_kwh": round(self.true_kwh, 1),
            "trips": self.trips,
            "vehicles": self.vehicles,
        }


@dataclass(frozen=True, slots=True)
class CensoringStudy:
    """All cells of the study, and the city that was simulated."""

    city: City
    regions: Regions
    cells: tuple[Cell, ...]
    seed: int
    seconds: float

    def cell(self, queue: str, penetration: float) -> Cell:
        """The cell of one queue and penetration."""
        return next(c for c in self.cells if (c.queue, c.penetration) == (queue, penetration))

    @property
    def worst_cell(self) -> Cell:
        """The cell that loses the largest share of its energy, which figures show in detail."""
        return max(self.cells, key=lambda cell: cell.lost_share_of_energy)

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues studied, in order."""
        return tuple(dict.fromkeys(cell.queue for cell in self.cells))

    @property
    def penetrations(self) -> tuple[float, ...]:
        """The penetrations studied, in order."""
        return tuple(dict.fromkeys(cell.penetration for cell in self.cells))

    def paper_percent(self, queue: str, penetration: float) -> float | None:
        """The paper's share of hours censored anywhere in the city [%]; None unless the city is the built-in one."""
        return paper_percent(queue, penetration) if self.city.is_built_in else None

    def paper_regions(self, cell: Cell) -> tuple[float, ...]:
        """The paper's share of hours censored in each of its regions [%]; empty unless the city is the built-in one."""
        known = cell.queue in CENSORED_HOURS_BY_REGION_PERCENT and cell.penetration in PENETRATIONS
        if not (known and self.city.is_built_in):
            return ()
        return CENSORED_HOURS_BY_REGION_PERCENT[cell.queue][PENETRATIONS.index(cell.penetration)]

    def rows(self) -> list[dict[str, Any]]:
        """One row per cell, with the paper's number if it has one."""
        return [
            cell.summary() | {"paper_censored_hours_percent": self.paper_percent(cell.queue, cell.penetration)}
            for cell in self.cells
        ]

    def table(self) -> pl.DataFrame:
        """The rows as a table."""
        return pl.DataFrame(self.rows(), schema_overrides={"paper_censored_hours_percent": pl.Float64})


def paper_percent(queue: str, penetration: float) -> float | None:
    """The paper's share of hours censored anywhere in the city [%]; None if it does not have that cell."""
    if queue not in CENSORED_HOURS_PERCENT or penetration not in PENETRATIONS:
        return None
    return CENSORED_HOURS_PERCENT[queue][PENETRATIONS.index(penetration)]


def run_censoring(
    city: City,
    queues: Sequence[str] = QUEUES,
    penetrations: Sequence[float] = PENETRATIONS,
    regions: int = 10,
    scenario: Scenario | None = None,
    on_cell: Callable[[int], None] | None = None,
) -> CensoringStudy:
    """Simulate every queue at every penetration in the same city, with the same drivers and random numbers.

    Args:
        city: the trips and stations.
        queues: names of queues.
        penetrations: shares of the cars that are electric.
        regions: number of regions.
        scenario: everything else, including the seed.
        on_cell: called with the number of cells done.
    """
    started = time.perf_counter()
    base = scenario or Scenario()
    itinerary = prepare(city)
    grouped = kmeans_regions(city.stations, regions)
    scenarios = [base.model_copy(update={"queue": q, "penetration": p}) for q in queues for p in penetrations]
    cells = []
    with ThreadPoolExecutor(WORKERS) as pool:
        for cell in pool.map(lambda one: _simulate_cell(itinerary, grouped, one), scenarios):
            cells.append(cell)
            if on_cell:
                on_cell(len(cells))
    return CensoringStudy(city, grouped, tuple(cells), base.seed, time.perf_counter() - started)


def _simulate_cell(itinerary: Itinerary, regions: Regions, scenario: Scenario) -> Cell:
    started = time.perf_counter()
    outcome = simulate(itinerary, scenario)
    panel = simulated_panel(outcome.arrivals, regions, itinerary.city.period)
    by_region = panel.group_by("unique_id", maintain_order=True).agg(pl.col("censored").mean() * 100)
    anywhere = panel.group_by("ds").agg(pl.col("censored").any())["censored"]
    observed, true = panel.select(pl.col("y", "y_true").sum()).row(0)
    return Cell(
        queue=scenario.queue,
        penetration=scenario.penetration,
        censored_hours_percent=100 * float(anywhere.mean() or 0.0),  # type: ignore[arg-type]
        censored_hours_percent_by_region=tuple(by_region["censored"]),
        arrivals=outcome.arrivals.height,
        lost_arrivals=int(panel["lost"].sum()),
        lost_share_of_energy=1 - observed / true if true else 0.0,
        true_kwh=true,
        trips=outcome.trips,
        vehicles=outcome.vehicles.height,
        panel=panel,
        seconds=time.perf_counter() - started,
    )
