"""Posterior of shares: of a network, and of sites that may differ."""

from __future__ import annotations

import numpy as np
import pytest

from unmet.estimation.shares import (
    ALIKE,
    MEANS,
    NOBODY,
    SHARES,
    SiteExcess,
    _populations,
    draw_site_shares,
    leaving_drivers,
)

DRAWS, SITES = 400, 30


def shares_of(drivers, variance=100.0, turned_away=200.0, common=0.0, seed=1):
    sites = np.zeros(len(np.atleast_1d(drivers)))
    excess = SiteExcess(*(sites + values for values in (drivers, variance, common, turned_away)))
    return draw_site_shares(excess, DRAWS, np.random.default_rng(seed))


def test_populations_are_distributions_with_their_mean():
    table, prior = _populations()
    assert table.sum(axis=1) == pytest.approx(1.0)
    assert prior.sum() == pytest.approx(1.0)
    assert (table[0, 0], prior[0]) == (1.0, NOBODY)
    assert table[1:] @ SHARES == pytest.approx(np.repeat(MEANS, len(ALIKE)), abs=0.005)


def test_sites_that_are_alike_have_the_share_of_the_network():
    rng = np.random.default_rng(0)
    drivers = rng.normal(0.3 * 200, 10.0, SITES)
    drawn = shares_of(drivers)
    assert drawn.mean() == pytest.approx(0.3, abs=0.02)
    assert drawn.mean(axis=0).std() < 0.03  # single sites are known to 0.05


def test_a_site_with_few_drivers_is_like_the_others():
    drivers, turned_away = np.append(np.full(SITES, 60.0), 3.0), np.append(np.full(SITES, 200.0), 3.0)
    drawn = shares_of(drivers, 100.0, turned_away)
    assert drawn[:, -1].mean() == pytest.approx(0.3, abs=0.03)


def test_if_nobody_waits_the_share_is_exactly_0_in_nearly_all_draws():
    drawn = shares_of(np.random.default_rng(0).normal(0.0, 10.0, SITES))
    assert (drawn == 0).all(axis=1).mean() > 0.9


def test_one_site_where_drivers_wait_leaves_the_others_alone():
    drivers = np.append(np.random.default_rng(0).normal(0.0, 10.0, SITES), 160.0)
    drawn = shares_of(drivers)
    assert drawn[:, -1].mean() == pytest.approx(0.8, abs=0.05)
    assert drawn[:, :-1].mean() < 0.02


def test_an_error_that_all_sites_share_is_not_averaged_out():
    """Each site is known to 0.02, but all may be wrong by 0.05 in the same direction."""
    drivers = np.full(SITES, 60.0)
    sharp, blurred = shares_of(drivers, variance=16.0), shares_of(drivers, variance=16.0, common=10.0)
    assert sharp.mean(axis=1).std() < 0.01
    assert blurred.mean(axis=1).std() == pytest.approx(0.05, rel=0.3)


def test_nothing_is_drawn_where_nobody_was_turned_away():
    assert (shares_of(np.full(3, 50.0), turned_away=0.0) == 0).all()


def test_a_site_of_which_nothing_is_known_follows_the_network():
    drivers, variance = np.append(np.full(SITES, 60.0), 0.0), np.append(np.full(SITES, 100.0), np.inf)
    drawn = shares_of(drivers, variance, np.append(np.full(SITES, 200.0), 0.0))
    assert drawn[:, -1].mean() == pytest.approx(0.3, abs=0.03)


def test_drivers_who_wait_or_are_served_nearby_do_not_leave():
    waits, spills = np.array([[0.3, 0.7], [0.1, 0.7]]), np.array([[0.5, 0.5], [0.1, 0.3]])
    result = leaving_drivers(waits, spills, np.array([3.0, 1.0]), refitted=True)
    assert result.share == pytest.approx(np.array([[0.2, 0.0], [0.8, 0.0]]))
    assert result.waiting == pytest.approx(np.mean([0.4, 0.25]))
    assert result.spill == pytest.approx(np.mean([0.5, 0.15]))
    assert result.rate_spread == pytest.approx(np.std([0.5, 0.15]))
    same = leaving_drivers(waits, spills, np.zeros(2), refitted=False)
    assert same.waiting == pytest.approx(waits.mean())
    assert same.rate_spread == 0  # no arrival was left out
