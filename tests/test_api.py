"""The public interface: a dozen names, the lines of the README, and data frames that come out as they went in."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import plotly.graph_objects as go
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

import unmet
from tests.small_network import STATIONS, records

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}
SESSIONS = records()[0]


def as_kind(frame: pl.DataFrame, kind: str):
    return {"pandas": frame.to_pandas, "polars": frame.clone, "pyarrow": frame.to_arrow}[kind]()


@pytest.fixture(scope="module", params=KINDS)
def fitted(request):
    kind = request.param
    panel = unmet.Panel(as_kind(SESSIONS, kind), as_kind(STATIONS, kind), regions=2, time_zone="Europe/Copenhagen")
    return kind, panel, unmet.LostDemand(draws=20).fit(panel)


def test_every_public_name_is_listed_and_importable():
    assert dir(unmet) == sorted(unmet.__all__)
    assert 10 <= len(unmet.__all__) <= 14
    for name in unmet.__all__:
        assert getattr(unmet, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'read_records'"):
        _ = unmet.read_records


def test_importing_the_package_imports_nothing_slow():
    slow = ("torch", "numba", "polars", "numpy", "sklearn", "plotly", "pandas", "narwhals")
    code = f"import sys, unmet; dir(unmet), unmet.InputError; print([name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_bad_input_is_a_value_error():
    assert issubclass(unmet.InputError, ValueError)
    with pytest.raises(ValueError, match=r"read sessions.csv with unmet.read_sessions first"):
        unmet.Panel("sessions.csv")


@pytest.mark.parametrize("call", ["summary", "by_station", "by_site", "by_hour", "panel_table", "notes", "plot"])
def test_an_estimator_that_is_not_fitted_says_so(call):
    with pytest.raises(NotFittedError, match="call fit first"):
        getattr(unmet.LostDemand(), call)()


@pytest.mark.parametrize("call", ["forecast", "predict", "backtest", "plot"])
def test_a_forecaster_that_is_not_fitted_says_so(call):
    with pytest.raises(NotFittedError, match="call fit first"):
        getattr(unmet.Forecaster(), call)(SESSIONS)


def test_the_data_frame_type_that_goes_in_comes_out(fitted):
    kind, panel, lost = fitted
    assert isinstance(panel.to_frame(), KINDS[kind])
    tables = [lost.by_station(), lost.by_site(), lost.by_region(), lost.by_week(), lost.by_hour(), lost.station_hours()]
    assert {type(table) for table in [*tables, lost.sensitivity(), lost.panel_table()]} == {KINDS[kind]}
    planned = unmet.plan(lost, plugs=3)
    assert {type(table) for table in (planned.table, planned.curve, planned.sensitivity)} == {KINDS[kind]}
    model = unmet.Forecaster("climatology", horizon=48).fit(panel)
    assert isinstance(model.forecast(hours=24).table, KINDS[kind])
    assert isinstance(model.predict(panel), KINDS[kind])
    assert isinstance(model.backtest(panel), KINDS[kind])
    assert isinstance(unmet.evaluate(model, panel).table, KINDS[kind])


def test_results_do_not_depend_on_the_data_frame_type(fitted):
    kind, panel, lost = fitted
    other = unmet.LostDemand(draws=20).fit(unmet.Panel(SESSIONS, STATIONS, regions=2, time_zone="Europe/Copenhagen"))
    assert panel.frame_type == kind
    for ours, expected in ((lost.by_station(), other.by_station()), (lost.by_week(), other.by_week())):
        same = pl.DataFrame(ours)
        assert same.columns == expected.columns
        assert same.select(pl.selectors.numeric()).equals(expected.select(pl.selectors.numeric()))


def test_the_example_in_the_readme_runs(tmp_path):
    SESSIONS.with_columns(
        pl.col("start", "end").dt.convert_time_zone("Europe/London").dt.to_string("%Y-%m-%d %H:%M:%S")
    ).write_csv(tmp_path / "sessions.csv")
    STATIONS.write_csv(tmp_path / "stations.csv")
    rec = unmet.read_sessions(tmp_path / "sessions.csv", stations=tmp_path / "stations.csv")
    panel = unmet.Panel(rec, regions=5, time_zone="Europe/London")
    assert panel.sessions.height == SESSIONS.height
    lost = unmet.LostDemand().fit(panel)
    summary = lost.summary()
    assert summary["lost_kwh"]["low"] < summary["lost_kwh"]["mean"] < summary["lost_kwh"]["high"]
    assert lost.by_station()["lost_kwh"].sum() == pytest.approx(summary["lost_kwh"]["mean"])
    assert isinstance(lost.plot(), go.Figure)
    model = unmet.Forecaster().fit(panel)
    assert model.time_zone_ == "Europe/London"
    forecast = model.forecast(hours=48)
    assert forecast.table.height == 48 * len(model.regions_)
    assert forecast.table["ds"].min() == panel.period[1]
    assert isinstance(forecast.plot(), go.Figure)
    score = unmet.evaluate(model, panel).summary()
    assert score["scored_as"] == "observed demand, thinned"
    assert unmet.plan(lost, plugs=20).plugs == 20


def test_a_stored_model_needs_a_panel_to_forecast_from(fitted, tmp_path):
    _, panel, _ = fitted
    model = unmet.Forecaster("climatology").fit(panel)
    model.save(tmp_path / "model")
    loaded = unmet.Forecaster.load(tmp_path / "model")
    with pytest.raises(unmet.InputError, match="give one to forecast from"):
        loaded.forecast(hours=5)
    assert loaded.forecast(panel, hours=5).hours.equals(model.forecast(hours=5).hours)


def test_later_days_do_not_change_the_training_data():
    shares = (0.6, 0.1)
    panel = unmet.Panel(SESSIONS, STATIONS, regions=2)
    cut = panel.period[0] + 0.7 * (panel.period[1] - panel.period[0])
    busier = SESSIONS.with_columns(energy_kwh=pl.when(pl.col("start") >= cut).then(99.0).otherwise("energy_kwh"))
    one, two = (
        unmet.Forecaster("climatology", shares=shares).fit(unmet.Panel(sessions, STATIONS, regions=2))
        for sessions in (SESSIONS, busier)
    )
    early = pl.col("ds") < one.split_.fit_end
    assert one.fitted_on_.table.filter(early).equals(two.fitted_on_.table.filter(early))
    assert (one.scale_ == two.scale_).all()


def test_simulated_records_make_a_panel():
    outcome = unmet.simulate(trips=commuters().to_pandas(), stations=STATIONS, seed=3)
    assert isinstance(outcome.to_frame("sessions"), pd.DataFrame)
    panel = unmet.Panel(outcome, regions="station")
    assert panel.sessions.height == (outcome.arrivals["outcome"] == "served").sum()
    assert unmet.Panel(outcome.sessions, outcome.stations, regions="station").table.equals(panel.table)


def test_simulate_takes_a_city_or_trips_and_a_scenario_or_options():
    with pytest.raises(unmet.InputError, match="penetration = 3 makes no sense"):
        unmet.simulate(trips=commuters(), stations=STATIONS, penetration=3)
    with pytest.raises(unmet.InputError, match="Give a scenario, or seed, not both"):
        unmet.simulate(trips=commuters(), stations=STATIONS, scenario=unmet.Scenario(), seed=2)


def commuters() -> pl.DataFrame:
    """Thirty cars on ten days, 60 km each way."""
    days = pl.datetime_range(pl.datetime(2024, 1, 1, 7), pl.datetime(2024, 1, 10, 7), "1d", eager=True)
    cars = pl.DataFrame({"vehicle_id": [f"car{i}" for i in range(30)], "shift": list(range(30))})
    ways = pl.DataFrame({"later": [0, 540], "end_lat": [55.66, 55.70], "end_lon": [12.56, 12.50]})
    begin = pl.col("day") + pl.duration(minutes=pl.col("shift") + pl.col("later"))
    return (
        cars.join(pl.DataFrame({"day": days}), how="cross")
        .join(ways, how="cross")
        .select(
            "vehicle_id",
            start_time=begin,
            end_time=begin + pl.duration(minutes=50),
            distance_km=pl.lit(60.0),
            end_lat="end_lat",
            end_lon="end_lon",
        )
    )
