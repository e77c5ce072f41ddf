"""Free days: which days they are, and how close to Sundays they are forecast."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from tests.models.direct.towns import demand_of, rates
from unmet import Forecaster
from unmet.demand.calendar import knows_holidays
from unmet.models.direct.free_days import FREE_DAYS, PRIOR_DAYS, free_days, sunday_shares
from unmet.zones import country_of_zone

FIRST = dt.date(2023, 10, 2)  # a Monday
DAYS = [FIRST + dt.timedelta(days=i) for i in range(120)]


def test_the_country_of_a_time_zone():
    assert country_of_zone("Europe/Copenhagen") == "DK"
    assert country_of_zone("America/Denver") == "US"
    assert country_of_zone("UTC") is None
    assert knows_holidays("DK")
    assert not knows_holidays("XX")


def test_free_days_of_a_country():
    free = free_days(DAYS, "US")
    assert dt.date(2023, 11, 23) in free[FREE_DAYS[0]]  # Thanksgiving
    assert dt.date(2023, 12, 25) in free[FREE_DAYS[0]]
    assert min(day for day in free[FREE_DAYS[1]] if day.year == 2023) == dt.date(2023, 12, 24)
    assert not free_days(DAYS, "JP")[FREE_DAYS[1]]  # Christmas Day is a working day there
    assert free_days(DAYS, None) == {}


@pytest.mark.parametrize(("on_free_days", "share"), [(30.0, 1.0), (100.0, 0.0), (65.0, 0.5)])
def test_the_share_of_sunday_is_learned_and_shrunk_to_a_half(on_free_days, share):
    free = free_days(DAYS, "US")
    any_kind = set().union(*free.values())
    demand = np.array([on_free_days if day in any_kind else 30.0 if day.weekday() == 6 else 100.0 for day in DAYS])
    found = sunday_shares(demand, DAYS, free)
    for kind, dates in free.items():
        n = sum(day in dates and day.weekday() < 5 for day in DAYS)
        assert found[kind] == pytest.approx((n * share + PRIOR_DAYS * 0.5) / (n + PRIOR_DAYS))
    assert sunday_shares(demand, DAYS, {FREE_DAYS[0]: set()}) == {FREE_DAYS[0]: 0.5}  # never observed


def test_a_future_holiday_is_forecast_as_a_sunday():
    """Offices close on Thanksgiving, and the forecast of the day before knows it from the time zone."""
    hours = 60 * 168
    first = dt.datetime(2022, 10, 3, 7, tzinfo=dt.UTC)  # a Monday, midnight in Los Angeles
    ds = pl.datetime_range(first, first + dt.timedelta(hours=hours - 1), "1h", time_zone="UTC", eager=True)
    local = ds.dt.convert_time_zone("America/Los_Angeles")
    dates, week = local.dt.date().to_list(), ((local.dt.weekday() - 1) * 24 + local.dt.hour()).to_numpy()
    closed = set().union(*free_days(dates, "US").values())
    open_ = np.array([day not in closed and day.weekday() < 5 for day in dates])
    panel = pl.DataFrame({"unique_id": "a", "ds": ds, "y": demand_of(np.where(open_, rates(168)[week], 0.02), 1)})
    cut = panel.filter(pl.col("ds") < dt.datetime(2023, 11, 23, 8, tzinfo=dt.UTC))
    assert cut.height < hours
    told, untold = (
        Forecaster("regression", "quantile", shares=(0.9, 0.1), time_zone=zone).fit(cut).forecast(cut, 24).table
        for zone in ("America/Los_Angeles", "Etc/GMT+8")
    )
    assert told["mean"].sum() < 0.4 * untold["mean"].sum()
