"""A fleet of one's own, from the file to its effects."""

from __future__ import annotations

import polars as pl
import pytest

from tests.simulation.cities import small_city
from unmet.city.build import build_city
from unmet.errors import InputError
from unmet.simulation.fleet import DENMARK, read_fleet
from unmet.simulation.homes import ends_at_home
from unmet.simulation.scenario import Scenario, TurnedAway, read_scenario
from unmet.simulation.simulate import prepare, simulate

YAML = """
models:
  - {name: Small, share: 3, range_km: 200, battery_kwh: 40}
  - {name: Large, share: 1, range_km: 500, battery_kwh: 90}
initial_soc: {mean: 0.9, spread: 0.1, least: 0.8, most: 1.0}
home_charging: 1.0
"""


def test_a_fleet_is_read_and_written_with_its_scenario(tmp_path):
    (tmp_path / "fleet.yaml").write_text(YAML, encoding="utf-8")
    fleet = read_fleet(tmp_path / "fleet.yaml")
    assert [model.name for model in fleet.models] == ["Small", "Large"]
    (tmp_path / "scenario.yaml").write_text(Scenario(fleet=fleet).to_yaml(), encoding="utf-8")
    again, _ = read_scenario(tmp_path / "scenario.yaml")
    assert again.fleet == fleet
    (tmp_path / "fleet.csv").write_text("name,share,range_km,battery_kwh\nA,1,300,50\n", encoding="utf-8")
    assert read_fleet(tmp_path / "fleet.csv").models[0].battery_kwh == 50


@pytest.mark.parametrize(
    ("text", "says"),
    [("models: []", "models"), ("models: 3", "models"), ("cars: 4", "models"), ("- a", "not a fleet"),
     ("models: &all []\nhome_charging: *all", "anchors and references"), ("models: [", "not a YAML file"),
     ("models: [{name: A, share: 1, range_km: 0, battery_kwh: 50}]", "range_km")],
)  # fmt: skip
def test_an_invalid_fleet_is_refused(tmp_path, text, says):
    (tmp_path / "fleet.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        read_fleet(tmp_path / "fleet.yaml")


def test_a_fleet_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "fleet.csv").write_bytes(b"")
    with pytest.raises(InputError, match="not a CSV table of models"):
        read_fleet(tmp_path / "fleet.csv")
    with pytest.raises(InputError, match=r"Cannot read the fleet|no file"):
        read_fleet(tmp_path / "absent.csv")
    with pytest.raises(InputError, match=r"Cannot read the fleet|no file"):
        read_fleet(tmp_path / "absent.yaml")


def test_models_of_cars_have_the_shares_of_the_fleet(tmp_path):
    (tmp_path / "fleet.yaml").write_text(YAML, encoding="utf-8")
    city = small_city(1, 4000, 1, 5, 2)
    cars = simulate(prepare(city), Scenario(penetration=1, fleet=read_fleet(tmp_path / "fleet.yaml"))).vehicles
    assert set(cars["model"]) == {"Small", "Large"}
    assert (cars["model"] == "Small").mean() == pytest.approx(0.75, abs=0.03)
    assert cars["initial_soc"].is_between(0.8, 1).all()
    assert cars.filter(pl.col("model") == "Large")["battery_kwh"].unique().to_list() == [90]


def commuters(days: int = 20) -> pl.DataFrame:
    """Cars that drive 100 km to work and back every day, and spend the night at home."""
    rows = []
    for car in range(60):
        home, work = (55.60 + 0.001 * car, 12.40), (55.70, 12.60)
        for day in range(days):
            morning = 1_567_317_600 + 86_400 * day + 60 * car  # from 06:00 UTC on
            rows += [(f"v{car}", morning, morning + 3600, *work, 100.0)]
            rows += [(f"v{car}", morning + 32_400, morning + 36_000, *home, 100.0)]
    names = ["vehicle_id", "start_time", "end_time", "end_lat", "end_lon", "distance_km"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_home_is_where_cars_spend_the_night_and_home_charging_relieves_stations():
    trips = commuters()
    stations = pl.DataFrame({"station_id": ["a", "b"], "lat": [55.62, 55.70], "lon": [12.40, 12.60],
                             "power_kw": [22.0, 22.0], "plugs": [5, 5]})  # fmt: skip
    city = build_city(trips, stations)
    home = ends_at_home(city.trips, city.time_zone)
    ordered = city.trips.sort("end_time", "vehicle_id")
    assert (home == (ordered["end_lat"] != 55.70).to_numpy()).mean() > 0.97  # all days are alike, except for last trips
    counts = []
    for share in (0.0, 0.5, 1.0):
        fleet = DENMARK.model_copy(update={"home_charging": share})
        counts.append(simulate(prepare(city), Scenario(penetration=1, fleet=fleet)).arrivals.height)
    assert counts[0] > 1.3 * counts[1] > 1.3 * counts[2]
    assert counts[0] == simulate(prepare(city), Scenario(penetration=1)).arrivals.height


def test_a_car_that_keeps_its_charge_comes_back_sooner_than_one_charged_elsewhere():
    city = small_city(5, 60, 60, 3, 1)
    away = {
        how: simulate(prepare(city), Scenario(penetration=1, turned_away=how)).arrivals for how in ("elsewhere", "keep")
    }
    assert away["keep"].height > away["elsewhere"].height
    assert (away["keep"]["attempt"] == 1).all()  # a new decision is a new wish
    kept = away["keep"].sort("vehicle_id", "arrival").with_columns(
        next_soc=pl.col("soc").shift(-1).over("vehicle_id")
    ).filter(pl.col("outcome") == "lost").drop_nulls("next_soc")  # fmt: skip
    assert (kept["next_soc"] <= kept["soc"] + 1e-12).all()
    assert TurnedAway("keep") is TurnedAway.KEEP
