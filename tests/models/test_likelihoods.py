"""Likelihoods compared with torch, SciPy, statsmodels, scoringrules, numerical integrals and a known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scoringrules
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm
from statsmodels.regression.quantile_regression import QuantReg

from unmet.errors import InputError
from unmet.models.likelihoods import LIKELIHOODS, Observation
from unmet.models.likelihoods.base import tilted
from unmet.models.likelihoods.gaussian import MIN_SIGMA
from unmet.models.seeds import one_thread

NAMES = ("gaussian", "tobit", "quantile", "censored-quantile")
KINDS = ("known", "right", "left", "interval")
SIZES = (1e-8, 1e-6, 1e-4, 1e-2, 0.3, 1.0, 3.0, 8.0, 20.0, 40.0)  # of residuals, in sigma
RESIDUALS = [sign * size for size in SIZES for sign in (1, -1)]


def tensor(values, dtype=torch.float64):
    return torch.as_tensor(np.asarray(values, float), dtype=dtype)


def observed_as(kind, y, width=0.7):
    """An observation of demand: known to be y, at least y, at most y, or between y and y plus a width."""
    infinite = torch.full_like(y, torch.inf)
    bounds = {"known": (y, y), "right": (y, infinite), "left": (-infinite, y), "interval": (y, y + width)}
    return Observation(y, *bounds[kind])


def gaussian_outputs(mean, sigma, dtype=torch.float64):
    """Outputs for which a Gaussian has this mean and sigma."""
    raw = np.log(np.expm1(np.asarray(sigma, float) - MIN_SIGMA))
    return torch.stack(torch.broadcast_tensors(tensor(mean, dtype), tensor(raw, dtype)), -1)


def outputs_at(likelihood, residual, sigma=0.4, dtype=torch.float64):
    """Outputs whose forecasts miss y = 0.5 by `residual` sigma."""
    mean = 0.5 - sigma * np.asarray(residual, float)
    if likelihood.outputs == 2:
        return gaussian_outputs(mean, sigma, dtype)
    return tensor(mean, dtype)[..., None].repeat_interleave(len(likelihood.levels), -1)


@given(st.floats(-5, 5), st.floats(0.01, 5), st.floats(-20, 20))
def test_known_demand_has_the_density_of_torchs_normal(mean, sigma, y):
    outputs = gaussian_outputs(mean, sigma)
    expected = -torch.distributions.Normal(tensor(mean), tensor(sigma)).log_prob(tensor(y))
    for name in ("gaussian", "tobit"):
        loss = LIKELIHOODS.named(name)().loss(outputs, observed_as("known", tensor(y)))
        assert loss.item() == pytest.approx(expected.item(), rel=1e-9, abs=1e-9)


def test_tobit_tails_agree_with_torch_where_it_is_stable_and_with_scipy_everywhere():
    z = np.concatenate([np.linspace(-40, 40, 401), RESIDUALS])
    mean, sigma = 0.5 - 0.4 * z, 0.4
    tobit = LIKELIHOODS.named("tobit")()
    y = torch.full((len(z),), 0.5, dtype=torch.float64)
    right = tobit.loss(gaussian_outputs(mean, sigma), observed_as("right", y)).numpy()
    left = tobit.loss(gaussian_outputs(mean, sigma), observed_as("left", y)).numpy()
    np.testing.assert_allclose(right, -norm.logsf(z), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(left, -norm.logcdf(z), rtol=1e-9, atol=1e-300)
    below = torch.distributions.Normal(tensor(mean), sigma).cdf(y)
    stable = np.abs(z) < 4
    np.testing.assert_allclose(right[stable], -torch.log(1 - below).numpy()[stable], rtol=1e-6)
    np.testing.assert_allclose(left[stable], -torch.log(below).numpy()[stable], rtol=1e-6)


@pytest.mark.parametrize("low", [-35, -12, -6, -1, -0.3, 0, 0.4, 2, 7, 12, 35])
@pytest.mark.parametrize("width", [0.01, 0.6, 3, 30])
def test_the_likelihood_of_an_interval_is_the_integral_of_the_density(low, width):
    high = low + width
    peak = min(max(low, 0), high)  # where the density is largest: integrals are taken in units of it
    area = quad(lambda z: math.exp((peak - z) * (peak + z) / 2), low, high, points=[peak, peak - 0.1, peak + 0.1])[0]
    expected = -(math.log(area) + norm.logpdf(peak))
    observed = Observation(tensor(low * 0.4), tensor(low * 0.4), tensor(high * 0.4))
    loss = LIKELIHOODS.named("tobit")().loss(gaussian_outputs(0, 0.4), observed)
    assert loss.item() == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_the_quantile_loss_agrees_with_scoringrules():
    rng = np.random.default_rng(1)
    levels = (0.05, 0.3, 0.5, 0.95)
    y, outputs = rng.normal(size=50), rng.normal(size=(50, 4))
    expected = sum(scoringrules.quantile_score(y, outputs[:, i], level) for i, level in enumerate(levels))
    loss = LIKELIHOODS.named("quantile")(levels).loss(tensor(outputs), observed_as("known", tensor(y)))
    np.testing.assert_allclose(loss.numpy(), expected)


def minimise(parameters, loss, steps):
    optimizer = torch.optim.Adam([parameters], lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    with one_thread():
        for _ in range(steps):
            optimizer.zero_grad()
            loss(parameters).backward()
            optimizer.step()
            schedule.step()
    return parameters.detach()


def test_a_linear_quantile_model_agrees_with_statsmodels():
    rng = np.random.default_rng(2)
    x = np.column_stack([np.ones(500), rng.uniform(0, 2, 500)])
    y = 1 + 2 * x[:, 1] + (0.2 + 0.1 * x[:, 1]) * rng.normal(size=500)
    likelihood = LIKELIHOODS.named("quantile")((0.1, 0.5, 0.9))
    observed = observed_as("known", tensor(y))

    def loss(weights):
        return likelihood.loss(tensor(x) @ weights, observed).mean()

    ours = minimise(torch.zeros(2, 3, dtype=torch.float64, requires_grad=True), loss, 1000)
    theirs = np.stack([QuantReg(y, x).fit(q=level).params for level in likelihood.levels], -1)
    np.testing.assert_allclose(ours.numpy(), theirs, atol=0.01)
    assert loss(ours).item() <= loss(tensor(theirs)).item() * (1 + 1e-4)


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0, 2))
def test_censored_quantiles_have_the_papers_loss(f, tau, width):
    levels = (0.05, 0.5, 0.95)
    likelihood = LIKELIHOODS.named("censored-quantile")(levels)
    outputs, y = torch.full((3,), f, dtype=torch.float64), tensor(tau)

    def rho(e):
        return sum(max(q * e, (q - 1) * e) for q in levels)

    def ours(kind):
        return pytest.approx(likelihood.loss(outputs, observed_as(kind, y, width)).item())

    assert ours("known") == rho(tau - f)
    assert ours("right") == rho(tau - min(tau, f))
    assert ours("left") == rho(tau - max(tau, f))
    inside = 0 if tau <= f <= tau + width else rho(tau - f) if f < tau else rho(tau + width - f)
    assert ours("interval") == inside


@given(st.integers(0, 1000))
def test_aware_likelihoods_equal_their_unaware_counterparts_without_censoring(seed):
    rng = np.random.default_rng(seed)
    observed = observed_as("known", tensor(rng.normal(size=20)))
    for unaware, aware in (("gaussian", "tobit"), ("quantile", "censored-quantile")):
        twins = [LIKELIHOODS.named(name)() for name in (unaware, aware)]
        outputs = tensor(rng.normal(size=(20, twins[0].outputs)))
        a, b = (twin.loss(outputs, observed) for twin in twins)
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-12)


def test_equal_bounds_mean_that_demand_is_known():
    observed = Observation(tensor([0.1]), tensor([0.6]), tensor([0.6]))
    known = observed_as("known", tensor([0.6]))
    for name in ("tobit", "censored-quantile"):
        likelihood = LIKELIHOODS.named(name)()
        outputs = outputs_at(likelihood, [1.0])
        assert likelihood.loss(outputs, observed).item() == likelihood.loss(outputs, known).item()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_gradients_agree_with_difference_quotients(name, kind):
    likelihood = LIKELIHOODS.named(name)()
    smooth = likelihood.outputs == 2
    for residual in RESIDUALS:
        if not smooth and abs(residual) < 1e-3:
            continue  # too close to the kink for a difference quotient: the closed form is checked below
        outputs = outputs_at(likelihood, residual).requires_grad_()
        observed = observed_as(kind, tensor(0.5))
        assert torch.autograd.gradcheck(lambda out, s=observed: likelihood.loss(out, s), outputs, atol=1e-5, rtol=1e-4)


def slope(kind, residual, level, width):
    """Slope of the tilted loss in f, if f misses y by the residual."""
    below, above = -level, 1 - level
    if kind == "right":
        return below if residual > 0 else 0
    if kind == "left":
        return above if residual < 0 else 0
    if kind == "interval":
        return below if residual > 0 else above if -residual > width else 0
    return below if residual > 0 else above


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["quantile", "censored-quantile"])
def test_gradients_of_quantiles_are_the_tilts_even_close_to_the_kink(name, kind):
    likelihood = LIKELIHOODS.named(name)()
    outputs = outputs_at(likelihood, RESIDUALS, sigma=1.0).requires_grad_()
    likelihood.loss(
        outputs, observed_as(kind, torch.full((len(RESIDUALS),), 0.5, dtype=torch.float64))
    ).sum().backward()
    read = kind if likelihood.aware else "known"
    expected = [[slope(read, residual, level, 0.7) for level in likelihood.levels] for residual in RESIDUALS]
    np.testing.assert_allclose(outputs.grad.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_single_precision_gives_the_same_losses_and_gradients(name, kind):
    likelihood = LIKELIHOODS.named(name)()
    residuals = np.array([*RESIDUALS, 0.0, 300, -300, 3000, -3000])
    double = outputs_at(likelihood, residuals).requires_grad_()
    single = outputs_at(likelihood, residuals, dtype=torch.float32).requires_grad_()
    losses = likelihood.loss(single, observed_as(kind, torch.full((len(residuals),), 0.5)))
    losses.sum().backward()
    expected = likelihood.loss(double, observed_as(kind, torch.full((len(residuals),), 0.5, dtype=torch.float64)))
    expected.sum().backward()
    np.testing.assert_allclose(losses.detach().double().numpy(), expected.detach().numpy(), rtol=1e-3, atol=1e-5)
    if likelihood.outputs == 2:
        np.testing.assert_allclose(single.grad.double().numpy(), double.grad.numpy(), rtol=2e-3, atol=1e-4)
    assert torch.isfinite(single.grad).all()


@pytest.mark.parametrize("name", NAMES)
def test_extreme_outputs_and_bounds_give_finite_losses_and_gradients(name):
    likelihood = LIKELIHOODS.named(name)()
    outputs = torch.tensor([[-1e4, -200.0, 3.0], [1e4, -200.0, 3.0], [0.5, 100.0, 3.0]])[:, : likelihood.outputs]
    for kind in KINDS:
        for width in (1e-7, 1e-3, 10.0, 1e6, 1e30):
            leaf = outputs.clone().requires_grad_()
            loss = likelihood.loss(leaf, observed_as(kind, torch.full((3,), 0.5), width))
            loss.sum().backward()
            assert torch.isfinite(loss).all()
            assert torch.isfinite(leaf.grad).all()


def fitted(name, observed):
    """The constant outputs that fit observations best, as mean and sigma, or as the median."""
    likelihood = LIKELIHOODS.named(name)()
    begin = torch.full((likelihood.outputs,), 0.3, dtype=torch.float64, requires_grad=True)

    def loss(outputs):
        return likelihood.loss(outputs.expand(len(observed.y), -1), observed).mean()

    outputs = minimise(begin, loss, 150)
    if likelihood.outputs == 2:
        return [part.item() for part in likelihood.mean_and_sigma(outputs)]
    return [likelihood.quantiles(outputs)[1].item()]


def censored_above(true, threshold):
    y = np.minimum(true, threshold)
    censored = true >= threshold
    assert censored.mean() == pytest.approx(0.4, abs=0.01)
    return Observation(tensor(y), tensor(y), tensor(np.where(censored, np.inf, y)))


def test_tobit_recovers_censored_demand_and_gaussian_does_not():
    true = np.random.default_rng(3).normal(1.0, 0.4, 20_000)
    observed = censored_above(true, np.quantile(true, 0.6))
    assert fitted("tobit", observed) == [pytest.approx(1.0, rel=0.03), pytest.approx(0.4, rel=0.03)]
    mean, sigma = fitted("gaussian", observed)
    assert mean < 0.92
    assert sigma < 0.3


def test_aware_likelihoods_recover_demand_if_some_hours_are_censored_and_unaware_ones_do_not():
    rng = np.random.default_rng(4)
    true = rng.normal(1.0, 0.25, 20_000)
    observed = censored_above(true, np.where(rng.random(len(true)) < 0.41, 0.5, np.inf))
    assert fitted("tobit", observed) == [pytest.approx(1.0, rel=0.03), pytest.approx(0.25, rel=0.03)]
    assert fitted("censored-quantile", observed) == [pytest.approx(1.0, rel=0.03)]
    assert fitted("gaussian", observed)[0] < 0.85
    assert fitted("quantile", observed)[0] < 0.85


@pytest.mark.parametrize("name", NAMES)
@given(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=8, unique=True).map(sorted), st.integers(0, 10_000))
def test_quantiles_never_cross(name, levels, seed):
    likelihood = LIKELIHOODS.named(name)(levels)
    outputs = torch.from_numpy(np.random.default_rng(seed).normal(0, 5, (50, likelihood.outputs))).float()
    quantiles = likelihood.quantiles(outputs)
    assert quantiles.shape == (50, len(levels))
    assert (quantiles.diff(dim=-1) >= 0).all()


@given(st.floats(-5, 5), st.floats(0.01, 5))
def test_quantiles_of_a_gaussian_agree_with_scipy(mean, sigma):
    levels = (0.01, 0.2, 0.5, 0.975)
    quantiles = LIKELIHOODS.named("gaussian")(levels).quantiles(gaussian_outputs(mean, sigma))
    np.testing.assert_allclose(quantiles.numpy(), norm.ppf(levels, mean, sigma), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("levels", [(), (0,), (0.5, 1), (-0.1, 0.5), (0.5, 0.5), (0.9, 0.1), (0.1, math.nan, 0.9)])
def test_invalid_levels_are_refused(name, levels):
    with pytest.raises(InputError, match="give ascending numbers between 0 and 1"):
        LIKELIHOODS.named(name)(levels)


def test_levels_may_be_an_array():
    assert LIKELIHOODS.named("quantile")(np.array([0.1, 0.9])).levels == (0.1, 0.9)


@given(st.floats(-10, 10), st.floats(0.01, 0.99))
def test_the_tilted_loss_weights_both_sides_by_the_level(residual, level):
    expected = level * residual if residual > 0 else (level - 1) * residual
    assert tilted(tensor(residual), tensor(level)).item() == pytest.approx(expected)
