"""Posterior draws: their means and variances follow from those of the factors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import gamma

from unmet.estimation.clock import BINS_A_WEEK, make_clock
from unmet.estimation.crowding import BETAS, Crowding, Strength, occupancy_at_steps
from unmet.estimation.energies import BLOCK
from unmet.estimation.exposed import FullHours
from unmet.estimation.hours import HourEffects
from unmet.estimation.posterior import (
    MAX_ERROR,
    MODEL_ERROR,
    NetworkDraws,
    SiteDraws,
    draw_network,
    draw_site,
)
from unmet.estimation.profiles import Profiles
from unmet.estimation.rates import Components, Rates
from unmet.estimation.selfcheck import SelfCheck
from unmet.estimation.shares import Leaving
from unmet.estimation.towns import TownPrior

MONDAY_MS = 1_567_382_400_000
CLOCK = make_clock(MONDAY_MS, 72, "UTC")
DRAWS = 40_000
SITE_ERROR = 0.1
HOURS = np.array([8, 9, 33, 66])  # on days 0, 0, 1 and 2
ROWS = FullHours(np.zeros(4, np.int64), HOURS, np.full(4, 0.5), np.array([4.0, 2.0, 6.0, 3.0]))
NONE = HourEffects(np.inf, np.zeros(4), np.zeros(4))
CERTAIN = TownPrior(0.3, -1.5, 0.5, 0.7, 0.0, 0.0)


def rates(**parts) -> Rates:
    plain = Rates(
        components=Components(),
        profiles=Profiles(np.ones((2, 1)), np.ones((1, BINS_A_WEEK))),
        weekly=np.ones((2, BINS_A_WEEK)),
        slow=np.ones((2, 3)),
        memories=(np.inf, np.inf),
        city_day=np.ones(3),
        city_shape=np.inf,
        site_shape=np.inf,
        count=np.zeros((2, 3)),
        expected=np.ones((2, 3)),
        crowding=None,
        objective=0.0,
    )
    return replace(plain, **parts)


def common(draws=DRAWS, **parts) -> NetworkDraws:
    plain = NetworkDraws(
        profile=np.zeros(draws, np.int64),
        city_day=np.ones((draws, 3)),
        hypothesis=np.zeros(draws, np.int64),
        leaves=np.ones((draws, 2)),
        error=np.ones(draws),
        site_error=SITE_ERROR,
    )
    return replace(plain, **parts)


def drawn(fitted, network, *, usual=None, bursts=NONE, capacity=2, sure=1.0, kwh=None, variation=0.5, seed=1):
    """Draws of a site, (draws, hours)."""
    result = draw_site(
        0, ROWS, ROWS.usual[:, None] if usual is None else usual, network, fitted, bursts, CLOCK, capacity, sure,
        np.full(24 // BLOCK, 10.0) if kwh is None else kwh, variation, np.random.default_rng(seed),
    )  # fmt: skip
    return SiteDraws(result.hour, result.arrivals.T, result.kwh.T)


def variance(mean, of_factor=0.0):
    """Variance of a Poisson count whose mean has the error of a site, and another factor of this relative variance."""
    return mean + mean**2 * (np.exp(SITE_ERROR**2) * (1 + of_factor) - 1)


def test_arrivals_are_poisson_given_the_error_of_the_site():
    result = drawn(rates(), common())
    assert result.hour.tolist() == HOURS.tolist()
    assert result.arrivals.mean(axis=0) == pytest.approx(ROWS.usual, rel=0.02)
    assert result.arrivals.var(axis=0) == pytest.approx(variance(ROWS.usual), rel=0.05)
    together = np.cov(result.arrivals[:, 0], result.arrivals[:, 2])[0, 1]  # all hours of a site share its error
    assert together == pytest.approx(ROWS.usual[0] * ROWS.usual[2] * (np.exp(SITE_ERROR**2) - 1), rel=0.15)


def test_slow_levels_days_of_the_network_and_profiles_multiply():
    slow = np.array([[2.0, 0.5, 1.5], [9.0, 9.0, 9.0]])
    city = np.tile([0.5, 3.0, 1.0], (DRAWS, 1))
    usual = np.stack([ROWS.usual, 2 * ROWS.usual], axis=1)
    result = drawn(
        rates(slow=slow), common(city_day=city, profile=np.arange(DRAWS) % 2, error=np.full(DRAWS, 0.7)), usual=usual
    )
    day = np.array([0, 0, 1, 2])
    for profile in (0, 1):
        expected = usual[:, profile] * slow[0, day] * city[0, day] * 0.7
        assert result.arrivals[profile::2].mean(axis=0) == pytest.approx(expected, rel=0.03)


def test_site_day_effects_have_a_gamma_posterior_shared_by_their_hours():
    count, expected = np.array([[12.0, 0.0, 3.0], [0, 0, 0]]), np.array([[6.0, 4.0, 3.0], [1, 1, 1]])
    result = drawn(rates(site_shape=3.0, count=count, expected=expected), common())
    day = np.array([0, 0, 1, 2])
    shape, rate = 3.0 + count[0, day], 3.0 + expected[0, day]
    mean = ROWS.usual * shape / rate
    assert result.arrivals.mean(axis=0) == pytest.approx(mean, rel=0.03)
    assert result.arrivals.var(axis=0) == pytest.approx(variance(mean, 1 / shape), rel=0.06)
    cross = np.cov(result.arrivals[:, :3].T)
    same_day, other_day = (np.exp(SITE_ERROR**2) * (1 + part) - 1 for part in (1 / shape[0], 0.0))
    assert cross[0, 1] == pytest.approx(mean[0] * mean[1] * same_day, rel=0.1)
    assert cross[0, 2] == pytest.approx(mean[0] * mean[2] * other_day, rel=0.25)


def test_bursts_have_a_gamma_posterior_for_each_hour():
    bursts = HourEffects(2.0, np.array([5.0, 0.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0, 2.0]))
    result = drawn(rates(), common(), bursts=bursts)
    mean = ROWS.usual * bursts.mean
    assert result.arrivals.mean(axis=0) == pytest.approx(mean, rel=0.03)
    assert result.arrivals.var(axis=0) == pytest.approx(variance(mean, 1 / (2.0 + bursts.arrivals)), rel=0.06)
    together = np.cov(result.arrivals[:, 0], result.arrivals[:, 1])[0, 1]  # no burst is shared by two hours
    assert together == pytest.approx(mean[0] * mean[1] * (np.exp(SITE_ERROR**2) - 1), abs=0.12)


def test_a_burst_is_drawn_given_how_busy_its_day_is_drawn():
    """The same arrivals must not raise both effects: on a day that is drawn busier, bursts are smaller."""
    shape, day_shape, expected = 2.0, 1.5, 20.0
    bursts = HourEffects(shape, np.full(4, 8.0), np.full(4, expected))
    result = drawn(rates(site_shape=day_shape, expected=np.full((2, 3), day_shape)), common(), bursts=bursts)
    busier = gamma(day_shape, scale=1 / day_shape)  # the effect of the day over its mean
    both = busier.expect(lambda x: x * (shape + 8.0) / (shape + expected * x))
    ignoring = (shape + 8.0) / (shape + expected)
    level = day_shape / (2 * day_shape)  # posterior mean of the effect of a day without arrivals
    assert both < 0.93 * ignoring
    assert result.arrivals.mean(axis=0) == pytest.approx(ROWS.usual * level * both, rel=0.03)


def test_the_response_to_a_full_site_is_drawn_with_its_level():
    betas = len(BETAS)
    site = np.zeros((2, 2, betas))
    site[0, :, -1] = 1.0  # the first hypothesis: none
    site[1, 0, [0, 16]] = 0.25, 0.75
    site[1, 1, 3] = 1.0
    level = np.linspace(2.0, 1.0, betas) * np.array([[1.0], [7.0]])
    fitted = rates(crowding=Crowding(site, np.array([0.4, 0.6]), level))
    hypothesis = (np.arange(DRAWS) % 2).astype(np.int64)
    result = drawn(fitted, common(hypothesis=hypothesis), capacity=4)
    x = occupancy_at_steps(np.array([4]))[0, -1]
    responds = 0.25 * np.exp(BETAS[0] * x) * level[0, 0] + 0.75 * np.exp(BETAS[16] * x) * level[0, 16]
    assert result.arrivals[::2].mean(axis=0) == pytest.approx(ROWS.usual * level[0, -1], rel=0.03)
    assert result.arrivals[1::2].mean(axis=0) == pytest.approx(ROWS.usual * responds, rel=0.05)


def test_a_site_of_uncertain_capacity_lost_nothing_in_some_draws():
    result = drawn(rates(), common(), sure=0.7)
    nothing = result.arrivals.sum(axis=1) == 0
    assert nothing.mean() == pytest.approx(0.3, abs=0.01)
    assert result.arrivals[~nothing].mean(axis=0) == pytest.approx(ROWS.usual, rel=0.03)


def test_energies_depend_on_the_time_of_day_and_vary_like_sessions():
    kwh = np.arange(1.0, 1 + 24 // BLOCK) * 5
    result = drawn(rates(), common(), kwh=kwh, variation=0.4)
    each = kwh[HOURS % 24 // BLOCK]
    assert result.kwh.mean(axis=0) == pytest.approx(result.arrivals.mean(axis=0) * each, rel=0.02)
    assert ((result.kwh > 0) == (result.arrivals > 0)).all()
    alone = [result.kwh[result.arrivals[:, i] == 1, i] for i in range(4)]
    assert [part.std() / part.mean() for part in alone] == pytest.approx([0.4] * 4, rel=0.07)


ALL_LEAVE = (1.0, 1.0)


def network(
    fitted=None,
    leaves=ALL_LEAVE,
    spill=0.0,
    prior=CERTAIN,
    strength=(0.0,),
    response=0.0,
    excess=0.0,
    site_error=0.0,
    shares=(0.6, 0.4),
    profiles=4,
):
    return draw_network(
        rates=fitted or rates(),
        profiles=profiles,
        leaving=Leaving(np.tile(leaves, (DRAWS, 1)), 0.0, 0.0, spill),
        prior=prior,
        strength=Strength(np.array(strength), response),
        check=SelfCheck(np.exp(excess), 1.0, 1.0, 1000, 0.0, site_error),
        turned_away=30 * np.array(shares),
        rng=np.random.default_rng(2),
    )


def test_drivers_who_wait_or_are_served_nearby_are_not_lost():
    half = drawn(rates(), common(leaves=np.tile([0.5, 0.0], (DRAWS, 1))))  # of the first site
    assert half.arrivals.mean(axis=0) == pytest.approx(ROWS.usual / 2, rel=0.02)


def test_rates_are_as_uncertain_as_the_number_of_diverted_drivers():
    result = network(spill=0.2)
    assert result.error.mean() == pytest.approx(1.0, abs=0.01)
    assert np.log(result.error).std() == pytest.approx(np.hypot(0.2, MODEL_ERROR), rel=0.02)


def test_the_self_check_widens_intervals_and_never_shifts_them():
    for excess in (0.0, 0.3, 0.39):
        result = network(excess=excess)
        assert result.error.mean() == pytest.approx(1.0, abs=0.01)
        assert np.log(result.error).std() == pytest.approx(np.hypot(min(excess, MAX_ERROR), MODEL_ERROR), rel=0.02)


def test_an_uncertain_response_leaves_less_room_for_the_self_check():
    """Together they widen intervals up to a limit; the response is drawn by site, and not part of the error."""
    result = network(excess=0.39, response=0.2**2)
    assert np.log(result.error).std() == pytest.approx(np.sqrt(MAX_ERROR**2 - 0.2**2 + MODEL_ERROR**2), rel=0.02)


def test_errors_of_sites_leave_less_room_for_the_self_check():
    """The error of two sites with 60 and 40 % of the loss adds 0.3^2 (0.6^2 + 0.4^2) to the variance of the total."""
    result = network(excess=0.39, site_error=0.3)
    rest = MAX_ERROR**2 - 0.3**2 * 0.52
    assert result.site_error == pytest.approx(0.3)
    assert np.log(result.error).std() == pytest.approx(np.sqrt(rest + MODEL_ERROR**2), rel=0.02)


def test_errors_of_sites_are_limited():
    assert network(site_error=0.8).site_error == pytest.approx(MAX_ERROR)
    assert network(site_error=0.2, response=0.4**2).site_error == pytest.approx(0.2)


def test_the_error_in_other_towns_scales_with_the_response():
    site = np.ones((3, 2, len(BETAS))) / len(BETAS)
    fitted = rates(crowding=Crowding(site, np.array([0.4, 0.35, 0.25]), np.ones((2, len(BETAS)))))
    result = network(fitted, prior=CERTAIN._replace(bias=-0.2, bias_spread=0.3), strength=(0.0, 1.0, 2.0))
    assert np.bincount(result.hypothesis) / DRAWS == pytest.approx([0.4, 0.35, 0.25], abs=0.01)
    for hypothesis, strength in enumerate((0.0, 1.0, 2.0)):
        log = np.log(result.error[result.hypothesis == hypothesis])
        assert log.mean() == pytest.approx(-0.2 * strength - (0.3 * strength) ** 2 / 2, abs=0.02)
        assert log.std() == pytest.approx(np.hypot(0.3 * strength, MODEL_ERROR), rel=0.03)


def test_city_day_effects_have_a_gamma_posterior():
    count = np.array([[6.0, 0.0, 40.0], [4.0, 1.0, 50.0]])
    result = network(rates(city_shape=5.0, count=count, city_day=np.array([0.8, 1.0, 2.0])))
    shape = 5.0 + count.sum(axis=0)
    assert result.city_day.mean(axis=0) == pytest.approx([0.8, 1.0, 2.0], rel=0.02)
    assert result.city_day.std(axis=0) == pytest.approx([0.8, 1.0, 2.0] / np.sqrt(shape), rel=0.03)
    assert (network().city_day == 1).all()


def test_resampled_profiles_are_used_equally_often():
    result = network(profiles=5)
    assert np.bincount(result.profile).tolist() == [DRAWS // 5] * 5
