"""The live built-in city, which answers what-if questions by simulation within a second."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from unmet.arrays import Floats, Integers
from unmet.city.build import City, build_city
from unmet.demand.regions import Regions, kmeans_regions
from unmet.errors import InputError
from unmet.simulation import engine
from unmet.simulation.queues import Plugs, queue_named
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import Itinerary, draw, plugs_of, prepare, rules_of
from unmet.study.scenes import own_stations

__all__ = ["Answer", "LiveCity", "Question"]


REGIONS = 10  # number of regions
CACHE_SIZE = 64  # answers in the cache
MAX_PLUGS = 100
WARM_UP_PENETRATION = 0.001  # a small simulation, which compiles all functions that answers need
TRIP, STATION, PLUG, START, ENERGY = 0, 1, 2, 3, 8  # columns of the engine's log


class Question(BaseModel):
    """A what-if question about the built-in city."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    penetration: float = Field(
        0.05, gt=0, le=1, description="share of the city's cars that are electric, before growth"
    )
    growth: float = Field(0.0, ge=-0.9, le=10, description="growth of the number of electric cars, such as 0.1")
    queue: str = Field("first-come", max_length=40, description="queue discipline at all stations")
    market_share: float = Field(
        1.0, gt=0, le=1, description="share of each region's stations that are the operator's own"
    )
    plugs: tuple[tuple[str, int], ...] = Field(
        (), max_length=500, description="stations with another number of plugs: pairs of station_id and plugs"
    )

    @field_validator("plugs")
    @classmethod
    def _checked_plugs(cls, pairs: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
        for station, plugs in pairs:
            if not 0 <= plugs <= MAX_PLUGS or len(station) > 100:
                raise ValueError(f"a station has 0 to {MAX_PLUGS} plugs")
        return tuple(sorted(dict(pairs).items()))


@dataclass(frozen=True)
class Answer:
    """The result of a simulation. Energies are in kWh over the whole period."""

    question: Question
    stations: pl.DataFrame
    """`station_id, lat, lon, plugs, power_kw, unique_id, is_own, served, lost, observed_kwh, lost_kwh`.

    `unique_id` is the region; `served` and `lost` are numbers of drivers; `is_own` is false for competitors."""
    day_kwh: Floats = field(repr=False)  # (2, regions, days), observed and lost at the operator's stations
    hour_kwh: Floats = field(repr=False)  # (2, regions, 24), mean of each hour of the day
    regions: tuple[str, ...] = ()
    days: pl.Series = field(default_factory=lambda: pl.Series(dtype=pl.Date), repr=False)
    electric_cars: int = 0
    mean_waited_minutes: float = 0.0
    seconds: float = 0.0
    """Time that the answer took on the server [s]."""

    @cached_property
    def totals(self) -> dict[str, float]:
        """Energies, drivers, and the share of the operator's demand that was lost."""
        own = self.stations.filter("is_own")
        observed, lost = float(own["observed_kwh"].sum()), float(own["lost_kwh"].sum())
        others = self.stations.filter(~pl.col("is_own"))
        return {
            "observed_kwh": round(observed, 3),
            "lost_kwh": round(lost, 3),
            "lost_share": round(lost / (observed + lost), 6) if lost else 0.0,
            "served_drivers": int(own["served"].sum()),
            "lost_drivers": int(own["lost"].sum()),
            "competitors_kwh": round(float(others["observed_kwh"].sum()) + float(others["lost_kwh"].sum()), 3),
            "mean_waited_minutes": round(self.mean_waited_minutes, 3),
            "electric_cars": self.electric_cars,
        }

    def region_rows(self) -> pl.DataFrame:
        """By region: energy observed and lost, and the lost share; own stations only."""
        own = self.stations.filter("is_own")
        sums = own.group_by("unique_id").agg(pl.sum("observed_kwh", "lost_kwh", "plugs"), stations=pl.len())
        share = pl.col("lost_kwh") / (pl.col("lost_kwh") + pl.col("observed_kwh"))
        return sums.with_columns(lost_share=share.fill_nan(0.0)).sort("unique_id")


class LiveCity:
    """A city that is built once. Answers are cached, so that repeated questions cost nothing."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        self._answers: OrderedDict[Question, Answer] = OrderedDict()
        self._build_lock = threading.Lock()
        self._answer_lock = threading.Lock()

    @cached_property
    def _built(self) -> tuple[City, Itinerary, Regions]:
        city = build_city(seed=self.seed)
        return city, prepare(city), kmeans_regions(city.stations, REGIONS)

    def _parts(self) -> tuple[City, Itinerary, Regions]:
        """The city, its trips and its regions, built on first use."""
        with self._build_lock:
            return self._built

    def warm_up(self) -> None:
        """Build the city, compile the simulator and answer the first question, so that visitors need not wait."""
        self._simulate(Question(penetration=WARM_UP_PENETRATION))
        self.ask(Question())

    @property
    def is_ready(self) -> bool:
        """Whether the city is built, so that questions are answered at once."""
        return "_built" in self.__dict__

    @property
    def stations(self) -> pl.DataFrame:
        """The unchanged stations, with their regions."""
        city, _, regions = self._parts()
        return city.stations.join(regions.of_station, on="station_id", maintain_order="left")

    @property
    def regions(self) -> tuple[str, ...]:
        """Names of the regions, in the order of answers."""
        return tuple(self._parts()[2].centres["unique_id"])

    @property
    def max_penetration(self) -> float:
        """Share of the city's cars whose trips are known."""
        city, itinerary, _ = self._parts()
        return len(itinerary.vehicle_ids) / city.cars

    def ask(self, question: Question) -> Answer:
        """The answer, from the cache or simulated."""
        with self._answer_lock:
            if question in self._answers:
                self._answers.move_to_end(question)
                return self._answers[question]
            answer = self._simulate(question)
            self._answers[question] = answer
            while len(self._answers) > CACHE_SIZE:
                self._answers.popitem(last=False)
            return answer

    @cached_property
    def _clock(self) -> tuple[Integers, Integers, pl.Series]:
        """Local day and local hour at which each trip ends, and the days of the period."""
        city, itinerary, _ = self._parts()
        local = (
            pl.Series((itinerary.trips.end_s * 1000).astype(np.int64))
            .cast(pl.Datetime("ms", "UTC"))
            .dt.convert_time_zone(city.time_zone)
        )
        date = local.dt.date()
        day_number = date.cast(pl.Int32).to_numpy().astype(np.int64)  # days since 1970
        first, last = int(day_number.min()), int(day_number.max())
        days = pl.Series(np.arange(first, last + 1, dtype=np.int32)).cast(pl.Date)
        return day_number - first, local.dt.hour().to_numpy().astype(np.int64), days

    def _simulate(self, question: Question) -> Answer:
        city, itinerary, regions = self._parts()
        began = time.perf_counter()
        stations = self._stations(city, question)
        scenario = Scenario(
            queue=queue_named(question.queue).name,
            penetration=question.penetration * (1 + question.growth),
            seed=self.seed,
        )
        drawn = draw(itinerary, scenario)
        trips = itinerary.trips._replace(uniform=drawn.uniform)
        tries = np.zeros(len(drawn.soc), np.int64)
        cars = engine.Cars(drawn.soc.copy(), tries, drawn.capacity_kwh, drawn.range_km, drawn.home_kw)
        rows = np.flatnonzero(drawn.electric[trips.vehicle])
        plugs = _open_plugs(stations)
        log = engine.run(queue_named(question.queue).admit, rows, trips, cars, plugs, rules_of(scenario))
        own = np.isin(stations["station_id"], own_stations(regions, question.market_share, self.seed))
        return self._answer(question, stations, regions, log, own, int(drawn.electric.sum()), began)

    def _stations(self, city: City, question: Question) -> pl.DataFrame:
        """The stations of the city, with the numbers of plugs that the question asks for."""
        changed = dict(question.plugs)
        unknown = sorted(set(changed) - set(city.stations["station_id"]))
        if unknown:
            raise InputError(f"The city has no station {unknown[0]!r}: /api/city lists its stations.")
        if not changed:
            return city.stations
        plugs = [changed.get(name, now) for name, now in city.stations.select("station_id", "plugs").iter_rows()]
        return city.stations.with_columns(plugs=pl.Series(plugs, dtype=city.stations.schema["plugs"]))

    def _answer(
        self, question: Question, stations: pl.DataFrame, regions: Regions, log: Floats, own: NDArray[np.bool_],
        cars: int, began: float,
    ) -> Answer:  # fmt: skip
        """Sum the log of a simulation by station, and by region over days and hours of the day.

        Args:
            question: what was asked.
            stations: the stations that were simulated.
            regions: region of each station.
            log: one row per arrival, as `engine.run` returns it.
            own: whether each station is the operator's own, (stations,).
            cars: number of electric cars.
            began: time at which the answer was started, by `time.perf_counter` [s].
        """
        day_of, hour_of, days = self._clock
        trip, station = log[:, TRIP].astype(np.int64), log[:, STATION].astype(np.int64)
        served, kwh = log[:, PLUG] >= 0, log[:, ENERGY]
        count = stations.height
        columns = {}
        for name, chosen in (("served", served), ("lost", ~served)):
            columns[name] = np.bincount(station[chosen], minlength=count)
            columns["observed_kwh" if name == "served" else "lost_kwh"] = np.bincount(
                station[chosen], kwh[chosen], minlength=count
            )
        region = regions.codes()[station]
        is_own = own[station]
        n_regions = regions.centres.height
        day_kwh, hour_kwh = np.empty((2, n_regions, len(days))), np.empty((2, n_regions, 24))
        for i, chosen in enumerate((served & is_own, ~served & is_own)):
            day_kwh[i] = _grid(region[chosen], day_of[trip[chosen]], kwh[chosen], n_regions, len(days))
            hour_kwh[i] = _grid(region[chosen], hour_of[trip[chosen]], kwh[chosen], n_regions, 24) / len(days)
        _, itinerary, _ = self._parts()
        waited = (log[served & is_own, START] - itinerary.trips.end_s[trip[served & is_own]]) / 60
        table = stations.select("station_id", "lat", "lon", "plugs", "power_kw").with_columns(
            regions.of_station["unique_id"], is_own=pl.Series(own), **{k: pl.Series(v) for k, v in columns.items()}
        )
        return Answer(
            question,
            table,
            day_kwh,
            hour_kwh,
            regions=tuple(regions.centres["unique_id"]),
            days=days,
            electric_cars=cars,
            mean_waited_minutes=float(waited.mean()) if len(waited) else 0.0,
            seconds=time.perf_counter() - began,
        )


def _open_plugs(stations: pl.DataFrame) -> Plugs:
    """The initial state of all plugs: free.

    The engine needs a plug at every station, so a station without any gets one that is always taken.
    """
    closed = (stations["plugs"] == 0).to_numpy()
    if not closed.any():
        return plugs_of(stations)
    plugs = plugs_of(stations.with_columns(pl.col("plugs").clip(1)))
    plugs.free_at[plugs.first[:-1][closed]] = np.inf
    return plugs


def _grid(row: Integers, column: Integers, kwh: Floats, rows: int, columns: int) -> Floats:
    """Sum energies by row and column, (rows, columns)."""
    return np.bincount(row * columns + column, kwh, minlength=rows * columns).reshape(rows, columns).astype(float)
