"""Breaks of the level: overwhelming evidence switches within days, ordinary noise does not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests.models.direct.towns import demand_of, panel_of, rates
from unmet import Forecaster
from unmet.models.direct.breaks import AGES, BLOCK, BREAK_DAYS, END_DAYS, dispersion, find_breaks

WEEKS = 20
SESSION = np.array([12.0])


def found(factor: np.ndarray, seed: int = 0, scale: float = 1.0, settled: int = 8 * 168):
    """Breaks of a region whose demand is multiplied by a factor, while models and table expect the usual."""
    rate = scale * rates(len(factor))
    demand = demand_of(rate * factor, seed)[:, None]
    return find_breaks(demand, 12 * rate[:, None], 12 * rate[:, None], SESSION, 0, settled)


def test_ordinary_noise_is_no_break():
    chance = np.stack([found(np.ones(13 * 168), seed).chance for seed in range(20)])
    assert (chance > 0.5).mean() < 0.02
    assert chance.mean() < 0.05


@pytest.mark.parametrize("level", [0.0, 0.25, 2.5])
def test_a_break_is_found_within_three_working_days_and_ends_with_it(level):
    factor = np.ones(12 * 168)
    start, end = 9 * 168, 11 * 168
    factor[start:end] = level
    breaks = found(factor)
    after = slice((start + 72) // BLOCK, end // BLOCK)
    assert breaks.chance[after][0] > 0.9
    assert breaks.chance[after].min() > 0.5  # a weekend with as many sessions as usual is some evidence of an end
    assert breaks.level[after].mean() == pytest.approx(level, abs=0.3)
    assert breaks.chance[: start // BLOCK].max() < 0.5
    assert breaks.chance[-1] < 0.5 or abs(breaks.level[-1] - 1) < 0.3


def test_a_sparse_region_needs_more_evidence_than_a_busy_one():
    factor = np.ones(10 * 168)
    factor[-36:] = 0
    busy, sparse = (found(factor, scale=scale).chance[-1, 0] for scale in (2.0, 0.05))
    assert busy > 0.95
    assert sparse < 0.3


def test_demand_that_varies_from_day_to_day_needs_more_evidence():
    days = np.random.default_rng(0).gamma(2.0, 0.5, 13 * 7).repeat(24)
    rate = rates(len(days))
    varying = demand_of(rate * days, 1)[:, None] / 12
    known = np.ones((len(days), 1), bool)
    steady = demand_of(rate, 1)[:, None] / 12
    assert dispersion(varying, rate[:, None], known) > 2 * dispersion(steady, rate[:, None], known)


def test_unknown_days_do_not_count_as_days_without_deviation():
    days = np.random.default_rng(0).gamma(2.0, 0.5, 13 * 7).repeat(24)
    rate = rates(len(days))
    varying, known = demand_of(rate * days, 1)[:, None] / 12, np.ones((len(days), 1), bool)
    half = known & (np.arange(len(days)) >= len(days) // 2 // 24 * 24)[:, None]
    part = slice(len(days) // 2 // 24 * 24, None)
    expected = dispersion(varying[part], rate[part, None], known[part])
    assert dispersion(varying * half, rate[:, None] * half, half) == pytest.approx(expected)


def test_later_hours_do_not_change_earlier_states():
    factor = np.ones(12 * 168)
    rate = rates(len(factor))[:, None]
    demand = demand_of(rate[:, 0], 3)[:, None]
    settled = 10 * 168
    all_hours = find_breaks(demand, 12 * rate, 12 * rate, SESSION, 0, settled)
    some = find_breaks(demand[:settled], 12 * rate[:settled], 12 * rate[:settled], SESSION, 0, settled)
    assert np.array_equal(all_hours.chance[: len(some.chance)], some.chance)


def test_without_evidence_the_probability_of_a_break_is_at_most_that_of_the_prior():
    demand = np.full((AGES * BLOCK * 2, 1), np.nan)
    demand[-100:] = 0
    breaks = find_breaks(demand, np.zeros_like(demand), np.full_like(demand, np.nan), SESSION, 0, len(demand))
    assert np.isfinite(breaks.chance).all()
    assert (breaks.chance < END_DAYS / (BREAK_DAYS + END_DAYS) + 0.01).all()


@pytest.mark.parametrize(("level", "least", "most"), [(0.0, 0.0, 0.35), (2.5, 1.7, 3.0)])
def test_the_forecast_follows_a_break_within_three_days(level, least, most):
    hours = WEEKS * 168 + 72
    rate = 2 * rates(hours)
    factor = np.ones(hours)
    factor[-72:] = level
    panel = panel_of(np.stack([demand_of(rate * factor, 1), demand_of(rate, 2)], axis=1))
    model = Forecaster("stacked", "quantile", shares=(0.8, 0.1)).fit(panel)
    sums = model.forecast(panel, 24).table.group_by("unique_id").agg(pl.col("mean").sum())
    week = dict(sums.iter_rows())
    usual = 12 * rate[hours % 168 : hours % 168 + 24].sum()
    assert least * usual <= week["r0"] <= most * usual
    assert week["r1"] == pytest.approx(usual, rel=0.25)
