"""Gamma effects: marginal likelihoods agree with SciPy, and known shapes are recovered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import nbinom, poisson

from unmet.estimation.gammas import COARSE, MIN_GAIN, SHAPES, gamma_shape, log_marginal, quiet_days

cells = st.lists(st.tuples(st.integers(0, 50), st.floats(0.01, 60)), min_size=1, max_size=20)


@given(cells, st.floats(0.3, 500))
def test_the_marginal_likelihood_is_negative_binomial(rows, shape):
    count, expected = np.array(rows, float).T
    constant = gammaln(count + 1).sum()
    reference = nbinom.logpmf(count, shape, shape / (shape + expected)).sum()
    assert log_marginal(count, expected, shape) == pytest.approx(reference + constant, rel=1e-9, abs=1e-6)
    limit = poisson.logpmf(count, expected).sum()
    assert log_marginal(count, expected, np.inf) == pytest.approx(limit + constant, rel=1e-9, abs=1e-6)


def test_the_coarse_grid_ends_with_no_effect():
    assert np.isinf(SHAPES[::COARSE][-1])


def test_a_large_shape_is_no_effect():
    count, expected = np.array([3.0, 0.0, 7.0]), np.array([2.5, 1.0, 8.0])
    assert log_marginal(count, expected, 1e9) == pytest.approx(log_marginal(count, expected, np.inf), abs=1e-5)


@pytest.mark.parametrize("shape", [1.0, 4.0, 16.0])
def test_a_known_shape_is_recovered(shape):
    rng = np.random.default_rng(1)
    expected = rng.uniform(2, 20, (40, 100))
    count = rng.poisson(expected * rng.gamma(shape, 1 / shape, expected.shape)).astype(float)
    assert gamma_shape(count, expected) == pytest.approx(shape, rel=0.25)
    assert gamma_shape(count, expected) in SHAPES


@pytest.mark.parametrize("shape", [0.3, 0.6, 3.0, 30.0, 900.0, 5000.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_shape_is_the_best_one_of_the_grid(shape, seed):
    """Searching from coarse to fine finds what trying every shape finds."""
    rng = np.random.default_rng([seed, 7])
    expected = rng.uniform(0, 8, 2000)
    count = rng.poisson(expected * rng.gamma(shape, 1 / shape, 2000)).astype(float)
    values = np.array([log_marginal(count, expected, a) for a in SHAPES])
    clear = values[:-1].max() > values[-1] + MIN_GAIN
    assert gamma_shape(count, expected) == (SHAPES[values[:-1].argmax()] if clear else np.inf)


@pytest.mark.parametrize("seed", range(3))
def test_chance_alone_is_no_effect(seed):
    rng = np.random.default_rng(seed)
    expected = rng.uniform(0, 5, (20, 100))
    assert gamma_shape(rng.poisson(expected).astype(float), expected) == np.inf


def test_an_effect_must_be_clear():
    """One or two unusual counts may be chance."""
    expected = np.full(20, 4.0)
    count = np.array([4.0] * 18 + [8.0, 1.0])
    assert gamma_shape(count, expected) == np.inf
    gains = [
        log_marginal(count * 0 + 4, expected, shape) - log_marginal(count * 0 + 4, expected, np.inf) for shape in SHAPES
    ]
    assert max(gains) == pytest.approx(0.0, abs=1e-9)


def test_cells_without_exposed_time_are_ignored():
    rng = np.random.default_rng(4)
    expected = rng.uniform(2, 20, 500)
    count = rng.poisson(expected * rng.gamma(2.0, 0.5, 500)).astype(float)
    padded = np.zeros(2000)
    with_count = padded.copy()
    padded[:500], with_count[:500] = expected, count
    assert gamma_shape(with_count, padded) == gamma_shape(count, expected)
    assert gamma_shape(np.zeros(5), np.zeros(5)) == np.inf


def test_a_day_is_quiet_if_nearly_nobody_came():
    expected = np.array([60.0, 60.0, 60.0, 60.0, 3.0, 0.0, 60.0])
    count = np.array([60.0, 30.0, 12.0, 0.0, 0.0, 0.0, 200.0])
    assert quiet_days(count, expected).tolist() == [False, False, True, True, False, False, False]


def test_ordinary_days_that_vary_are_not_quiet():
    rng = np.random.default_rng(1)
    expected = np.full(20_000, 50.0)
    count = rng.poisson(expected * rng.gamma(16, 1 / 16, len(expected))).astype(float)  # by 25 %
    assert quiet_days(count, expected).mean() < 0.004
