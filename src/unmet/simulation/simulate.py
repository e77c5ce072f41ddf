"""Simulation of a scenario in a city: every arrival at every station, served or lost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.city.build import City, build_city
from unmet.errors import InputError
from unmet.frames import frame_type_of
from unmet.geo import nearest_stations
from unmet.memory import require_bytes
from unmet.simulation import engine
from unmet.simulation.choice import beta_table
from unmet.simulation.fleet import DENMARK, Fleet, electric_vehicles, home_chargers, initial_soc, sample_models
from unmet.simulation.homes import ends_at_home
from unmet.simulation.outcome import Outcome
from unmet.simulation.queues import Plugs, queue_named
from unmet.simulation.scenario import Curve, Scenario, TurnedAway, scenario_from
from unmet.tables import UTC

__all__ = [
    "BYTES_PER_TRIP",
    "NEAREST",
    "TRIP_STREAM",
    "Draw",
    "Itinerary",
    "arrivals_table",
    "draw",
    "plugs_of",
    "prepare",
    "rules_of",
    "simulate",
    "vehicles_table",
]

NEAREST = 5  # number of nearest stations that a driver considers
TRIP_STREAM = 3  # random stream of the draws of trips, which a streamed simulation continues from bucket to bucket
BYTES_PER_TRIP = 510  # memory of a simulation per trip; measured with 1.56 million trips
BYTES_PER_ROW = 110  # part of it for the table of trips, which is in memory before the simulation starts


@dataclass(frozen=True, slots=True)
class Itinerary:
    """A city prepared for the engine, once for all scenarios: trips in order of arrival, with nearest stations."""

    city: City
    vehicle_ids: pl.Series
    trips: engine.Trips  # `uniform` is empty: it depends on the seed


@dataclass(frozen=True, slots=True)
class Draw:
    """The random numbers of a scenario: per vehicle, and per trip in the order of the itinerary."""

    electric: NDArray[np.bool_]
    fleet: Fleet
    model: NDArray[np.int64]  # index into the fleet's models
    soc: NDArray[np.float64]  # state of charge at the start
    home_kw: NDArray[np.float64]  # power of the plug at home, 0 without one
    uniform: NDArray[np.float64]  # (trips, 3)

    @property
    def capacity_kwh(self) -> NDArray[np.float64]:
        """Battery capacity of each vehicle [kWh]."""
        return np.array([m.battery_kwh for m in self.fleet.models], float)[self.model]

    @property
    def range_km(self) -> NDArray[np.float64]:
        """Range of each vehicle with a full battery [km]."""
        return np.array([m.range_km for m in self.fleet.models], float)[self.model]


def prepare(city: City) -> Itinerary:
    """Sort trips by their end; for each, find the nearest stations and the start of the car's next trip."""
    require_bytes(
        city.trips.height * (BYTES_PER_TRIP - BYTES_PER_ROW),
        f"A simulation of {city.trips.height:,} trips",
        "give them as a folder of Parquet files (--trips), which are streamed",
    )
    ids = city.trips["vehicle_id"].unique().sort()
    trips = (
        city.trips.with_columns(
            vehicle=pl.col("vehicle_id").replace_strict(ids, np.arange(len(ids)), return_dtype=pl.Int64),
            end_s=pl.col("end_time").dt.epoch("ms") / 1000,
            next_start_s=pl.col("start_time").shift(-1).over("vehicle_id", order_by="start_time").dt.epoch("ms") / 1000,
        )
        .with_columns(pl.col("next_start_s").fill_null(np.inf))
        .sort("end_s", "vehicle", maintain_order=True)
    )
    stations = city.stations
    nearest, km = nearest_stations(trips["end_lat"], trips["end_lon"], stations["lat"], stations["lon"], NEAREST)
    arrays = engine.Trips(
        vehicle=trips["vehicle"].to_numpy(writable=True),
        end_s=trips["end_s"].to_numpy(writable=True),
        next_start_s=trips["next_start_s"].to_numpy(writable=True),
        distance_km=trips["distance_km"].to_numpy(writable=True),
        nearest=nearest,
        nearest_km=km,
        uniform=np.empty((0, 3)),
        at_home=np.empty(0, np.bool_),
    )
    return Itinerary(city, ids, arrays)


