"""Crowding: the likelihood agrees with numerical integration, and known responses are recovered."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import gamma

from unmet.estimation.crowding import (
    BETAS,
    COMMON,
    POOL_PLUGS,
    PRIOR_ARRIVALS,
    SPREADS,
    STEPS,
    TYPICAL,
    Crowding,
    fit_crowding,
    log_likelihoods,
    occupancy_at_steps,
    step_of_taken,
    strength,
)
from unmet.estimation.towns import TOWNS

SOME_BETAS = (0, 20, len(BETAS) - 1)


def by_integration(expected, count, found, x, shape, beta):
    """Log of the day effects' integral, at the level that makes it largest, and that level."""
    mean = expected @ np.exp(beta * x)

    def log_value(log_level):
        level = np.exp(log_level)

        def density(g, n, m):
            return gamma.pdf(g, shape, scale=1 / shape) * (g * level) ** n * np.exp(-g * level * m)

        days = [quad(density, 0, 30, args=pair)[0] for pair in zip(count, mean, strict=True)]
        prior = PRIOR_ARRIVALS * (log_level - level)  # gamma, with its mode at the fitted level
        return beta * found + np.log(days).sum() + prior

    best = minimize_scalar(
        lambda log_level: -log_value(log_level), bounds=(-3, 3), method="bounded", options={"xatol": 1e-7}
    )
    return -best.fun, np.exp(best.x)


@pytest.mark.parametrize("shape", [0.8, 3.0])
def test_the_likelihood_is_an_integral_over_day_effects_at_the_best_level(shape):
    rng = np.random.default_rng(1)
    x = occupancy_at_steps(np.array([3]))[:, :4]
    expected, count = rng.uniform(0.2, 2.0, (1, 4, 4)), np.array([[2.0, 0.0, 5.0, 9.0]])
    found = np.array([4.2])
    values, levels = log_likelihoods(expected, count, found, x, shape)
    for j in SOME_BETAS:
        value, level = by_integration(expected[0], count[0], found[0], x[0], shape, BETAS[j])
        assert values[0, j] == pytest.approx(value, abs=1e-4)
        assert levels[0, j] == pytest.approx(level, rel=1e-3)


def test_without_day_effects_the_likelihood_is_poisson():
    rng = np.random.default_rng(2)
    x = occupancy_at_steps(np.array([3, 2]))[:, :4]
    expected, count, found = (
        rng.uniform(0.2, 2.0, (2, 5, 4)),
        rng.poisson(3.0, (2, 5)).astype(float),
        np.array([3.0, 1.0]),
    )
    values, levels = log_likelihoods(expected, count, found, x, np.inf)
    almost, _ = log_likelihoods(expected, count, found, x, 1e7)
    for s in range(2):
        for j in SOME_BETAS:
            mean = (expected[s] @ np.exp(BETAS[j] * x[s])).sum()
            total = count[s].sum()
            level = (total + PRIOR_ARRIVALS) / (mean + PRIOR_ARRIVALS)
            assert levels[s, j] == pytest.approx(level)
            poisson = BETAS[j] * found[s] + total * np.log(level) - level * mean
            assert values[s, j] == pytest.approx(poisson + PRIOR_ARRIVALS * (np.log(level) - level))
    # Effects of a very large shape are none, up to a constant in beta.
    assert almost - almost[:, -1:] == pytest.approx(values - values[:, -1:], abs=1e-3)


def test_a_site_without_exposed_time_has_a_flat_likelihood():
    values, levels = log_likelihoods(
        np.zeros((1, 3, 2)), np.zeros((1, 3)), np.zeros(1), occupancy_at_steps(np.array([1]))[:, :2], 2.0
    )
    assert (values == 0).all()
    assert (levels == 1).all()


@pytest.mark.parametrize("capacity", [1, 2, 7, 12, 13, 30, 100])
def test_occupancy_grows_with_taken_plugs_up_to_full(capacity):
    sites = np.array([capacity, 3])
    step, x = step_of_taken(sites), occupancy_at_steps(sites)
    assert step.shape == (2, max(capacity, 3) + 1)
    of_taken = x[0, step[0, : capacity + 1]]
    exact = np.arange(capacity + 1) / (capacity + POOL_PLUGS)
    assert of_taken[-1] == pytest.approx(capacity / (capacity + POOL_PLUGS))
    assert (np.diff(of_taken) >= 0).all()
    assert np.abs(of_taken - exact).max() <= (0 if capacity <= STEPS else 0.8 / STEPS) + 1e-12
    assert x[0, -1] == pytest.approx(capacity / (capacity + POOL_PLUGS))
    assert x[0, 0] <= (0 if capacity <= STEPS else 0.5 / STEPS)
    assert x[1, 0] == 0


def arrivals(beta, sites=20, days=80, capacity=4, shape=np.inf, seed=0):
    """Expected and observed arrivals of sites that respond to occupancy, as `log_likelihoods` reads them."""
    rng = np.random.default_rng(seed)
    x = occupancy_at_steps(np.full(sites, capacity))
    expected = np.zeros((sites, days, STEPS + 1))
    expected[:, :, :capacity] = rng.uniform(0.2, 2.5, (sites, days, capacity))
    effect = np.ones((sites, days)) if np.isinf(shape) else rng.gamma(shape, 1 / shape, (sites, days))
    count = rng.poisson(expected * np.exp(np.reshape(beta, (-1, 1, 1)) * x[:, None]) * effect[..., None]).astype(float)
    found = (count.sum(axis=1) * x).sum(axis=1)
    return fit_crowding(*log_likelihoods(expected, count.sum(axis=2), found, x, shape), TOWNS)


