"""Baselines recover lost demand if their assumptions hold."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.study.grids import MONDAY, small_scene
from unmet.models.forecaster import quantile_column
from unmet.models.likelihoods import LEVELS, LIKELIHOODS, Observation
from unmet.models.training import Training
from unmet.study.baselines import BASELINES
from unmet.study.baselines.cqrnn import GRID
from unmet.study.baselines.ratio import weighted_quantiles
from unmet.study.cells import perform, plan_runs
from unmet.study.execute import execute
from unmet.study.scenes import Scene
from unmet.study.store import Store

HOURS = 24 * 7 * 26


def thinned_scene(seed: int, least: float = 0.2) -> Scene:
    """Poisson arrivals of 10 kWh each by hour of the day, each observed with a probability equal to the exposure."""
    rng = np.random.default_rng(seed)
    ds = pl.datetime_range(MONDAY, MONDAY + dt.timedelta(hours=HOURS - 1), "1h", time_zone="UTC", eager=True)
    rate = 30 + 20 * np.sin(np.arange(HOURS) * 2 * np.pi / 24)
    true, exposure = rng.poisson(rate), rng.uniform(least, 1, HOURS)
    seen = rng.binomial(true, exposure)
    columns = {"y": 10.0 * seen, "y_true": 10.0 * true, "arrivals": seen, "exposure": exposure, "censored": seen < true}
    panel = pl.DataFrame({"unique_id": ["r0"] * HOURS, "ds": ds, **columns})
    return Scene({"queue": "first-come", "penetration": 0.05}, panel, None, "UTC")


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_equal_weights_give_the_sample_quantile(values, level):
    ours = weighted_quantiles(np.array(values), np.ones(len(values)), (level,))[0]
    assert ours == np.quantile(values, level, method="inverted_cdf")


@pytest.mark.parametrize("name", ["seen-over-exposed", "poisson"])
def test_unexposed_demand_is_recovered(name):
    """Both recover the true level, of which the records show 60 %, with intervals that cover it."""
    scene = thinned_scene(1)
    ahead = BASELINES.named(name)().forecast(scene, LEVELS, 1, Training())
    test = scene.panel.join(ahead, on=["unique_id", "ds"])
    assert test.height == ahead.height == HOURS - round(0.9 * HOURS)
    median = test[quantile_column(0.5)].mean()
    assert median == pytest.approx(test["y_true"].mean(), rel=0.05)
    assert test["y"].mean() < 0.7 * test["y_true"].mean()
    inside = test.select(pl.col("y_true").is_between(quantile_column(0.05), quantile_column(0.95)).mean()).item()
    assert 0.85 <= inside <= 1.0


def test_the_poisson_rate_equals_that_of_a_glm_with_log_exposure_as_offset():
    import statsmodels.api as sm

    scene = thinned_scene(2)
    ahead = BASELINES.named("poisson")().forecast(scene, (0.5,), 1, Training())
    train = scene.panel[: int(0.8 * HOURS)]
    kind = train["ds"].dt.hour() + 24 * (train["ds"].dt.weekday() > 5).cast(pl.Int8)
    fitted = sm.GLM(
        train["arrivals"].to_numpy(),
        kind.to_dummies().to_numpy().astype(float),
        family=sm.families.Poisson(),
        offset=np.log(train["exposure"].to_numpy()),
    ).fit()
    monday_noon = ahead.filter(pl.col("ds").dt.hour() == 12, pl.col("ds").dt.weekday() == 1)[quantile_column(0.5)][0]
    column = kind.to_dummies().columns.index("ds_12")
    # The median of a gamma distribution lies a little below its mean.
    assert monday_noon == pytest.approx(10 * np.exp(fitted.params[column]), rel=0.02)


def test_cqrnn_without_covariates_is_the_kaplan_meier_estimate():
    """Portnoy's weights generalise Kaplan and Meier's redistribution to the right."""
    rng = np.random.default_rng(3)
    true, bound = rng.gamma(4, 0.1, 2000), rng.gamma(5, 0.1, 2000)
    censored = bound < true
    seen = np.minimum(true, bound)
    y = torch.tensor(seen)
    upper = torch.where(torch.tensor(censored), torch.inf, y)
    likelihood = LIKELIHOODS.named("cqrnn")(LEVELS)
    outputs = torch.linspace(0.1, 0.8, len(GRID), dtype=torch.float64).requires_grad_()
    optimizer = torch.optim.Adam([outputs], lr=0.01)
    for step in range(600):
        optimizer.param_groups[0]["lr"] = 0.01 * (1 - step / 600) + 1e-4
        optimizer.zero_grad()
        likelihood.loss(outputs.expand(len(seen), -1), Observation(y, y, upper)).mean().backward()
        optimizer.step()
    order = np.argsort(seen)
    at_risk = np.arange(len(seen), 0, -1)
    survival = np.cumprod(1 - ~censored[order] / at_risk)
    for level in (0.25, 0.5, 0.75):
        expected = seen[order][np.searchsorted(-survival, -(1 - level))]
        assert outputs.detach().numpy()[GRID.index(level)] == pytest.approx(expected, abs=0.02)
        assert np.quantile(seen, level) < expected


def test_cqrnn_interpolates_sorted_quantiles():
    likelihood = LIKELIHOODS.named("cqrnn")((0.05, 0.525, 0.95))
    outputs = torch.arange(19.0).flip(0)
    assert likelihood.quantiles(outputs).tolist() == pytest.approx([0.0, 9.5, 18.0])


def test_a_baseline_is_scored_like_a_model():
    scene = small_scene(hours=24 * 40)
    for run in plan_runs([scene], ["seen-over-exposed", "poisson"], ["tgcn"], 1, 1):
        row = perform(run, scene).row
        assert row["tilted_loss"] > 0
        assert row["tilted_loss_true"] <= row["tilted_loss"]  # the largest true demand is at least the largest observed
        assert 0.5 < row["icp"] <= 1


def test_baselines_give_the_same_rows_in_other_processes(tmp_path):
    """Networks and baselines on one scene give the same rows with two workers as with one."""
    scene = small_scene(hours=24 * 40)
    runs = plan_runs([scene], ["quantile", "seen-over-exposed", "poisson"], ["seasonal"], 1, 1, 1)
    rows = []
    for workers in (1, 2):
        store = Store(tmp_path / str(workers))
        assert not execute(runs, [scene], store, workers=workers).failed
        rows.append(store.rows(runs))
    assert rows[0].equals(rows[1])
