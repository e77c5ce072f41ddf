"""The panel of a simulation: the truth beside the estimate from its records."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from tests.simulation.cities import small_city
from unmet.demand.regions import kmeans_regions
from unmet.demand.simulated import simulated_panel
from unmet.estimation.simulated import UNSEEN, estimate_simulated, records_and_truth
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate


@pytest.fixture(scope="module")
def crowded():
    city = small_city(3, 80, 40, 6, 2)
    return city, simulate(prepare(city), Scenario(queue="first-come", penetration=1))


def test_the_table_has_the_truth_and_the_estimate(crowded):
    city, outcome = crowded
    regions = kmeans_regions(city.stations, 2)
    longer = (city.period[0] - dt.timedelta(days=1), city.period[1] + dt.timedelta(days=1))
    table = records_and_truth(outcome.sessions, outcome.arrivals, city.stations, regions, longer, "UTC")
    truth = simulated_panel(outcome.arrivals, regions, longer)
    assert table.select(truth.columns).equals(truth)
    assert table.columns == [*truth.columns, *UNSEEN]
    assert table.select(pl.col(UNSEEN[:4]).is_finite().all()).row(0) == (True,) * 4
    outside = table.filter(~pl.col("ds").is_between(*city.period))
    assert outside.height >= 2 * 24
    assert (outside["exposure"] == 1).all()
    assert (outside["lost_kwh"] == 0).all()
    assert table["lost_draws"].to_numpy().mean() == pytest.approx(table["lost_kwh"].mean(), rel=0.2)


def test_a_lost_driver_is_booked_as_the_energy_to_80_percent(crowded):
    """This differs from the energy of served drivers."""
    city, outcome = crowded
    result = estimate_simulated(outcome.sessions, city.stations, kmeans_regions(city.stations, 2), "UTC")
    wanted = outcome.arrivals.filter(pl.col("outcome") == "lost")["wanted_kwh"].mean()
    assert result.session_kwh_.mean() == pytest.approx(wanted, rel=0.1)
    assert outcome.sessions["energy_kwh"].mean() < 0.8 * wanted
