"""Pages on models and forecasts."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl
import pytest

from tests.models.panels import capped, quick, small_panel
from unmet.errors import InputError
from unmet.evaluation.evaluate import evaluate
from unmet.models.series import read_series
from unmet.runs import write_json
from unmet.views.figures import FORECAST_FIGURES, MODEL_FIGURES
from unmet.views.forecast_pages import write_forecast
from unmet.views.model_pages import worse_than_table, write_evaluation
from unmet.views.model_report import ForecastReport, ModelReport


@pytest.fixture(scope="module")
def panel():
    return capped(small_panel(), 9.0).rename({"truth": "y_true"})


@pytest.fixture(scope="module")
def model_report(panel):
    model = quick("linear", seeds=2).fit(panel)
    return ModelReport(model, evaluate(model, panel))


@pytest.fixture(scope="module")
def forecast_report(model_report, panel):
    return ForecastReport(model_report.model, model_report.model.forecast(panel).table, read_series(panel).table())


def implied_mean(forecast: pl.DataFrame) -> pl.Series:
    """The mean of a distribution from three quantiles, by Pearson and Tukey."""
    return forecast.select(0.185 * pl.col("q0.05") + 0.63 * pl.col("q0.5") + 0.185 * pl.col("q0.95")).to_series()


def test_lines_of_the_test_week_show_actual_and_forecast_demand(model_report):
    figure = MODEL_FIGURES[0].draw(model_report)
    hours = model_report.unseen.hours
    lost = hours.group_by("unique_id").agg((pl.col("y_true") - pl.col("y")).sum()).sort("y_true", "unique_id")
    worst = hours.filter(pl.col("unique_id") == lost["unique_id"][-1]).sort("ds")
    drawn = {trace.name: list(trace.y) for trace in figure.data if trace.xaxis == "x" and trace.name}
    assert drawn["True"] == worst["y_true"].round(1).to_list()
    assert drawn["Observed"] == worst["y"].round(1).to_list()
    assert drawn["Expected (mean)"] == pytest.approx(implied_mean(worst).to_list(), abs=0.051)
    assert drawn["90 % interval"] == worst["q0.05"].round(1).to_list()


def test_coverage_bars_show_the_measured_coverage(model_report):
    (bars,) = MODEL_FIGURES[1].draw(model_report).data
    assert list(bars.y) == [round(100 * row["icp"], 1) for row in model_report.unseen.horizons]
    assert list(bars.x)[:3] == ["1", "2 to 3", "4 to 6"]


def test_every_seed_has_its_training_curves(model_report):
    traces = MODEL_FIGURES[2].draw(model_report).data
    assert len(traces) == 4
    assert list(traces[1].y) == [round(validation, 5) for _, validation in model_report.model.losses_[0]]


def test_the_fan_chart_shows_the_busiest_regions_and_earlier_hours(forecast_report):
    figure = FORECAST_FIGURES[0].draw(forecast_report)
    first = forecast_report.forecast.filter(pl.col("unique_id") == forecast_report.busiest()[0])
    drawn = {trace.name: trace for trace in figure.data if trace.xaxis == "x" and trace.name}
    assert list(drawn["Expected (mean)"].y) == pytest.approx(implied_mean(first).to_list(), abs=0.051)
    assert len(drawn["Observed so far"].y) == 48
    assert max(drawn["Observed so far"].x) < min(drawn["Expected (mean)"].x)


def test_totals_are_sums_of_the_mean_over_hours(forecast_report):
    quantiles = forecast_report.forecast.with_columns(mean=implied_mean(forecast_report.forecast))
    by_hand = dict(quantiles.group_by("unique_id").agg(pl.col("mean").sum()).iter_rows())
    assert dict(forecast_report.totals().select("unique_id", "kwh").iter_rows()) == pytest.approx(by_hand)
    assert forecast_report.totals()["kwh"].is_sorted(descending=True)


def test_pages_start_with_the_answer_and_need_no_network(model_report, forecast_report, tmp_path):
    write_evaluation(model_report, tmp_path)
    summary = write_forecast(forecast_report, tmp_path)
    report = (tmp_path / "report.html").read_text()
    rows = model_report.unseen.comparison.by_horizon().filter(pl.col("rival") == "table")
    skill = 1 - rows["model_kwh"].sum() / rows["rival_kwh"].sum()
    word = "better" if skill > 0 else "WORSE"
    assert (
        f"<h1>Forecasts are {100 * abs(skill):.0f} % {word} than a table of the last eight weeks</h1>"
        in report.replace("\u00a0", " ")
    )
    assert "of later hours inside the 90" in report
    forecast = (tmp_path / "forecast.html").read_text()
    assert f"<h1>{summary['expected_kwh'] / 1000:,.1f} MWh is expected in the next 24 hours</h1>" in forecast
    for page in (report, forecast):
        assert "src=" not in page.split("</script>", 1)[1]


def test_regions_in_which_the_table_is_better_are_named_first(forecast_report, tmp_path):
    *_, quietest = forecast_report.busiest()
    write_json(tmp_path / "metrics.json", {"unseen": {"worse_than_table": [quietest]}})
    assert worse_than_table(tmp_path) == worse_than_table(tmp_path / "model") == (quietest,)
    summary = write_forecast(replace(forecast_report, worse=(quietest,)), tmp_path)
    assert summary["worse_than_table"] == [quietest]
    sentence = f"In {quietest} a table of the last eight weeks is more than 5\u00a0% better"
    written = (tmp_path / "forecast.html").read_text()
    assert written.index(f'role="alert">{sentence}') < written.index("<h1>")
    first = re.search(r"<tbody>\s*<tr><td>(\w+)<small>([^<]*)", written)
    assert first.groups() == (quietest, "a table was better")
    (tmp_path / "metrics.json").write_text("[]")
    with pytest.raises(InputError, match="fit the model again"):
        worse_than_table(tmp_path)


def test_a_model_without_held_out_hours_has_a_page(panel, tmp_path):
    model = quick("seasonal", shares=(0.9, 0.1)).fit(panel)
    write_evaluation(ModelReport(model, None), tmp_path)
    assert "No hours were left to test it on" in (tmp_path / "report.html").read_text()
