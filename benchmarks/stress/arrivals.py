"""Demand of a simulated network: sites, their arrival rates, and drivers with their stays and energies.

Drivers arrive at sites by an inhomogeneous Poisson process, with the departures from it that a case specifies. Times
are minutes since the start of the records, which a warm-up week precedes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

__all__ = ["MEDIAN_STAY_MINUTES", "START", "TIME_ZONE", "Arrivals", "Case", "Sites", "make_arrivals", "make_sites"]

START = datetime(2024, 2, 4, 23, tzinfo=UTC)  # a Monday, midnight in Copenhagen
TIME_ZONE = "Europe/Copenhagen"
WARM_UP_HOURS = 168

# By kind of site: workplace, residential, leisure.
MEDIAN_STAY_MINUTES = np.array([200.0, 240.0, 55.0])
STAY_SIGMA = np.array([0.5, 0.6, 0.5])  # of log minutes
POWER_KW = ((7.4, 11.0), (7.4, 11.0, 22.0), (22.0, 50.0))
MEAN_ENERGY_KWH = {7.4: 13.0, 11.0: 16.0, 22.0: 19.0, 50.0: 24.0}
ENERGY_SHAPE = 4.0  # gamma, so energies vary by 50 %

COMMUTER_ATTENDANCE = 0.8  # probability of coming on a weekday
COMMUTER_JITTER_MINUTES = 12.0
DEPOT_TIMES_HOURS = (6.0, 13.0, 20.0)
DEPOT_ATTENDANCE = 0.85
DEPOT_JITTER_MINUTES = 3.0
DEPOT_STAY_MINUTES = 150.0
BATCH_SIZES = (2, 3, 4, 5)
BATCH_MINUTES = 2.0
AREA_KM = 3.0
DEPOT_ORDINARY_SHARE = 0.2  # of the ordinary demand of a site that is a depot
REGULAR_USERS = 100_000_000  # commuters are numbered from here, depot vehicles from twice this


@dataclass(frozen=True, slots=True)
class Case:
    """One network to simulate; the defaults are the plain Poisson network that other cases depart from."""

    name: str
    title: str
    kind: Literal["right", "hard", "structure"]

    stations: int = 40
    weeks: int = 16
    load: float = 0.125  # median over sites of drivers per hour x mean stay [h] / plugs
    load_sigma: float = 0.6  # of the log load, between sites
    plug_choices: tuple[int, ...] = (1, 1, 1, 2, 2, 2, 2, 3, 4, 4, 6, 8)  # equally likely
    stations_per_site: tuple[int, ...] = (1,)  # equally likely; more than 1: adjacent stations, one site
    town_km: float = 12.0  # side of the square in which sites lie
    profile_noise: float = 0.1  # sigma of the log, per site and hour of the week

    # Demand that changes slowly; commuters and depot vehicles do not follow it
    growth: float = 1.0  # demand at the end over demand at the start
    season: float = 0.0  # amplitude of a yearly sine
    opening_share: float = 0.0  # sites that open halfway
    step_share: float = 0.0  # sites whose demand halves or rises by 60 % overnight

    # Demand that changes from day to day or hour to hour: coefficient of variation of gamma effects
    city_day: float = 0.0
    site_day: float = 0.0
    site_hour: float = 0.0
    area_hours: float = 0.0  # for two hours at all sites of a square of 3 km

    # Arrivals that are not Poisson
    batch_share: float = 0.0  # drivers who come in a batch of 2-5 within two minutes
    commuter_share: float = 0.0  # drivers who come at about the same time on most weekdays
    depot_share: float = 0.0  # sites where vehicles come at three fixed times a day
    depot_cars_per_plug: float = 0.7  # vehicles expected at each fixed time

    # What drivers do about occupied plugs
    waiting_share: float = 0.0  # drivers who wait if all plugs are taken
    waiting_every: int = 1  # drivers wait at one site in this many
    patience_minutes: float = 30.0
    spill_share: float = 0.0  # drivers turned away who try the nearest other site (not to be combined with outages)
    spill_km: float = 2.0
    spill_minutes: float = 0.0  # that it takes to get there
    balking: float = 0.0  # share of drivers put off when at most one plug is left
    pool_per_plug: float = np.inf  # cars that may come, per plug: the rate falls with those present or turned away

    # What the records and the station table get wrong
    exclusive_share: float = 0.0  # stations whose posts have two connectors but charge one car at a time
    table_share: float = 0.0  # stations whose number of plugs is wrong in the table
    table_error: int = 1  # by this many plugs, but at least one plug is listed
    restart_share: float = 0.0  # sessions recorded as two or three
    overlap_share: float = 0.0  # sessions recorded as ending up to three minutes late
    outage_share: float = 0.0  # sites dead for one to two weeks; who comes then is neither recorded nor lost
    plug_ids: bool = True
    user_ids: bool = True
    energy_sigma: float = 0.0  # of the log of a station's mean energy
    energy_swing: float = 0.0  # amplitude of mean energy over the day, highest at 20:00

    # What the estimator is told besides the records
    known_response: bool = False  # that arrivals do not depend on occupied plugs, which other towns contradict


@dataclass(frozen=True, slots=True)
class _Calendar:
    """Every hour from the start of the warm-up; arrays of shape (hours,)."""

    minute: np.ndarray  # start of the hour, since the start of the records
    day: np.ndarray  # local day, from 0
    hour_of_week: np.ndarray  # local, from Monday 00:00


@dataclass(frozen=True, slots=True)
class Sites:
    """Arrays of shape (sites,) unless stated, and of shape (plugs,) for the last two."""

    kind: np.ndarray
    profile: np.ndarray  # (sites, 168), mean 1, at the beginning of each hour of the week
    level: np.ndarray  # drivers per hour
    capacity: np.ndarray  # cars at once
    position_km: np.ndarray  # (sites, 2), north and east of the centre
    power_kw: np.ndarray
    plug_site: np.ndarray
    plug_station: np.ndarray


class _Stream(NamedTuple):
    """Drivers of one sort; arrays of shape (drivers,)."""

    minute: np.ndarray
    site: np.ndarray
    user: np.ndarray
    stay: np.ndarray  # minutes


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Would-be drivers in order of time; arrays of shape (drivers,)."""

    minute: np.ndarray
    site: np.ndarray
    user: np.ndarray
    stay: np.ndarray  # minutes
    energy_kwh: np.ndarray


