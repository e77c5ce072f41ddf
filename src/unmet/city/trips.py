"""Trips of the built-in city: every car has a home, goes to work, runs errands, and returns home."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Floats
from unmet.city.busyness import Busyness, draw_busyness
from unmet.city.places import ORIGIN, PLACES, ROAD_DETOUR, TIME_ZONE, land_polygons_km
from unmet.compiled import compiled

__all__ = ["AUTUMN_HOLIDAY", "FIRST_DAY", "LAST_DAY", "VEHICLES", "Habits", "synthetic_trips"]

VEHICLES = 32_664  # number of cars, and the period, as in the paper's data
FIRST_DAY = dt.date(2019, 9, 1)
LAST_DAY = dt.date(2019, 11, 30)
AUTUMN_HOLIDAY = (dt.date(2019, 10, 14), dt.date(2019, 10, 20))  # first and last day
TRIP_STREAM, BUSYNESS_STREAM = 0x7219, 0xDA75  # keep random numbers of the same seed apart


class Habits(NamedTuple):
    """Parameters of car use in the built-in city; docs/city.md says how they were calibrated.

    Hours are local; shares are probabilities; a spread is a standard deviation, of hours unless stated otherwise.
    """

    # A car is observed for some days (a visit, a lease, all three months): lognormal, truncated by the period.
    seen_days: float = 2.0  # median
    seen_spread: float = 2.99  # standard deviation of the logarithm
    # While observed, it is used on a weekday with probability `weekday`; the others are factors on it.
    weekday: float = 0.99
    saturday: float = 0.74
    sunday: float = 0.68
    holiday: float = 0.68
    # How much days, weeks and places differ (`unmet.city.busyness`) in how many cars are used and where they go.
    city_day_spread: float = 0.12
    place_week_spread: float = 0.1
    place_day_spread: float = 0.25
    # Commuting.
    commuters: float = 0.5  # share of the cars
    commutes: float = 0.88  # share of the weekdays with car use on which a commuter goes to work
    commutes_on_holiday: float = 0.55  # the same in the autumn holiday
    leave_home_hour: float = 7.45
    leave_home_spread: float = 1.0
    work_hours: float = 7.0
    work_hours_spread: float = 1.0
    lunch_errand: float = 0.08
    stop_on_the_way: float = 0.55  # probability of an errand on the way home, and of another one after it
    # Days without work.
    tour_hour: float = 10.8  # mean hour of the first departure
    tour_hour_spread: float = 3.6
    another_errand: float = 0.76  # probability of another errand after each errand
    errand_hours: float = 1.25  # median stay
    errand_spread: float = 0.7  # standard deviation of the logarithm of the stay
    # Evenings.
    evening_out: float = 0.5
    evening_hours: float = 1.7  # median stay
    homeward_hour: float = 21.0  # mean of the latest hour at which a car heads home
    homeward_spread: float = 0.8
    night_out: float = 0.01  # share of days on which it heads home three hours later
    # A destination at distance D is chosen with probability proportional to its attraction times exp(-D / reach).
    work_reach_km: float = 5.0
    errand_reach_km: float = 5.0


class _Zones(NamedTuple):
    """Places as arrays in km around the origin, with cumulative probabilities of destinations from each."""

    x: Floats
    y: Floats
    spread: Floats  # standard deviation of positions in a place
    to_work: Floats  # (from, to), cumulative
    to_errand: Floats  # (days, from, to), cumulative


class _Calendar(NamedTuple):
    """What differs between days: arrays of length `days`, unless stated otherwise."""

    midnight_s: Floats  # UTC second of local midnight
    clock_change_s: Floats  # seconds to add to the local clock after 03:00
    use_probability: Floats  # (days, places), probability that a car is used
    errand_factor: Floats  # factor on the probability of one more errand
    commute_probability: Floats  # probability that the car of a commuter, if used, goes to work


def synthetic_trips(seed: int, vehicles: int = VEHICLES, habits: Habits | None = None) -> pl.DataFrame:
    """Trips of `vehicles` cars from September to November 2019, by vehicle and time, deterministic for a seed.

    A trip starts where the car's last one ended. Positions have 50 to 500 m of privacy noise, drawn for every
    stop, as in the paper's data.
    """
    habits = habits or Habits()
    rng = np.random.default_rng([seed, TRIP_STREAM])
    busy = draw_busyness(
        np.random.default_rng([seed, BUSYNESS_STREAM]),
        (LAST_DAY - FIRST_DAY).days + 1,
        len(PLACES),
        city_day=habits.city_day_spread,
        place_week=habits.place_week_spread,
        place_day=habits.place_day_spread,
    )
    zones, calendar = _zones(habits, busy), _calendar(habits, busy)
    cars = np.array([p.population * p.cars_per_person for p in PLACES])
    home = rng.choice(len(PLACES), size=vehicles, p=cars / cars.sum())
    days = np.ceil(habits.seen_days * np.exp(habits.seen_spread * rng.standard_normal(vehicles)))
    # The first day of observation is uniform over all days such that at least one observed day is in the period.
    period = len(calendar.use_probability)
    first = np.floor(rng.random(vehicles) * (period + days - 1)) - days + 1
    observed_days = np.column_stack([np.maximum(first, 0), np.minimum(first + days, period)]).astype(np.int64)
    commuter = rng.random(vehicles) < habits.commuters
    table = _drive(rng, home, observed_days, commuter, zones, calendar, habits, *land_polygons_km())
    return _as_frame(table)


def _zones(habits: Habits, busy: Busyness) -> _Zones:
    """The places as arrays. Errands are attracted by workplaces (shops, offices) and by people, and vary by day."""
    lat, lon = np.array([[p.lat, p.lon] for p in PLACES]).T
    x, y = ORIGIN.to_km(lat, lon)
    radius = np.sqrt(np.array([p.area_km2 for p in PLACES]) / np.pi)
    workplaces = np.array([p.workplaces for p in PLACES], float)
    people = np.array([p.population for p in PLACES], float)
    # Within a place, trips are about half its radius long.
    apart = np.maximum(np.hypot(x[:, None] - x, y[:, None] - y), radius / 2)

    def cumulative_probability(attraction: Floats, reach_km: float) -> Floats:
        weight = attraction * np.exp(-apart / reach_km)
        return np.cumsum(weight / weight.sum(axis=-1, keepdims=True), axis=-1)

    return _Zones(
        x,
        y,
        np.minimum(0.55 * radius, 2.2),  # about half of the place's radius, as for stations
        cumulative_probability(workplaces, habits.work_reach_km),
        cumulative_probability(busy.place[:, None, :] * (0.5 * workplaces + 0.3 * people), habits.errand_reach_km),
    )


def _calendar(habits: Habits, busy: Busyness) -> _Calendar:
    days = [FIRST_DAY + dt.timedelta(days=i) for i in range((LAST_DAY - FIRST_DAY).days + 1)]
    zone = ZoneInfo(TIME_ZONE)
    midnight = [dt.datetime.combine(day, dt.time(), zone) for day in days]
    noon = [dt.datetime.combine(day, dt.time(12), zone) for day in days]
    change = [(b.timestamp() - a.timestamp()) - 12 * 3600 for a, b in zip(midnight, noon, strict=True)]
    weekday = np.array([day.weekday() for day in days])
    holiday = np.array([AUTUMN_HOLIDAY[0] <= day <= AUTUMN_HOLIDAY[1] for day in days])
    weekend = np.select([weekday == 5, weekday == 6], [habits.saturday, habits.sunday], 1.0)
    commute = np.where(weekday < 5, np.where(holiday, habits.commutes_on_holiday, habits.commutes), 0.0)
    return _Calendar(
        np.array([m.timestamp() for m in midnight]),
        np.array(change),
        np.minimum(
            (habits.weekday * weekend * np.where(holiday, habits.holiday, 1.0) * busy.city)[:, None] * busy.place, 1.0
        ),
        busy.city,
        commute,
    )


def _as_frame(table: Floats) -> pl.DataFrame:
    vehicle, start, end, start_x, start_y, end_x, end_y, distance = table.T
    start_lat, start_lon = ORIGIN.to_degrees(start_x, start_y)
    end_lat, end_lon = ORIGIN.to_degrees(end_x, end_y)
    utc = pl.Datetime("ms", "UTC")
    names = pl.Series([f"v{i:05d}" for i in range(int(vehicle.max()) + 1)])
    return pl.DataFrame(
        {
            "vehicle_id": names.gather(vehicle.astype(np.int64)),
            "start_time": pl.Series(np.round(start).astype(np.int64) * 1000).cast(utc),
            "end_time": pl.Series(np.round(end).astype(np.int64) * 1000).cast(utc),
            "start_lat": start_lat.round(5),
            "start_lon": start_lon.round(5),
            "end_lat": end_lat.round(5),
            "end_lon": end_lon.round(5),
            "distance_km": distance.round(3),
        }
    ).filter(pl.col("end_time").dt.date() <= LAST_DAY)


@compiled()
def _inside(x: float, y: float, outline: Floats) -> bool:
    """Whether a point is inside a polygon: a ray from it crosses the outline an odd number of times."""
    inside = False
    j = len(outline) - 1
    for i in range(len(outline)):
        xi, yi, xj, yj = outline[i, 0], outline[i, 1], outline[j, 0], outline[j, 1]
        if (yi > y) != (yj > y) and x < (xj - xi) * (y - yi) / (yj - yi) + xi:
            inside = not inside
        j = i
    return inside


@compiled()
def is_land(x: float, y: float, zealand: Floats, amager: Floats) -> bool:
    """Whether a point [km] is on land."""
    return _inside(x, y, zealand) or _inside(x, y, amager)


@compiled()
def _spot(rng: np.random.Generator, zone: int, zones: _Zones, zealand: Floats, amager: Floats) -> tuple[float, float]:
    """A random position on land in a zone [km]."""
    x, y = zones.x[zone], zones.y[zone]
    for _ in range(50):  # a point at sea is tolerated rather than looping forever
        x = zones.x[zone] + zones.spread[zone] * rng.standard_normal()
        y = zones.y[zone] + zones.spread[zone] * rng.standard_normal()
        if is_land(x, y, zealand, amager):
            break
    return x, y


@compiled()
def _next_zone(rng: np.random.Generator, cumulative: Floats, zone: int) -> int:
    """Draw the destination of a trip from a zone; `cumulative` are probabilities of shape (from, to)."""
    return int(np.searchsorted(cumulative[zone], rng.random()))


@compiled()
def _stay(rng: np.random.Generator, median_hours: float, spread: float) -> float:
    """A lognormal stay [h], clipped to between nine minutes and six hours."""
    return float(min(max(median_hours * np.exp(spread * rng.standard_normal()), 0.15), 6.0))


@compiled()
def _set_stop(stops: Floats, n: int, x: float, y: float, hours: float) -> None:
    stops[n, 0], stops[n, 1], stops[n, 2] = x, y, hours


@compiled()
def _plan_day(
    rng: np.random.Generator,
    works: bool,
    day: int,
    home: tuple[int, float, float],  # zone, x and y [km]
    work: tuple[int, float, float],  # the same
    zones: _Zones,
    calendar: _Calendar,
    habits: Habits,
    zealand: Floats,
    amager: Floats,
    stops: Floats,  # receives rows of x, y [km] and stay [h]; at most nine
) -> tuple[int, float]:
    """Plan the stops of a car on a day, the last of them at home. Returns their number and the hour of departure."""
    n = 0
    at_zone = home[0]
    if works:
        leave = min(max(habits.leave_home_hour + habits.leave_home_spread * rng.standard_normal(), 5.0), 11.0)
        hours = max(habits.work_hours + habits.work_hours_spread * rng.standard_normal(), 3.0)
        errands = 0
        while errands < 3 and rng.random() < habits.stop_on_the_way:
            errands += 1
        at_zone = work[0]
        if rng.random() < habits.lunch_errand:
            _set_stop(stops, n, work[1], work[2], hours / 2)
            zone = _next_zone(rng, zones.to_errand[day], at_zone)
            x, y = _spot(rng, zone, zones, zealand, amager)
            _set_stop(stops, n + 1, x, y, _stay(rng, 0.5, 0.4))
            _set_stop(stops, n + 2, work[1], work[2], hours / 2)
            n += 3
        else:
            _set_stop(stops, n, work[1], work[2], hours)
            n += 1
    else:
        leave = min(max(habits.tour_hour + habits.tour_hour_spread * rng.standard_normal(), 6.5), 19.0)
        errands = 1
        while errands < 6 and rng.random() < habits.another_errand * calendar.errand_factor[day]:
            errands += 1
    for _ in range(errands):
        # Half of the destinations are chosen as seen from home, the others as seen from the last stop.
        near = home[0] if rng.random() < 0.5 else at_zone
        at_zone = _next_zone(rng, zones.to_errand[day], near)
        x, y = _spot(rng, at_zone, zones, zealand, amager)
        _set_stop(stops, n, x, y, _stay(rng, habits.errand_hours, habits.errand_spread))
        n += 1
    if rng.random() < habits.evening_out:
        _set_stop(stops, n, home[1], home[2], 0.5 + 1.5 * rng.random())
        zone = _next_zone(rng, zones.to_errand[day], home[0])
        x, y = _spot(rng, zone, zones, zealand, amager)
        _set_stop(stops, n + 1, x, y, _stay(rng, habits.evening_hours, 0.4))
        n += 2
    _set_stop(stops, n, home[1], home[2], 0.0)
    return n + 1, leave


@compiled()
def _drive(
    rng: np.random.Generator,
    homes: NDArray[np.int64],  # (vehicles,), place of the home
    observed_days: NDArray[np.int64],  # (vehicles, 2), first day, and the day after the last
    commuter: NDArray[np.bool_],  # (vehicles,)
    zones: _Zones,
    calendar: _Calendar,
    habits: Habits,
    zealand: Floats,
    amager: Floats,
) -> Floats:
    """Rows vehicle, start, end [UTC s], start x, y, end x, y [km], distance [km], by vehicle and time."""
    trips = np.empty((1_000_000, 8))
    n = 0
    stops = np.empty((12, 3))
    for vehicle in range(len(homes)):
        x, y = _spot(rng, homes[vehicle], zones, zealand, amager)
        home = (homes[vehicle], x, y)
        work_zone = _next_zone(rng, zones.to_work, homes[vehicle])
        work_x, work_y = _spot(rng, work_zone, zones, zealand, amager)
        work = (work_zone, work_x, work_y)
        seen_x, seen_y = _with_noise(rng, x, y)  # position with privacy noise
        free_at = 0.0  # when the next trip can start [UTC s]
        first_day, end_day = observed_days[vehicle, 0], observed_days[vehicle, 1]
        day_of_use = rng.integers(first_day, end_day)  # a car is observed because it was used at least once
        for day in range(first_day, end_day):
            if rng.random() >= calendar.use_probability[day, homes[vehicle]] and day != day_of_use:
                continue
            works = commuter[vehicle] and rng.random() < calendar.commute_probability[day]
            stops_today, hour = _plan_day(rng, works, day, home, work, zones, calendar, habits, zealand, amager, stops)
            homeward = max(habits.homeward_hour + habits.homeward_spread * rng.standard_normal(), hour + 1.0)
            if rng.random() < habits.night_out:
                homeward += 3.0
            for stop in range(stops_today):
                if hour >= homeward:
                    # Too late for more stops: drive home.
                    if x == home[1] and y == home[2]:
                        break
                    _set_stop(stops, stop, home[1], home[2], 24.0)
                to_x, to_y = stops[stop, 0], stops[stop, 1]
                km, drive_hours = _distance_and_hours(rng, np.hypot(to_x - x, to_y - y), hour)
                clock = calendar.clock_change_s[day] if hour >= 3.0 else 0.0
                start = calendar.midnight_s[day] + hour * 3600.0 + clock
                if start < free_at:  # still on the way home from the night before
                    break
                free_at = start + drive_hours * 3600.0
                to_seen_x, to_seen_y = _with_noise(rng, to_x, to_y)
                if n == len(trips):
                    grown = np.empty((2 * n, 8))
                    grown[:n] = trips
                    trips = grown
                trips[n, 0], trips[n, 1], trips[n, 2] = vehicle, start, free_at
                trips[n, 3], trips[n, 4], trips[n, 5], trips[n, 6] = seen_x, seen_y, to_seen_x, to_seen_y
                trips[n, 7] = km
                n += 1
                x, y, seen_x, seen_y = to_x, to_y, to_seen_x, to_seen_y
                free_at += 60.0  # a stop takes at least a minute
                hour += drive_hours
                hour += max(min(stops[stop, 2], homeward - hour), 0.15)
    return trips[:n]


@compiled()
def _distance_and_hours(rng: np.random.Generator, straight_km: float, hour: float) -> tuple[float, float]:
    """Distance on the road [km] and duration [h] of a trip that starts at this hour of the day.

    Speed grows with distance, from 26 km/h in the city to 75 km/h on motorways, and is a fifth lower in the rush hours.
    Every trip takes three minutes more, for starting and parking.
    """
    km = max(ROAD_DETOUR * straight_km * np.exp(0.08 * rng.standard_normal()), 0.4)
    rush = 0.8 if (7.0 <= hour < 9.0 or 15.0 <= hour < 17.5) else 1.0
    return km, 0.05 + km / (rush * min(26.0 + 1.3 * km, 75.0))


@compiled()
def _with_noise(rng: np.random.Generator, x: float, y: float) -> tuple[float, float]:
    """A point moved by 50 to 500 m in any direction [km]."""
    away = 0.05 + 0.45 * rng.random()
    angle = 2 * np.pi * rng.random()
    return x + away * np.cos(angle), y + away * np.sin(angle)
