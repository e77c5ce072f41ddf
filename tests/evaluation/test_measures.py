"""Measures agree with scoringrules, examples by hand, and known distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scoringrules
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import lognorm, norm

from unmet.evaluation.measures import (
    bias_percent,
    covered,
    crps,
    gap_closed,
    interval_length,
    mean_of,
    tilted_loss,
)

level_sets = st.lists(st.floats(0.01, 0.99), min_size=1, max_size=7, unique=True).map(sorted)


@given(st.integers(0, 10_000), level_sets)
def test_the_tilted_loss_and_crps_agree_with_scoringrules(seed, levels):
    rng = np.random.default_rng(seed)
    y, quantiles = rng.normal(size=(5, 4)), np.sort(rng.normal(size=(5, 4, len(levels))))
    ours = tilted_loss(y, quantiles, levels)
    for i, level in enumerate(levels):
        np.testing.assert_allclose(ours[..., i], scoringrules.quantile_score(y, quantiles[..., i], level))
    np.testing.assert_allclose(crps(y, quantiles, levels), scoringrules.crps_quantile(y, quantiles, np.array(levels)))


def test_many_quantiles_give_the_crps_of_their_distribution():
    levels = (np.arange(1000) + 0.5) / 1000
    y = np.array([-1.5, 0.0, 0.3, 2.0])
    ours = crps(y, np.tile(norm.ppf(levels), (4, 1)), levels)
    np.testing.assert_allclose(ours, scoringrules.crps_normal(y, 0.0, 1.0), atol=1e-3)


def test_the_interval_includes_its_ends():
    quantiles = np.tile([1.0, 2.0, 4.0], (5, 1))
    inside = covered(np.array([0.99, 1.0, 3.0, 4.0, 4.01]), quantiles)
    assert inside.tolist() == [False, True, True, True, False]
    assert inside.mean() == 0.6
    assert covered(np.array([2.0]), np.array([[2.0]])).all()


def test_the_interval_extends_from_the_first_to_the_last_quantile():
    quantiles = np.array([[1.0, 2.0, 4.0], [0.0, 0.0, 0.0], [5.0, 3.0, 2.0]])
    assert interval_length(quantiles).tolist() == [3, 0, 3]


@given(st.floats(-50, 50), st.floats(0.1, 20), level_sets)
def test_symmetric_quantiles_of_a_normal_have_its_mean(mean, sigma, some):
    levels = sorted({*some, *(1 - level for level in some)})
    for chosen in (levels, (0.05, 0.5, 0.95)):
        assert mean_of(norm.ppf(chosen, mean, sigma), chosen) == pytest.approx(mean, abs=1e-6 * sigma)


@pytest.mark.parametrize("sigma", [0.2, 0.5, 0.8])
def test_three_quantiles_of_a_lognormal_approximate_its_mean(sigma):
    levels = (0.05, 0.5, 0.95)
    true = lognorm.mean(sigma)
    assert mean_of(lognorm.ppf(levels, sigma), levels) == pytest.approx(true, rel=0.03)
    assert abs(float(lognorm.ppf(0.5, sigma)) - true) > abs(float(mean_of(lognorm.ppf(levels, sigma), levels)) - true)


def test_many_quantiles_give_the_mean_of_their_distribution():
    levels = (np.arange(500) + 0.5) / 500
    assert mean_of(lognorm.ppf(levels, 0.5), levels.tolist()) == pytest.approx(lognorm.mean(0.5), rel=0.01)


@given(arrays(float, (3, 4), elements=st.floats(0, 100)), st.floats(0, 50))
def test_a_shift_of_all_quantiles_shifts_the_mean(quantiles, shift):
    for levels in ((0.1, 0.2, 0.6, 0.7), (0.25, 0.5, 0.75, 0.9)):
        np.testing.assert_allclose(mean_of(quantiles + shift, levels), mean_of(quantiles, levels) + shift, atol=1e-9)


def test_bias_is_the_difference_of_totals_in_percent():
    assert bias_percent(np.array([1.0, 3.0]), np.array([2.0, 1.0])) == pytest.approx(-25)
    assert bias_percent(np.array([1.0, 3.0]), np.array([3.0, 1.0])) == 0
    assert bias_percent(np.array([1.0, 3.0]), np.array([2.0, 4.0])) == pytest.approx(50)
    assert math.isnan(bias_percent(np.zeros(2), np.ones(2)))


def test_gap_closed_is_0_for_unaware_and_1_for_the_oracle():
    assert gap_closed(0.8, 0.8, 0.5) == 0
    assert gap_closed(0.8, 0.5, 0.5) == pytest.approx(1)
    assert gap_closed(0.8, 0.65, 0.5) == pytest.approx(0.5)
    assert gap_closed(0.8, 0.95, 0.5) == pytest.approx(-0.5)
    assert math.isnan(gap_closed(0.5, 0.5, 0.5))


@given(st.floats(-10, 10), st.floats(0.1, 5), level_sets)
def test_no_quantile_scores_better_than_the_true_one(mean, sigma, levels):
    y = norm.ppf((np.arange(2000) + 0.5) / 2000, mean, sigma)
    true = norm.ppf(levels, mean, sigma)

    def loss(quantiles):
        return tilted_loss(y, np.tile(quantiles, (len(y), 1)), levels).mean(axis=0)

    for off in (-0.2, 0.2):
        assert (loss(true + off * sigma) > loss(true)).all()
