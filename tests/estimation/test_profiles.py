"""Weekly profiles: closed forms, recovered mixtures, and hidden peaks learned from similar sites."""

from __future__ import annotations

import numpy as np
import pytest

from tests.estimation.networks import KINDS
from unmet.estimation.clock import BINS_A_WEEK, BINS_AN_HOUR
from unmet.estimation.gammas import gamma_shape
from unmet.estimation.profiles import departure_shape, fit_profiles, own_departures

WEEKS = np.tile(np.repeat(KINDS, BINS_AN_HOUR, axis=1), 7)  # (kinds, bins of the week), mean 1
HOURS = 13.0  # exposed hours of each bin over a year: 52 quarter hours


def smooth(values):
    """Smooth weekly profiles within hours."""
    kernel = np.exp(-(np.arange(-12, 13) ** 2) / 32)
    return np.apply_along_axis(
        lambda row: np.convolve(np.tile(row, 3), kernel / kernel.sum(), "same")[672:1344], 1, values
    )


SMOOTH = smooth(WEEKS)


def test_a_single_profile_is_the_mean_week_of_the_network():
    level = np.array([0.5, 1.0, 4.0])
    rate = np.outer(level, SMOOTH[1])
    exposed = np.full(rate.shape, 200.0)
    result = fit_profiles(rate * exposed, exposed, 1)
    assert result.load.shape == (3, 1)
    assert result.profile.mean() == pytest.approx(1.0)
    assert result.load[:, 0] == pytest.approx(level, rel=0.02)
    assert result.rate == pytest.approx(rate, rel=0.03)


def test_a_single_profile_beats_the_closed_form_on_noisy_counts():
    """Total arrivals of a bin over the exposed time of all sites, weighted by their levels."""
    rng = np.random.default_rng(1)
    level = rng.gamma(2, 0.5, 30)
    rate = np.outer(level, SMOOTH[0])
    exposed = rng.uniform(0.2, 1.0, rate.shape) * HOURS
    count = rng.poisson(rate * exposed).astype(float)
    result = fit_profiles(count, exposed, 1)
    direct = count.sum(axis=0) / (level @ exposed)
    assert np.abs(result.profile[0] - SMOOTH[0]).mean() < 0.7 * np.abs(direct - SMOOTH[0]).mean()
    assert (result.rate * exposed).sum() == pytest.approx(count.sum(), rel=0.01)


def mixtures(seed, sites=60):
    rng = np.random.default_rng(seed)
    weight = rng.dirichlet(np.full(3, 0.3), sites)
    return rng, rng.gamma(3, 0.5, (sites, 1)) * (weight @ SMOOTH)


@pytest.mark.parametrize("seed", range(2))
def test_three_profiles_recover_mixtures(seed):
    rng, rate = mixtures(seed)
    exposed = np.full(rate.shape, HOURS)
    count = rng.poisson(rate * exposed).astype(float)
    error = [np.abs(fit_profiles(count, exposed, rank).rate - rate).mean() / rate.mean() for rank in (1, 3)]
    assert error[1] < 0.2 < error[0]


def test_a_hidden_peak_is_learned_from_similar_sites():
    rng, _ = mixtures(3)
    kind = np.arange(40) % 2
    rate = 1.5 * SMOOTH[kind]
    exposed = np.full(rate.shape, HOURS)
    hour = np.arange(BINS_A_WEEK) // BINS_AN_HOUR % 24
    hidden = (hour >= 7) & (hour < 10)
    exposed[0, hidden] = 0.0  # a workplace that is full by seven
    count = rng.poisson(rate * exposed).astype(float)
    two, one = (fit_profiles(count, exposed, rank).rate[0, hidden].sum() for rank in (2, 1))
    assert two == pytest.approx(rate[0, hidden].sum(), rel=0.12)
    assert one < 0.8 * rate[0, hidden].sum()


@pytest.mark.parametrize("rank", [1, 3])
def test_twice_the_exposed_time_for_the_same_arrivals_halves_the_rate(rank):
    rng, rate = mixtures(5, 20)
    exposed = np.full(rate.shape, HOURS)
    count = rng.poisson(rate * exposed).astype(float)
    once, twice = (fit_profiles(count, factor * exposed, rank).rate for factor in (1, 2))
    assert np.abs(2 * twice - once).mean() < 0.02 * once.mean()


def test_a_site_without_visits_has_a_small_rate_and_one_without_exposure_that_of_the_network():
    rng, rate = mixtures(7, 20)
    exposed = np.full(rate.shape, HOURS)
    count = rng.poisson(rate * exposed).astype(float)
    count[4] = 0.0
    result = fit_profiles(count, exposed, 2)
    assert 0 < result.rate[4].mean() < 0.02 * rate.mean()
    unseen = exposed.copy()
    unseen[5], count[5] = 0.0, 0.0
    never = fit_profiles(count, unseen, 2).rate[5]
    assert never.mean() == pytest.approx(rate.mean(), rel=0.5)  # only the network is known


def test_own_departures_have_the_posterior_mean():
    rng, rate = mixtures(9, 30)
    exposed = np.full(rate.shape, HOURS)
    factor = np.repeat(rng.gamma(6.0, 1 / 6.0, (30, 168)), BINS_AN_HOUR, axis=1)
    count = rng.poisson(rate * factor * exposed).astype(float)
    shape = departure_shape(count, exposed, rate)
    result = own_departures(count, exposed, rate, shape)
    n, m = (values.reshape(30, 168, 4).sum(axis=2) for values in (count, rate * exposed))
    assert shape == gamma_shape(n, m) == pytest.approx(6.0, rel=0.3)
    assert result / rate == pytest.approx(np.repeat((shape + n) / (shape + m), 4, axis=1))
    assert np.abs(result - rate * factor).mean() < 0.8 * np.abs(rate - rate * factor).mean()


def test_without_departures_rates_are_unchanged():
    rng, rate = mixtures(11, 30)
    exposed = np.full(rate.shape, HOURS)
    count = rng.poisson(rate * exposed).astype(float)
    shape = departure_shape(count, exposed, rate)
    assert np.isinf(shape)
    assert (own_departures(count, exposed, rate, shape) == rate).all()


def test_there_are_at_most_as_many_profiles_as_sites():
    rng, rate = mixtures(13, 2)
    exposed = np.full(rate.shape, HOURS)
    assert fit_profiles(rng.poisson(rate * exposed).astype(float), exposed, 4).profile.shape[0] == 2


def test_the_rate_of_a_site_that_is_hardly_exposed_does_not_diverge():
    """With one arrival in no exposed time, only the level of the network is known."""
    rng, rate = mixtures(15, 20)
    exposed = np.full(rate.shape, HOURS)
    exposed[3] = 0.0
    count = rng.poisson(rate * exposed).astype(float)
    count[3, 100] = 1.0
    for rank in (1, 3):
        result = fit_profiles(count, exposed, rank).rate
        assert 0.3 * rate.mean() < result[3].mean() < 5 * rate.mean()
        assert result[4:].mean() == pytest.approx(rate[4:].mean(), rel=0.05)
