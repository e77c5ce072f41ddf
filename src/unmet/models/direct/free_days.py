"""Days off: public holidays and the days around them, forecast between a weekday, a Sunday and a closed day.

A workplace that is quiet on Sundays is also quiet on days off, and a public rapid charger that is busy on Sundays is
not. The quietness q of a day off is therefore relative to the region's own weekdays w and Sundays s: its demand is

    (1 - q) w + q s  for q up to 1,    (2 - q) s  for q from 1 to 2,

that is, q = 0 is a weekday, 1 a Sunday, and 2 a day without demand. The quietness of each kind of day off is learned
from past days of that kind, starting from a prior, because records of less than a year do not contain most kinds.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from unmet.arrays import Floats
from unmet.demand.calendar import knows_holidays, public_holidays
from unmet.models.direct.history import SUNDAY, blend
from unmet.models.series import PanelSeries
from unmet.zones import country_of_zone

__all__ = ["PRIOR", "free_days", "known_country", "learned_quietness", "local_days", "quietness"]


GREAT, PUBLIC, BESIDE, BREAK, BRIDGES = (
    "Christmas Day, New Year's Day, Thanksgiving",
    "other public holidays",
    "the days beside these",
    "23 to 30 December",
    "bridge days",
)
# Prior quietness of each kind, estimated from the first four fifths of the records of other towns:
# `python -m benchmarks.winters`.
PRIOR = {GREAT: 1.4, PUBLIC: 0.8, BESIDE: 0.9, BREAK: 0.7, BRIDGES: 0.9}
PRIOR_DAYS = 4  # weight of the prior [days]
AROUND = 28  # a day off is compared with this many days before and after it
SATURDAY = 5


def free_days(days: Sequence[dt.date], country: str | None) -> dict[str, set[dt.date]]:
    """Days off by kind; a day of several kinds has the first of them. There are none without a country.

    Where Christmas Day is a working day, there are only public holidays and bridge days, which are single weekdays
    between a public holiday and a weekend.
    """
    if country is None:
        return {}
    years = {day.year for day in days}
    public = public_holidays(country, {year + step for year in years for step in (-1, 0, 1)})
    festive = {year for year in years if dt.date(year, 12, 25) in public}  # Christmas Day is a public holiday
    great = {day for year in festive for day in (dt.date(year, 12, 25), dt.date(year, 1, 1), dt.date(year + 1, 1, 1))}
    if country.partition("-")[0].upper() == "US":
        great |= {_thanksgiving(year) for year in years}
    beside = {day - dt.timedelta(days=1) for day in great} | _bridges(great)
    between = {dt.date(year, 12, day) for year in festive for day in range(23, 31)}
    kinds = {GREAT: great, PUBLIC: public, BESIDE: beside, BREAK: between, BRIDGES: _bridges(public)}
    earlier: set[dt.date] = set()
    for kind, dates in kinds.items():
        kinds[kind] = {day for day in dates - earlier if day.year in years}
        earlier |= dates
    return kinds


def _thanksgiving(year: int) -> dt.date:
    """The fourth Thursday of November."""
    first = dt.date(year, 11, 1)
    return first + dt.timedelta(days=(3 - first.weekday()) % 7 + 21)


def _bridges(public: Collection[dt.date]) -> set[dt.date]:
    """Fridays after a public holiday on Thursday, and Mondays before one on Tuesday."""
    step = {1: -1, 3: 1}  # from Tuesday and Thursday
    return {day + dt.timedelta(days=step[day.weekday()]) for day in public if day.weekday() in step}


def quietness(demand: Floats, days: Sequence[dt.date], free: dict[str, set[dt.date]]) -> dict[str, float]:
    """Quietness of each kind of day off, estimated from those that fall on weekdays.

    Weekdays and Sundays are means of the ordinary days around each day off. The demand that the prior expects counts as
    that of `PRIOR_DAYS` further days. Demand is averaged rather than quietness, so that its total is right.

    Args:
        demand: demand of all regions together, by day [kWh].
        days: dates of these days, in order.
        free: days off by kind, from `free_days`.
    """
    by_day = dict(zip(days, demand.tolist(), strict=True))
    all_free = set().union(*free.values())
    usual = {day: value for day, value in by_day.items() if day not in all_free}

    def mean_around(day: dt.date, *, sundays: bool) -> float:
        near = (day + dt.timedelta(days=step) for step in range(-AROUND, AROUND + 1))
        values = [
            usual[d] for d in near if d in usual and (d.weekday() == SUNDAY if sundays else d.weekday() < SATURDAY)
        ]
        return float(np.mean(values)) if values else float("nan")

    found = {}
    for kind, dates in free.items():
        weekdays = [day for day in days if day in dates and day.weekday() < SATURDAY]
        y = np.array([by_day[day] for day in weekdays])
        weekday, sunday = (np.array([mean_around(day, sundays=which) for day in weekdays]) for which in (False, True))
        known = np.isfinite(weekday) & np.isfinite(sunday)
        if not known.any():
            found[kind] = PRIOR[kind]
            continue
        w, s = float(weekday[known].mean()), float(sunday[known].mean())
        prior_share = PRIOR_DAYS / (PRIOR_DAYS + float(known.sum()))
        mean = (1 - prior_share) * float(y[known].mean()) + prior_share * float(blend(w, s, PRIOR[kind]))
        found[kind] = _quietness_at(mean, w, s)
    return found


def _quietness_at(demand: float, weekday: float, sunday: float) -> float:
    """The quietness whose expected demand equals this demand, or comes nearest to it."""
    low, high = sorted((weekday, sunday))
    if demand >= high:
        return 0.0 if weekday >= sunday else 1.0
    if demand >= low:
        return (weekday - demand) / (weekday - sunday)
    return 1 + (sunday - demand) / sunday if sunday > 0 else 1.0


def local_days(times: pl.Series, time_zone: str) -> list[dt.date]:
    """Local date of each hour."""
    return times.dt.convert_time_zone(time_zone).dt.date().to_list()


def known_country(time_zone: str) -> str | None:
    """The country of a time zone, if its holidays are known."""
    found = country_of_zone(time_zone)
    return found if found and knows_holidays(found) else None


def learned_quietness(series: PanelSeries, hours: int, time_zone: str, country: str | None) -> dict[str, float]:
    """Quietness of each kind of day off, estimated from the first `hours` hours of a series."""
    dates = local_days(series.times(), time_zone)[:hours]
    days, place = np.unique(np.array(dates, dtype="datetime64[D]"), return_inverse=True)
    total = np.asarray(np.bincount(place, np.nansum(series.target[:hours], axis=1)), dtype=np.float64)
    return quietness(total, days.tolist(), free_days(days.tolist(), country))
