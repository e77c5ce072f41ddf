"""Degenerate panels: each is either fitted, with finite forecasts, or refused with a remedy."""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import polars as pl
import pytest

from tests.models.panels import HOUR, LAGS, MONDAY, PAPER, quick, small_panel
from unmet.errors import InputError
from unmet.models.series import read_series

PANEL, LONG = small_panel(hours=250), small_panel(hours=400)


def after(hours):
    return pl.col("ds") >= MONDAY + hours * HOUR


def of(name):
    return pl.col("unique_id") == name


def some(share, panel=PANEL):
    return pl.Series(np.random.default_rng(1).random(panel.height) < share)


def set_y(value, where):
    return PANEL.with_columns(y=pl.when(where).then(value).otherwise("y"))


FITTED = {
    "all zero": PANEL.with_columns(y=pl.lit(0.0)),
    "one region": PANEL.filter(of("r0")),
    "constant": PANEL.with_columns(y=pl.lit(3.0)),
    "tiny": PANEL.with_columns(y=pl.col("y") * 1e-9),
    "huge": PANEL.with_columns(y=pl.col("y") * 1e12),
    "one spike": PANEL.with_columns(
        y=pl.when(of("r0") & (pl.col("ds") == MONDAY + 99 * HOUR)).then(1e6).otherwise("y")
    ),
    "all hours censored": PANEL.with_columns(censored=pl.lit(1)),
    "all hours censored on the left": PANEL.with_columns(censored=pl.lit(-1)),
    "all hours within wide bounds": PANEL.with_columns(censored=pl.lit(1), lower=pl.lit(0.0), upper=pl.lit(1e6)),
    "all hours within narrow bounds": PANEL.with_columns(
        censored=pl.lit(1), lower=pl.col("y"), upper=pl.col("y") * (1 + 1e-9) + 1e-12
    ),
    "all zero and censored": PANEL.with_columns(y=pl.lit(0.0), censored=pl.lit(True)),
    "a region censored throughout": PANEL.with_columns(censored=of("r1")),
    "a fifth missing and a gap of a week": LONG.filter(~some(0.2, LONG) & ~(after(90) & ~after(258))),
    "a region that opens halfway": PANEL.filter(~of("r1") | after(125)),
    "a region that closes halfway": PANEL.filter(~of("r1") | ~after(125)),
    "a region with nothing until the test part": set_y(0.0, of("r2") & ~after(230)),
}
ROWS = {
    "duplicate rows": pl.concat([PANEL, PANEL.head(50)]),
    "some negative": set_y(-1.0, some(0.1)),
    "some empty": set_y(None, some(0.1)),
    "some not a number": set_y(float("nan"), some(0.1)),
    "some infinite": set_y(float("inf"), some(0.1)),
    "some text": PANEL.with_columns(y=pl.when(some(0.1)).then(pl.lit("closed")).otherwise(pl.col("y").cast(str))),
    "some between hours": PANEL.with_columns(ds=pl.when(some(0.1)).then(pl.col("ds") + HOUR / 2).otherwise("ds")),
    "naive times": PANEL.with_columns(pl.col("ds").dt.replace_time_zone(None)),
    "other columns": PANEL.with_columns(weather=pl.lit("rain"), nested=pl.lit([1, 2])),
    "whole numbers": PANEL.with_columns(pl.col("y").cast(int), unique_id=pl.col("unique_id").str.slice(1).cast(int)),
}


def assert_finite_forecasts(forecaster, panel):
    regions, hours = len(forecaster.regions_), read_series(panel).hours
    forecast, predicted = forecaster.forecast(panel).table, forecaster.predict(panel)
    assert forecast.height == 24 * regions
    assert predicted.height == (hours - LAGS) * regions
    for frame in (forecast, predicted):
        quantiles = frame.select(pl.col("^q.*$")).to_numpy()
        assert np.isfinite(quantiles).all()
        assert (np.diff(quantiles) >= 0).all()
        assert (quantiles >= 0).all()


@pytest.mark.parametrize("likelihood", PAPER)
@pytest.mark.parametrize("name", FITTED)
def test_odd_panels_give_finite_forecasts(name, likelihood):
    panel = FITTED[name]
    forecaster = quick("tgcn", likelihood, epochs=1).fit(panel)
    assert np.isfinite(forecaster.losses_).all()
    assert_finite_forecasts(forecaster, panel)


@pytest.mark.parametrize("backbone", ["mlp", "linear", "seasonal"])
@pytest.mark.parametrize("name", ["all zero", "all hours censored", "a fifth missing and a gap of a week", "one spike"])
def test_odd_panels_give_finite_forecasts_with_other_backbones(name, backbone):
    panel = FITTED[name]
    forecaster = quick(backbone, "tobit", horizon=1).fit(panel)
    assert np.isfinite(forecaster.predict(panel).select(pl.col("^q.*$")).to_numpy()).all()
    assert forecaster.forecast(panel).table.height == 3


@pytest.mark.parametrize("name", ROWS)
def test_odd_rows_are_used_or_set_aside_and_the_rest_is_fitted(name):
    forecaster = quick(epochs=1).fit(ROWS[name])
    assert_finite_forecasts(forecaster, ROWS[name])


