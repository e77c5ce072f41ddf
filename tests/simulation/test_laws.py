"""Laws that hold in every city, under every queue and every option."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulation.cities import cities, scenarios
from tests.simulation.twin import t80, t100, twin_log
from unmet.demand.booking import Booking
from unmet.demand.regions import kmeans_regions
from unmet.demand.simulated import simulated_panel
from unmet.simulation.choice import beta_table
from unmet.simulation.queues import queue_names
from unmet.simulation.replay import replay
from unmet.simulation.scenario import Curve, Scenario
from unmet.simulation.simulate import draw, prepare, simulate

EXAMPLES = settings(max_examples=60)


@EXAMPLES
@given(cities, scenarios)
def test_no_station_serves_more_vehicles_at_once_than_it_has_plugs(city, scenario):
    sessions = simulate(prepare(city), scenario).sessions
    plugs = dict(city.stations.select("station_id", "plugs").iter_rows())
    for (station,), rows in sessions.group_by("station_id"):
        # at equal times, leaving comes before arriving
        events = [(t, 1) for t in rows["start"]] + [(t, -1) for t in rows["end"]]
        steps = np.cumsum([step for _, step in sorted(events)])
        assert steps.max() <= plugs[station]
    for _, rows in sessions.sort("start", "end").group_by("station_id", "plug_id", maintain_order=True):
        assert (rows["start"].shift(-1) >= rows["end"]).all()


@EXAMPLES
@given(cities, scenarios, st.sampled_from(Booking))
def test_every_arrival_is_served_or_lost_and_true_is_observed_plus_lost(city, scenario, booking):
    outcome = simulate(prepare(city), scenario)
    arrivals = outcome.arrivals
    served = arrivals["outcome"] == "served"
    assert set(arrivals["outcome"]) <= {"served", "lost"}
    assert (arrivals["start"].is_not_null() == served).all()
    assert (arrivals["plug_id"].is_not_null() == served).all()
    assert (arrivals["energy_kwh"].filter(~served) == 0).all()
    assert outcome.sessions.height == served.sum()
    panel = simulated_panel(arrivals, kmeans_regions(city.stations, 3), city.period, booking)
    hours = panel.group_by("ds").agg(pl.col("y", "y_true", "lost", "arrivals").sum(), pl.col("censored").any())
    lost = arrivals.filter(~served).group_by(ds=pl.col("arrival").dt.truncate("1h")).agg(pl.col("wanted_kwh").sum())
    both = hours.join(lost, on="ds", how="left").with_columns(pl.col("wanted_kwh").fill_null(0.0))
    assert np.allclose(both["y_true"], both["y"] + both["wanted_kwh"])
    assert (both["censored"] == (both["lost"] > 0)).all()
    assert both["lost"].sum() == (~served).sum()
    assert both["arrivals"].sum() == served.sum()
    if booking is Booking.ARRIVAL:
        assert np.isclose(panel["y"].sum(), arrivals["energy_kwh"].sum())


@EXAMPLES
@given(cities, scenarios)
def test_energy_fits_battery_power_and_time(city, scenario):
    arrivals = simulate(prepare(city), scenario).arrivals.join(city.stations, on="station_id")
    full = arrivals["soc"] + arrivals["energy_kwh"] / arrivals["battery_kwh"]
    hours = (arrivals["end"] - arrivals["start"]).dt.total_milliseconds().fill_null(0) / 3_600_000
    assert arrivals["soc"].is_between(0, 1).all()
    assert (full <= 1 + 1e-9).all()
    assert (arrivals["energy_kwh"] >= 0).all()
    assert (arrivals["energy_kwh"] <= arrivals["power_kw"] * hours + 1e-3).all()
    lost = arrivals.filter(pl.col("outcome") == "lost")
    to_80 = 0.8 * (1 - lost["soc"]) if scenario.curve is Curve.LITERAL_LOST else np.maximum(0.8 - lost["soc"], 0)
    assert np.allclose(lost["wanted_kwh"], to_80 * lost["battery_kwh"])


@EXAMPLES
@given(cities, scenarios)
def test_a_vehicle_is_never_at_two_places_at_once(city, scenario):
    arrivals = simulate(prepare(city), scenario).arrivals
    served = arrivals.filter(pl.col("outcome") == "served").sort("vehicle_id", "start", "end")
    assert (served["start"] >= served["arrival"]).all()
    assert (served["end"] >= served["start"]).all()
    assert (served["end"] <= served["leaves"].fill_null(served["end"])).all()
    for _, rows in served.group_by("vehicle_id", maintain_order=True):
        assert (rows["start"].shift(-1) >= rows["end"]).all()
    # and while charging it makes no trip
    trips = city.trips.join(served.select("vehicle_id", "start", "end"), on="vehicle_id")
    driving = trips.filter((pl.col("start_time") < pl.col("end")) & (pl.col("end_time") > pl.col("start")))
    assert driving.is_empty()


@EXAMPLES
@given(cities, scenarios)
def test_the_engine_equals_the_plain_python_version_event_by_event(city, scenario):
    itinerary = prepare(city)
    luck = draw(itinerary, scenario)
    table = beta_table(scenario.plug_in_a, scenario.plug_in_b)
    twin = twin_log(itinerary, scenario, luck.electric, luck.soc, luck.capacity_kwh, luck.range_km, luck.uniform, table)
    ours = simulate(itinerary, scenario).arrivals
    assert ours.height == len(twin)
    if not twin:
        return
    _, station, plug, start, end, soc, energy, attempt = zip(*twin, strict=True)
    lost = [p is None for p in plug]
    assert (ours["outcome"] == "lost").to_list() == lost
    assert ours["station_id"].to_list() == [city.stations["station_id"][s] for s in station]
    assert ours["plug_id"].to_list() == [None if p is None else p + 1 for p in plug]
    assert ours["attempt"].to_list() == list(attempt)
    assert ours["soc"].to_list() == list(soc)
    assert ours["wanted_kwh"].to_list() == list(energy)
    served = ours.filter(pl.col("outcome") == "served").join(city.stations, on="station_id", maintain_order="left")
    literal = scenario.curve is not Curve.CONTINUOUS
    for row in served.iter_rows(named=True):
        car = (row["soc"], row["battery_kwh"], row["power_kw"], literal)
        for column, hours in (("taper", t80(*car)), ("charged", t100(*car))):
            due = min(row["start"] + dt.timedelta(hours=hours), row["end"])
            assert abs((row[column] - due).total_seconds()) < 0.002
        assert row["waited_minutes"] == pytest.approx((row["start"] - row["arrival"]).total_seconds() / 60, abs=1e-4)
    for name, seconds in (("start", start), ("end", end)):
        millis = [None if p is None else round(s * 1000) for p, s in zip(plug, seconds, strict=True)]
        assert ours[name].dt.epoch("ms").to_list() == millis


@EXAMPLES
@given(cities, st.integers(0, 1000), st.integers(0, 6), st.integers(1, 3))
def test_more_plugs_never_serve_fewer_of_the_same_arrivals(city, seed, station, more):
    arrivals = simulate(prepare(city), Scenario(queue="first-come", penetration=1, seed=seed)).arrivals
    grown = city.stations.with_columns(
        plugs=pl.col("plugs")
        + pl.when(pl.int_range(pl.len()) == station % city.stations.height).then(more).otherwise(0)
    )
    before, after = replay(arrivals, city.stations), replay(arrivals, grown)
    was_served = before["outcome"] == "served"
    assert (after["outcome"].filter(was_served) == "served").all()
    assert after["energy_kwh"].sum() >= before["energy_kwh"].sum() - 1e-9


@EXAMPLES
@given(
    cities, st.integers(0, 1000), st.sampled_from(["first-come", "three-hour", "gas-station"]), st.sampled_from(Curve)
)
def test_a_replay_at_the_same_stations_reproduces_the_simulation(city, seed, queue, curve):
    arrivals = simulate(prepare(city), Scenario(queue=queue, penetration=1, seed=seed, curve=curve)).arrivals
    again = replay(arrivals, city.stations, queue, curve)
    same = ["session_id", "outcome", "plug_id", "start", "end"]
    assert again.select(same).equals(arrivals.select(same))
    assert np.allclose(again["wanted_kwh"], arrivals["wanted_kwh"])


@settings(max_examples=40)
@given(cities, scenarios)
def test_energy_is_delivered_while_the_car_is_on_the_plug(city, scenario):
    arrivals = simulate(prepare(city), scenario).arrivals
    first, last = city.period
    ends = arrivals["charged"].max()
    last = max(last, ends) if ends else last
    panel = simulated_panel(arrivals, kmeans_regions(city.stations, 2), (first, last), Booking.DELIVERY)
    charged = arrivals.filter(pl.col("charged") > pl.col("start"))
    assert np.isclose(panel["y"].sum(), charged["energy_kwh"].sum())
    power = (city.stations["plugs"] * city.stations["power_kw"]).sum()
    assert panel.group_by("ds").agg(pl.col("y").sum())["y"].max() <= power * (1 + 1e-6)


@settings(max_examples=40)
@given(cities, scenarios)
def test_the_same_seed_gives_the_same_result(city, scenario):
    assert simulate(prepare(city), scenario).arrivals.equals(simulate(prepare(city), scenario).arrivals)


def test_the_laws_are_tested_for_all_queues():
    assert set(queue_names()) == {"gas-station", "three-hour", "first-come", "reservation"}
