"""Days, weeks and places differ by factors with mean 1 and the given spread."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from unmet.city.build import built_in_trips
from unmet.city.busyness import draw_busyness
from unmet.city.trips import Habits, synthetic_trips


def test_factors_have_mean_1_and_the_given_spread():
    made = draw_busyness(np.random.default_rng(1), 70_000, 3, city_day=0.2, place_week=0.0, place_day=0.3)
    assert made.city.mean() == pytest.approx(1, abs=0.01)
    assert np.log(made.city).std() == pytest.approx(0.2, abs=0.01)
    assert made.place.mean() == pytest.approx(1, abs=0.01)
    assert np.log(made.place).std() == pytest.approx(0.3, abs=0.01)


def test_a_week_has_one_factor_per_place():
    made = draw_busyness(np.random.default_rng(1), 20, 4, city_day=0.0, place_week=0.3, place_day=0.0)
    assert (made.place[:7] == made.place[0]).all()
    assert (made.place[14:] == made.place[14]).all()
    assert (made.place[7] != made.place[0]).all()


def test_days_differ_in_the_built_in_city_but_not_in_a_calm_one():
    """Trips a day over their weekday's mean: 10 to 23 % in public records, chance alone without the spreads."""
    calm = synthetic_trips(1, 6000, Habits(city_day_spread=0.0, place_week_spread=0.0, place_day_spread=0.0))
    assert _spread(calm) < 0.05
    assert 0.08 < _spread(built_in_trips(1)) < 0.23


def _spread(trips: pl.DataFrame) -> float:
    local = pl.col("start_time").dt.convert_time_zone("Europe/Copenhagen").dt.date()
    days = (
        trips.group_by(day=local).len().filter(~pl.col("day").is_between(pl.date(2019, 10, 14), pl.date(2019, 10, 20)))
    )
    factor = days.select(pl.col("len") / pl.col("len").mean().over(pl.col("day").dt.weekday()))
    return float(factor.to_series().std())
