"""Calibration agrees with NumPy and statsmodels, and covers fresh data."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from statsmodels.duration.survfunc import SurvfuncRight

from tests.models.panels import quick, small_panel
from unmet.models.calibration import (
    EDGES,
    Calibration,
    kaplan_meier_quantile,
    moves_of,
    pool_of,
    turnbull_quantile,
)

LEVELS = (0.05, 0.5, 0.95)
values = st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=60).map(np.array)


@given(values, st.floats(0.01, 0.99))
def test_without_censoring_kaplan_meier_is_numpys_quantile(sample, level):
    ours = kaplan_meier_quantile(sample, np.zeros(len(sample), bool), level)
    assert ours == np.quantile(sample, level, method="inverted_cdf")


@given(st.integers(0, 10_000), st.integers(5, 200), st.sampled_from([0.0531, 0.237, 0.5013, 0.9477]))
def test_with_censoring_kaplan_meier_agrees_with_statsmodels(seed, number, level):
    rng = np.random.default_rng(seed)
    true, limit = rng.gamma(2, 1, number), rng.gamma(3, 1.5, number)
    if seed % 2:  # with ties
        true, limit = true.round(1) + 0.1, limit.round(1) + 0.1
    censored = limit < true
    expected = SurvfuncRight(np.minimum(true, limit), ~censored).quantile(level) if not censored.all() else np.nan
    ours = kaplan_meier_quantile(np.minimum(true, limit), censored, level)
    if np.isnan(expected):  # so many are censored that the level is never reached
        assert ours == np.minimum(true, limit)[~censored].max(initial=0)
    else:
        assert ours == expected


def test_kaplan_meier_agrees_with_an_example_by_hand():
    # 1 2 3+ 4 5+ 6: S falls to 5/6, 4/6, then a third of it at 4 (3 at risk), then to 0 at 6 (1 at risk)
    sample, censored = np.array([4.0, 2, 6, 1, 3, 5]), np.array([False, False, False, False, True, True])
    for level, expected in ((0.1, 1), (1 / 6, 1), (0.2, 2), (0.5, 4), (0.55, 4), (0.56, 6), (0.99, 6)):
        assert kaplan_meier_quantile(sample, censored, level) == expected


def test_at_ties_uncensored_values_come_first():
    assert kaplan_meier_quantile(np.array([1.0, 1, 2]), np.array([True, False, False]), 0.3) == 1
    assert kaplan_meier_quantile(np.array([1.0, 1, 2]), np.array([True, False, False]), 0.4) == 2


def test_a_level_that_is_never_reached_does_not_lower_quantiles():
    assert kaplan_meier_quantile(np.array([-3.0, -2, -1]), np.array([False, True, True]), 0.9) == 0
    assert kaplan_meier_quantile(np.array([1.0, 2, 3]), np.array([False, True, True]), 0.9) == 1
    assert kaplan_meier_quantile(np.array([-1.0, 5]), np.array([True, True]), 0.5) == 0


def forecasts(rng, number):
    """Quantiles that are too low and too narrow, and the truth."""
    mean, sigma = rng.uniform(2, 6, number), rng.uniform(0.5, 1.5, number)
    true = rng.normal(mean, sigma)
    wrong = 0.4 * sigma[:, None] * norm.ppf(LEVELS) + (mean - 0.3 * sigma)[:, None]
    return wrong, true


def shares_below(true, quantiles):
    return (true[:, None] <= quantiles).mean(axis=0)


def test_calibrated_quantiles_have_their_nominal_coverage():
    rng = np.random.default_rng(1)
    held_out, true = forecasts(rng, 4000)
    fresh, fresh_true = forecasts(rng, 20_000)
    assert np.abs(shares_below(fresh_true, fresh) - LEVELS).max() > 0.1
    calibration = Calibration(np.tile(moves_of(held_out, true, true, LEVELS), (len(EDGES), 1)))
    np.testing.assert_allclose(shares_below(fresh_true, calibration.apply(fresh)), LEVELS, atol=0.015)


def test_calibrated_quantiles_cover_the_truth_of_censored_hours_too():
    rng = np.random.default_rng(2)
    held_out, true = forecasts(rng, 8000)
    limit = held_out[:, 2] + rng.normal(0.4, 1, len(true))  # of its own, given the forecast
    censored = limit < true
    seen = np.minimum(true, limit)
    assert 0.3 < censored.mean() < 0.4
    fresh, fresh_true = forecasts(rng, 20_000)
    aware = moves_of(held_out, seen, np.where(censored, np.inf, seen), LEVELS)
    blind = moves_of(held_out, seen, seen, LEVELS)
    assert (aware > blind).all()
    covered = {
        name: shares_below(fresh_true, Calibration(np.tile(moves, (len(EDGES), 1))).apply(fresh))
        for name, moves in (("aware", aware), ("blind", blind))
    }
    np.testing.assert_allclose(covered["aware"], LEVELS, atol=0.02)
    assert covered["blind"][2] < 0.93


def test_calibrated_quantiles_are_not_moved():
    rng = np.random.default_rng(3)
    mean = rng.uniform(2, 6, 20_000)
    right = mean[:, None] + norm.ppf(LEVELS)
    assert np.abs(moves_of(right, *[rng.normal(mean, 1)] * 2, LEVELS)).max() < 0.02
    none = Calibration.none(3)
    np.testing.assert_array_equal(none.apply(right), right)


def test_each_pool_of_horizons_has_its_own_moves():
    moves = np.arange(len(EDGES))[:, None] * np.ones(3)
    quantiles = np.tile([1.0, 2, 3], (168, 1))
    moved = Calibration(moves).apply(quantiles, np.arange(1, 169))
    for horizon in range(1, 169):
        pool = max(i for i, edge in enumerate(EDGES) if edge <= horizon)
        assert pool_of(np.array(horizon)) == pool
        np.testing.assert_allclose(moved[horizon - 1], [1 + 2 * pool, 2 + 2 * pool, 3 + 2 * pool])


@given(st.integers(0, 1000))
def test_moved_quantiles_do_not_cross(seed):
    rng = np.random.default_rng(seed)
    calibration = Calibration(rng.normal(0, 2, (len(EDGES), 3)))
    moved = calibration.apply(np.sort(rng.normal(size=(40, 3))), rng.integers(1, 169, 40))
    assert (np.diff(moved) >= 0).all()


def test_quantiles_without_width_can_be_moved():
    calibration = Calibration(np.tile([-1.0, 0, 1], (len(EDGES), 1)))
    moved = calibration.apply(np.ones((1, 3)))
    assert moved[0, 0] < 1 < moved[0, 2]


def test_a_forecaster_that_calibrates_covers_its_held_out_hours():
    panel = small_panel(hours=1000)
    for calibrate in (True, False):
        forecaster = quick("linear", "gaussian", epochs=1, calibrate=calibrate, shares=(0.5, 0.5), floor=None).fit(
            panel
        )
        rows = forecaster.predict(panel, forecaster.split_.train_end).join(
            panel.with_columns(pl.col("ds").cast(pl.Datetime("ms", "UTC"))), on=["unique_id", "ds"]
        )
        shares = [rows.select((pl.col("y") <= pl.col(f"q{level:g}")).mean()).item() for level in LEVELS]
        assert (shares == pytest.approx(list(LEVELS), abs=0.01)) is calibrate


def test_turnbull_equals_the_quantile_if_all_is_known_and_kaplan_meier_if_right_censored():
    rng = np.random.default_rng(4)
    truth, ceiling = rng.normal(0, 1, 900), rng.normal(0.8, 1, 900)
    for level in (0.1, 0.5, 0.7):
        assert turnbull_quantile(truth, truth, level) == pytest.approx(np.quantile(truth, level), abs=0.05)
        right = np.where(truth > ceiling, np.inf, truth)
        by_hand = kaplan_meier_quantile(np.minimum(truth, ceiling), truth > ceiling, level)
        assert turnbull_quantile(np.minimum(truth, ceiling), right, level) == pytest.approx(by_hand, abs=0.1)


@pytest.mark.parametrize("level", [0.3, 0.5, 0.8])
def test_turnbull_recovers_quantiles_from_left_and_interval_censoring(level):
    rng = np.random.default_rng(5)
    truth, floor = rng.normal(0, 1, 1000), rng.normal(-0.5, 1, 1000)
    left = truth < floor
    low, high = np.where(left, -np.inf, truth), np.where(left, floor, truth)
    assert turnbull_quantile(low, high, level) == pytest.approx(norm.ppf(level), abs=0.15)
    cell = np.floor(truth * 2) / 2
    assert turnbull_quantile(cell, cell + 0.5, level) == pytest.approx(norm.ppf(level), abs=0.3)


def test_left_censored_hours_do_not_raise_quantiles():
    rng = np.random.default_rng(6)
    truth = rng.normal(10, 2, 1000)
    floor = rng.normal(10, 2, 1000)
    left = truth < floor
    quantiles = np.tile(norm.ppf([0.05, 0.5, 0.95], 10, 2), (1000, 1))
    moves = moves_of(quantiles, np.where(left, -np.inf, truth), np.where(left, floor, truth), (0.05, 0.5, 0.95))
    assert np.abs(moves[1:]).max() < 0.1
