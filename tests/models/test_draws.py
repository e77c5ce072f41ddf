"""Models that learn from draws of lost demand: how a panel stores the draws, and how they are used."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tests.models.panels import HOUR, LAGS, MONDAY, lossy_panel, quick
from unmet import Forecaster
from unmet.errors import InputError
from unmet.evaluation.measures import mean_of
from unmet.models.draws import TrueDemand, draw_by_day, draw_cells, read_draws
from unmet.models.series import read_series

QUANTILES = ("q0.05", "q0.5", "q0.95")
LOST = ("lost_kwh_before", "lost_draws")


@pytest.fixture(scope="module")
def lossy() -> pl.DataFrame:
    return lossy_panel()


def with_draws(panel: pl.DataFrame, draws: np.ndarray) -> pl.DataFrame:
    """The panel with other draws, (rows, draws)."""
    values = draws.astype(np.float32)
    return panel.with_columns(pl.Series("lost_draws", values, dtype=pl.Array(pl.Float32, values.shape[1])))


def test_draws_are_those_of_their_region_and_hour(lossy):
    rows = lossy.sample(fraction=1, shuffle=True, seed=1).filter(pl.col("ds") != MONDAY + 5 * HOUR)
    series = read_series(rows, with_lost=True)
    assert series.lost_draws.shape == (1000, 2, 32)
    assert series.lost_draws.dtype == np.float32
    for (name, when), part in rows.sample(40, seed=2).group_by("unique_id", "ds"):
        hour, region = int((when - MONDAY) / HOUR), series.names.index(name)
        assert (series.lost_draws[hour, region] == np.array(part["lost_draws"][0])).all()
        assert series.lost_before[hour, region] == part["lost_kwh_before"][0]
    assert (series.lost_draws[5] == 0).all()
    assert (series.lost_before[5] == 0).all()
    assert np.isnan(series.demand[5]).all()
    plain = read_series(rows)
    assert plain.lost_draws is None
    assert plain.lost_before is None


@pytest.mark.parametrize("made", ["list", "float64", "pandas", "arrow", "parquet"])
def test_any_kind_of_frame_can_hold_draws(lossy, made, tmp_path):
    lossy.write_parquet(tmp_path / "panel.parquet")
    given = {
        "list": lambda: lossy.with_columns(pl.col("lost_draws").arr.to_list()),
        "float64": lambda: lossy.with_columns(pl.col("lost_draws").cast(pl.Array(pl.Float64, 32))),
        "pandas": lossy.to_pandas,
        "arrow": lossy.to_arrow,
        "parquet": lambda: tmp_path / "panel.parquet",
    }[made]()
    assert (read_series(given, with_lost=True).lost_draws == read_series(lossy, with_lost=True).lost_draws).all()


def test_missing_draws_are_zero(lossy):
    first = pl.col("ds") == MONDAY
    holed = lossy.with_columns(pl.when(~first).then(name).alias(name) for name in LOST)
    series, whole = (read_series(table, with_lost=True) for table in (holed, lossy))
    assert (series.lost_draws[0] == 0).all()
    assert (series.lost_before[0] == 0).all()
    assert (series.lost_draws[1:] == whole.lost_draws[1:]).all()
    nothing = lossy.with_columns(lost_draws=pl.lit(None, lossy.schema["lost_draws"]))
    assert (read_draws(nothing) == 0).all()
    values = np.array(lossy["lost_draws"].to_list())
    values[0, 3] = np.nan
    read = read_draws(with_draws(lossy, values))
    assert read[0, 3] == 0
    assert (read[1:] == values[1:].astype(np.float32)).all()


def test_a_panel_without_draws_is_refused_with_a_remedy(lossy, tmp_path):
    remedy = r"unmet panel.*LostDemand\(\)\.fit\(panel\)\.panel_table\(\).*--likelihood quantile"
    for columns in (LOST, LOST[:1], LOST[1:]):
        with pytest.raises(InputError, match=f"no column {', '.join(columns)}, .*{remedy}"):
            quick("linear", "exposure").fit(lossy.drop(columns))
    model = quick("seasonal", "exposure").fit(lossy)
    for call in (model.forecast, model.predict, model.recalibrate):
        with pytest.raises(InputError, match="no column lost_draws"):
            call(lossy.drop("lost_draws"))
    lossy.drop("lost_draws").with_columns(lost_draws=pl.lit("[1.0, 2.0]")).write_csv(tmp_path / "panel.csv")
    with pytest.raises(InputError, match=f"not lists of numbers, which a CSV file cannot carry: .*{remedy}"):
        quick("linear", "exposure").fit(tmp_path / "panel.csv")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ([[1.0], [1.0, 2.0]], "the same number of draws"),
        ([[], []], "the same number of draws"),
        ([[1.0], [-1.0]], "0 kWh or more"),
        ([[1.0], [float("inf")]], "0 kWh or more"),
        ([["a"], ["b"]], "not lists of numbers"),
    ],
)
def test_invalid_draws_are_refused(wrong, sentence):
    inner = pl.String if "numbers" in sentence and wrong[0] == ["a"] else pl.Float64
    frame = pl.DataFrame({"lost_kwh_before": [0.0, 0.0], "lost_draws": pl.Series(wrong, dtype=pl.List(inner))})
    with pytest.raises(InputError, match=sentence):
        read_draws(frame)


def test_rows_with_an_impossible_expectation_are_set_aside(lossy):
    broken = lossy.with_columns(lost_kwh_before=pl.when(pl.col("ds") == MONDAY).then(-1.0).otherwise("lost_kwh_before"))
    series = read_series(broken, with_lost=True)
    assert series.set_aside["column"].to_list() == ["lost_kwh_before"] * 2
    whole = read_series(lossy, with_lost=True)
    assert (series.lost_draws == whole.lost_draws[1:]).all()  # which begins an hour later
    assert any("2 rows of the panel" in note for note in quick("seasonal", "exposure").fit(broken).notes_)


def test_region_hours_are_drawn_independently_and_all_draws_are_used():
    draws = np.broadcast_to(np.arange(8, dtype=np.float32), (3000, 2, 8))
    chosen = draw_cells(draws, np.random.default_rng(1))
    assert np.bincount(chosen.ravel().astype(int)) / chosen.size == pytest.approx(np.full(8, 1 / 8), abs=0.02)
    assert abs(np.corrcoef(chosen.T)[0, 1]) < 0.06
    assert abs(np.corrcoef(chosen[:-1, 0], chosen[1:, 0])[0, 1]) < 0.06
    assert not (chosen == draw_cells(draws, np.random.default_rng(2))).all()


@given(st.integers(0, 100), st.integers(1, 100), st.integers(0, 60))
def test_the_draw_of_a_day_is_the_same_in_longer_and_shorter_panels(first, hours, later):
    draws = np.random.default_rng(0).random((220, 3, 16)).astype(np.float32)
    whole, part = draw_by_day(draws, 480_000), draw_by_day(draws[first : first + hours], 480_000 + first)
    assert (whole[first : first + hours] == part).all()
    changed = draws.copy()
    changed[first + later :] += 1
    assert (draw_by_day(changed, 480_000)[: first + later] == whole[: first + later]).all()


def test_the_target_is_observed_demand_plus_a_draw_at_the_scale_of_each_region():
    demand, scale = np.array([[3.0, 5.0]]), np.array([2.0, 10.0])
    lost = np.array([[[1.0, 1.0], [4.0, 4.0]]], np.float32)
    assert TrueDemand(demand, lost, scale).draw(np.random.default_rng(0)).tolist() == [[2.0, 0.9]]


@pytest.mark.parametrize("backbone", ["linear", "mlp"])
def test_a_model_that_learns_from_draws_forecasts_true_demand(lossy, backbone):
    bias, inside = {}, {}
    for likelihood in ("quantile", "exposure"):
        model = quick(backbone, likelihood, horizon=1, epochs=40).fit(lossy)
        ahead = model.predict(lossy, model.split_.fit_end)
        made = ahead.join(lossy.with_columns(pl.col("ds").cast(ahead.schema["ds"])), on=["unique_id", "ds"])
        expected = mean_of(made.select(QUANTILES).to_numpy(), (0.05, 0.5, 0.95)).sum()
        bias[likelihood] = expected / made["y_true"].sum() - 1
        inside[likelihood] = made.select(pl.col("y_true").is_between("q0.05", "q0.95").mean()).item()
    assert bias["quantile"] < -0.2
    assert abs(bias["exposure"]) < 0.07
    assert 0.8 < inside["exposure"] < 0.98


def test_draws_that_equal_the_truth_give_an_oracle(lossy):
    """Training is then the same as that of a quantile model on the truth."""
    lost = (lossy["y_true"] - lossy["y"]).to_numpy()
    known = with_draws(lossy.with_columns(lost_kwh_before=0.0), np.repeat(lost[:, None], 5, axis=1))
    model = quick("linear", "exposure", epochs=5).fit(known)
    oracle = quick("linear", "quantile", epochs=5, target="y_true").fit(lossy)
    assert np.array(model.losses_) == pytest.approx(np.array(oracle.losses_), rel=1e-4)
    ours, theirs = (made.forecast(table).table.select(QUANTILES) for made, table in ((model, known), (oracle, lossy)))
    assert ours.to_numpy() == pytest.approx(theirs.to_numpy(), rel=1e-2)
    assert model.calibration_.moves == pytest.approx(oracle.calibration_.moves, abs=1e-2)


def test_other_draws_give_other_forecasts(lossy):
    fitted = quick("seasonal", "exposure", epochs=3).fit(lossy)
    mean = np.array(lossy["lost_draws"].to_list()).mean(axis=1, keepdims=True)
    flat = quick("seasonal", "exposure", epochs=3).fit(with_draws(lossy, np.repeat(mean, 32, axis=1)))
    assert fitted.losses_ != flat.losses_
    reordered = with_draws(lossy, np.array(lossy["lost_draws"].to_list())[:, ::-1])
    assert quick("seasonal", "exposure", epochs=3).fit(reordered).losses_ != fitted.losses_


def test_the_spread_of_draws_widens_intervals(lossy):
    draws = np.array(lossy["lost_draws"].to_list())
    mean = draws.mean(axis=1, keepdims=True)
    narrow = with_draws(lossy, np.repeat(mean, 32, axis=1))
    wide = with_draws(lossy, np.maximum(mean + 3 * (draws - mean), 0))
    width = []
    for panel in (narrow, lossy, wide):
        model = quick("seasonal", "exposure", horizon=1, epochs=40, calibrate=False).fit(panel)
        hidden = model.predict(panel, model.split_.fit_end).filter(pl.col("ds").dt.hour() < 12)
        width.append(hidden.select((pl.col("q0.95") - pl.col("q0.05")).mean()).item())
    assert width[0] < 0.95 * width[1] < 0.8 * width[2]


def test_lags_use_the_expectation_rather_than_a_draw(lossy):
    """With calibration off, forecasts read the past through `lost_kwh_before` alone."""
    model = quick("linear", "exposure", calibrate=False).fit(lossy)
    other = with_draws(lossy, np.full((lossy.height, 4), 1000.0))
    assert_frame_equal(model.forecast(other).table, model.forecast(lossy).table, check_exact=True)
    assert_frame_equal(model.predict(other), model.predict(lossy), check_exact=True)
    moved = lossy.with_columns(y=pl.col("y") + pl.col("lost_kwh_before"), lost_kwh_before=0.0)
    assert_frame_equal(model.forecast(moved).table, model.forecast(lossy).table, abs_tol=1e-3)
    more = lossy.with_columns(pl.col("lost_kwh_before") + 50)
    assert not model.forecast(more).table.equals(model.forecast(lossy).table)


def test_no_forecast_depends_on_later_losses(lossy):
    model = quick("linear", "exposure", horizon=1, shares=(0.5, 0.1)).fit(lossy)
    cut = MONDAY + 800 * HOUR
    later = pl.col("ds") >= cut
    zeros = with_draws(lossy.with_columns(lost_kwh_before=0.0), np.zeros((lossy.height, 32)))
    changed = pl.concat([lossy.filter(~later), zeros.filter(later)]).sort("unique_id", "ds")
    assert model.predict(lossy).filter(pl.col("ds") <= cut).equals(model.predict(changed).filter(pl.col("ds") <= cut))
    assert not model.predict(lossy).equals(model.predict(changed))


def test_a_forecast_needs_only_the_lags(lossy):
    model = quick("linear", "exposure").fit(lossy)
    tail = lossy.filter(pl.col("ds") >= MONDAY + (1000 - LAGS) * HOUR)
    assert_frame_equal(model.forecast(tail).table, model.forecast(lossy).table, check_exact=True)


def test_seeds_and_workers_give_equal_results(lossy):
    one, two = (quick("linear", "exposure", seeds=2, workers=workers).fit(lossy) for workers in (1, 2))
    assert one.losses_ == two.losses_
    assert one.losses_[0] != one.losses_[1]
    assert_frame_equal(one.forecast(lossy).table, two.forecast(lossy).table, check_exact=True)


def test_a_saved_model_forecasts_the_same(lossy, tmp_path):
    model = quick("linear", "exposure").fit(lossy)
    again = Forecaster.load(model.save(tmp_path / "model"))
    assert again.forecast(lossy).table.equals(model.forecast(lossy).table)
    assert again.predict(lossy).equals(model.predict(lossy))


def test_checkpoints_of_other_draws_are_refused(lossy, tmp_path):
    quick("seasonal", "exposure").fit(lossy, checkpoints=tmp_path / "training")
    draws = np.array(lossy["lost_draws"].to_list())
    fixed = draw_by_day(read_series(lossy, with_lost=True).lost_draws, int(MONDAY.timestamp()) // 3600)
    unused = draws[0] != fixed[0, 0]
    draws[0] = np.where(unused, draws[0] + 1, draws[0])
    with pytest.raises(InputError, match="of another panel"):
        quick("seasonal", "exposure").fit(with_draws(lossy, draws), checkpoints=tmp_path / "training")


def test_notes_say_whether_censoring_is_ignored(lossy):
    flagged = lossy.with_columns(censored=pl.col("lost_kwh_before") > 0)
    assert not quick("seasonal", "exposure").fit(flagged).notes_
    assert "which the quantile likelihood ignores" in quick("seasonal", "quantile").fit(flagged).notes_[0]


def test_columns_that_are_not_known_in_advance_are_refused_as_features(lossy):
    with pytest.raises(InputError, match="learns from y, not from y_true"):
        quick("seasonal", "exposure", target="y_true").fit(lossy)
    for name in ("lost_kwh_before", "lost_draws", "y_true"):
        with pytest.raises(InputError, match="not known in advance"):
            quick("seasonal", "quantile", features=(name,)).fit(lossy)


def test_a_panel_may_start_at_any_hour(lossy):
    """The choice of draws depends on the day in UTC, not on the hour at which a panel starts."""
    shifted = lossy.with_columns(pl.col("ds") + dt.timedelta(hours=7))
    series = read_series(shifted, with_lost=True)
    drawn = draw_by_day(series.lost_draws, int(series.first.timestamp()) // 3600)
    assert np.isin(drawn[:, 0], series.lost_draws[:, 0]).all()
    assert drawn.shape == (1000, 2)