def draw(itinerary: Itinerary, scenario: Scenario) -> Draw:
    """Draw all random numbers of a simulation in advance; given these, everything else is deterministic.

    The numbers of a trip do not depend on the queue or the penetration, so scenarios differ by their rules and not by
    chance.
    """
    # Each quantity has its own random stream, so that changing how one is drawn does not affect the others.
    streams = [np.random.default_rng([scenario.seed, stream]) for stream in range(5)]
    cars = len(itinerary.vehicle_ids)
    fleet = scenario.fleet or DENMARK
    return Draw(
        electric=electric_vehicles(scenario.penetration, itinerary.city.cars, cars, streams[0]),
        fleet=fleet,
        model=sample_models(cars, streams[1], fleet),
        soc=initial_soc(cars, streams[2], fleet),
        home_kw=home_chargers(cars, fleet, streams[4]),
        uniform=streams[TRIP_STREAM].random((len(itinerary.trips.vehicle), 3)),
    )


def simulate(
    city: City | Itinerary | None = None,
    scenario: Scenario | None = None,
    *,
    trips: Any = None,
    stations: Any = None,
    cars: int | None = None,
    time_zone: str | None = None,
    **options: Any,
) -> Outcome:
    """Simulate a city of electric cars: every arrival at every station, served or lost.

    Cars drive their trips. After each trip, a driver decides whether to charge (the paper's willingness to charge) and
    chooses one of the five nearest stations with probability proportional to exp(-s D_j), where the queue discipline
    decides who is served. The same seed gives the same result, to the bit.

    Args:
        city: a city from `unmet.city.build.build_city`, or an itinerary from `prepare`, which saves time if many
            scenarios are simulated; by default the built-in city, a synthetic Copenhagen with 1.6 million trips.
        scenario: the rules; by default from the options.
        trips: your own trips in place of the built-in ones, a data frame or a file: `vehicle_id, start_time, end_time,
            end_lat, end_lon` [degree], `distance_km` [km].
        stations: your own stations, a data frame or a file: `station_id, lat, lon` [degree], `power_kw` [kW], `plugs`.
        cars: number of cars to which the penetration refers; by default the vehicles of your own trips.
        time_zone: time zone of the city, such as Europe/Copenhagen.
        **options: fields of `unmet.Scenario`, such as `queue="three-hour", penetration=0.05, seed=2`.

    Returns:
        The outcome: `arrivals` (served or lost, `wanted_kwh` [kWh]), `sessions` as operators would have recorded them,
        `stations` and `vehicles`. It can be passed to `unmet.Panel`.

    Example:
        >>> import datetime as dt
        >>> begin = [dt.datetime(2024, 5, 6, 7 + hour) for hour in range(12)]
        >>> trips = pl.DataFrame({
        ...     "vehicle_id": ["a", "b", "c"] * 4,
        ...     "start_time": begin,
        ...     "end_time": [time + dt.timedelta(minutes=50) for time in begin],
        ...     "end_lat": 55.7, "end_lon": 12.5, "distance_km": 140.0,
        ... })
        >>> stations = pl.DataFrame({"station_id": ["s"], "lat": [55.7], "lon": [12.5], "power_kw": [11.0], "plugs": 1})
        >>> simulate(trips=trips, stations=stations, penetration=1.0)
        Outcome(10 arrivals, 6 lost, 3 electric cars, 1 stations)
    """
    if city is not None and not (trips is None and stations is None and cars is None and time_zone is None):
        raise InputError("Give a city, or trips and stations, not both.")
    if scenario is not None and options:
        raise InputError(f"Give a scenario, or {', '.join(options)}, not both.")
    if scenario is None:
        share = {"penetration": 1.0} if trips is not None and cars is None else {}
        scenario = scenario_from(share | options, "The scenario")
    if city is None:
        city = build_city(trips, stations, cars, time_zone, scenario.seed)
    outcome = _run(city if isinstance(city, Itinerary) else prepare(city), scenario)
    return replace(outcome, frame_type=frame_type_of(trips, stations))


def _run(itinerary: Itinerary, scenario: Scenario) -> Outcome:
    drawn = draw(itinerary, scenario)
    trips = itinerary.trips._replace(uniform=drawn.uniform)
    if drawn.fleet.home_charging:
        trips = trips._replace(at_home=ends_at_home(itinerary.city.trips, itinerary.city.time_zone))
    tries = np.zeros(len(drawn.soc), np.int64)
    cars = engine.Cars(drawn.soc.copy(), tries, drawn.capacity_kwh, drawn.range_km, drawn.home_kw)
    rows = np.flatnonzero(drawn.electric[trips.vehicle])
    plugs = plugs_of(itinerary.city.stations)
    log = engine.run(queue_named(scenario.queue).admit, rows, trips, cars, plugs, rules_of(scenario))
    arrivals = arrivals_table(log, itinerary, trips, drawn.capacity_kwh, plugs)
    city = itinerary.city
    return Outcome(arrivals, vehicles_table(itinerary.vehicle_ids, drawn), city.stations, len(rows), city.time_zone)