def _make_calendar(weeks: int) -> _Calendar:
    """Local days and hours of the week of every hour of the warm-up and the records."""
    hours = np.arange(-WARM_UP_HOURS, weeks * 168)
    local = pl.Series([START + timedelta(hours=int(hour)) for hour in hours]).dt.convert_time_zone(TIME_ZONE)
    day = local.dt.date().to_physical().to_numpy()
    hour_of_week = (local.dt.weekday() - 1).to_numpy().astype(np.int64) * 24 + local.dt.hour().to_numpy()
    return _Calendar(hours * 60.0, day - day[0], hour_of_week)


def _kind_profiles() -> np.ndarray:
    """Arrival rate of the three kinds of site by hour of the week, mean 1, shape (3, 168)."""
    hour, weekday = np.arange(168) % 24, np.arange(168) // 24

    def bump(centre: float, spread: float) -> np.ndarray:
        distance = np.abs(hour - centre)
        return np.exp(-0.5 * (np.minimum(distance, 24 - distance) / spread) ** 2)

    working = weekday < 5
    workplace = np.where(working, 1.0, 0.08) * (bump(8.2, 1.3) + 0.3 * bump(13.0, 1.6)) + 0.01
    residential = np.where(working, bump(18.2, 2.2) + 0.15 * bump(9.0, 3.0), 0.8 * bump(16.0, 4.0)) + 0.02
    leisure = np.array([0.7, 0.7, 0.75, 0.8, 1.1, 1.6, 1.2])[weekday] * (bump(12.0, 2.5) + 0.7 * bump(17.0, 2.0)) + 0.03
    profiles = np.stack([workplace, residential, leisure])
    return profiles / profiles.mean(axis=1, keepdims=True)


