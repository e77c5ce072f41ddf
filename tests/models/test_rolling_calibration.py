"""Rolling calibration: weeks after the fit are calibrated with the weeks before them."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.panels import quick
from unmet.models.rolling_calibration import WEEK, WINDOW, blocks

FIRST = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
HOURS, REGIONS, CHANGE = 24 * 7 * 16, 4, 24 * 7 * 8


def panel(hours: int = HOURS, change: int = CHANGE) -> pl.DataFrame:
    """Demand around 50 kWh that varies three times as much from some hour on."""
    rng = np.random.default_rng(3)
    spread = np.where(np.arange(HOURS) < change, 4.0, 12.0)
    y = (50 + spread[:, None] * rng.normal(size=(HOURS, REGIONS)))[:hours]
    return pl.DataFrame(
        {
            "unique_id": np.repeat([f"r{i}" for i in range(REGIONS)], hours),
            "ds": [FIRST + dt.timedelta(hours=h) for h in range(hours)] * REGIONS,
            "y": y.T.ravel(),
        }
    )


def coverage_by_week(forecasts: pl.DataFrame, known: pl.DataFrame) -> list[float]:
    inside = (pl.col("y") >= pl.col("q0.05")) & (pl.col("y") <= pl.col("q0.95"))
    joined = forecasts.join(known.with_columns(pl.col("ds").cast(forecasts["ds"].dtype)), on=["unique_id", "ds"])
    week = (pl.col("ds") - FIRST).dt.total_hours() // WEEK
    return joined.group_by(week=week).agg(inside=inside.mean()).sort("week")["inside"].to_list()


@pytest.fixture(scope="module")
def model():
    """Fitted on the eight weeks before the change, and calibrated with the last four of them."""
    return quick("seasonal", "quantile", epochs=60, shares=(0.25, 0.25), horizon=24).fit(panel())


def test_coverage_recovers_once_the_weeks_before_show_a_change(model):
    known = panel()
    weeks = coverage_by_week(model.predict(known, model.split_.fit_end), known)
    assert len(weeks) == 8
    assert weeks[0] < 0.6  # the change was not yet visible
    assert weeks[0] < weeks[1] < weeks[3]
    assert weeks[4:] == pytest.approx([0.9] * 4, abs=0.04)


def test_coverage_recovers_at_all_horizons_of_a_backtest(model):
    known = panel()
    made = model.backtest(known, model.split_.fit_end, every=12)
    later = made.filter(pl.col("cutoff") >= model.split_.fit_end + dt.timedelta(hours=WINDOW))
    for horizon in (1, 8, 24):
        at = later.filter(pl.col("horizon") == horizon)
        assert np.mean(coverage_by_week(at, known)) == pytest.approx(0.9, abs=0.05)


def test_recalibrate_calibrates_forecasts_with_the_last_weeks(model):
    before, past = model.forecast(panel()).table, model.predict(panel())
    width = pl.col("q0.95") - pl.col("q0.05")
    after = model.recalibrate(panel()).forecast(panel()).table
    assert model.predict(panel()).equals(past)
    model.latest_ = None
    assert after.select(width.mean()).item() > 2 * before.select(width.mean()).item()


def test_nothing_changes_up_to_the_end_of_the_fit_and_in_the_week_after_it(model):
    known = panel()
    fit_end = CHANGE
    shown = model.predict(known)
    short = model.predict(panel(fit_end + WEEK))
    assert (
        shown.join(short, on=short.columns, how="anti")
        .filter(pl.col("ds") < FIRST + dt.timedelta(hours=fit_end + WEEK))
        .is_empty()
    )
    moves = model.calibration_.moves.copy()
    model.recalibrate(panel(fit_end))
    assert (model.calibration_.moves == moves).all()


@pytest.mark.parametrize("likelihood", ["quantile", "exposure"])
def test_no_hour_is_calibrated_with_itself_or_a_later_one(likelihood):
    rng = np.random.default_rng(4)
    lost = np.tile(np.where(np.arange(HOURS) % 24 < 8, 20.0, 0.0), REGIONS)
    draws = rng.poisson(lost[:, None] / 10, (HOURS * REGIONS, 8)) * 10.0
    known = panel().with_columns(
        y=pl.Series(10.0 * rng.poisson(5, HOURS * REGIONS)),
        lost_kwh_before=pl.Series(lost),
        lost_draws=pl.Series(draws, dtype=pl.Array(pl.Float64, 8)),
    )
    model = quick("seasonal", likelihood, epochs=2, shares=(0.25, 0.25), horizon=24).fit(known)
    cut = FIRST + dt.timedelta(hours=CHANGE + 3 * WEEK)
    later = pl.col("ds") >= cut
    nothing = pl.lit(pl.Series([[0.0] * 8], dtype=pl.Array(pl.Float64, 8))).first()
    other = known.with_columns(
        pl.when(later).then(value).otherwise(name).alias(name)
        for name, value in (("y", 0), ("lost_kwh_before", 0), ("lost_draws", nothing))
    )
    shorter = known.filter(pl.col("ds") < cut + dt.timedelta(hours=48))
    for changed in (other, shorter):
        assert model.predict(known).filter(~later).equals(model.predict(changed).filter(~later))
        made, again = (
            model.backtest(table, model.split_.fit_end, every=24).filter(pl.col("cutoff") <= cut)
            for table in (known, changed)
        )
        both = made.join(again, on=["unique_id", "ds", "cutoff", "horizon"], suffix="_again")
        assert both.height > 1000
        for level in ("q0.05", "q0.5", "q0.95"):
            assert both[level].to_numpy() == pytest.approx(both[f"{level}_again"].to_numpy(), rel=1e-5)


def test_an_uncalibrated_model_stays_uncalibrated():
    known = panel()
    model = quick("linear", "quantile", epochs=2, shares=(0.25, 0.25), calibrate=False).fit(known)
    width = (pl.col("q0.95") - pl.col("q0.05")).mean()
    weeks = model.predict(known, model.split_.fit_end).group_by((pl.col("ds") - FIRST).dt.total_days() // 7).agg(width)
    assert weeks["q0.95"].max() < 1.5 * weeks["q0.95"].min()


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(-500, 3000))
def test_blocks_are_consecutive_and_weeks_after_the_fit(first, length, seen):
    made = list(blocks(first, first + length, seen))
    hours = [hour for begin, end in made for hour in range(begin, end)]
    assert hours == list(range(first, first + length))
    for begin, end in made:
        assert end <= seen or begin >= seen
        assert begin < seen or (begin - seen) // WEEK == (end - 1 - seen) // WEEK
