"""Trips of a MATSim scenario: its one day, placed on a date and repeated."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from unmet.city.gates import check_trips
from unmet.city.matsim.grid import to_degrees
from unmet.city.matsim.legs import Leg, car_legs
from unmet.city.matsim.network import RoadNetwork
from unmet.city.places import ROAD_DETOUR
from unmet.errors import InputError
from unmet.geo import haversine_km
from unmet.zones import checked_zone

__all__ = ["MatsimDay", "MatsimTrips", "read_matsim_trips"]

MAX_DAYS = 366  # more repetitions of one day add rows, but no information


@dataclass(frozen=True, slots=True)
class MatsimDay:
    """Date and time zone of a scenario's day: MATSim counts seconds after midnight, without a date."""

    first: dt.date = dt.date(2024, 1, 8)  # a Monday
    days: int = 1
    time_zone: str = "UTC"

    def __post_init__(self) -> None:
        checked_zone(self.time_zone)
        if not 1 <= self.days <= MAX_DAYS:
            raise InputError(f"{self.days} days make no sense: repeat the day 1 to {MAX_DAYS} times.")


@dataclass(frozen=True, slots=True)
class MatsimTrips:
    """Trips, and the legs that could not be used."""

    trips: pl.DataFrame
    rejected: pl.DataFrame  # line (the number of the leg), column, value, reason
    legs: int  # number of legs by car in one day


def read_matsim_trips(
    path: Path, crs: str | None, day: MatsimDay, network: RoadNetwork | None = None, mode: str = "car"
) -> MatsimTrips:
    """Read plans.xml or events.xml (also .gz) as trips.

    MATSim simulates one day. With `day.days` it is repeated on the following days: the random parts of a charging
    simulation (states of charge, choices of station) then differ between days, while the drives do not. Distances come
    from routes in plans or links in events; if neither is known, they are 1.3 times the straight line.
    """
    legs = list(car_legs(path, network, mode))
    if not legs:
        raise InputError(f"{path} has no leg by {mode}: name the mode of the cars with --mode.")
    usable = [leg for leg in legs if _has_arrival(leg)]
    if not usable:
        raise InputError(f"No leg of {path} has a place and a time of arrival: give --network, or output plans.")
    repeated = pl.concat(
        [_on_day(usable, day.first + dt.timedelta(days=i), day.time_zone, crs) for i in range(day.days)]
    )
    checked = check_trips(repeated)
    without_arrival = pl.DataFrame(
        [
            (i + 1, "end", leg.person, "has no place or time of arrival")
            for i, leg in enumerate(legs)
            if not _has_arrival(leg)
        ],
        schema=checked.rejected.schema,
        orient="row",
    )
    return MatsimTrips(checked.kept, pl.concat([without_arrival, checked.rejected]), len(legs))


def _has_arrival(leg: Leg) -> bool:
    """Whether the place and the time of arrival are known, and the time is not before departure."""
    return not math.isnan(leg.end_s + leg.end[0] + leg.end[1]) and leg.end_s >= leg.start_s


def _on_day(legs: list[Leg], date: dt.date, zone: str, crs: str | None) -> pl.DataFrame:
    """The legs as trips on a date; unknown distances are estimated from the straight line."""
    midnight = dt.datetime.combine(date, dt.time(), ZoneInfo(zone)).timestamp()
    start_lat, start_lon = to_degrees([leg.start[0] for leg in legs], [leg.start[1] for leg in legs], crs)
    end_lat, end_lon = to_degrees([leg.end[0] for leg in legs], [leg.end[1] for leg in legs], crs)
    driven = np.array([leg.distance_m for leg in legs]) / 1000
    estimated = np.nan_to_num(haversine_km(start_lat, start_lon, end_lat, end_lon)) * ROAD_DETOUR
    millis = 1000 * (midnight + np.array([[leg.start_s, leg.end_s] for leg in legs]))
    utc = pl.Datetime("ms", "UTC")
    return pl.DataFrame(
        {
            "vehicle_id": [leg.person for leg in legs],
            "start_time": pl.Series(np.round(millis[:, 0]).astype(np.int64)).cast(utc),
            "end_time": pl.Series(np.round(millis[:, 1]).astype(np.int64)).cast(utc),
            "start_lat": start_lat,
            "start_lon": start_lon,
            "end_lat": end_lat,
            "end_lon": end_lon,
            "distance_km": np.where(np.isnan(driven), estimated, driven),
        }
    ).with_columns(pl.col("start_lat", "start_lon").fill_nan(None))
