"""Rivals, thinned forecasts, and coverage with a point mass at zero."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests.models.direct.towns import MONDAY, demand_of, panel_of, rates
from unmet.evaluation.compare import compare
from unmet.evaluation.measures import coverage_with_zeros, tilted_loss
from unmet.evaluation.rivals import LAST_WEEK, TABLE, RivalTask
from unmet.evaluation.thinning import GRID, thin_forecast, thin_values
from unmet.models.quantile_levels import quantile_column
from unmet.models.series import read_series

LEVELS = (0.05, 0.5, 0.95)
WEEK = 168


def rival_task(demand, horizon):
    hours = np.arange(9 * WEEK, len(demand))
    return RivalTask(demand, np.arange(len(demand)) % WEEK, hours, horizon, 9 * WEEK, np.array(LEVELS))


@pytest.fixture(scope="module")
def demand():
    return demand_of(rates(12 * WEEK)[:, None] * np.array([1.0, 2.0]), 3)


def test_last_week_is_the_last_known_value_of_the_same_hour(demand):
    for horizon, back in ((1, WEEK), (168, WEEK), (169, 2 * WEEK)):
        task = rival_task(demand, horizon)
        (quantiles,) = LAST_WEEK.forecast([task])
        assert (quantiles == demand[task.hours - back][..., None]).all()


def test_the_table_reads_nothing_after_its_origin(demand):
    task = rival_task(demand, 24)
    changed = demand.copy()
    changed[task.hours[5] - 23 :] = 1e6
    (before,), (after,) = TABLE.forecast([task]), TABLE.forecast([rival_task(changed, 24)])
    assert (before[:6] == after[:6]).all()
    assert (before[:6] != TABLE.forecast([rival_task(3 * demand, 24)])[0][:6]).any()


def test_losses_are_means_over_the_hours_that_both_forecast(demand):
    actual = read_series(panel_of(demand))
    since = MONDAY + (9 * WEEK) * (actual.times()[1] - actual.times()[0])

    def zeros(horizon: int) -> pl.DataFrame:
        rows = actual.table().filter(pl.col("ds") >= since).select("unique_id", "ds")
        return rows.with_columns(pl.lit(0.0).alias(quantile_column(level)) for level in LEVELS)

    found = compare(zeros, actual, actual.demand, since, LEVELS, (1, 24), "UTC")
    tail = demand[9 * WEEK :]
    by_hand = tilted_loss(tail, np.zeros((*tail.shape, 3)), LEVELS).sum(axis=-1).mean(axis=0)
    rows = found.rows.filter(pl.col("rival") == "table", pl.col("horizon") == 1)
    assert rows["model_kwh"].to_numpy() == pytest.approx(by_hand)
    assert (rows["hours"] == len(tail)).all()
    skill = found.by_horizon().filter(pl.col("rival") == "table")["skill"]
    assert (skill < 0).all()
    assert set(found.worse_regions()) == {"r0", "r1"}
    assert found.by_region()["skill"].to_list()[0] == found.by_region()["skill"].min()


def test_thinning_keeps_each_session_with_the_probability_of_its_exposure():
    rng = np.random.default_rng(0)
    values = np.full((2, 50_000), 60.0)  # five sessions
    seen = thin_values(values, np.array([0.3, 1.0]), np.full(2, 12.0), rng)
    assert seen[1] == pytest.approx(60.0)
    assert seen[0].mean() == pytest.approx(18.0, rel=0.02)
    assert (seen[0] == 0).mean() == pytest.approx(0.7**5, rel=0.1)


def test_a_thinned_forecast_is_calibrated_for_thinned_records():
    """True demand is forecast perfectly, and records keep each session with the exposure of its hour."""
    rng = np.random.default_rng(1)
    hours, rate, energy = 6000, 3.0, 12.0
    exposure = rng.uniform(0.2, 1.0, hours)
    seen = energy * rng.poisson(rate * exposure)
    grid = np.quantile(energy * rng.poisson(rate, 100_000), GRID)
    ds = panel_of(np.zeros((hours, 1))).select("unique_id", "ds")
    forecast = ds.with_columns(
        pl.lit(energy * rate).alias("mean"),
        pl.lit(float(np.exp(-rate))).alias("no_demand"),
        *(pl.lit(float(value)).alias(quantile_column(level)) for level, value in zip(GRID, grid, strict=True)),
    )
    made = thin_forecast(forecast, ds.with_columns(exposure=pl.Series(exposure)), {"r0": energy}, LEVELS)
    assert made["mean"].sum() == pytest.approx(seen.sum(), rel=0.03)
    assert made["no_demand"].mean() == pytest.approx((seen == 0).mean(), abs=0.02)
    assert (seen <= made["q0.95"].to_numpy() + 1e-9).mean() > 0.93
    assert made["q0.5"].mean() < 0.75 * energy * rate


def test_a_calibrated_forecast_has_nominal_coverage_even_if_most_hours_are_zero():
    rng = np.random.default_rng(2)
    for zeros in (0.0, 0.3, 0.6, 0.9, 0.99):
        y = np.where(rng.random(40_000) < zeros, 0.0, rng.gamma(3, 4, 40_000))
        low, high = np.quantile(y, [0.05, 0.95])
        mass = np.full(len(y), zeros)
        inside = coverage_with_zeros(y, np.full(len(y), low), np.full(len(y), high), mass, (0.05, 0.95)).mean()
        assert inside == pytest.approx(0.9, abs=0.012), zeros
