"""Scenes: the panels that studies run on, in which both observed and true demand are known."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import polars as pl

from unmet.city.build import City
from unmet.demand.market import Market
from unmet.demand.regions import Regions, kmeans_regions
from unmet.demand.simulated import simulated_panel
from unmet.errors import InputError
from unmet.estimation.simulated import records_and_truth
from unmet.simulation.outcome import Outcome
from unmet.simulation.scenario import Scenario, scenario_from
from unmet.simulation.simulate import Itinerary, prepare, simulate

__all__ = [
    "Sampling", "Scene", "competition_scenes", "own_stations", "simulated_records", "total_scenes", "training_end",
    "without_hindsight",
]  # fmt: skip

WORKERS = 2  # scenes at a time; most of the work is done without the interpreter lock
OWN, OTHER = "own", "other"
TRAINING_SHARE = 0.8  # share of the hours that models are trained on


class Sampling(str, Enum):
    """How an operator's stations are drawn."""

    REGION = "region"  # a share of each region's stations, so that the market share is the same everywhere
    CITY = "city"  # a share of all stations, as the paper writes ("in the entire city")


@dataclass(frozen=True, slots=True)
class Scene:
    """A panel with observed and true demand, and the labels of its cells."""

    labels: dict[str, Any]  # queue, penetration, share, removed: they identify the cells of the scene
    panel: pl.DataFrame
    """`unique_id, ds, y, y_true, arrivals, censored, exposure`, and the estimates of `LostDemand` from the records of
    the training part alone: `lost_kwh, elsewhere_kwh, lost_kwh_before, lost_draws`."""
    positions: pl.DataFrame | None  # unique_id, lat, lon; None if unknown
    time_zone: str
    run: int | None = None  # number of the run that uses the scene; None for all runs of its city
    city: int = 0  # number of the scene's city; runs take turns among cities
    reports_all_hours: bool = False  # whether lost demand is reported for all hours too, not only for the test part

    def fingerprint(self, columns: Sequence[str] = ()) -> str:
        """A hash of the data that every model reads, or of some columns of the panel."""
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
    """The first hour of a period that is not used for training."""
    hours = int((period[1] - period[0]).total_seconds() // 3600)
    return period[0] + dt.timedelta(hours=int(hours * TRAINING_SHARE))


def total_scenes(
    city: City,
    queues: Sequence[str],
    penetrations: Sequence[float],
    regions: int = 10,
    seed: int = 1,
    number: int = 0,
    base: Scenario | None = None,
    *,
    estimated: bool = True,
) -> list[Scene]:
    """The whole city under every queue at every penetration, with one operator for all stations.

    Args:
        city: the trips and stations.
        queues: names of queues.
        penetrations: electric shares of the cars.
        regions: number of regions.
        seed: seed of the simulation.
        number: number of the city in a study of several.
        base: everything else about the scenario.
        estimated: whether to estimate lost demand as well, which takes ten times as long.
    """
    grouped = kmeans_regions(city.stations, regions)

    def scene(outcome: Outcome, scenario: Scenario) -> Scene:
        if estimated:
            panel = simulated_records(outcome, outcome.stations, grouped, city)
        else:
            panel = simulated_panel(outcome.arrivals, grouped, city.period)
        labelled = _scene(panel, grouped, city, queue=scenario.queue, penetration=scenario.penetration)
        return replace(labelled, city=number)

    scenarios = [_scenario(queue, penetration, seed, base) for queue in queues for penetration in penetrations]
    return list(_simulated(prepare(city), scenarios, scene))


def competition_scenes(
    city: City,
    shares: Sequence[float],
    queue: str,
    penetration: float,
    regions: int = 10,
    seed: int = 1,
    runs: Sequence[int] = (0,),
    *,
    number: int = 0,
    sampling: Sampling = Sampling.REGION,
    base: Scenario | None = None,
    estimated: bool = True,
) -> list[Scene]:
    """One operator among others: it owns a share of the stations, and all other demand is lost to competitors.

    Every run has a different operator, because a single station can have a large part of its region's demand: results
    for one draw of stations would say more about luck than about models. An operator with a larger share keeps the
    stations that it has with a smaller one. `seed` is the seed of the simulation, `number` the number of the city.
    """
    if wrong := [share for share in shares if not 0 < share <= 1]:
        raise InputError(f"A market share of {wrong[0]:g} makes no sense: give one over 0 and up to 1, such as 0.25.")
    grouped = kmeans_regions(city.stations, regions)
    outcome = simulate(prepare(city), _scenario(queue, penetration, seed, base))
    scenes = []
    for run, share in itertools.product(runs, shares):
        own = own_stations(grouped, share, 1 + run, sampling)
        operator = pl.when(pl.col("station_id").is_in(own)).then(pl.lit(OWN)).otherwise(pl.lit(OTHER))
        stations = outcome.stations.with_columns(operator.alias("operator"))
        if estimated:
            panel = simulated_records(outcome, stations, grouped, city, Market(OWN))
        else:
            panel = simulated_panel(_seen_by(stations, outcome.arrivals), grouped, city.period)
        scene = _scene(panel, grouped, city, queue=queue, penetration=penetration, share=share)
        scenes.append(replace(scene, run=run, city=number))
    return scenes


def own_stations(regions: Regions, share: float, seed: int, sampling: Sampling = Sampling.REGION) -> list[str]:
    """The operator's own stations: the first in a random order, of each region or of the whole city.

    If stations are drawn by region, the operator has at least one in each. If they are drawn from the whole city, as in
    the paper, it may have none in some regions, whose demand is then unobserved.
    """
    order = np.random.default_rng([seed, 7]).permutation(regions.of_station.height)
    own: list[str] = []
    if sampling is Sampling.CITY:
        return regions.of_station[order]["station_id"][: max(1, round(share * len(order)))].to_list()
    for _, part in regions.of_station[order].group_by("unique_id", maintain_order=True):
        own += part["station_id"][: max(1, round(share * part.height))].to_list()
    return own


def _seen_by(stations: pl.DataFrame, arrivals: pl.DataFrame) -> pl.DataFrame:
    """Arrivals from the operator's point of view: those at other operators' stations are lost."""
    own = stations.filter(pl.col("operator") == OWN)["station_id"]
    is_own = pl.col("station_id").is_in(own.implode())
    return arrivals.with_columns(
        outcome=pl.when(is_own).then("outcome").otherwise(pl.lit("lost").cast(arrivals.schema["outcome"]))
    )


def simulated_records(
    outcome: Outcome, stations: pl.DataFrame, grouped: Regions, city: City, market: Market | None = None
) -> pl.DataFrame:
    """Observed and true demand by region and hour, with estimates from the operator's records alone."""
    arrivals = outcome.arrivals if market is None else _seen_by(stations, outcome.arrivals)
    until = training_end(city.period)

    def estimated(sessions: pl.DataFrame) -> pl.DataFrame:
        return records_and_truth(sessions, arrivals, stations, grouped, city.period, city.time_zone, market, until)

    return without_hindsight(outcome.sessions, until, estimated)


def without_hindsight(
    sessions: pl.DataFrame, until: dt.datetime, estimated: Callable[[pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame:
    """A panel table whose training part is estimated without any later session.

    Args:
        sessions: sessions of the whole period.
        until: end of the training part.
        estimated: makes the table of a panel (`unique_id, ds` and more) from sessions.
    """
    whole = estimated(sessions)
    early = estimated(sessions.filter(pl.col("start") < until))
    parts = [early.filter(pl.col("ds") < until), whole.filter(pl.col("ds") >= until)]
    return pl.concat(parts).sort("unique_id", "ds", maintain_order=True)


def _scenario(queue: str, penetration: float, seed: int, base: Scenario | None = None) -> Scenario:
    given = {} if base is None else base.model_dump(mode="json")
    return scenario_from({**given, "queue": queue, "penetration": penetration, "seed": seed}, "The study")


def _scene(panel: pl.DataFrame, grouped: Regions, city: City, **labels: Any) -> Scene:
    return Scene(labels, panel, grouped.centres.select("unique_id", "lat", "lon"), city.time_zone)


def _simulated(
    itinerary: Itinerary, scenarios: Sequence[Scenario], make: Callable[[Outcome, Scenario], Scene]
) -> Iterator[Scene]:
    with ThreadPoolExecutor(WORKERS) as pool:
        yield from pool.map(lambda scenario: make(simulate(itinerary, scenario), scenario), scenarios)
