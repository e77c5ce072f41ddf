"""The panel of a simulation, worked out by hand."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from tests.simulation.cities import small_city
from unmet.demand.booking import Booking
from unmet.demand.regions import kmeans_regions
from unmet.demand.simulated import simulated_panel
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate

MIDNIGHT = dt.datetime(2019, 9, 2, tzinfo=dt.UTC)


def at(hours):
    return None if hours is None else MIDNIGHT + dt.timedelta(hours=hours)


def test_arrival_and_delivery_of_one_served_and_one_lost_driver():
    # Served: arrives at 1.9, waits until 2.5, full power until 3.5, a quarter of it until 4.5: 20 and 5 kWh of 25.
    rows = [("a", 1.9, 2.5, 3.5, 4.5, 9.0, "served", 25.0, 25.0), ("a", 3.2, None, None, None, None, "lost", 0.0, 7.0)]
    names = ["station_id", "arrival", "start", "taper", "charged", "end"]
    arrivals = pl.DataFrame(
        [(s, *map(at, times), *rest) for s, *times, outcome, e, w in rows for rest in [(outcome, e, w)]],
        schema=[*names, "outcome", "energy_kwh", "wanted_kwh"],
        orient="row",
    ).with_columns(pl.col(names[1:]).cast(pl.Datetime("ms", "UTC")))
    stations = pl.DataFrame({"station_id": ["a"], "lat": [55.0], "lon": [12.0], "plugs": [1]})
    regions, period = kmeans_regions(stations), (MIDNIGHT, at(24))
    booked = simulated_panel(arrivals, regions, period)
    assert booked["y"].head(5).to_list() == [0, 25, 0, 0, 0]
    assert booked["y_true"].head(5).to_list() == [0, 25, 0, 7, 0]
    assert booked["arrivals"].head(5).to_list() == [0, 1, 0, 0, 0]
    assert booked["lost"].head(5).to_list() == [0, 0, 0, 1, 0]
    assert booked["censored"].head(5).to_list() == [False, False, False, True, False]
    delivered = simulated_panel(arrivals, regions, period, Booking.DELIVERY)
    assert delivered["y"].head(6).to_list() == pytest.approx([0, 0, 10, 12.5, 2.5, 0])


@pytest.fixture(scope="module")
def crowded():
    city = small_city(3, 80, 40, 6, 2)
    return city, simulate(prepare(city), Scenario(queue="first-come", penetration=1))


def test_records_of_a_simulation_state_when_charging_ended(crowded):
    sessions = crowded[1].sessions
    assert sessions.columns[2:5] == ["start", "charged", "end"]
    assert (
        sessions.select((pl.col("start") <= pl.col("charged")) & (pl.col("charged") <= pl.col("end"))).to_series().all()
    )
    assert (sessions["charged"] < sessions["end"]).any()
