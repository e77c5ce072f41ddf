"""The live city: it answers as the simulator does."""

from __future__ import annotations

import polars as pl
import pytest

from unmet.city.build import build_city
from unmet.errors import InputError
from unmet.simulation.run import summarise
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate
from unmet.views.app.address import View
from unmet.views.app.live_city import LiveCity, Question
from unmet.views.figures.live_city import CITY_DAYS, CITY_HOURS, CITY_MAP, CityView


@pytest.fixture(scope="module")
def city() -> LiveCity:
    return LiveCity(seed=1)


def test_an_answer_equals_the_simulation(city):
    built = build_city(seed=1)
    scenario = Scenario(queue="three-hour", penetration=0.02, seed=1)
    truth = summarise(built, scenario, simulate(prepare(built), scenario))
    totals = city.ask(Question(queue="three-hour", penetration=0.02)).totals
    assert totals["lost_drivers"] == truth["lost"]
    assert totals["served_drivers"] == truth["served"]
    assert totals["lost_kwh"] == pytest.approx(truth["lost_kwh"], abs=0.01)
    assert totals["electric_cars"] == truth["vehicles"]


def test_plugs_at_the_worst_station_lower_the_loss_and_zero_plugs_close_it(city):
    usual = city.ask(Question(penetration=0.02))
    worst, plugs = usual.stations.sort("lost_kwh", descending=True).select("station_id", "plugs").row(0)
    more = city.ask(Question(penetration=0.02, plugs=((worst, plugs + 4),)))
    assert more.totals["lost_kwh"] < usual.totals["lost_kwh"]
    closed = city.ask(Question(penetration=0.02, plugs=((worst, 0),))).stations.filter(pl.col("station_id") == worst)
    assert closed["served"].item() == 0
    assert city.ask(Question(penetration=0.02)) is usual  # it is kept


def test_sums_over_days_hours_and_stations_agree_and_competitors_take_the_rest(city):
    whole = city.ask(Question(penetration=0.02))
    part = city.ask(Question(penetration=0.02, market_share=0.4))
    for answer in (whole, part):
        own = answer.stations.filter("is_own")
        assert answer.day_kwh[1].sum() == pytest.approx(own["lost_kwh"].sum())
        assert answer.hour_kwh[0].sum() * len(answer.days) == pytest.approx(own["observed_kwh"].sum())
    all_of_it = whole.totals["observed_kwh"] + whole.totals["lost_kwh"]
    own = part.totals["observed_kwh"] + part.totals["lost_kwh"]
    assert own + part.totals["competitors_kwh"] == pytest.approx(all_of_it, abs=0.1)
    view = CityView(part, part.regions[0], part.stations["station_id"][0])
    for figure in (CITY_MAP, CITY_DAYS, CITY_HOURS):
        assert figure.draw(view).data
        assert "region" in figure.alternative(view)


def test_invalid_questions_are_refused(city):
    with pytest.raises(InputError, match="no station 'nowhere'"):
        city.ask(Question(plugs=(("nowhere", 3),)))
    with pytest.raises(InputError, match="ask for at most"):
        city.ask(Question(penetration=0.05, growth=1.0))
    with pytest.raises(InputError, match="no queue"):
        city.ask(Question(queue="nobody"))


@pytest.mark.parametrize(
    "view",
    [
        View(),
        View(
            "records", 3.5, -10.0, "three-hour", 40.0, "r3", "s1", "s1:4;s2:0", "0123456789abcdef", "Europe/Rome", 50.0
        ),
        View("plan", by="budget", budget=123_456.5, plug_cost=7_000.0, site_cost=0.0, most=3.0, plan="0" * 16),
    ],
)
def test_an_address_contains_the_whole_view(view):
    assert View.read(view.search()) == view
    assert dict(view.question().plugs) == view.changed()


def test_invalid_parts_of_an_address_are_ignored():
    assert View.read("?tab=../etc&cars=nan&cars=-5&run=../../x&plugs=a:b&region=" + "x" * 500) == View()
    assert View.read("?by=wishes&budget=-1&plug_cost=inf&most=0&hours=1e9&waiting=101") == View()


def test_a_plan_request_has_plugs_or_a_budget_with_its_costs():
    assert View(add=12.0).plan_request() == {"plugs": 12, "max_per_site": None}
    request = View(by="budget", budget=9_000.0, plug_cost=500.0, site_cost=0.0, most=2.0).plan_request()
    assert request == {"budget": 9_000.0, "plug_cost": 500.0, "site_cost": 0.0, "max_per_site": 2}
