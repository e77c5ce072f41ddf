"""Free days: which days they are, and how close to weekdays, Sundays or closed days they are forecast."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from tests.models.direct.towns import demand_of, rates
from unmet import Forecaster
from unmet.demand.calendar import hour_of_week, knows_holidays
from unmet.models.direct.climatology import climatology, climatology_mean
from unmet.models.direct.free_days import BESIDE, BREAK, BRIDGES, GREAT, PRIOR, PRIOR_DAYS, PUBLIC, free_days, quietness
from unmet.models.direct.history import blend, build_history
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
    assert {day for day in free[GREAT] if day in DAYS} == {
        dt.date(2023, 11, 23), dt.date(2023, 12, 25), dt.date(2024, 1, 1)
    }  # fmt: skip
    assert {dt.date(2023, 11, 22), dt.date(2023, 11, 24), dt.date(2023, 12, 31)} <= free[BESIDE]
    assert dt.date(2023, 10, 9) in free[PUBLIC]  # Columbus Day
    assert {day.day for day in free[BREAK] if day.year == 2023} == {23, 26, 27, 28, 29, 30}
    assert sum(map(len, free.values())) == len(set().union(*free.values()))  # each day has one kind
    assert dt.date(2024, 5, 10) in free_days([dt.date(2024, 5, 1)], "FR")[BRIDGES]  # the Friday after Ascension Day
    assert not free_days(DAYS, "JP")[BREAK]  # Christmas Day is a working day there
    assert not free_days(DAYS, "JP")[GREAT]
    assert free_days(DAYS, None) == {}


@pytest.mark.parametrize(("on_free_days", "q"), [(100.0, 0.0), (65.0, 0.5), (30.0, 1.0), (15.0, 1.5), (0.0, 2.0)])
def test_quietness_is_learned_and_shrunk_to_its_prior(on_free_days, q):
    """With the prior as further days, the energy that is expected of all these days together is right."""
    free = free_days(DAYS, "US")
    any_kind = set().union(*free.values())
    demand = np.array([on_free_days if day in any_kind else 30.0 if day.weekday() == 6 else 100.0 for day in DAYS])
    assert blend(100.0, 30.0, q) == pytest.approx(on_free_days)
    found = quietness(demand, DAYS, free)
    for kind, dates in free.items():
        n = sum(day in dates and day.weekday() < 5 for day in DAYS)
        shrunk = (n * on_free_days + PRIOR_DAYS * blend(100.0, 30.0, PRIOR[kind])) / (n + PRIOR_DAYS)
        assert blend(100.0, 30.0, found[kind]) == pytest.approx(shrunk)
    assert quietness(demand, DAYS, {GREAT: set()}) == {GREAT: PRIOR[GREAT]}  # never observed


@pytest.mark.parametrize(("weekday", "sunday"), [(100.0, 100.0), (50.0, 100.0), (100.0, 0.0), (0.0, 0.0)])
def test_quietness_stays_in_range_wherever_sundays_are_busy_or_empty(weekday, sunday):
    free = free_days(DAYS, "US")
    for level in (0.0, 40.0, 75.0, 500.0):
        every = set().union(*free.values())
        demand = np.array([level if day in every else sunday if day.weekday() == 6 else weekday for day in DAYS])
        found = quietness(demand, DAYS, free)
        assert all(0 <= q <= 2 for q in found.values())
        if weekday < sunday and level == 75.0:  # a public site that is busiest on Sundays
            assert 50.0 < blend(weekday, sunday, found[GREAT]) < 100.0


def test_a_free_day_belongs_to_no_table_and_is_forecast_by_its_quietness():
    """An empty Wednesday that is free changes no other day; as a free day it is between a weekday and a Sunday."""
    week = np.arange(12 * 168) % 168
    demand = np.where(week // 24 < 5, 10.0, 2.0)[:, None]
    quiet = np.zeros(len(week))
    free = np.arange(5 * 168 + 48, 5 * 168 + 72)
    quiet[free], demand[free] = 1.0, 0.0
    ahead = np.arange(10 * 168, 11 * 168)  # one more free day, to forecast
    quiet[ahead[48:72]] = 1.25
    past = demand[: 10 * 168]
    history = build_history(past, past, np.empty((len(week), 1, 0)), week, np.ones(1), quiet)
    horizon = ahead - 10 * 168 + 1
    table = climatology(history, ahead, horizon, 8, np.array([0.05, 0.5, 0.95]))
    mean = climatology_mean(history, ahead, horizon, 8)[:, 0]
    assert mean[:48] == pytest.approx(10.0)  # not lowered by the free Wednesday
    assert mean[120:] == pytest.approx(2.0)  # not lowered by it either, although it was as quiet as a Sunday
    assert mean[48:72] == pytest.approx(0.75 * 2.0)
    assert table[:, 0, -2] == pytest.approx(mean)
    assert table[48:72, 0, -1] == pytest.approx(0.25)  # probability of no demand, of the part that is closed
    assert (table[48:72, 0, 0] == 0).all()


def test_a_future_holiday_is_forecast_as_a_sunday():
    """Offices close on Thanksgiving, and the forecast of the day before knows it from the time zone."""
    hours = 60 * 168
    first = dt.datetime(2022, 10, 3, 7, tzinfo=dt.UTC)  # a Monday, midnight in Los Angeles
    ds = pl.datetime_range(first, first + dt.timedelta(hours=hours - 1), "1h", time_zone="UTC", eager=True)
    dates = ds.dt.convert_time_zone("America/Los_Angeles").dt.date().to_list()
    week = hour_of_week(ds, "America/Los_Angeles").to_numpy()
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


def test_offices_that_never_saw_a_christmas_are_expected_to_be_quiet(tmp_path):
    """With records from May to 23 December, the week to come is far below an ordinary one, and not empty."""
    first, last = dt.datetime(2023, 5, 1, 7, tzinfo=dt.UTC), dt.datetime(2023, 12, 23, 7, tzinfo=dt.UTC)
    ds = pl.datetime_range(first, last, "1h", time_zone="UTC", eager=True)
    week = hour_of_week(ds, "America/Los_Angeles").to_numpy()
    panel = pl.DataFrame({"unique_id": "a", "ds": ds, "y": demand_of(np.where(week < 120, rates(168)[week], 0.1), 1)})
    informed, unaware = (
        Forecaster("regression", "quantile", shares=(0.9, 0.1), time_zone=zone).fit(panel)
        for zone in ("America/Los_Angeles", "Etc/GMT+8")
    )
    forecast = informed.forecast(panel, 168).table
    assert 0.05 < forecast["mean"].sum() / unaware.forecast(panel, 168).table["mean"].sum() < 0.6
    informed.save(tmp_path / "model")
    stored = Forecaster.load(tmp_path / "model").forecast(panel, 168).table
    assert stored["mean"].to_numpy() == pytest.approx(forecast["mean"].to_numpy(), rel=1e-3)
