"""Scenes: the panels that studies run on, in which both observed and true demand are known."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from unmet.city.build import City
from unmet.demand.market import Market
from unmet.demand.regions import Regions, kmeans_regions
from unmet.demand.simulated import simulated_panel
from unmet.errors import InputError
from unmet.estimation.simulated import records_and_truth
from unmet.processes import map_in_processes
from unmet.simulation.outcome import Outcome
from unmet.simulation.scenario import Scenario, scenario_from
from unmet.simulation.simulate import prepare, simulate

__all__ = [
    "Sampling",
    "Scene",
    "SceneRecords",
    "competition_scenes",
    "observed_and_true",
    "own_stations",
    "seen_by",
    "total_scenes",
    "training_end",
    "without_hindsight",
]  # fmt: skip

MANY_ESTIMATES = 8  # with this many or more, starting processes for the estimates saves time
OWN, OTHER = "own", "other"
OWNER_STREAM = 7  # keeps the random order of stations apart from other random numbers of the same seed
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
    city_number: int = 0,
    base: Scenario | None = None,
    *,
    estimated: bool = True,
) -> list[Scene]:
    """The whole city under every queue at every penetration, with one operator for all stations.

    Args:
        city: the trips and stations.
        queues: names of queues.
        penetrations: shares of the cars that are electric.
        regions: number of regions.
        seed: seed of the simulation.
        city_number: which of the cities of a study this is, from 0.
        base: everything else about the scenario.
        estimated: whether to estimate lost demand as well, which takes ten times as long.
    """
    grouped, itinerary = kmeans_regions(city.stations, regions), prepare(city)
    scenarios = [_scenario(queue, penetration, seed, base) for queue in queues for penetration in penetrations]
    outcomes = (simulate(itinerary, scenario) for scenario in scenarios)
    observations = (SceneRecords(each.arrivals, each.sessions, each.stations) for each in outcomes)
    panels = _panels(observations, len(scenarios), grouped, city, estimated=estimated)
    return [
        Scene(
            {"queue": each.queue, "penetration": each.penetration},
            panel,
            _places(grouped),
            city.time_zone,
            city=city_number,
        )
        for each, panel in zip(scenarios, panels, strict=True)
    ]


def competition_scenes(
    city: City,
    shares: Sequence[float],
    queue: str,
    penetration: float,
    regions: int = 10,
    seed: int = 1,
    runs: Sequence[int] = (0,),
    *,
    city_number: int = 0,
    sampling: Sampling = Sampling.REGION,
    base: Scenario | None = None,
    estimated: bool = True,
) -> list[Scene]:
    """One operator among others: it owns a share of the stations, and all other demand is lost to competitors.

    Every run has a different operator, because a single station can have a large part of its region's demand: results
    for one draw of stations would say more about luck than about models. An operator with a larger share keeps the
    stations that it has with a smaller one. `seed` is the seed of the simulation, and `city_number` says which of the
    cities of a study this is, from 0.
    """
    if wrong := [share for share in shares if not 0 < share <= 1]:
        raise InputError(f"A market share of {wrong[0]:g} makes no sense: give one above 0 and up to 1, such as 0.25.")
    grouped = kmeans_regions(city.stations, regions)
    outcome = simulate(prepare(city), _scenario(queue, penetration, seed, base))
    cells = [(run, share) for run in runs for share in shares]
    observations = (seen_by(own_stations(grouped, share, 1 + run, sampling), outcome) for run, share in cells)
    panels = _panels(observations, len(cells), grouped, city, estimated=estimated)
    labels = {"queue": queue, "penetration": penetration}
    return [
        Scene({**labels, "share": share}, panel, _places(grouped), city.time_zone, run=run, city=city_number)
        for (run, share), panel in zip(cells, panels, strict=True)
    ]


def own_stations(regions: Regions, share: float, seed: int, sampling: Sampling = Sampling.REGION) -> list[str]:
    """The operator's own stations: a random share of those of each region, or of those of the whole city.

    The random order depends on the seed alone, so that a larger share contains the stations of a smaller one.

    If stations are drawn by region, the operator has at least one in each. If they are drawn from the whole city, as in
    the paper, it may have none in some regions, whose demand is then unobserved.
    """
    order = np.random.default_rng([seed, OWNER_STREAM]).permutation(regions.of_station.height)
    own: list[str] = []
    if sampling is Sampling.CITY:
        return regions.of_station[order]["station_id"][: max(1, round(share * len(order)))].to_list()
    for _, part in regions.of_station[order].group_by("unique_id", maintain_order=True):
        own += part["station_id"][: max(1, round(share * part.height))].to_list()
    return own


class SceneRecords(NamedTuple):
    """A simulation from the point of view of one operator."""

    arrivals: pl.DataFrame  # with their outcome: arrivals at other operators' stations are lost
    sessions: pl.DataFrame  # of all operators
    stations: pl.DataFrame  # with `operator`, if there are several
    market: Market | None = None  # the operator, if there are several


def seen_by(own: Sequence[str], outcome: Outcome) -> SceneRecords:
    """A simulation as the operator of some of the stations sees it."""
    is_own = pl.col("station_id").is_in(own)
    lost = pl.lit("lost").cast(outcome.arrivals.schema["outcome"])
    return SceneRecords(
        outcome.arrivals.with_columns(outcome=pl.when(is_own).then("outcome").otherwise(lost)),
        outcome.sessions,
        outcome.stations.with_columns(operator=pl.when(is_own).then(pl.lit(OWN)).otherwise(pl.lit(OTHER))),
        Market(OWN),
    )


def _panels(
    observations: Iterable[SceneRecords], count: int, grouped: Regions, city: City, *, estimated: bool
) -> list[pl.DataFrame]:
    """The panel of each of `count` observations. Many estimates are made in processes of their own, one per core."""
    period, time_zone = city.period, city.time_zone
    if not estimated:
        return [simulated_panel(each.arrivals, grouped, period) for each in observations]
    make = partial(observed_and_true, grouped=grouped, period=period, time_zone=time_zone)
    return list(map(make, observations) if count < MANY_ESTIMATES else map_in_processes(make, observations))


def observed_and_true(
    observation: SceneRecords, grouped: Regions, period: tuple[dt.datetime, dt.datetime], time_zone: str
) -> pl.DataFrame:
    """Observed and true demand by region and hour, with estimates from the operator's records alone."""
    arrivals, all_sessions, stations, market = observation
    until = training_end(period)

    def make_table(sessions: pl.DataFrame) -> pl.DataFrame:
        return records_and_truth(sessions, arrivals, stations, grouped, period, time_zone, market, until)

    return without_hindsight(all_sessions, until, make_table)


def without_hindsight(
    sessions: pl.DataFrame, until: dt.datetime, make_table: Callable[[pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame:
    """A panel table whose training part is estimated without any later session.

    Args:
        sessions: sessions of the whole period.
        until: end of the training part.
        make_table: estimates the table of a panel (`unique_id, ds` and more) from sessions.
    """
    whole = make_table(sessions)
    early = make_table(sessions.filter(pl.col("start") < until))
    parts = [early.filter(pl.col("ds") < until), whole.filter(pl.col("ds") >= until)]
    return pl.concat(parts).sort("unique_id", "ds", maintain_order=True)


def _scenario(queue: str, penetration: float, seed: int, base: Scenario | None = None) -> Scenario:
    given = {} if base is None else base.model_dump(mode="json")
    return scenario_from({**given, "queue": queue, "penetration": penetration, "seed": seed}, "The study")


def _places(grouped: Regions) -> pl.DataFrame:
    """Positions of the regions: `unique_id, lat, lon` [degree]."""
    return grouped.centres.select("unique_id", "lat", "lon")