def make_sites(case: Case, rng: np.random.Generator) -> Sites:
    """Draw sites until they contain all stations of the case."""
    groups: list[int] = []
    while sum(groups) < case.stations:
        groups.append(min(int(rng.choice(case.stations_per_site)), case.stations - sum(groups)))
    count = len(groups)
    station_site = np.repeat(np.arange(count), groups)
    station_plugs = rng.choice(case.plug_choices, case.stations)
    capacity = np.bincount(station_site, station_plugs).astype(np.int64)

    kind = rng.permutation(np.arange(count) % 3)
    weights = np.stack([rng.dirichlet(np.where(np.arange(3) == k, 8.0, 1.0)) for k in kind])
    profile = weights @ _kind_profiles() * np.exp(case.profile_noise * rng.standard_normal((count, 168)))
    profile /= profile.mean(axis=1, keepdims=True)
    load = case.load * np.exp(case.load_sigma * rng.standard_normal(count))
    mean_stay_hours = MEDIAN_STAY_MINUTES[kind] * np.exp(STAY_SIGMA[kind] ** 2 / 2) / 60
    return Sites(
        kind=kind,
        profile=profile,
        level=load * capacity / mean_stay_hours,
        capacity=capacity,
        position_km=_positions(count, case.town_km, rng),
        power_kw=np.array([rng.choice(POWER_KW[k]) for k in kind]),
        plug_site=np.repeat(station_site, station_plugs),
        plug_station=np.repeat(np.arange(case.stations), station_plugs),
    )


def _positions(count: int, town_km: float, rng: np.random.Generator) -> np.ndarray:
    """Places at least 400 m apart, uniform in a square, shape (count, 2) [km]."""
    places = np.empty((0, 2))
    while len(places) < count:
        place = rng.uniform(-town_km / 2, town_km / 2, 2)
        if len(places) == 0 or np.hypot(*(places - place).T).min() > 0.4:
            places = np.vstack([places, place])
    return places


