"""Scenes: the panels that studies are run on, in which both observed and true demand are known."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unmet.city.build import City
from unmet.demand.market import Market
from unmet.demand.regions import Regions, kmeans_regions
from unmet.errors import InputError
from unmet.estimation.simulated import records_and_truth
from unmet.simulation.scenario import Scenario, scenario_from
from unmet.simulation.simulate import Itinerary, Outcome, prepare, simulate

__all__ = [
    "Scene", "competition_scenes", "own_stations", "simulated_records", "total_scenes", "training_end",
    "without_hindsight",
]  # fmt: skip

WORKERS = 2  # scenes at a time; most of the work is done without the interpreter lock
OWN, OTHER = "own", "other"
TRAINING_SHARE = 0.8  # of the hours, which models learn from


@dataclass(frozen=True, slots=True)
class Scene:
    """A panel with observed and true demand, and what it stands for."""

    labels: dict[str, Any]  # queue, penetration, share, removed: what its cells are called by
    panel: pl.DataFrame
    """`unique_id, ds, y, y_true, arrivals, censored, exposure`, and what `LostDemand` says of the records:
    `lost_kwh, elsewhere_kwh, lost_kwh_before, lost_draws`, learned from the training part alone."""
    positions: pl.DataFrame | None  # unique_id, lat, lon; none where they are not known
    time_zone: str
    run: int | None = None  # the number of the run that it is for; all are without it
    tells_all: bool = False  # whether what was lost is told of all hours too, not only of the test part

    def fingerprint(self, columns: Sequence[str] = ()) -> str:
        """A hash of what models are given, or of some columns of the panel."""
        digest = hashlib.sha256(self.time_zone.encode())
        parts = (
            self.panel.select(columns) if columns else self.panel.select("unique_id", "ds", "y", "y_true", "censored")
        )
        places = [] if columns or self.positions is None else self.positions.get_columns()
        for column in (*parts.get_columns(), *places):
            flat = column.explode() if column.dtype.is_nested() else column
            text = column.dtype == pl.String
            digest.update("\n".join(flat).encode() if text else flat.to_physical().to_numpy().tobytes())
        return digest.hexdigest()[:20]

    @property
    def most_censored(self) -> str:
        """The region with the most censored hours."""
        shares = self.panel.group_by("unique_id").agg(pl.col("censored").mean()).sort("unique_id")
        return str(shares["unique_id"][int(shares["censored"].arg_max() or 0)])


def training_end(period: tuple[dt.datetime, dt.datetime]) -> dt.datetime:
    """The first hour of a period that models do not learn from."""
    hours = int((period[1] - period[0]).total_seconds() // 3600)
    return period[0] + dt.timedelta(hours=int(hours * TRAINING_SHARE))


def total_scenes(
    city: City, queues: Sequence[str], penetrations: Sequence[float], regions: int = 10, seed: int = 1
) -> list[Scene]:
    """The whole city under every queue at every penetration, all its stations one operator's."""
    grouped = kmeans_regions(city.stations, regions)

    def scene(outcome: Outcome, scenario: Scenario) -> Scene:
        panel = simulated_records(outcome, outcome.stations, grouped, city)
        return _scene(panel, grouped, city, queue=scenario.queue, penetration=scenario.penetration)

    scenarios = [_scenario(queue, penetration, seed) for queue in queues for penetration in penetrations]
    return list(_played(prepare(city), scenarios, scene))


def competition_scenes(
    city: City, shares: Sequence[float], queue: str, penetration: float, regions: int = 10, seed: int = 1, runs: int = 1
) -> list[Scene]:
    """One operator among others: a share of the stations is its own, and all other demand is lost to competitors.

    In every region that share of the stations is drawn at random, and at least one. Those of a smaller share are its
    own at a larger one too. Every run has another operator: a single station can have a large part of its region's
    demand, so that one draw of stations would say more of luck than of models.
    """
    if wrong := [share for share in shares if not 0 < share <= 1]:
        raise InputError(f"A market share of {wrong[0]:g} makes no sense: give one over 0 and up to 1, as 0.25.")
    grouped = kmeans_regions(city.stations, regions)
    scenario = _scenario(queue, penetration, seed)
    outcome = simulate(prepare(city), scenario)
    scenes = []
    for run, share in itertools.product(range(runs), shares):
        own = own_stations(grouped, share, seed + run)
        operator = pl.when(pl.col("station_id").is_in(own)).then(pl.lit(OWN)).otherwise(pl.lit(OTHER))
        stations = outcome.stations.with_columns(operator.alias("operator"))
        panel = simulated_records(outcome, stations, grouped, city, Market(OWN))
        made = _scene(panel, grouped, city, queue=queue, penetration=penetration, share=share)
        scenes.append(replace(made, run=run))
    return scenes


def own_stations(regions: Regions, share: float, seed: int) -> list[str]:
    """The operator's own stations: of each region the first in a random order."""
    order = np.random.default_rng([seed, 7]).permutation(regions.of_station.height)
    own: list[str] = []
    for _, part in regions.of_station[order].group_by("unique_id", maintain_order=True):
        own += part["station_id"][: max(1, round(share * part.height))].to_list()
    return own


def simulated_records(
    outcome: Outcome, stations: pl.DataFrame, grouped: Regions, city: City, market: Market | None = None
) -> pl.DataFrame:
    """What the operator saw and what was wanted, by region and hour, and what its records alone say of the latter."""
    arrivals = outcome.arrivals
    if market is not None:
        own = stations.filter(pl.col("operator") == OWN)["station_id"]
        mine = pl.col("station_id").is_in(own.implode())
        arrivals = arrivals.with_columns(
            outcome=pl.when(mine).then("outcome").otherwise(pl.lit("lost").cast(arrivals.schema["outcome"]))
        )
    until = training_end(city.period)

    def estimated(sessions: pl.DataFrame) -> pl.DataFrame:
        return records_and_truth(sessions, arrivals, stations, grouped, city.period, city.time_zone, market, until)

    return without_hindsight(outcome.sessions, until, estimated)


def without_hindsight(
    sessions: pl.DataFrame, until: dt.datetime, estimated: Callable[[pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame:
    """A panel whose training part is estimated from a panel that ends there, and knows nothing of later sessions.

    Args:
        sessions: of the whole period.
        until: end of the training part.
        estimated: makes a panel's table (`unique_id, ds` and more) from sessions.
    """
    whole = estimated(sessions)
    early = estimated(sessions.filter(pl.col("start") < until))
    parts = [early.filter(pl.col("ds") < until), whole.filter(pl.col("ds") >= until)]
    return pl.concat(parts).sort("unique_id", "ds", maintain_order=True)


def _scenario(queue: str, penetration: float, seed: int) -> Scenario:
    return scenario_from({"queue": queue, "penetration": penetration, "seed": seed}, "The study")


def _scene(panel: pl.DataFrame, grouped: Regions, city: City, **labels: Any) -> Scene:
    return Scene(labels, panel, grouped.centres.select("unique_id", "lat", "lon"), city.time_zone)


def _played(
    itinerary: Itinerary, scenarios: Sequence[Scenario], make: Callable[[Outcome, Scenario], Scene]
) -> Iterator[Scene]:
    with ThreadPoolExecutor(WORKERS) as pool:
        yield from pool.map(lambda scenario: make(simulate(itinerary, scenario), scenario), scenarios)
