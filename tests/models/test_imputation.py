"""What was not seen: its distribution given what was, and models that learn from draws of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.panels import MONDAY, quick, seen_records, thinned_panel
from unmet.errors import InputError
from unmet.evaluation.measures import mean_of
from unmet.models.imputation import Hidden, Unseen, fit_unseen

HOURS = 168 * 30
WEEK = np.arange(HOURS) % 168


def seen_city(shape: float, seed: int = 1, nodes: int = 3):
    """Arrivals of a city that vary beyond Poisson by 1/shape, thinned by an exposure; energies are gamma."""
    rng = np.random.default_rng(seed)
    rate = np.outer(2 + np.sin(2 * np.pi * np.arange(168) / 24), np.arange(1, nodes + 1))
    exposure = rng.choice([1.0, 0.6, 0.2], (HOURS, nodes), p=[0.5, 0.3, 0.2])
    frailty = rng.gamma(shape, 1 / shape, (HOURS, nodes))
    arrivals = rng.poisson(rate[WEEK] * frailty * exposure).astype(float)
    lost = rng.poisson(rate[WEEK] * frailty * (1 - exposure)).astype(float)
    demand = rng.gamma(np.maximum(arrivals * 4, 1e-9), 5.0) * (arrivals > 0)
    return rate, exposure, arrivals, lost, demand


@pytest.mark.parametrize("shape", [2.0, 20.0, 1e6])
def test_rates_spread_and_energies_are_found_again(shape):
    rate, exposure, arrivals, lost, demand = seen_city(shape)
    unseen = fit_unseen(demand, seen_records(arrivals, exposure), WEEK)
    assert unseen.rate.sum() == pytest.approx(rate.sum(), rel=0.03)
    if shape < 1e3:
        assert np.median(unseen.shape) == pytest.approx(shape, rel=0.4)
    else:
        assert unseen.shape.min() > 100
    assert unseen.session_kwh == pytest.approx(np.full((8, 3), 20.0), rel=0.07)
    assert unseen.energies.mean() == pytest.approx(1)
    assert unseen.energies.std() == pytest.approx(0.5, rel=0.1)
    assert np.isinf(unseen.memory)
    hidden = unseen.hidden(seen_records(arrivals, exposure), WEEK)
    assert hidden.arrivals.sum() == pytest.approx(lost.sum(), rel=0.03)


def test_a_busy_hour_lost_more_where_hours_vary():
    """The mean given the arrivals seen is the mean over all cities in which that many were seen."""
    rng = np.random.default_rng(2)
    shape, rate, exposure = 3.0, 6.0, 0.4
    frailty = rng.gamma(shape, 1 / shape, 2_000_000)
    seen, lost = rng.poisson(rate * exposure * frailty), rng.poisson(rate * (1 - exposure) * frailty)
    week, one = np.full((168, 1), rate), np.ones(1)
    unseen = Unseen(
        rate=week,
        shape=shape * one,
        memory=np.inf,
        session_kwh=np.ones((8, 1)),
        energies=one,
        weight=week,
        own=np.ones_like(week),
        nearby=0 * one,
    )
    for number in (0, 2, 5):
        given_seen = lost[seen == number]
        hidden = unseen.hidden(
            seen_records(np.full((20_000, 1), float(number)), np.full((20_000, 1), exposure)),
            np.zeros(20_000, np.int64),
        )
        assert hidden.arrivals.mean() == pytest.approx(given_seen.mean(), rel=0.02)
        drawn = hidden.draw_arrivals(rng)
        assert drawn.mean() == pytest.approx(given_seen.mean(), rel=0.03)
        assert drawn.var() == pytest.approx(given_seen.var(), rel=0.06)


@settings(max_examples=30, deadline=None)
@given(st.floats(0, 20), st.floats(0.5, 1e4), st.floats(1, 60), st.floats(0.05, 2), st.integers(0, 100))
def test_draws_have_the_mean_that_is_expected(arrivals, shape, energy, spread, seed):
    cells = 20_000
    single = np.random.default_rng(seed).gamma(1 / spread**2, spread**2, 64)
    single /= single.mean()
    whole = [np.full((cells, 1), value) for value in (arrivals, shape, energy)]
    half = np.full((cells, 1), 0.5)
    hidden = Hidden(*whole, single, half, half, np.zeros(1))
    drawn = hidden.draw(np.random.default_rng(seed))
    variance = arrivals * energy**2 * (single**2).mean() + (arrivals * energy) ** 2 / shape
    assert drawn.min() >= 0
    assert drawn.mean() == pytest.approx(arrivals * energy, abs=6 * np.sqrt(variance / cells) + 1e-9)
    assert hidden.expected_kwh().mean() == pytest.approx(arrivals * energy)


@pytest.mark.parametrize("spread", [0.1, 0.3])
def test_an_unsure_market_share_makes_draws_vary_around_the_same_mean(spread):
    cells, exposure = 100_000, 0.2
    whole = [np.full((cells, 1), value) for value in (8.0, 1e4, 20.0)]
    seen = np.full((cells, 1), exposure)
    hidden = Hidden(*whole, np.ones(1), seen, 1 - seen, np.array([spread]))
    sure = replace(hidden, spread=np.zeros(1))
    rng = np.random.default_rng(4)
    drawn = hidden.draw_arrivals(rng)
    assert drawn.mean() == pytest.approx(8.0, rel=0.02)
    # by 1 / share, of which 1 - exposure of the mean was not seen
    beyond = (8.0 / (1 - exposure)) ** 2 * (np.exp(spread**2) - 1)
    assert drawn.var() == pytest.approx(sure.draw_arrivals(rng).var() + beyond, rel=0.03)


def test_nothing_is_hidden_from_an_hour_that_was_exposed():
    _, exposure, arrivals, _, demand = seen_city(5.0)
    unseen = fit_unseen(demand, seen_records(arrivals, exposure), WEEK)
    for whole in (np.ones_like(exposure), np.full_like(exposure, np.nan)):
        hidden = unseen.hidden(seen_records(arrivals, whole), WEEK)
        assert hidden.expected_kwh().sum() == 0
        assert hidden.draw(np.random.default_rng(0)).sum() == 0


def test_missing_hours_tell_nothing_and_are_expected_from_the_rate():
    rate, exposure, arrivals, _, demand = seen_city(1e6)
    gap = slice(96, 912)  # whole days
    holed, counted = demand.copy(), arrivals.copy()
    holed[gap], counted[gap] = np.nan, np.nan
    unseen = fit_unseen(holed, seen_records(counted, exposure), WEEK)
    assert unseen.rate.sum() == pytest.approx(rate.sum(), rel=0.03)
    hidden = unseen.hidden(seen_records(counted, exposure), WEEK)
    assert np.isfinite(hidden.arrivals).all()
    assert hidden.arrivals[gap] == pytest.approx(((1 - exposure) * unseen.rate[WEEK])[gap], rel=1e-6)


def test_a_panel_without_arrivals_gives_a_sentence():
    zero = np.zeros((HOURS, 2))
    with pytest.raises(InputError, match="No arrival was seen"):
        fit_unseen(zero, seen_records(zero, zero + 1), WEEK)


@pytest.fixture(scope="module")
def thinned() -> pl.DataFrame:
    return thinned_panel()


@pytest.mark.parametrize("backbone", ["linear", "mlp"])
def test_a_model_that_imputes_finds_what_was_hidden(thinned, backbone):
    bias = {}
    for likelihood in ("quantile", "exposure"):
        model = quick(backbone, likelihood, horizon=1, epochs=40).fit(thinned)
        ahead = model.predict(thinned, model.split_.fit_end)
        made = ahead.join(thinned.with_columns(pl.col("ds").cast(ahead.schema["ds"])), on=["unique_id", "ds"])
        expected = mean_of(made.select("q0.05", "q0.5", "q0.95").to_numpy(), (0.05, 0.5, 0.95)).sum()
        bias[likelihood] = expected / made["y_true"].sum() - 1
    assert bias["quantile"] < -0.2
    assert abs(bias["exposure"]) < 0.07


def test_it_survives_saving_and_needs_its_columns(thinned, tmp_path):
    from unmet import Forecaster

    model = quick("linear", "exposure").fit(thinned)
    again = Forecaster.load(model.save(tmp_path / "m"))
    assert again.forecast(thinned).equals(model.forecast(thinned))
    assert again.predict(thinned).equals(model.predict(thinned))
    with pytest.raises(InputError, match="no column exposure"):
        model.forecast(thinned.drop("exposure"))
    with pytest.raises(InputError, match="no column arrivals"):
        quick("linear", "exposure").fit(thinned.drop("arrivals"))


@pytest.mark.parametrize(("column", "value"), [("exposure", 1.2), ("exposure", -0.1), ("arrivals", -1.0)])
def test_rows_with_impossible_exposure_or_arrivals_are_set_aside(thinned, column, value):
    broken = thinned.with_columns(
        pl.when(pl.col("ds") == MONDAY).then(value).otherwise(column).cast(pl.Float64).alias(column)
    )
    model = quick("seasonal", "exposure").fit(broken)
    assert any("2 rows of the panel could not be used" in note for note in model.notes_)


def test_what_is_imputed_is_not_called_the_truth(thinned):
    flagged = thinned.with_columns(censored=pl.col("exposure") < 1)
    assert not quick("seasonal", "exposure").fit(flagged).notes_
    assert "takes them for the truth" in quick("seasonal", "quantile").fit(flagged).notes_[0]


def test_it_learns_from_records_alone(thinned):
    with pytest.raises(InputError, match="learns from y, not from y_true"):
        quick("seasonal", "exposure", target="y_true").fit(thinned)
    for name in ("arrivals", "exposure", "y_true"):
        with pytest.raises(InputError, match="not known before its hour"):
            quick("seasonal", "quantile", features=(name,)).fit(thinned)


@pytest.mark.parametrize("share", [0.3, 0.03, 0.005])
def test_a_small_market_share_is_made_up_for(share):
    rng = np.random.default_rng(8)
    rate = np.full((168, 2), 40.0)
    exposure = np.full((HOURS, 2), share)
    arrivals = rng.poisson(rate[WEEK] * exposure).astype(float)
    unseen = fit_unseen(20 * arrivals, seen_records(arrivals, exposure), WEEK)
    assert unseen.rate.mean() == pytest.approx(40.0, rel=0.05)
