"""Slow levels: growth is found, the memory is chosen by leaving out days, and levels before a day use earlier days."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.estimation.levels import MEMORIES, PRIOR_ARRIVALS, _around, level_before, slow_level

series = st.integers(0, 2**32 - 1)
memories = st.sampled_from([memory for memory in MEMORIES if np.isfinite(memory)])


def random_days(seed, number=2, days=30):
    rng = np.random.default_rng(seed)
    expected = rng.uniform(0, 20, (number, days))
    return rng.poisson(expected).astype(float), expected


@pytest.mark.parametrize("growth", [0.3, 3.0])
def test_growth_is_found(growth):
    rng = np.random.default_rng(2)
    true = np.linspace(1, growth, 140)
    expected = np.full((3, 140), 60.0)
    result = slow_level(rng.poisson(expected * true).astype(float), expected)
    assert np.isfinite(result.memory)
    assert np.abs(result.level[:, 10:-10] / true[10:-10] - 1).mean() < 0.06


@pytest.mark.parametrize("seed", range(3))
def test_a_level_that_never_changes_is_one(seed):
    rng = np.random.default_rng(seed)
    expected = rng.uniform(5, 30, (4, 120))
    count = rng.poisson(expected).astype(float)
    expected *= count.sum(axis=1, keepdims=True) / expected.sum(axis=1, keepdims=True)  # as weekly rates are fitted
    result = slow_level(count, expected)
    assert np.isinf(result.memory)
    assert (result.level == 1).all()


@given(series, memories)
def test_sums_over_the_days_around_leave_out_the_day_itself(seed, memory):
    count, _ = random_days(seed)
    days = np.arange(count.shape[1])
    weight = np.exp(-np.abs(days[:, None] - days) / memory) * (days[:, None] != days)
    assert _around(count, memory) == pytest.approx(count @ weight)


@given(series)
def test_the_chosen_level_is_the_formula_with_the_day_itself(seed):
    count, expected = random_days(seed, days=60)
    count = np.round(count * np.linspace(0.4, 2.2, 60))
    result = slow_level(count, expected)
    if np.isinf(result.memory):
        assert (result.level == 1).all()
        return
    days = np.arange(60)
    weight = np.exp(-np.abs(days[:, None] - days) / result.memory)
    formula = (PRIOR_ARRIVALS + count @ weight) / (PRIOR_ARRIVALS + expected @ weight)
    assert result.level == pytest.approx(formula)


def test_the_memory_is_chosen_by_leaving_out_each_day():
    """If a day were not left out, randomly busy days would look like a fast level."""
    rng = np.random.default_rng(5)
    expected = np.full((1, 200), 50.0)
    count = rng.poisson(expected * rng.gamma(10, 0.1, 200)).astype(float)
    assert np.isinf(slow_level(count, expected).memory)


@given(series, memories, st.integers(1, 29))
def test_levels_before_a_day_do_not_depend_on_it_or_on_later_days(seed, memory, day):
    count, expected = random_days(seed)
    other, more = count.copy(), expected.copy()
    other[:, day:] += 50.0
    more[:, day:] *= 3.0
    assert (
        level_before(other, more, memory)[:, : day + 1] == level_before(count, expected, memory)[:, : day + 1]
    ).all()


@given(series, memories)
def test_levels_before_are_the_formula_over_past_days(seed, memory):
    count, expected = random_days(seed)
    days = np.arange(count.shape[1])
    weight = np.where(days[:, None] < days, np.exp(-(days - days[:, None]) / memory), 0.0)
    formula = (PRIOR_ARRIVALS + count @ weight) / (PRIOR_ARRIVALS + expected @ weight)
    result = level_before(count, expected, memory)
    assert result == pytest.approx(formula)
    assert (result[:, 0] == 1).all()
    assert (level_before(count, expected, np.inf) == 1).all()
