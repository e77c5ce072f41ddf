"""The public interface of direct forecasters."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tests.models.direct.towns import MONDAY, demand_of, panel_of, rates, town
from tests.models.panels import lossy_panel, quick
from unmet import Forecaster
from unmet.errors import InputError
from unmet.evaluation.evaluate import evaluate
from unmet.models.direct.forecaster import DirectForecaster
from unmet.models.direct.trees import Trees
from unmet.models.network_forecaster import NetworkForecaster

HOUR = dt.timedelta(hours=1)


@pytest.fixture(scope="module")
def panel():
    return town()


@pytest.fixture(scope="module")
def model(panel):
    return Forecaster("stacked", "quantile").fit(panel)


def test_the_class_is_that_of_the_backbone():
    assert isinstance(Forecaster(), DirectForecaster)
    assert isinstance(Forecaster("climatology"), DirectForecaster)
    assert isinstance(Forecaster("tgcn"), NetworkForecaster)
    assert isinstance(clone(Forecaster("climatology", horizon=24)), DirectForecaster)
    assert clone(Forecaster("climatology", horizon=24)).horizon == 24


def test_the_default_forecasts_without_torch():
    code = (
        "import sys; from tests.models.direct.towns import town; from unmet import Forecaster; panel = town(9, 1)\n"
        "Forecaster('stacked', 'quantile').fit(panel).forecast(panel); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_forecast_has_every_region_and_hour_and_its_mean_adds_up(model, panel):
    made = model.forecast(panel).table
    assert made.height == 3 * 168
    assert made["ds"].min() == panel["ds"].max() + HOUR
    quantiles = made.select("q0.05", "q0.5", "q0.95").to_numpy()
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert (quantiles >= 0).all()
    weekly = np.array([rates(168).sum() * 12 * (1 + i) for i in range(3)])
    assert made.group_by("unique_id", maintain_order=True).agg(pl.col("mean").sum())[
        "mean"
    ].to_numpy() == pytest.approx(weekly, rel=0.15)


def test_the_default_is_as_good_as_knowing_the_rates_and_better_than_the_table(model, panel):
    found = evaluate(model, panel)
    rows = found.comparison.by_horizon().filter(pl.col("rival") == "table")
    assert (rows["skill"] > 0).all()
    assert found.overall["coverage"] == pytest.approx(0.9, abs=0.03)
    assert found.overall["bias_percent"] == pytest.approx(0, abs=8)
    assert [row["from_hour"] for row in found.horizons] == [1, 2, 4, 7, 13, 25, 49, 97, 168]


def test_draws_average_to_the_forecast_and_weekly_sums_have_the_right_spread(model, panel):
    hours, draws = model.draw(panel, 400)
    made = model.forecast(panel).table
    assert draws.shape == (400, 168, 3)
    assert hours[0] == made["ds"].min()
    assert draws.sum(axis=1).mean(axis=0).sum() == pytest.approx(made["mean"].sum(), rel=0.03)
    assert (draws == 0).mean() > 0.3
    # Independent Poisson sessions: the variance of a week's energy is E(x^2) times the sessions.
    spread = np.sqrt(rates(168).sum() * 6 * 12**2 * 1.25)
    assert 0.6 * spread < draws.sum(axis=(1, 2)).std() < 2 * spread
    again = model.draw(panel, 400)[1]
    assert (again == draws).all()


def test_a_saved_model_forecasts_the_same(model, panel, tmp_path):
    loaded = Forecaster.load(model.save(tmp_path / "model"))
    assert isinstance(loaded, DirectForecaster)
    assert_frame_equal(loaded.forecast(panel).table, model.forecast(panel).table, check_exact=True)
    (tmp_path / "model" / "arrays.safetensors").write_bytes(b"no")
    with pytest.raises(InputError, match="is damaged"):
        Forecaster.load(tmp_path / "model")


def test_the_same_seed_gives_the_same_model(model, panel):
    assert_frame_equal(Forecaster("stacked", "quantile").fit(panel).forecast(panel).table, model.forecast(panel).table)


def test_hindcasts_equal_the_forecasts_at_that_time(model, panel):
    """A forecast made on the panel cut off at a week's end equals the hindcast of its hours."""
    cut = model.split_.fit_end + dt.timedelta(days=7)
    then = model.forecast(panel.filter(pl.col("ds") < cut)).table
    for horizon in (1, 24, 168):
        row = then.filter(pl.col("horizon") == horizon)
        at = cut + (horizon - 1) * HOUR
        later = model.hindcast(panel, horizon, at).filter(pl.col("ds") == at)
        assert later["q0.95"].to_numpy() == pytest.approx(row["q0.95"].to_numpy(), rel=1e-6)
        assert later["mean"].to_numpy() == pytest.approx(row["mean"].to_numpy(), rel=1e-6)


