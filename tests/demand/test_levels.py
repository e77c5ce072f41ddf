"""Levels: found where there are any, and never from the future where it is not known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unmet.demand.levels import MEMORIES, fit_levels, levels_before

DAYS = 240

counts = arrays(float, (2, 30), elements=st.integers(0, 200).map(float))
expectations = arrays(float, (2, 30), elements=st.floats(0, 200))


def test_a_series_that_never_changes_has_the_level_1_and_an_infinite_memory():
    seen = np.full((3, DAYS), 20.0)
    fitted = fit_levels(seen, seen)
    assert np.isinf(fitted.memory)
    assert np.allclose(fitted.level, 1)


@pytest.mark.parametrize("seed", range(5))
def test_luck_moves_no_level(seed):
    expected = np.full((5, DAYS), 30.0)
    fitted = fit_levels(np.random.default_rng(seed).poisson(expected).astype(float), expected)
    assert np.isinf(fitted.memory)
    assert np.abs(fitted.level - 1).max() < 0.15


def test_a_series_that_doubles_midway_has_the_levels_that_it_was_drawn_with():
    true = np.where(np.arange(DAYS) < DAYS // 2, 2 / 3, 4 / 3) * np.ones((4, 1))
    expected = np.full(true.shape, 60.0)
    fitted = fit_levels(np.random.default_rng(1).poisson(expected * true).astype(float), expected)
    assert fitted.memory < 60
    assert np.abs(fitted.level.mean(axis=0) / true[0] - 1)[np.r_[:100, 140:DAYS]].max() < 0.12
    assert np.sqrt(np.mean((fitted.level / true - 1) ** 2)) < 0.15


def test_days_that_were_hidden_take_the_level_of_the_days_around_them():
    true = np.where(np.arange(DAYS) < DAYS // 2, 2 / 3, 4 / 3)[None]
    exposure = np.ones(true.shape)
    exposure[:, 180:190] = 0.0
    expected = 200.0 * exposure
    fitted = fit_levels(np.random.default_rng(2).poisson(expected * true).astype(float), expected)
    assert fitted.level[0, 180:190] == pytest.approx(np.full(10, 4 / 3), rel=0.05)


@given(counts, expectations, st.integers(0, 29), st.floats(0, 500), st.sampled_from(MEMORIES))
def test_the_level_by_the_days_before_reads_no_day_after(seen, expected, day, value, memory):
    level = levels_before(seen, expected, memory)
    later_seen, later_expected = seen.copy(), expected.copy()
    later_seen[:, day:], later_expected[:, day:] = value, value + 1
    changed = levels_before(later_seen, later_expected, memory)
    assert (changed[:, : day + 1] == level[:, : day + 1]).all()


def test_the_level_by_the_days_before_follows_them():
    seen = np.where(np.arange(DAYS) < DAYS // 2, 20.0, 40.0)[None]
    level = levels_before(seen, np.full(seen.shape, 20.0), 10.0)[0]
    assert level[: DAYS // 2 + 1] == pytest.approx(np.ones(DAYS // 2 + 1))
    assert level[DAYS // 2 + 1] > 1.05
    assert level[-1] == pytest.approx(2, rel=0.05)


@given(counts, expectations)
def test_levels_are_positive_and_finite(seen, expected):
    fitted = fit_levels(seen, expected)
    for level in (fitted.level, fitted.by_others, levels_before(seen, expected, 10.0)):
        assert level.shape == seen.shape
        assert np.isfinite(level).all()
        assert (level > 0).all()
