"""The parts of direct forecasters: tables agree with NumPy, and distributions and weights have their properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.direct.towns import demand_of, rates
from unmet.models.direct.climatology import climatology, climatology_mean
from unmet.models.direct.conditional import NEIGHBOURS, conditional_quantiles
from unmet.models.direct.engine import pool, session_energy
from unmet.models.direct.features import band_of, bands, features
from unmet.models.direct.history import Cells, build_history
from unmet.models.direct.moving import moved_quantiles, moving_ratio
from unmet.models.direct.paths import GRID, draw_paths, probabilities, trajectory_ranks
from unmet.models.direct.regression import fit_poisson
from unmet.models.direct.stacking import stack_weights

LEVELS = np.array([0.05, 0.5, 0.95])


def history_of(demand, week=None, ahead=0):
    hours, regions = demand.shape
    week = np.arange(hours + ahead) % 168 if week is None else week
    extras = np.empty((hours + ahead, regions, 0))
    return build_history(demand, demand, extras, week, np.full(regions, 12.0))


@pytest.fixture(scope="module")
def demand():
    return np.stack([demand_of(rates(12 * 168), seed) for seed in (1, 2)], axis=1)


def test_the_table_is_numpys_quantiles_of_the_same_hour_and_day_type(demand):
    history = history_of(demand)
    for target, horizon in ((1800, 1), (1800, 24), (1805, 168), (1900, 100)):
        result = climatology(history, np.array([target]), np.array([horizon]), 8, LEVELS)[0]
        past = np.arange(target - horizon - 8 * 168 + 1, target - horizon + 1)
        same = past[(past % 24 == target % 24) & ((past // 24 % 7 >= 5) == (target // 24 % 7 >= 5))]
        assert np.quantile(demand[same], LEVELS, axis=0) == pytest.approx(result[:, :3].T)
        assert result[:, 3] == pytest.approx(demand[same].mean(axis=0))
        assert result[:, 4] == pytest.approx((demand[same] == 0).mean(axis=0))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 168), st.integers(0, 200), st.floats(0.1, 50))
def test_features_do_not_read_hours_after_the_origin(horizon, offset, factor):
    before = np.stack([demand_of(rates(10 * 168), 5)], axis=1)
    target = 1300 + offset
    after = before.copy()
    after[target - horizon + 1 :] *= factor
    at, ahead = np.array([target]), np.array([horizon])
    first, second = (features(history_of(demand), at, ahead) for demand in (before, after))
    assert first[0] == pytest.approx(second[0])
    assert first[1] == pytest.approx(second[1])


def test_features_do_not_change_with_the_unit_of_demand(demand):
    hours, horizon = np.arange(1500, 1600), np.full(100, 24)
    one = build_history(demand, demand, np.empty((*demand.shape, 0)), np.arange(len(demand)) % 168, np.full(2, 12.0))
    ten = build_history(
        10 * demand, 10 * demand, np.empty((*demand.shape, 0)), np.arange(len(demand)) % 168, np.full(2, 120.0)
    )
    assert features(one, hours, horizon)[0] == pytest.approx(features(ten, hours, horizon)[0])


def test_cells_find_the_last_hour_of_a_label():
    cells = Cells.of(np.array([0, 1, 0, 1, 0, 1]), 5)
    assert cells.last(np.array([0, 1, 0, 7]), np.array([3, 0, 4, 4])).tolist() == [2, -1, 4, -1]
    assert cells.previous().tolist() == [-1, -1, 0, 1, 2]


def test_bands_hold_every_horizon_once():
    for horizon in (1, 5, 24, 168, 400):
        spans = bands(horizon)
        covered = [h for first, last in spans for h in range(first, last + 1)]
        assert covered == list(range(1, horizon + 1))
        assert [int(band_of(np.array([first]))[0]) for first, _ in spans] == list(range(len(spans)))


def test_poisson_regression_agrees_with_statsmodels():
    import statsmodels.api as sm

    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 5))
    weight = rng.uniform(0.5, 20, 20_000)
    mean = np.exp(0.2 + x @ np.array([0.3, 0.4, 0.2, -0.3, 0.1]))
    ratio = rng.poisson(weight * mean) / weight
    peer = sm.GLM(ratio, sm.add_constant(x), family=sm.families.Poisson(), freq_weights=weight).fit()
    assert fit_poisson(x, ratio, weight) == pytest.approx(peer.params, abs=2e-3)


def test_a_distribution_given_its_mean_has_the_zeros_and_spread_of_past_forecasts():
    rng = np.random.default_rng(1)
    expected = rng.uniform(1, 20, (4000, 1))
    came = expected * np.where(rng.random((4000, 1)) < 0.4, 0.0, rng.gamma(4, 1 / 4, (4000, 1)) / 0.6)
    result = conditional_quantiles(expected, came, np.array([[4.0], [16.0]]), LEVELS, np.ones(1))
    # Its mean is the expected value; with 200 neighbours, three standard errors of their share of zeros
    assert result[:, 0, 3] == pytest.approx([4.0, 16.0])
    assert result[:, 0, 4] == pytest.approx([0.4, 0.4], abs=3 * np.sqrt(0.24 / 200))
    assert result[1, 0, 2] == pytest.approx(4 * result[0, 0, 2], rel=0.3)
    assert NEIGHBOURS == 200


def test_a_forecast_that_was_twice_too_high_is_corrected():
    expected = np.full((500, 1), 10.0) + np.linspace(0, 1, 500)[:, None]
    ratio = moving_ratio(expected, expected / 2, np.full(1, 0.01), 2184)
    result = conditional_quantiles(expected, expected / 2, np.array([[10.5]]), LEVELS, ratio)
    assert result[0, 0, 3] == pytest.approx(5.25, rel=1e-3)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, 4.0, 9.0]), min_size=1, max_size=60), st.floats(0.3, 3))
def test_a_moved_distribution_has_the_moved_mean_and_poisson_zeros(values, ratio):
    sample = np.sort(np.array(values))
    result = moved_quantiles(sample, ratio, GRID)
    assert result[-2] == pytest.approx(ratio * sample.mean())
    assert result[-1] == pytest.approx((sample == 0).mean() ** ratio)
    assert (np.diff(result[:-2]) >= 0).all()
    if ratio != 1:
        assert (result[:-2][result[-1] >= GRID] == 0).all()
    assert moved_quantiles(sample, 1.0, LEVELS)[:-2] == pytest.approx(np.quantile(sample, LEVELS))


def test_quantiles_of_a_moved_distribution_have_its_mean():
    rng = np.random.default_rng(0)
    sample = np.sort(np.where(rng.random(5000) < 0.6, 0.0, rng.gamma(4, 3, 5000)))
    for ratio in (0.5, 1.0, 2.0):
        result = moved_quantiles(sample, ratio, (np.arange(2000) + 0.5) / 2000)
        assert result[:-2].mean() == pytest.approx(result[-2], rel=5e-3)


def test_the_moving_ratio_is_that_of_the_region_if_busy_and_of_the_town_if_sparse():
    hours = 4000
    expected = np.stack([np.full(hours, 100.0), np.full(hours, 1e-4)], axis=1)
    came = expected * np.array([1.3, 0.0])
    busy, sparse = moving_ratio(expected, came, np.full(2, 10.0), 168)
    assert busy == pytest.approx(1.3, abs=0.01)
    assert sparse == pytest.approx(1.3, abs=0.01)
    lately = np.where(np.arange(hours)[:, None] > hours - 168 * 6, 2.0, 1.0) * expected
    assert moving_ratio(expected, lately, np.full(2, 10.0), 168)[0] == pytest.approx(2.0, abs=0.03)
    assert moving_ratio(expected * np.nan, came, np.full(2, 10.0), 168).tolist() == [1.0, 1.0]


def test_the_mean_of_the_table_by_running_sums_is_the_mean_of_the_table(demand):
    demand = demand.copy()
    demand[300:500, 0] = np.nan
    history = history_of(demand)
    hours, horizon = np.arange(200, 2000, 7), 1 + np.arange(200, 2000, 7) % 168
    result = climatology_mean(history, hours, horizon, 8)
    table = climatology(history, hours, horizon, 8, LEVELS)
    assert np.nan_to_num(result) == pytest.approx(table[..., 3])
    assert np.isnan(climatology_mean(history, np.array([5]), np.array([6]), 8)).all()


def test_pooling_averages_means_and_point_masses():
    parts = np.zeros((1, 1, 2, 5))
    parts[0, 0, 0] = [0, 2, 8, 3, 0.4]
    parts[0, 0, 1] = [0, 0, 4, 1, 0.8]
    result = pool(parts, np.array([[0.5, 0.5]]), LEVELS)[0, 0]
    assert result == pytest.approx([0, 0, 6, 2, 0.6])  # the median is 0, as there is no demand in 60 % of the hours


def test_weights_prefer_the_better_member_and_sum_to_one():
    rng = np.random.default_rng(2)
    came = rng.gamma(4, 3, (600, 3))
    right = np.quantile(rng.gamma(4, 3, 20_000), LEVELS)
    members = np.broadcast_to(np.stack([right, 3 * right]), (600, 3, 2, 3))
    weights = stack_weights(members, came, LEVELS)
    assert weights.sum(axis=1) == pytest.approx(1.0)
    assert (weights[:, 0] > 0.85).all()


def test_weights_of_a_silent_region_are_those_of_the_town():
    rng = np.random.default_rng(3)
    came = np.stack([rng.gamma(4, 3, 600), np.zeros(600)], axis=1)
    right = np.quantile(came[:, 0], LEVELS)
    members = np.zeros((600, 2, 2, 3))
    members[:, 0] = np.stack([right, 2 * right])
    weights = stack_weights(members, came, LEVELS)
    assert weights[1, 0] > 0.7


def test_draws_keep_the_distribution_of_each_hour_and_the_dependence_of_the_past():
    rng = np.random.default_rng(4)
    quantiles = np.broadcast_to(np.quantile(rng.gamma(2, 5, 50_000), GRID), (48, 2, 100))
    mean = quantiles.mean(axis=-1)
    common = rng.random((80, 1, 1))  # days on which all hours and regions are high, or low
    ranks = trajectory_ranks(np.broadcast_to(common, (80, 48, 2)) + 0.01 * rng.random((80, 48, 2)), rng)
    tied, loose = (draw_paths(quantiles, mean, given, 800, rng) for given in (ranks, None))
    for draws in (tied, loose):
        assert draws.mean(axis=0) == pytest.approx(mean, rel=0.1)
        assert np.quantile(draws, 0.95, axis=0).mean() == pytest.approx(quantiles[0, 0, 94:96].mean(), rel=0.05)
    assert tied.sum(axis=(1, 2)).std() > 5 * loose.sum(axis=(1, 2)).std()


def test_ranks_within_calibrated_forecasts_are_uniform_even_if_most_hours_are_zero():
    rng = np.random.default_rng(5)
    came = demand_of(np.full(4000, 0.3), 6)[:, None]
    quantiles = np.broadcast_to(np.quantile(came, GRID), (4000, 1, 100))
    where = probabilities(quantiles, came, rng.random((4000, 1)))
    assert np.quantile(where, [0.1, 0.25, 0.5, 0.75, 0.9]) == pytest.approx([0.1, 0.25, 0.5, 0.75, 0.9], abs=0.03)


def test_the_energy_of_a_session_is_estimated_from_sparse_hours():
    sparse = demand_of(np.full(20_000, 0.02), 7)[:, None]
    assert session_energy(sparse)[0] == pytest.approx(12 * 1.25, rel=0.1)  # E(x^2) / E(x) of gamma(4)
    assert session_energy(np.zeros((10, 2))).tolist() == [10.0, 10.0]