def test_invalid_rows_count_as_missing_and_are_reported():
    whole, clean = read_series(PANEL), read_series(PANEL.filter(~some(0.1)))
    for name, panel in ROWS.items():
        series = read_series(panel)
        if name.startswith("some"):
            np.testing.assert_array_equal(series.demand, clean.demand)
            assert series.set_aside.height == some(0.1).sum()
        elif name != "whole numbers":
            np.testing.assert_array_equal(series.demand, whole.demand)
    twice = read_series(ROWS["duplicate rows"]).set_aside
    assert (twice.height, twice["reason"].unique().to_list()) == (50, ["occurs twice for its region"])


def test_a_constant_region_is_forecast_as_constant():
    for likelihood in PAPER:
        forecaster = quick("tgcn", likelihood, epochs=25).fit(FITTED["constant"])
        assert forecaster.forecast(FITTED["constant"]).table["q0.5"].to_numpy() == pytest.approx(3.0, rel=0.1)


def test_regions_of_any_size_are_forecast_at_their_own_scale():
    forecasts = {
        name: quick(epochs=4).fit(FITTED[name]).forecast(FITTED[name]).table["q0.5"].to_numpy()
        for name in ("tiny", "huge")
    }
    np.testing.assert_allclose(forecasts["tiny"] * 1e21, forecasts["huge"], rtol=1e-3)


REFUSED = {
    "too short": (PANEL.filter(~after(50)), "give 240 hours or more, or fewer lags"),
    "no row": (PANEL.head(0), "it needs unique_id, ds"),
    "no columns": (pl.DataFrame(), "no column unique_id, ds, y"),
    "no y": (PANEL.drop("y"), "no column y"),
    "all y negative": (PANEL.with_columns(y=pl.lit(-1.0)), "it needs unique_id, ds (a full hour) and y"),
    "all y text": (PANEL.with_columns(y=pl.lit("many")), "it needs unique_id, ds (a full hour) and y"),
    "all y empty": (PANEL.with_columns(y=pl.lit(None, pl.Float64)), "it needs unique_id, ds (a full hour) and y"),
    "all y not a number": (PANEL.with_columns(y=pl.lit(float("nan"))), "it needs unique_id, ds (a full hour) and y"),
    "never a full hour": (PANEL.with_columns(ds=pl.col("ds") + HOUR / 4), "it needs unique_id, ds (a full hour) and y"),
    "no time": (PANEL.with_columns(ds=pl.lit("soon")), "it needs unique_id, ds (a full hour) and y"),
    "a nested y": (PANEL.with_columns(y=pl.lit([1.0])), "give text, numbers or times"),
    "a region only in the test part": (PANEL.filter(~of("r1") | after(230)), "leave it out of the panel"),
    "nothing to stop by": (PANEL.filter(~after(199) | after(226)), "give a longer panel"),
    "a date long ago": (
        pl.concat([PANEL, PANEL.head(1).with_columns(ds=pl.lit(dt.datetime(1950, 1, 1), pl.Datetime("us", "UTC")))]),
        "check its dates",
    ),
    "a date far ahead": (
        pl.concat([PANEL, PANEL.head(1).with_columns(ds=pl.lit(dt.datetime(2150, 1, 1), pl.Datetime("us", "UTC")))]),
        "check its dates",
    ),
    "not a table": (np.ones(3), "give a Polars, pandas or PyArrow frame"),
    "no file": ("nowhere.parquet", "check the path"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_hopeless_panels_are_refused_with_a_remedy(name):
    panel, remedy = REFUSED[name]
    with pytest.raises(InputError, match=re.escape(remedy)):
        quick().fit(panel)


@pytest.mark.parametrize(
    ("lags", "shares"), [(24, (0.8, 0.1)), (168, (0.8, 0.1)), (24, (0.5, 0.5)), (48, (0.33, 0.07))]
)
def test_the_number_of_hours_that_the_message_asks_for_is_enough(lags, shares):
    with pytest.raises(InputError) as told:
        quick("seasonal", lags=lags, shares=shares).fit(PANEL.filter(~after(lags)))
    needed = int(re.search(r"give (\d+) hours or more", str(told.value)).group(1))
    panel = small_panel(hours=needed)
    assert quick("seasonal", lags=lags, shares=shares).fit(panel).forecast(panel).table.height == 72


def test_a_fitted_model_accepts_panels_with_gaps_and_refuses_other_regions():
    forecaster = quick().fit(PANEL)
    holes = [FITTED[name] for name in ("a fifth missing and a gap of a week", "a region that closes halfway")]
    for panel in (*holes, ROWS["some negative"], ROWS["naive times"]):
        assert_finite_forecasts(forecaster, panel)
    for wrong in (PANEL.filter(of("r0")), PANEL.with_columns(unique_id=pl.col("unique_id") + "x")):
        for use in (forecaster.predict, forecaster.forecast, forecaster.backtest):
            with pytest.raises(InputError, match="same regions"):
                use(wrong)