def test_backtests_and_hindcasts_agree(model, panel):
    back = model.backtest(panel, every=24).filter(pl.col("horizon") == 24).drop("cutoff", "horizon")
    same = model.hindcast(panel, 24).join(back.select("unique_id", "ds"), on=["unique_id", "ds"], how="semi")
    assert_frame_equal(same.sort("unique_id", "ds"), back.sort("unique_id", "ds"))


def test_a_note_says_that_lightgbm_is_missing(panel, monkeypatch):
    monkeypatch.setattr(Trees, "is_installed", classmethod(lambda cls: False))
    made = Forecaster("stacked", "quantile").fit(panel)
    assert "LightGBM is not installed" in made.notes_[0]
    assert made.forecast(panel).table["mean"].sum() > 0
    with pytest.raises(InputError, match="needs LightGBM"):
        Forecaster("lightgbm", "quantile").fit(panel)


def test_true_demand_is_learned_from_draws():
    lossy = lossy_panel(hours=2400)
    seen, true = (Forecaster("regression", kind).fit(lossy).predict(lossy) for kind in ("quantile", "exposure"))
    actual = lossy.filter(pl.col("ds") >= true["ds"].min())
    assert true["mean"].sum() == pytest.approx(actual["y_true"].sum(), rel=0.06)
    assert seen["mean"].sum() == pytest.approx(actual["y"].sum(), rel=0.06)


