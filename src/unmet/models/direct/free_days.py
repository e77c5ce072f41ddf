"""Free days: public holidays and the days up to New Year, forecast as a mixture of a weekday and a Sunday.

The weight of the Sunday is learned from past free days. In the training parts of the public records tried, demand on
public holidays was closer to the Sundays around them than to the weekdays in five towns of six, and on weekdays from 24
to 31 December in all four with such days; at workplaces by far. Some holidays are ordinary working days, though.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import numpy as np
import polars as pl

from unmet.arrays import Floats
from unmet.demand.calendar import knows_holidays, public_holidays
from unmet.models.series import PanelSeries
from unmet.zones import country_of_zone

__all__ = ["FREE_DAYS", "SUNDAY", "free_days", "known_country", "learned_free_days", "local_days", "sunday_shares"]


FREE_DAYS = ("public holidays", "24 to 31 December")
AROUND = 14  # a free day is compared with this many days before and after it
PRIOR_DAYS = 4  # weight of the prior that a free day lies halfway between a weekday and a Sunday [days]
SATURDAY, SUNDAY = 5, 6


def free_days(days: Sequence[dt.date], country: str | None) -> dict[str, set[dt.date]]:
    """Free days by kind; none without a country, and none up to New Year if Christmas Day is not a holiday."""
    if country is None:
        return {}
    years = {day.year for day in days}
    public = public_holidays(country, years)
    to_new_year = {
        dt.date(year, 12, day) for year in years for day in range(24, 32) if dt.date(year, 12, 25) in public
    }  # fmt: skip
    return {FREE_DAYS[0]: public, FREE_DAYS[1]: to_new_year - public}


def sunday_shares(demand: Floats, days: Sequence[dt.date], free: dict[str, set[dt.date]]) -> dict[str, float]:
    """Position of each kind of free day between a weekday (0) and a Sunday (1).

    With y the demand of a free weekday, and w and s the means of the weekdays and Sundays around it, the share is the
    regression coefficient of w - y on w - s, shrunk to a half with the weight of four such days.

    Args:
        demand: demand of all regions together, by day [kWh].
        days: dates of these days, in order.
        free: free days by kind, from `free_days`.
    """
    by_day = dict(zip(days, demand.tolist(), strict=True))
    usual = {day: value for day, value in by_day.items() if not any(day in dates for dates in free.values())}

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
        below, gap = (weekday - y)[known], (weekday - sunday)[known]
        square = float(np.mean(gap**2)) if len(gap) else 1.0
        share = (float(below @ gap) + PRIOR_DAYS * 0.5 * square) / max(float(gap @ gap) + PRIOR_DAYS * square, 1e-12)
        found[kind] = float(np.clip(share, 0.0, 1.0))
    return found


def local_days(times: pl.Series, time_zone: str) -> list[dt.date]:
    """Local date of each hour."""
    return times.dt.convert_time_zone(time_zone).dt.date().to_list()


def known_country(time_zone: str) -> str | None:
    """The country of a time zone, if its holidays are known."""
    found = country_of_zone(time_zone)
    return found if found and knows_holidays(found) else None


def learned_free_days(series: PanelSeries, hours: int, time_zone: str, country: str | None) -> dict[str, float]:
    """How close to a Sunday each kind of free day was in the first hours of a series, from 0 (weekday) to 1."""
    dates = local_days(series.times(), time_zone)[:hours]
    days, place = np.unique(np.array(dates, dtype="datetime64[D]"), return_inverse=True)
    total = np.asarray(np.bincount(place, np.nansum(series.target[:hours], axis=1)), dtype=np.float64)
    return sunday_shares(total, days.tolist(), free_days(days.tolist(), country))
