"""What was not seen follows levels, busy days, neighbours and the energies of single sessions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.panels import seen_records
from unmet.models.imputation import fit_unseen, records_of

DAYS = 210
HOURS = 24 * DAYS
WEEK = np.arange(HOURS) % 168
WAVE = 2 + np.sin(2 * np.pi * WEEK / 24)


def city(level, seed=1, nodes=3, exposure=None):
    """Arrivals seen and lost, where each hour's rate is a daily wave times its level."""
    rng = np.random.default_rng(seed)
    rate = np.outer(WAVE * level, np.arange(1, nodes + 1))
    if exposure is None:
        exposure = rng.choice([1.0, 0.6, 0.2], rate.shape, p=[0.5, 0.3, 0.2])
    return rng.poisson(rate * exposure).astype(float), rng.poisson(rate * (1 - exposure)).astype(float), exposure


def test_what_was_lost_follows_a_level_that_rises():
    early = np.arange(HOURS) < HOURS // 2
    seen, lost, exposure = city(np.where(early, 0.7, 1.4))
    records = seen_records(seen, exposure)
    unseen = fit_unseen(20 * seen, records, WEEK)
    assert np.isfinite(unseen.memory)
    for kwargs in ({}, {"by_days_before": True}):
        hidden = unseen.hidden(records, WEEK, **kwargs).arrivals
        assert hidden[early].sum() == pytest.approx(lost[early].sum(), rel=0.05)
        assert hidden[~early].sum() == pytest.approx(lost[~early].sum(), rel=0.05)


def test_by_the_days_before_nothing_is_known_of_later_ones():
    seen, _, exposure = city(np.linspace(0.5, 2, HOURS))
    unseen = fit_unseen(20 * seen, seen_records(seen, exposure), WEEK)
    assert np.isfinite(unseen.memory)
    later = seen.copy()
    later[24 * 100 :] = 50.0
    before, after = (
        unseen.hidden(seen_records(values, exposure), WEEK, by_days_before=True) for values in (seen, later)
    )
    assert (before.arrivals[: 24 * 100] == after.arrivals[: 24 * 100]).all()
    around = [unseen.hidden(seen_records(values, exposure), WEEK).arrivals for values in (seen, later)]
    assert around[1][: 24 * 100].sum() > around[0][: 24 * 100].sum()


def test_energies_are_drawn_from_single_sessions():
    rng = np.random.default_rng(3)
    seen = rng.poisson(0.5, (HOURS, 2)).astype(float)
    large = rng.binomial(seen.astype(int), 0.25)
    demand = 5.0 * (seen - large) + 45.0 * large
    records = seen_records(seen, np.full(seen.shape, 0.5))
    unseen = fit_unseen(demand, records, WEEK)
    assert unseen.session_kwh.mean(axis=0) == pytest.approx([15.0, 15.0], rel=0.1)
    assert unseen.session_kwh == pytest.approx(np.full((8, 2), 15.0), rel=0.3)
    sizes = 15 * unseen.energies
    assert ((np.abs(sizes - 5) < 0.5) | (np.abs(sizes - 45) < 4)).mean() > 0.95
    assert (sizes > 25).mean() == pytest.approx(0.25, abs=0.05)
    drawn = unseen.hidden(records, WEEK).draw(rng)
    assert drawn.sum() == pytest.approx(unseen.hidden(records, WEEK).expected_kwh().sum(), rel=0.05)


def test_few_sessions_vary_as_those_of_all_hours_do():
    rng = np.random.default_rng(4)
    seen = rng.poisson(40.0, (HOURS, 1)).astype(float)  # hardly ever one alone
    unseen = fit_unseen(rng.gamma(seen * 4, 5.0), seen_records(seen, np.full(seen.shape, 0.5)), WEEK)
    assert unseen.energies.mean() == pytest.approx(1)
    assert unseen.energies.std() == pytest.approx(0.5, rel=0.1)