def test_an_informative_covariate_is_used():
    hours = 20 * 168
    rng = np.random.default_rng(0)
    event = (rng.random(hours // 24) < 0.3).repeat(24).astype(float)
    panel = panel_of(demand_of(rates(hours) * (1 + 2 * event), 1)[:, None])
    panel = panel.with_columns(event=pl.Series(event))
    told, untold = (
        Forecaster("stacked", "quantile", features=names, shares=(0.6, 0.1)).fit(panel) for names in (("event",), ())
    )
    losses = [evaluate(model, panel).overall["tilted_loss_kwh"] for model in (told, untold)]
    assert losses[0] < 0.95 * losses[1]
    with pytest.raises(InputError, match="give a table of unique_id, ds and these columns"):
        told.forecast(panel)
    last = panel["ds"].max()
    future = pl.DataFrame({"ds": pl.datetime_range(last + HOUR, last + 168 * HOUR, "1h", eager=True)})
    week = [
        told.forecast(panel, 168, future.with_columns(unique_id=pl.lit("r0"), event=pl.lit(value))).table["mean"].sum()
        for value in (0.0, 1.0)
    ]
    assert week[1] > 1.8 * week[0]


def test_regions_that_are_silent_closed_new_or_short_get_sensible_forecasts():
    hours = 20 * 168
    usual = demand_of(rates(hours), 1)
    silent, closed, new, grown = np.zeros(hours), usual.copy(), np.full(hours, np.nan), demand_of(rates(hours), 2)
    closed[-5 * 168 :] = 0
    new[-24:] = demand_of(rates(24) * 2, 3)
    grown[: hours // 2] /= 10
    panel = panel_of(np.stack([usual, silent, closed, new, grown], axis=1))
    model = Forecaster("stacked", "quantile", shares=(0.9, 0.1)).fit(panel)
    made = model.forecast(panel).table
    sums = dict(made.group_by("unique_id").agg(pl.col("mean").sum()).iter_rows())
    week = rates(168).sum() * 12
    assert np.isfinite(made.select(pl.col("^q.*$|^mean$")).to_numpy()).all()
    assert sums["r1"] == 0
    assert sums["r2"] < 0.15 * week
    assert 0.3 * week < sums["r3"] < 8 * week
    assert sums["r4"] == pytest.approx(week, rel=0.3)
    said = " ".join(model.notes_)
    for name, words in (("r1", "No demand was observed in r1"), ("r2", "charged in r2 for"), ("r3", "recently in r3")):
        assert words in said, name


def test_a_week_of_records_gives_a_table_and_a_note():
    panel = town(weeks=2, regions=2)
    model = Forecaster("stacked", "quantile", shares=(0.9, 0.1)).fit(panel)
    assert "weeks to learn from" in model.notes_[0]
    assert model.forecast(panel).table["mean"].sum() > 0
    assert model.draw(panel, 20)[1].shape == (20, 168, 2)
    short = panel.filter(pl.col("ds") < MONDAY + dt.timedelta(days=5))
    with pytest.raises(InputError, match="give one week or more"):
        Forecaster("stacked", "quantile").fit(short)


def awkward(kind):
    """Difficult panels of ten weeks or more, with the expected demand of the next week, or None."""
    hours = 12 * 168
    usual = demand_of(rates(hours), 1)
    week = rates(168).sum() * 12
    if kind == "nothing anywhere":
        return panel_of(np.zeros((hours, 3))), 0.0
    if kind == "one silent region alone":
        return panel_of(np.zeros((hours, 1))), 0.0
    if kind == "one session ever":
        one = np.zeros((hours, 1))
        one[100] = 7.0
        return panel_of(one), None
    if kind == "opens in the test part":
        opened = np.full(hours, np.nan)
        opened[-30:] = demand_of(rates(30), 2)
        return panel_of(np.stack([usual, opened], axis=1)), None
    if kind == "constant":
        return panel_of(np.full((hours, 1), 5.0)), 5.0 * 168
    if kind == "a month missing":
        usual[-10 * 168 : -6 * 168] = np.nan
        return panel_of(usual[:, None]), week
    usual, closed = (demand_of(rates(2 * hours), seed) for seed in (1, 2))
    closed[-6 * 168 : -2 * 168] = 0  # closed for a month, and open again
    return panel_of(np.stack([usual, closed], axis=1)), 2 * week


@pytest.mark.parametrize(
    "kind",
    ["nothing anywhere", "one silent region alone", "one session ever", "opens in the test part", "constant",
     "a month missing", "closed and open again"],
)  # fmt: skip
def test_awkward_networks_get_sensible_forecasts(kind):
    panel, expected = awkward(kind)
    model = Forecaster("stacked", "quantile", shares=(0.8, 0.1)).fit(panel)
    ahead, past = model.forecast(panel).table, model.predict(panel)
    for made in (ahead, past):
        quantiles = made.select("q0.05", "q0.5", "q0.95").to_numpy()
        assert np.isfinite(quantiles).all()
        assert np.isfinite(made["mean"].to_numpy()).all()
        assert (np.diff(quantiles, axis=1) >= 0).all()
        assert (quantiles >= 0).all()
        assert made["no_demand"].is_between(0, 1).all()
    assert np.isfinite(model.draw(panel, 20)[1]).all()
    if expected is not None:
        assert ahead["mean"].sum() == pytest.approx(expected, rel=0.25)
    assert (evaluate(model, panel).comparison.rows["hours"] >= 0).all()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"likelihood": "tobit"}, "does not combine with likelihood tobit"),
        ({"levels": (0.9, 0.1)}, "ascending numbers"),
        ({"horizon": 0}, "at least 1"),
        ({"target": "y_true"}, "learns from y"),
        ({"shares": (0.9, 0.3)}, "sum to at most 1"),
        ({"time_zone": "Mars/Olympus"}, "Mars/Olympus"),
    ],
)
def test_invalid_options_are_refused(panel, options, says):
    with pytest.raises(InputError, match=says):
        Forecaster("stacked", **options).fit(panel)


def test_invalid_requests_are_refused(model, panel):
    with pytest.raises(NotFittedError, match="not fitted"):
        Forecaster().forecast(panel)
    with pytest.raises(InputError, match="looks 168 hours ahead"):
        model.forecast(panel, 200)
    with pytest.raises(InputError, match="comes after"):
        model.predict(panel, panel["ds"].max() + HOUR)
    with pytest.raises(InputError, match="at least one hour"):
        model.backtest(panel, every=0)
    with pytest.raises(InputError, match="draws make no sense"):
        model.draw(panel, 0)


def test_networks_have_their_own_arguments():
    assert quick("seasonal", "quantile").get_params()["lags"] == 24
    with pytest.raises(TypeError):
        Forecaster("stacked", lags=24)