def _gamma_effects(variation: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Gamma draws of mean 1 and the given coefficient of variation."""
    if variation == 0:
        return np.ones(shape)
    return rng.gamma(variation**-2, variation**2, shape)


def _arrival_rate(case: Case, calendar: _Calendar, sites: Sites, rng: np.random.Generator) -> np.ndarray:
    """Drivers per hour before the weekly profile, shape (sites, hours)."""
    count, days = len(sites.level), calendar.day[-1] + 1
    minutes = case.weeks * 168 * 60.0
    progress = calendar.minute / minutes  # 0 at the start of the records, 1 at their end
    slow = case.growth**progress * (1 + case.season * np.sin(2 * np.pi * calendar.minute / (365.25 * 1440)))
    slow = slow / slow[WARM_UP_HOURS:].mean()
    rate = sites.level[:, None] * slow
    rate = rate * _gamma_effects(case.city_day, (days,), rng)[calendar.day]
    rate = rate * _gamma_effects(case.site_day, (count, days), rng)[:, calendar.day]
    rate = rate * _gamma_effects(case.site_hour, rate.shape, rng)
    if case.area_hours > 0:
        _, area = np.unique(np.floor(sites.position_km / AREA_KM), axis=0, return_inverse=True)
        effects = _gamma_effects(case.area_hours, (area.max() + 1, rate.shape[1] // 2 + 1), rng)
        rate = rate * np.repeat(effects, 2, axis=1)[area.ravel(), : rate.shape[1]]
    stepped = rng.random(count) < case.step_share
    factor = np.where(stepped, rng.choice([0.5, 1.6], count), 1.0)
    rate = rate * np.where(progress > rng.uniform(0.2, 0.8, (count, 1)), factor[:, None], 1.0)
    opened = np.where(rng.random(count) < case.opening_share, 0.5, -np.inf)
    return rate * (progress >= opened[:, None])


def make_arrivals(case: Case, sites: Sites, rng: np.random.Generator) -> Arrivals:
    """All would-be drivers: ordinary ones, batches, commuters and depot vehicles, with their stays and energies."""
    calendar = _make_calendar(case.weeks)
    rate = _arrival_rate(case, calendar, sites, rng)
    is_depot = rng.random(len(sites.level)) < case.depot_share
    ordinary_share = np.where(is_depot, DEPOT_ORDINARY_SHARE, 1 - case.batch_share - case.commuter_share)
    minute, site = _poisson_times(rate * ordinary_share[:, None], calendar, sites, rng)
    streams = [_Stream(minute, site, _casual_users(site, rng), _stays(sites, site, rng))]
    if case.batch_share > 0:
        streams.append(_batches(rate * case.batch_share, calendar, sites, rng))
    if case.commuter_share > 0:
        streams.append(_commuters(case, calendar, sites, rng))
    if is_depot.any():
        streams.append(_depot_vehicles(case, calendar, sites, np.flatnonzero(is_depot), rng))
    minute, site, user, stay = (np.concatenate(parts) for parts in zip(*streams, strict=True))
    minute = _without_outages(case, minute, site, len(sites.level), rng)
    energy_kwh = _energies(case, calendar, sites, minute, site, stay, rng)
    order = np.argsort(minute, kind="stable")[: np.isfinite(minute).sum()]
    return Arrivals(minute[order], site[order], user[order], stay[order], energy_kwh[order])


def _poisson_times(
    rate: np.ndarray, calendar: _Calendar, sites: Sites, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Minutes and sites of arrivals at rate x profile, the profile being linear between hours (thinning)."""
    begin = sites.profile[:, calendar.hour_of_week]
    end = sites.profile[:, (calendar.hour_of_week + 1) % 168]
    peak = np.maximum(begin, end)
    site, hour = np.nonzero(candidates := rng.poisson(rate * peak))
    site, hour = (np.repeat(index, candidates[site, hour]) for index in (site, hour))
    within = rng.random(len(site))
    profile = begin[site, hour] * (1 - within) + end[site, hour] * within
    kept = rng.random(len(site)) * peak[site, hour] < profile
    return (calendar.minute[hour] + 60 * within)[kept], site[kept]


def _casual_users(site: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A driver for every arrival, from a pool of a sixth as many drivers as the site has arrivals, at least 20."""
    pool = np.maximum(np.bincount(site) / 6, 20)
    return site * 100_000 + (rng.random(len(site)) * pool[site]).astype(np.int64)


def _stays(sites: Sites, site: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Log-normal stays by kind of site [minutes]."""
    kind = sites.kind[site]
    return np.maximum(MEDIAN_STAY_MINUTES[kind] * np.exp(STAY_SIGMA[kind] * rng.standard_normal(len(site))), 5.0)


def _batches(rate: np.ndarray, calendar: _Calendar, sites: Sites, rng: np.random.Generator) -> _Stream:
    """Drivers who come together: batches are Poisson, and contain `rate` drivers per hour."""
    first, batch_site = _poisson_times(rate / np.mean(BATCH_SIZES), calendar, sites, rng)
    size = rng.choice(BATCH_SIZES, len(first))
    site = np.repeat(batch_site, size)
    minute = np.repeat(first, size) + rng.uniform(0, BATCH_MINUTES, len(site))
    return _Stream(minute, site, _casual_users(site, rng), _stays(sites, site, rng))


def _commuters(case: Case, calendar: _Calendar, sites: Sites, rng: np.random.Generator) -> _Stream:
    """Cars that come on most weekdays at about their own time, which follows the site's weekday profile."""
    per_weekday = case.commuter_share * sites.level * 168 / 5
    cars = rng.poisson(per_weekday / COMMUTER_ATTENDANCE)
    car_site = np.repeat(np.arange(len(cars)), cars)
    weekday = sites.profile[:, 24:48] / sites.profile[:, 24:48].sum(axis=1, keepdims=True)
    own_hour = np.array([rng.choice(24, p=weekday[i]) for i in car_site]) + rng.random(len(car_site))
    day_begins, is_weekday = _days(calendar)
    present = (rng.random((len(car_site), len(day_begins))) < COMMUTER_ATTENDANCE) & is_weekday
    car, day = np.nonzero(present)
    minute = day_begins[day] + 60 * own_hour[car] + COMMUTER_JITTER_MINUTES * rng.standard_normal(len(car))
    return _Stream(minute, car_site[car], REGULAR_USERS + car, _stays(sites, car_site[car], rng))


def _depot_vehicles(
    case: Case, calendar: _Calendar, sites: Sites, depots: np.ndarray, rng: np.random.Generator
) -> _Stream:
    """Vehicles that come every day within minutes of one of three fixed times of their depot."""
    expected = case.depot_cars_per_plug * sites.capacity[depots] * np.exp(0.3 * rng.standard_normal(len(depots)))
    fleet = np.maximum(rng.poisson(expected[:, None] / DEPOT_ATTENDANCE, (len(depots), 3)), 1)
    fixed_hour = np.array(DEPOT_TIMES_HOURS) + rng.uniform(-1.5, 1.5, (len(depots), 3))
    car_site = np.repeat(depots, fleet.sum(axis=1))
    car_hour = np.repeat(fixed_hour.ravel(), fleet.ravel())
    day_begins, _ = _days(calendar)
    car, day = np.nonzero(rng.random((len(car_site), len(day_begins))) < DEPOT_ATTENDANCE)
    minute = day_begins[day] + 60 * car_hour[car] + DEPOT_JITTER_MINUTES * rng.standard_normal(len(car))
    stay = DEPOT_STAY_MINUTES * np.exp(0.25 * rng.standard_normal(len(car)))
    return _Stream(minute, car_site[car], 2 * REGULAR_USERS + car, stay)


def _days(calendar: _Calendar) -> tuple[np.ndarray, np.ndarray]:
    """When each local day begins [minutes], and whether it is a weekday."""
    first = np.flatnonzero(np.diff(calendar.day, prepend=-1))
    return calendar.minute[first], calendar.hour_of_week[first] < 120


def _without_outages(
    case: Case, minute: np.ndarray, site: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Times of arrivals, infinite for those who come while their site is dead and are never seen."""
    begins = rng.uniform(0, case.weeks - 2, count) * 10080
    begins[rng.random(count) >= case.outage_share] = np.inf
    lasts = rng.uniform(1, 2, count) * 10080
    return np.where((minute >= begins[site]) & (minute < (begins + lasts)[site]), np.inf, minute)


def _energies(
    case: Case,
    calendar: _Calendar,
    sites: Sites,
    minute: np.ndarray,
    site: np.ndarray,
    stay: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Gamma energies by power, and by site and hour if the case says so, limited by power and stay [kWh]."""
    by_power = np.array([MEAN_ENERGY_KWH[power] for power in sites.power_kw])
    mean = (by_power * np.exp(case.energy_sigma * rng.standard_normal(len(by_power))))[site]
    hour = np.clip(np.searchsorted(calendar.minute, minute, side="right") - 1, 0, len(calendar.minute) - 1)
    hour_of_day = calendar.hour_of_week[hour] % 24
    mean = mean * (1 + case.energy_swing * np.cos(2 * np.pi * (hour_of_day - 20) / 24))
    return np.minimum(rng.gamma(ENERGY_SHAPE, mean / ENERGY_SHAPE), sites.power_kw[site] * stay / 60)
