"""Scenes: the panels that studies are run on, in which both observed and true demand are known."""

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
from unmet.simulation.scenario import Scenario, scenario_from
from unmet.simulation.simulate import Itinerary, Outcome, prepare, simulate

__all__ = [
    "Sampling", "Scene", "competition_scenes", "own_stations", "simulated_records", "total_scenes", "training_end",
    "without_hindsight",
]  # fmt: skip

WORKERS = 2  # scenes at a time; most of the work is done without the interpreter lock
OWN, OTHER = "own", "other"
TRAINING_SHARE = 0.8  # of the hours, which models learn from


class Sampling(str, Enum):
    """From where an operator's stations are drawn."""

    REGION = "region"  # the share of each region's stations, so that it is everywhere alike
    CITY = "city"  # the share of all stations, as the paper writes ("in the entire city")


@dataclass(frozen=True, slots=True)
class Scene:
    """A panel with observed and true demand, and what it stands for."""

    labels: dict[str, Any]  # queue, penetration, share, removed: what its cells are called by
    panel: pl.DataFrame
    """`unique_id, ds, y, y_true, arrivals, censored, exposure`, and what `LostDemand` says of the records:
    `lost_kwh, elsewhere_kwh, lost_kwh_before, lost_draws`, learned from the training part alone."""
    positions: pl.DataFrame | None  # unique_id, lat, lon; none where they are not known
    time_zone: str
    run: int | None = None  # the number of the run that it is for; without it, all of its city
    city: int = 0  # the number of its city; runs take turns among cities
    tells_all: bool = False  # whether lost demand is reported for all hours too, not only for the test part

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
    """The whole city under every queue at every penetration, all its stations one operator's.

    `number` is that of the city in a study of several; `base` gives what else a scenario says. Without `estimated`,
    panels hold observed and true demand alone, which takes a tenth of the time.
    """
    grouped = kmeans_regions(city.stations, regions)

    def scene(outcome: Outcome, scenario: Scenario) -> Scene:
        if estimated:
            panel = simulated_records(outcome, outcome.stations, grouped, city)
        else:
            panel = simulated_panel(outcome.arrivals, grouped, city.period)
        made = _scene(panel, grouped, city, queue=scenario.queue, penetration=scenario.penetration)
        return replace(made, city=number)

    scenarios = [_scenario(queue, penetration, seed, base) for queue in queues for penetration in penetrations]
    return list(_played(prepare(city), scenarios, scene))


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
    """One operator among others: a share of the stations is its own, and all other demand is lost to competitors.

    Every run of `runs` has another operator: a single station can have a large part of its region's demand, so that
    one draw of stations would say more of luck than of models. Stations of a smaller share are its own at a larger one
    too. `seed` is that of the city's simulation, `number` the city's in a study of several.
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
        made = _scene(panel, grouped, city, queue=queue, penetration=penetration, share=share)
        scenes.append(replace(made, run=run, city=number))
    return scenes


def own_stations(regions: Regions, share: float, seed: int, sampling: Sampling = Sampling.REGION) -> list[str]:
    """The operator's own stations: the first in a random order, of each region or of the whole city.

    Drawn by region, it has at least one in each; drawn from the whole city, as the paper writes, it may have none in
    some regions, whose demand is then unobserved.
    """
    order = np.random.default_rng([seed, 7]).permutation(regions.of_station.height)
    own: list[str] = []
    if sampling is Sampling.CITY:
        return regions.of_station[order]["station_id"][: max(1, round(share * len(order)))].to_list()
    for _, part in regions.of_station[order].group_by("unique_id", maintain_order=True):
        own += part["station_id"][: max(1, round(share * part.height))].to_list()
    return own


def _seen_by(stations: pl.DataFrame, arrivals: pl.DataFrame) -> pl.DataFrame:
    """Arrivals as the operator has them: those at other operators' stations are lost to it."""
    own = stations.filter(pl.col("operator") == OWN)["station_id"]
    is_own = pl.col("station_id").is_in(own.implode())
    return arrivals.with_columns(
        outcome=pl.when(is_own).then("outcome").otherwise(pl.lit("lost").cast(arrivals.schema["outcome"]))
    )


def simulated_records(
    outcome: Outcome, stations: pl.DataFrame, grouped: Regions, city: City, market: Market | None = None
) -> pl.DataFrame:
    """What the operator saw and what was wanted, by region and hour, and what its records alone say of the latter."""
    arrivals = outcome.arrivals if market is None else _seen_by(stations, outcome.arrivals)
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


def _scenario(queue: str, penetration: float, seed: int, base: Scenario | None = None) -> Scenario:
    given = {} if base is None else base.model_dump(mode="json")
    return scenario_from({**given, "queue": queue, "penetration": penetration, "seed": seed}, "The study")


def _scene(panel: pl.DataFrame, grouped: Regions, city: City, **labels: Any) -> Scene:
    return Scene(labels, panel, grouped.centres.select("unique_id", "lat", "lon"), city.time_zone)


def _played(
    itinerary: Itinerary, scenarios: Sequence[Scenario], make: Callable[[Outcome, Scenario], Scene]
) -> Iterator[Scene]:
    with ThreadPoolExecutor(WORKERS) as pool:
        yield from pool.map(lambda scenario: make(simulate(itinerary, scenario), scenario), scenarios)