def test_energies_that_the_panel_gives_are_taken():
    seen, _, exposure = city(1.0)
    unseen = fit_unseen(20 * seen, seen_records(seen, exposure), WEEK)
    own = unseen.hidden(seen_records(seen, exposure), WEEK)
    given = unseen.hidden(seen_records(seen, exposure, session_kwh=33.0), WEEK)
    assert own.session_kwh == pytest.approx(np.full(own.session_kwh.shape, 20.0), rel=0.02)
    assert given.expected_kwh() == pytest.approx(33.0 * own.arrivals)


def test_a_region_that_could_not_be_seen_borrows_from_those_near_it():
    rng = np.random.default_rng(5)
    place = np.array([0.0, 1, 2, 60, 61])
    exposure = np.ones((HOURS, 5))
    exposure[:, 2] = 0.0
    rate = np.array([4.0, 4.0, 4.0, 1.0, 1.0]) * WAVE[:, None]
    seen = rng.poisson(rate * exposure).astype(float)
    records = seen_records(seen, exposure)
    near = fit_unseen(20 * seen, records, WEEK, np.abs(place[:, None] - place))
    assert near.nearby[2] > 0.95
    assert np.delete(near.nearby, 2).max() < 0.05
    assert near.own[:, 2].max() < 0.05
    hidden = near.hidden(records, WEEK)
    assert hidden.arrivals.sum(axis=0) == pytest.approx([0, 0, rate[:, 2].sum(), 0, 0], rel=0.1)
    assert hidden.session_kwh[:, 2] == pytest.approx(20.0, rel=0.05)
    anywhere = fit_unseen(20 * seen, records, WEEK)
    assert anywhere.rate[:, 2].mean() == pytest.approx(2.5 * WAVE.mean(), rel=0.1)


def test_columns_that_the_panel_does_not_have_say_nothing():
    reads = np.full((24, 2, 6), np.nan)
    reads[..., 0], reads[..., 1] = 3.0, 0.5
    plain = records_of(reads)
    assert (plain.spread == 0).all()
    assert (plain.lost_spread == 0).all()
    assert np.isnan(plain.session_kwh).all()
    assert (plain.exposure == 0.5).all()
    assert (plain.unseen == 0.5).all()
    reads[3:, 1, 2:] = 20.0, 0.2, 0.1, 0.6  # of the first hours nothing is known
    told = records_of(reads)
    assert told.exposure[:, 1].tolist() == [0.5] * 3 + [0.3] * 21
    assert told.unseen[:, 1].tolist() == [0.5] * 3 + [0.3] * 21
    assert told.spread.tolist() == [0, 0.2]
    assert told.lost_spread.tolist() == [0, 0.1]
    assert np.nanmean(told.session_kwh) == 20


def test_drivers_whom_a_crowd_keeps_away_are_neither_seen_nor_lost():
    rng = np.random.default_rng(6)
    full = (rng.random((HOURS, 1)) < 0.5).astype(float)  # hours in which only half of the usual drivers come
    turnout = 1 - 0.5 * full
    exposure = np.where(full > 0, 0.2, 1.0)
    come = 6 * WAVE[:, None] * turnout
    seen, lost = rng.poisson(come * exposure).astype(float), rng.poisson(come * (1 - exposure))
    reads = np.full((HOURS, 1, 6), np.nan)
    reads[..., 0], reads[..., 1], reads[..., 5] = seen, exposure, turnout
    unseen = fit_unseen(20 * seen, records_of(reads), WEEK)
    assert unseen.rate.mean() == pytest.approx(6 * WAVE.mean(), rel=0.04)
    assert unseen.hidden(records_of(reads), WEEK).arrivals.sum() == pytest.approx(lost.sum(), rel=0.05)
    reads[..., 5] = np.nan
    without = fit_unseen(20 * seen, records_of(reads), WEEK).hidden(records_of(reads), WEEK)
    assert without.arrivals.sum() > 1.3 * lost.sum()