def vehicles_table(vehicle_ids: pl.Series, drawn: Draw) -> pl.DataFrame:
    """The electric vehicles."""
    return pl.DataFrame(
        {
            "vehicle_id": vehicle_ids,
            "model": pl.Series([m.name for m in drawn.fleet.models]).gather(drawn.model),
            "battery_kwh": drawn.capacity_kwh,
            "range_km": drawn.range_km,
            "initial_soc": drawn.soc,
        }
    ).filter(drawn.electric)


def plugs_of(stations: pl.DataFrame) -> Plugs:
    """The plugs of a table of stations, all free."""
    first = np.concatenate([[0], np.cumsum(stations["plugs"].to_numpy())]).astype(np.int64)
    return Plugs(first, stations["power_kw"].to_numpy().astype(float), np.full(first[-1], -np.inf))


def rules_of(scenario: Scenario) -> engine.Rules:
    """The rules of a scenario, as the engine reads them."""
    share = scenario.turned_away_share
    return engine.Rules(
        beta_table=beta_table(scenario.plug_in_a, scenario.plug_in_b),
        sensitivity=scenario.distance_sensitivity,
        literal=scenario.curve is not Curve.CONTINUOUS,
        literal_lost=scenario.curve is Curve.LITERAL_LOST,
        keeps=share if scenario.turned_away is TurnedAway.KEEP else 0.0,
        retries=share if scenario.turned_away is TurnedAway.RETRY else 0.0,
        diverts=share if scenario.turned_away is TurnedAway.DIVERT else 0.0,
    )


def arrivals_table(
    log: NDArray[np.float64],
    itinerary: Itinerary,
    trips: engine.Trips,
    capacity: NDArray[np.float64],
    plugs: Plugs,
    before: int = 0,
) -> pl.DataFrame:
    """The engine's log as a table, with times rounded to the millisecond, which keeps their order.

    Args:
        log: rows of `engine.COLUMNS`.
        itinerary: names of vehicles and stations.
        trips: the trips that the log refers to.
        capacity: battery of each car [kWh].
        plugs: plugs of all stations.
        before: number of sessions of earlier trips; session numbers continue from it.
    """
    trip, station, plug, start, taper, charged, end, soc, energy, attempt = log.T
    row, station_row = trip.astype(np.int64), station.astype(np.int64)
    car = trips.vehicle[row]
    served = pl.Series(plug >= 0)
    leaves = trips.next_start_s[row]

    def moment(seconds: NDArray[np.float64]) -> pl.Series:
        return pl.Series(np.round(np.where(np.isfinite(seconds), seconds, 0) * 1000).astype(np.int64)).cast(UTC)

    return pl.DataFrame(
        {
            "session_id": pl.Series(np.arange(before + 1, before + len(log) + 1)).cast(pl.String).str.zfill(8),
            "vehicle_id": itinerary.vehicle_ids.gather(car),
            "station_id": itinerary.city.stations["station_id"].gather(station_row),
            "plug_id": pl.Series((plug - plugs.first[station_row] + 1).astype(np.int32)),
            "arrival": moment(trips.end_s[row]),
            "start": moment(start),
            "taper": moment(taper),
            "charged": moment(charged),
            "end": moment(end),
            "outcome": pl.Series(np.where(plug >= 0, "served", "lost")),
            "energy_kwh": energy,
            "wanted_kwh": energy,
            "waited_minutes": (start - trips.end_s[row]) / 60,
            "attempt": pl.Series(attempt.astype(np.int16)),
            "soc": soc,
            "battery_kwh": capacity[car],
            "leaves": moment(leaves),
        }
    ).with_columns(
        pl.when(served).then(pl.col("plug_id", "start", "taper", "charged", "end", "waited_minutes")),
        pl.when(served).then("energy_kwh").otherwise(0.0).alias("energy_kwh"),
        pl.when(pl.Series(np.isfinite(leaves))).then("leaves"),
    )