@pytest.mark.parametrize("shape", [np.inf, 4.0])
def test_no_response_is_found_if_there_is_none(shape):
    result = arrivals(0.0, shape=shape)
    assert result.no_response > 0.9
    assert np.abs(result.beta).max() < 0.15


@pytest.mark.parametrize("beta", [-1.0, -2.5])
@pytest.mark.parametrize("shape", [np.inf, 4.0])
def test_a_known_response_is_recovered(beta, shape):
    result = arrivals(beta, shape=shape)
    assert result.no_response < 0.01
    assert result.beta.mean() == pytest.approx(beta, abs=0.3)
    at = np.abs(BETAS - beta).argmin()
    assert result.level[:, at].mean() == pytest.approx(1.0, abs=0.05)  # the level that goes with the true response
    assert result.level[:, -1].mean() < 0.9


def test_sites_vary_around_the_common_response():
    true = np.array([-0.5, -3.0] * 10)
    result = arrivals(true, days=300)
    assert result.beta[::2].mean() == pytest.approx(-0.5, abs=0.3)
    assert result.beta[1::2].mean() == pytest.approx(-3.0, abs=0.4)
    assert result.no_response < 1e-6
    alike = arrivals(-1.5, days=4)  # few arrivals each: only their sum is informative, and no site stands out
    assert alike.beta.std() < 0.4


def prior_mean():
    """Mean of beta in the prior, over all hypotheses."""
    normal = np.exp(-(((COMMON - TOWNS.crowding) / TOWNS.crowding_spread) ** 2) / 2)
    spread = np.exp(-((SPREADS / TOWNS.site_spread) ** 2) / 2)
    total = 0.0
    for common, weight in zip(COMMON, normal / normal.sum(), strict=True):
        for sigma, also in zip(SPREADS, spread / spread.sum(), strict=True):
            shape = np.exp(-(((BETAS - common) / sigma) ** 2) / 2)
            total += weight * also * (shape @ BETAS) / shape.sum()
    return (1 - TOWNS.no_crowding) * total


def test_the_prior_decides_if_records_are_uninformative():
    """A single plug is free or taken: every arrival finds an empty site."""
    silent = arrivals(-2.0, capacity=1, sites=6)
    assert silent.no_response == pytest.approx(TOWNS.no_crowding, abs=0.02)
    assert silent.beta == pytest.approx(np.full(6, prior_mean()), abs=0.05)
    assert np.ptp(silent.level, axis=1).max() < 1e-9  # the level in free time does not depend on the response


def test_the_evidence_of_sites_accumulates():
    """Four sites with the same arrivals are stronger evidence than one."""
    one, four = (np.tile(-2.0 * (BETAS + 1.5) ** 2, (sites, 1)) for sites in (1, 4))
    alone, together = (fit_crowding(each, np.ones_like(each), TOWNS) for each in (one, four))

    def odds(result):
        return result.no_response / (1 - result.no_response)

    assert odds(together) < odds(alone) ** 3 / (TOWNS.no_crowding / (1 - TOWNS.no_crowding)) ** 2


def test_posteriors_are_probabilities():
    result = arrivals(-1.0, sites=5)
    assert result.weight.sum() == pytest.approx(1.0)
    assert result.site.sum(axis=2) == pytest.approx(np.ones(result.site.shape[:2]))
    assert result.site[0, :, np.abs(BETAS).argmin()].tolist() == [1.0] * 5  # the first hypothesis: no response
    assert (result.beta <= 0).all()


def test_the_variance_of_the_response_is_that_of_draws():
    rng = np.random.default_rng(2)
    site = rng.random((4, 3, len(BETAS))) ** 4
    site /= site.sum(axis=2, keepdims=True)
    crowding = Crowding(site, np.array([0.1, 0.2, 0.3, 0.4]), np.ones((3, len(BETAS))))
    capacity, weight = np.array([1, 2, 4]), np.array([5.0, 3.0, 2.0])
    totals = []
    for _ in range(20_000):
        h = rng.choice(4, p=crowding.weight)
        beta = [rng.choice(BETAS, p=site[h, s]) for s in range(3)]
        totals.append(weight @ np.exp(np.array(beta) * capacity / (capacity + POOL_PLUGS)))
    expected = np.var(totals) / np.mean(totals) ** 2
    assert strength(crowding, capacity, weight).variance == pytest.approx(expected, rel=0.05)


def test_the_strength_of_the_response_is_weighted_by_the_drivers_turned_away():
    site = np.zeros((3, 2, len(BETAS)))
    site[0, :, -1] = 1.0  # none
    site[1, 0, 26], site[1, 1, -1] = 1.0, 1.0  # only the first site responds
    site[2, :, 0] = 1.0  # as strongly as can be
    crowding = Crowding(site, np.array([0.2, 0.3, 0.5]), np.ones((2, len(BETAS))))
    result = strength(crowding, np.array([2, 4]), np.array([30.0, 10.0])).of_hypothesis
    x = 2 / (2 + POOL_PLUGS)
    assert result == pytest.approx([0.0, 0.75 * -BETAS[26] * x / TYPICAL, 1.0])
