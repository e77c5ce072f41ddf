"""Evaluation of a model on held-out hours."""

from __future__ import annotations

import datetime as dt
import json

import polars as pl
import pytest

from tests.models.panels import MONDAY, quick, small_panel
from unmet.errors import InputError
from unmet.evaluation.evaluate import evaluate


@pytest.fixture(scope="module")
def panel():
    return small_panel()


@pytest.fixture(scope="module")
def model(panel):
    return quick("seasonal").fit(panel)


def test_a_region_without_demand_has_no_bias_and_the_summary_is_plain_json(panel, model):
    late = pl.col("ds") >= MONDAY + dt.timedelta(hours=330)
    silent = panel.with_columns(y=pl.when(late & (pl.col("unique_id") == "r1")).then(0.0).otherwise("y"))
    summary = evaluate(model, silent).summary()
    assert summary["regions"][1]["bias_percent"] is None
    json.loads(json.dumps(summary, allow_nan=False))


def test_a_short_later_panel_is_scored_one_hour_ahead(panel, model):
    """With lags and horizon of a day, 40 hours have targets, but there is no complete forecast of a day."""
    later = panel.filter(pl.col("ds") >= MONDAY + dt.timedelta(hours=360))
    found = evaluate(model, later)
    assert found.horizons == []
    assert found.overall["hours"] == 3 * (40 - 24)


def test_times_without_an_offset_are_utc(panel, model):
    since = dt.datetime(2019, 9, 18, 6)
    assert evaluate(model, panel, since).overall == evaluate(model, panel, since.replace(tzinfo=dt.UTC)).overall


def test_a_panel_that_ends_too_soon_is_refused(panel, model):
    early = panel.filter(pl.col("ds") < MONDAY + dt.timedelta(hours=200))
    with pytest.raises(InputError, match="no hours are left to score"):
        evaluate(model, early)
