"""Scores agree with loops over regions, hours and levels."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests.models.panels import HOUR, MONDAY, hours_from, quick, small_panel
from unmet.errors import InputError
from unmet.evaluation.evaluate import evaluate
from unmet.evaluation.measures import mean_of
from unmet.evaluation.score import by_horizon, by_region, score, with_actual

LEVELS = (0.05, 0.5, 0.95)
SCALE = {"r0": 10.0, "r1": 20.0, "r2": 5.0}


def forecasts(hours=30, seed=1):
    rng = np.random.default_rng(seed)
    frame = small_panel(hours=hours).drop("y").with_columns(pl.col("ds").cast(pl.Datetime("ms", "UTC")))
    quantiles = np.sort(rng.gamma(3, 2, (frame.height, 3)))
    columns = {f"q{level:g}": quantiles[:, i] for i, level in enumerate(LEVELS)}
    return frame.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def scored(hours=30):
    return with_actual(forecasts(hours), small_panel(hours=hours), "y", SCALE)


def test_the_tilted_loss_is_that_of_the_paper():
    rows, actual = forecasts().rows(named=True), {row[:2]: row[2] for row in small_panel(hours=30).iter_rows()}
    losses = dict.fromkeys(SCALE, 0.0)
    inside, length = 0, 0.0
    for row in rows:
        scale = SCALE[row["unique_id"]]
        y = actual[row["unique_id"], row["ds"]] / scale
        for level in LEVELS:
            e = y - row[f"q{level:g}"] / scale
            losses[row["unique_id"]] += max(level * e, (level - 1) * e)
        inside += row["q0.05"] / scale <= y <= row["q0.95"] / scale
        length += abs(row["q0.05"] - row["q0.95"]) / scale
    ours = score(scored(), LEVELS)
    assert ours["tilted_loss"] == pytest.approx(sum(loss / 30 for loss in losses.values()))
    assert ours["icp"] == pytest.approx(inside / 90)
    assert ours["mil"] == pytest.approx(length / 90)
    assert ours["crps"] == pytest.approx(2 / 3 * ours["tilted_loss"] / 3)
    assert ours["hours"] == 90


def test_other_measures_are_in_kwh():
    rows = scored()
    y = small_panel(hours=30)["y"].to_numpy()
    quantiles = forecasts().select(pl.col("^q.*$")).to_numpy()
    ours = score(rows, LEVELS)
    assert ours["mean_kwh"] == pytest.approx(y.mean())
    assert ours["mil_kwh"] == pytest.approx((quantiles[:, 2] - quantiles[:, 0]).mean())
    assert ours["bias_percent"] == pytest.approx(100 * (mean_of(quantiles, LEVELS).sum() / y.sum() - 1))
    unit = score(with_actual(forecasts(), small_panel(hours=30), "y", dict.fromkeys(SCALE, 1.0)), LEVELS)
    assert ours["tilted_loss_kwh"] == pytest.approx(unit["tilted_loss"] / 3)
    assert ours["crps_kwh"] == pytest.approx(unit["crps"])


def test_scores_of_regions_add_up():
    rows = scored()
    overall, parts = score(rows, LEVELS), by_region(rows, LEVELS)
    assert [part["unique_id"] for part in parts] == ["r0", "r1", "r2"]
    assert sum(part["tilted_loss"] for part in parts) == pytest.approx(overall["tilted_loss"])
    assert sum(part["hours"] for part in parts) == overall["hours"]
    for name in ("icp", "mil", "crps", "mil_kwh", "tilted_loss_kwh", "crps_kwh", "mean_kwh"):
        assert np.mean([part[name] for part in parts]) == pytest.approx(overall[name])


def test_scores_of_horizons_add_up():
    horizon = pl.Series("horizon", np.tile(np.arange(1, 31), 3))
    rows = scored().with_columns(horizon)
    overall, parts = score(rows, LEVELS), by_horizon(rows, LEVELS)
    assert [(part["from_hour"], part["to_hour"]) for part in parts] == [
        (1, 1),
        (2, 3),
        (4, 6),
        (7, 12),
        (13, 24),
        (25, 30),
    ]
    assert [part["hours"] for part in parts] == [3, 6, 9, 18, 36, 18]
    for name in ("tilted_loss", "icp", "mil", "crps", "mil_kwh", "tilted_loss_kwh", "crps_kwh", "mean_kwh"):
        assert np.average([p[name] for p in parts], weights=[p["hours"] for p in parts]) == pytest.approx(overall[name])


def test_unknown_hours_are_left_out():
    panel = small_panel(hours=30).with_columns(
        y=pl.when(pl.col("ds") < MONDAY + 5 * HOUR)
        .then(None)
        .when(pl.col("ds") < MONDAY + 10 * HOUR)
        .then(float("nan"))
        .otherwise("y")
    )
    rows = with_actual(forecasts(), panel.filter(pl.col("ds") < MONDAY + 20 * HOUR), "y", SCALE)
    assert rows["ds"].min() == MONDAY + 10 * HOUR
    assert rows.height == 30
    expected = scored().filter(pl.col("ds").is_between(MONDAY + 10 * HOUR, MONDAY + 19 * HOUR))
    assert score(rows, LEVELS) == score(expected, LEVELS)


def test_rows_keep_their_order_and_naive_times_are_utc():
    shuffled = forecasts().sample(fraction=1, shuffle=True, seed=3)
    naive = small_panel(hours=30).with_columns(pl.col("ds").dt.replace_time_zone(None))
    rows = with_actual(shuffled, naive, "y", SCALE)
    assert rows.select(shuffled.columns).equals(shuffled)
    assert score(rows, LEVELS) == pytest.approx(score(scored(), LEVELS))


def test_forecasts_without_known_hours_are_refused():
    with pytest.raises(InputError, match="no column y_true to score against"):
        with_actual(forecasts(), small_panel(hours=30), "y_true", SCALE)
    later = small_panel(hours=30).with_columns(ds=pl.concat([hours_from(MONDAY + 99 * HOUR, 30)] * 3))
    with pytest.raises(InputError, match="nothing to score"):
        with_actual(forecasts(), later, "y", SCALE)


def test_a_perfect_forecast_has_zero_loss():
    panel = small_panel(hours=30)
    perfect = panel.select("unique_id", "ds", **{f"q{level:g}": "y" for level in LEVELS})
    ours = score(with_actual(perfect, panel, "y", SCALE), LEVELS)
    assert (ours["tilted_loss"], ours["crps"], ours["mil"], ours["icp"]) == (0, 0, 0, 1)
    assert ours["bias_percent"] == pytest.approx(0, abs=1e-9)


def test_a_model_is_scored_on_held_out_hours():
    panel = small_panel()
    model = quick("linear").fit(panel)
    overall = evaluate(model, panel).overall
    scale = dict(zip(model.regions_, model.encoding_.scale, strict=True))
    predicted = model.predict(panel, model.split_.fit_end)
    assert overall == pytest.approx(score(with_actual(predicted, panel, "y", scale), LEVELS))
    assert overall["hours"] == 3 * 40
    double = panel.with_columns(y_true=pl.col("y") * 2)
    assert evaluate(model, double).overall["mean_kwh"] == pytest.approx(2 * overall["mean_kwh"])
