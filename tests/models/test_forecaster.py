"""The public interface of forecasters."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch import nn

from tests.models.panels import HOUR, LAGS, MONDAY, OURS, PAPER, POSITIONS, capped, hours_from, quick, small_panel
from unmet.errors import InputError
from unmet.models.backbones import BACKBONES, Backbone
from unmet.models.forecaster import Forecaster
from unmet.models.likelihoods import LIKELIHOODS
from unmet.models.likelihoods.base import Likelihood
from unmet.models.training import Training

PANEL = small_panel()
END = MONDAY + 400 * HOUR


@pytest.fixture(scope="module")
def fitted():
    return quick(levels=(0.1, 0.5, 0.9), seeds=2).fit(PANEL, POSITIONS)


def quantile_array(frame):
    return frame.select(pl.col("^q.*$")).to_numpy()


def test_forecasters_follow_scikit_learns_conventions():
    forecaster = Forecaster("mlp", "tobit", levels=[0.2, 0.8], lags=48, training=Training(epochs=7))
    twin = clone(forecaster)
    assert twin is not forecaster
    assert twin.get_params() == forecaster.get_params()
    assert twin.set_params(lags=12, likelihood="gaussian") is twin
    assert (twin.lags, twin.likelihood, forecaster.lags) == (12, "gaussian", 48)
    assert "backbone='mlp'" in repr(forecaster)
    assert "lags=48" in repr(forecaster)
    with pytest.raises(ValueError, match="Invalid parameter"):
        twin.set_params(lag=12)


def test_fit_returns_self_and_does_not_change_options(fitted):
    forecaster = quick("linear")
    before = forecaster.get_params()
    assert forecaster.fit(PANEL) is forecaster
    assert forecaster.get_params() == before
    assert forecaster.finished_
    assert [len(losses) for losses in forecaster.losses_] == [2]
    assert fitted.seeds_ == (1, 2)
    assert fitted.regions_ == ("r0", "r1", "r2")
    with pytest.raises(NotFittedError, match="call fit first"):
        clone(forecaster).predict(PANEL)


def test_the_same_seed_gives_the_same_forecasts_without_changing_torchs_random_state(fitted, tmp_path):
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    again = clone(fitted).fit(PANEL, POSITIONS)
    frames = again.forecast(PANEL).table, again.predict(PANEL)
    Forecaster.load(again.save(tmp_path / "model"))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert_frame_equal(frames[0], fitted.forecast(PANEL).table, check_exact=True)
    assert_frame_equal(frames[1], fitted.predict(PANEL), check_exact=True)
    other = clone(fitted).set_params(seed=7).fit(PANEL, POSITIONS)
    assert (quantile_array(other.forecast(PANEL).table) != quantile_array(fitted.forecast(PANEL).table)).all()


def test_positions_connect_regions(fitted):
    alone = clone(fitted).fit(PANEL)
    assert (quantile_array(alone.predict(PANEL)) != quantile_array(fitted.predict(PANEL))).any()


def test_frames_of_any_kind_give_the_same_forecasts(fitted):
    expected = fitted.forecast(PANEL).table
    shuffled = PANEL.sample(fraction=1, shuffle=True, seed=1)
    for panel in (PANEL.to_pandas(), PANEL.to_arrow(), PANEL.lazy(), shuffled):
        made = fitted.forecast(panel)
        assert_frame_equal(made.hours, expected, check_exact=True)
        assert type(made.table) is type(panel.collect() if isinstance(panel, pl.LazyFrame) else panel)
    pandas = clone(fitted).fit(shuffled.to_pandas(), pl.DataFrame(POSITIONS).to_pandas())
    assert_frame_equal(pandas.forecast(PANEL).table, expected, check_exact=True)


def test_a_forecast_has_every_hour_after_the_panel_for_every_region(fitted):
    forecast = fitted.forecast(PANEL).table
    assert forecast.columns == ["unique_id", "ds", "horizon", "q0.1", "q0.5", "q0.9"]
    assert forecast["unique_id"].to_list() == [name for name in fitted.regions_ for _ in range(24)]
    for part in forecast.partition_by("unique_id"):
        assert part["ds"].to_list() == hours_from(END, 24).to_list()
        assert part["horizon"].to_list() == list(range(1, 25))
    assert fitted.forecast(PANEL, hours=3).table["ds"].max() == END + 2 * HOUR
    assert_frame_equal(fitted.forecast(PANEL, hours=3).table, forecast.filter(pl.col("horizon") <= 3), rel_tol=1e-4)


def test_a_prediction_has_every_past_hour_with_enough_hours_before_it(fitted):
    predicted = fitted.predict(PANEL)
    assert predicted.columns == ["unique_id", "ds", "q0.1", "q0.5", "q0.9"]
    for part in predicted.partition_by("unique_id"):
        assert part["ds"].to_list() == hours_from(MONDAY + LAGS * HOUR, 400 - LAGS).to_list()
    for since in (MONDAY + 300 * HOUR, MONDAY + 299.5 * HOUR, (MONDAY + 300 * HOUR).replace(tzinfo=None)):
        late = fitted.predict(PANEL, since)
        assert late["ds"].min() == MONDAY + 300 * HOUR
        assert_frame_equal(late, predicted.filter(pl.col("ds") >= MONDAY + 300 * HOUR), rel_tol=1e-4)
    with pytest.raises(InputError, match="give a longer panel"):
        fitted.predict(PANEL, END)


def test_the_forecast_is_the_mean_over_seeds():
    forecaster = quick("mlp", seeds=3, calibrate=False, floor=None).fit(PANEL)
    each = forecaster.predict(PANEL, each=True)
    assert each["seed"].unique().to_list() == [1, 2, 3]
    mean = each.group_by("unique_id", "ds", maintain_order=True).agg(pl.col("^q.*$").mean())
    assert_frame_equal(mean, forecaster.predict(PANEL), rel_tol=1e-6)


@pytest.mark.parametrize("backbone", OURS)
def test_the_first_hour_of_a_forecast_is_the_prediction_of_that_hour(backbone):
    forecaster = quick(backbone, "gaussian").fit(PANEL)
    hour = MONDAY + 390 * HOUR
    first = forecaster.forecast(PANEL.filter(pl.col("ds") < hour)).table.filter(pl.col("horizon") == 1).drop("horizon")
    predicted = forecaster.predict(PANEL, hour).filter(pl.col("ds") == hour)
    assert_frame_equal(first, predicted, rel_tol=1e-4)


def test_a_backtest_gives_the_forecasts_that_would_have_been_made(fitted):
    back = fitted.backtest(PANEL, MONDAY + 350 * HOUR, every=10)
    assert back["cutoff"].unique().sort().to_list() == [MONDAY + hours * HOUR for hours in (350, 360, 370)]
    for (cutoff,), part in back.group_by("cutoff"):
        made = fitted.forecast(PANEL.filter(pl.col("ds") < cutoff)).table
        assert_frame_equal(part.select(made.columns), made, rel_tol=1e-4)
    assert fitted.backtest(PANEL, MONDAY + 349.5 * HOUR)["cutoff"].min() == MONDAY + 350 * HOUR
    assert fitted.backtest(PANEL)["cutoff"].min() == fitted.split_.fit_end
    with pytest.raises(InputError, match="give a longer panel"):
        fitted.backtest(PANEL, END)
    with pytest.raises(InputError, match="at least one hour"):
        fitted.backtest(PANEL, every=0)


def test_the_panel_is_split_in_time():
    split = quick("seasonal", shares=(0.6, 0.3)).fit(PANEL).split_
    assert (split.first, split.train_end, split.fit_end) == (MONDAY, MONDAY + 240 * HOUR, MONDAY + 360 * HOUR)


@pytest.mark.parametrize("hours", [0, -1, 25])
def test_hours_beyond_the_horizon_are_refused(fitted, hours):
    with pytest.raises(InputError, match="ask for"):
        fitted.forecast(PANEL, hours=hours)


@pytest.mark.parametrize("likelihood", PAPER)
@pytest.mark.parametrize("floor", [0.0, 4.0, None])
def test_quantiles_are_ascending_and_not_below_the_floor(likelihood, floor):
    levels = (0.01, 0.25, 0.5, 0.75, 0.99)
    forecaster = quick("linear", likelihood, levels=levels, floor=floor).fit(PANEL)
    for frame in (forecaster.forecast(PANEL).table, forecaster.predict(PANEL), forecaster.backtest(PANEL)):
        quantiles = quantile_array(frame)
        assert [column for column in frame.columns if column[0] == "q"] == ["q0.01", "q0.25", "q0.5", "q0.75", "q0.99"]
        assert (np.diff(quantiles) >= 0).all()
        if floor is None:
            assert quantiles.min() < 0
        else:
            assert quantiles.min() >= floor * (1 - 1e-12)


def heated(panel):
    """A column that nearly determines the demand of an hour."""
    noise = np.random.default_rng(3).normal(0, 0.1, panel.height)
    return panel.with_columns(heat=pl.col("y") + noise)


@pytest.fixture(scope="module")
def heat():
    panel = heated(small_panel(hours=424, seed=9).with_columns(y=pl.Series(np.random.default_rng(4).gamma(2, 3, 1272))))
    return panel.filter(pl.col("ds") < END), panel.filter(pl.col("ds") >= END)


def test_an_informative_feature_is_used(heat):
    past, future = heat
    told = quick("linear", epochs=40, features=("heat",)).fit(past)
    untold = quick("linear", epochs=40).fit(past)
    assert min(loss for _, loss in told.losses_[0]) < 0.4 * min(loss for _, loss in untold.losses_[0])
    forecast = told.forecast(past, future=future.select("unique_id", "ds", "heat")).table
    error = (forecast["q0.5"] - future["y"]).abs().mean()
    assert error < 0.4 * (untold.forecast(past).table["q0.5"] - future["y"]).abs().mean()


def test_features_of_future_hours_may_have_more_rows_and_columns_than_needed(heat, tmp_path):
    past, future = heat
    forecaster = quick("linear", features=["heat"]).fit(past)
    future.write_csv(tmp_path / "future.csv")
    longer = pl.concat([past, future.with_columns(y=pl.lit(None, pl.Float64))])
    expected = forecaster.forecast(past, future=future.select("unique_id", "ds", "heat")).table
    for more in (future, longer, future.to_pandas()):
        assert_frame_equal(forecaster.forecast(past, future=more).table, expected, check_exact=True)
    assert_frame_equal(forecaster.forecast(past, future=tmp_path / "future.csv").table, expected)


def test_features_of_future_hours_are_required(heat):
    past, future = heat
    forecaster = quick("linear", features=("heat",)).fit(past)
    for wrong, remedy in (
        (None, "give a table of unique_id, ds and these columns"),
        (future.drop("heat"), "no column heat"),
        (future.filter(pl.col("ds") != END + 5 * HOUR), "complete the table"),
        (future.filter(pl.col("ds") > END), "complete the table"),
        (future.filter(pl.col("ds") < END + 23 * HOUR), "complete the table"),
        (future.filter(pl.col("unique_id") != "r1"), "same regions"),
        (future.with_columns(heat=pl.lit(None, pl.Float64)), "complete the table"),
        ("no such file.parquet", "check the path"),
    ):
        with pytest.raises(InputError, match=remedy):
            forecaster.forecast(past, future=wrong)
    assert forecaster.forecast(past, 3, future.filter(pl.col("ds") < END + 3 * HOUR)).table.height == 9
    assert forecaster.predict(past).height == 3 * (400 - LAGS)


def test_censored_hours_raise_the_forecasts_of_aware_likelihoods_only():
    panel = capped(PANEL, 7)
    plain = panel.drop("censored")
    for likelihood, aware in (("gaussian", False), ("tobit", True), ("quantile", False), ("censored-quantile", True)):
        of_flagged = quick("linear", likelihood, epochs=20).fit(panel).predict(panel)["q0.5"].mean()
        of_plain = quick("linear", likelihood, epochs=20).fit(plain).predict(panel)["q0.5"].mean()
        assert (of_flagged > of_plain + 0.5) if aware else (of_flagged == of_plain)


def test_left_censored_hours_lower_the_forecasts():
    raised = PANEL.with_columns(y=pl.col("y").clip(lower_bound=6), censored=-(pl.col("y") <= 6).cast(pl.Int8))
    for likelihood in ("tobit", "censored-quantile"):
        options = {"epochs": 20, "floor": None, "calibrate": False}
        flagged = quick("linear", likelihood, **options).fit(raised).predict(raised)
        plain = quick("linear", likelihood, **options).fit(raised.drop("censored")).predict(raised)
        assert flagged["q0.5"].mean() < plain["q0.5"].mean() - 0.5


def test_an_oracle_learns_another_column_and_still_reads_observed_demand():
    panel = capped(PANEL, 5)
    oracle = quick("seasonal", "quantile", target="truth", epochs=30).fit(panel)
    blind = quick("seasonal", "quantile", epochs=30).fit(panel)
    assert oracle.predict(panel.drop("truth"))["q0.5"].mean() > 1.1 * blind.predict(panel)["q0.5"].mean()
    assert (oracle.encoding_.scale <= 5).all()


def test_a_short_tail_of_the_panel_is_enough_for_a_forecast(fitted):
    tail = PANEL.filter(pl.col("ds") >= END - LAGS * HOUR)
    assert_frame_equal(fitted.forecast(tail).table, fitted.forecast(PANEL).table, check_exact=True)
    with pytest.raises(InputError, match="Give a longer one"):
        fitted.forecast(tail.filter(pl.col("ds") > END - LAGS * HOUR))


def test_the_calendar_follows_local_time():
    zones = {zone: quick("seasonal", epochs=5, time_zone=zone).fit(PANEL) for zone in ("UTC", "Asia/Tokyo")}
    weeks = {zone: f.encoding_.encode(f.series(PANEL)).week for zone, f in zones.items()}
    assert ((weeks["UTC"] + 9) % 168 == weeks["Asia/Tokyo"]).all()


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"backbone": "transformer"}, "choose one of tgcn, mlp, linear, seasonal"),
        ({"likelihood": "poisson"}, "choose one of gaussian, tobit"),
        ({"levels": (0.9, 0.1)}, "give ascending numbers"),
        ({"seeds": 0}, "at least 1"),
        ({"lags": 0}, "at least 1"),
        ({"horizon": 0}, "at least 1"),
        ({"workers": 0}, "at least 1"),
        ({"shares": (0.9, 0.2)}, "sum to at most 1"),
        ({"shares": (0, 0.2)}, "positive shares"),
        ({"time_zone": "Mars/Base"}, "Europe/Copenhagen"),
        ({"training": Training("window")}, "set the horizon to 1"),
        ({"features": ("heat",)}, "no column heat"),
        ({"target": "truth"}, "no column truth"),
    ],
)
def test_invalid_options_are_refused(options, remedy):
    with pytest.raises(InputError, match=remedy):
        quick(**options).fit(PANEL)


def test_notes_report_what_a_user_should_know():
    panel = capped(PANEL, 6).with_columns(y=pl.when(pl.col("unique_id") == "r2").then(0.0).otherwise("y"))
    panel = panel.filter((pl.col("unique_id") != "r1") | (pl.col("ds") != MONDAY + 50 * HOUR))
    odd = pl.concat([panel, panel.head(1)])
    notes = " ".join(quick("seasonal", "quantile").fit(odd).notes_)
    assert "1 rows of the panel could not be used, such as line 1200: ds occurs twice" in notes
    assert "1 of 1,200 region-hours are missing" in notes
    assert "No demand was observed in r2" in notes
    assert "are censored, which the quantile likelihood ignores" in notes
    always = quick("seasonal", "tobit").fit(PANEL.with_columns(censored=pl.col("unique_id") == "r0")).notes_
    assert always == ("Every hour of r0 is censored: the records only give a lower bound on demand.",)
    assert quick("seasonal").fit(PANEL).notes_ == ()


def own_parts():
    class Yesterday(Backbone):
        name = "yesterday"
        title = "Yesterday"
        width = 1

        def __init__(self, shape, graph) -> None:
            super().__init__(shape, graph)
            self.factor = nn.Parameter(torch.ones(()))

        def forward(self, inputs):
            return self.factor * inputs.values[self.shape.lags - 24 : len(inputs.values) - 23, ..., :1]

    class Laplace(Likelihood):
        name = "laplace"
        title = "Laplace"

        @property
        def outputs(self):
            return 1

        def loss(self, outputs, seen):
            return (seen.y - outputs[..., 0]).abs()

        def quantiles(self, outputs):
            level = torch.tensor(self.levels, dtype=outputs.dtype)
            return outputs - 0.1 * torch.sign(level - 0.5) * torch.log(1 - 2 * (level - 0.5).abs())

    return Yesterday, Laplace


def test_registered_backbones_and_likelihoods_work_in_other_processes_too(monkeypatch, tmp_path):
    backbone, likelihood = own_parts()
    monkeypatch.setattr(BACKBONES, "_parts", dict(BACKBONES._parts))
    monkeypatch.setattr(LIKELIHOODS, "_parts", dict(LIKELIHOODS._parts))
    BACKBONES.register(backbone)
    LIKELIHOODS.register(likelihood)
    alone = quick("yesterday", "laplace", seeds=2, epochs=5).fit(PANEL)
    both = quick("yesterday", "laplace", seeds=2, epochs=5, workers=2).fit(PANEL)
    assert_frame_equal(both.forecast(PANEL).table, alone.forecast(PANEL).table, check_exact=True)
    loaded = Forecaster.load(both.save(tmp_path / "model"))
    assert_frame_equal(loaded.forecast(PANEL).table, alone.forecast(PANEL).table, check_exact=True)
    monkeypatch.undo()
    with pytest.raises(InputError, match="no likelihood named 'laplace'"):
        Forecaster.load(tmp_path / "model")


def test_an_error_in_another_process_reaches_the_user():
    forecaster = quick("linear", "gaussian", seeds=2, workers=2, training=Training(learning_rate=1e30))
    with pytest.raises(InputError, match="lower the learning rate"):
        forecaster.fit(PANEL)


def test_times_are_in_utc(fitted):
    assert fitted.forecast(PANEL.with_columns(pl.col("ds").dt.convert_time_zone("Asia/Tokyo"))).table["ds"][0] == END
    assert fitted.forecast(PANEL).table.schema["ds"] == pl.Datetime("ms", "UTC")


def test_regions_of_the_same_names_at_other_positions_are_refused():
    names = sorted(PANEL["unique_id"].unique())
    places = pl.DataFrame({"unique_id": names, "lat": [55.0, 55.1, 55.2], "lon": [12.0] * 3})
    forecaster = quick("linear", "gaussian").fit(PANEL, places)
    forecaster.check_places(places.with_columns(pl.col("lat") + 0.01))
    forecaster.check_places(None)
    forecaster.check_places(places.head(2))  # missing regions are reported when the panel is read
    with pytest.raises(InputError, match="of the panel is 111 km from the region of that name"):
        forecaster.check_places(places.with_columns(pl.col("lat") + 1))
