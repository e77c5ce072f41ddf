"""Scenes: what an operator sees is a part of what is wanted, the smaller the fewer stations are its own."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests.simulation.cities import small_city
from unmet.demand.regions import kmeans_regions
from unmet.errors import InputError
from unmet.simulation.queues import queue_names
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate
from unmet.study.scenes import Scene, _own_stations, competition_scenes, total_scenes

CITY = small_city(4, 80, 40, 15, 2)
SHARES = (0.1, 0.4, 0.7, 1.0)
REGIONS = 4


@pytest.fixture(scope="module")
def total() -> list[Scene]:
    return total_scenes(CITY, queue_names()[:3], [0.5, 1.0], REGIONS)


@pytest.fixture(scope="module")
def competition() -> list[Scene]:
    return competition_scenes(CITY, SHARES, "first-come", 1.0, REGIONS)


def test_every_scene_is_a_queue_at_a_penetration(total):
    found = [(scene.labels["queue"], scene.labels["penetration"]) for scene in total]
    assert found == [(queue, penetration) for queue in queue_names()[:3] for penetration in (0.5, 1.0)]
    hours = (CITY.period[1] - CITY.period[0]).total_seconds() / 3600
    for scene in total:
        assert scene.panel.height == REGIONS * hours
        assert scene.positions["unique_id"].to_list() == scene.panel["unique_id"].unique().sort().to_list()


def test_what_is_seen_is_a_part_of_what_is_wanted(total, competition):
    for scene in (*total, *competition):
        panel = scene.panel
        assert (panel["y"] <= panel["y_true"]).all()
        assert (panel.filter(~pl.col("censored"))["y"] == panel.filter(~pl.col("censored"))["y_true"]).all()
        assert (panel.filter("censored")["lost"] > 0).all()
        assert panel["exposure"].is_between(0, 1).all()
    assert any(scene.panel["censored"].any() for scene in total)
    assert any((scene.panel["exposure"] < 1).any() for scene in total)


def test_true_demand_is_that_of_all_arrivals(total, competition):
    for scene in (total[-1], *competition):
        scenario = Scenario(queue=scene.labels["queue"], penetration=scene.labels["penetration"])
        arrivals = simulate(prepare(CITY), scenario).arrivals
        assert scene.panel["arrivals"].sum() + scene.panel["lost"].sum() == arrivals.height
    wanted = simulate(prepare(CITY), Scenario(queue="first-come", penetration=1.0)).arrivals
    served = pl.col("outcome") == "served"
    whole = wanted.select(pl.when(served).then("energy_kwh").otherwise("wanted_kwh").sum()).item()
    assert competition[-1].panel["y_true"].sum() == pytest.approx(whole)


def test_who_owns_all_stations_sees_what_the_city_sees(total, competition):
    alone = next(s for s in total if (s.labels["queue"], s.labels["penetration"]) == ("first-come", 1.0))
    whole = competition[-1]
    assert whole.labels == {"queue": "first-come", "penetration": 1.0, "share": 1.0}
    assert whole.panel.equals(alone.panel)
    assert whole.fingerprint() == alone.fingerprint()


def test_a_smaller_share_sees_less_in_every_hour(competition):
    assert [scene.labels["share"] for scene in competition] == list(SHARES)
    seen = np.array([scene.panel["y"].to_numpy() for scene in competition])
    exposed = [scene.panel["exposure"].mean() for scene in competition]
    assert (np.diff(seen, axis=0) >= -1e-9).all()
    assert (np.diff(seen.sum(axis=1)) > 0).all()
    assert (np.diff(exposed) > 0).all()


def test_every_run_has_an_operator_of_its_own(competition):
    scenes = competition_scenes(CITY, [0.4, 1.0], "first-come", 1.0, REGIONS, runs=3)
    assert [(scene.run, scene.labels["share"]) for scene in scenes] == [(r, s) for r in range(3) for s in (0.4, 1.0)]
    assert len({scene.fingerprint() for scene in scenes if scene.labels["share"] == 0.4}) == 3
    assert len({scene.fingerprint() for scene in scenes if scene.labels["share"] == 1.0}) == 1
    assert scenes[0].panel.equals(competition[1].panel)
    for scene in scenes:
        assert scene.panel["y_true"].to_numpy() == pytest.approx(competition[-1].panel["y_true"].to_numpy())


def test_a_scene_says_what_its_records_alone_tell(total, competition):
    said = ("exposure", "turnout", "exposure_spread", "lost_spread", "session_kwh")
    for scene in (*total, *competition):
        assert scene.panel.select(pl.col(said).is_finite().all()).row(0) == (True,) * 5
        assert (scene.panel["session_kwh"] > 0).all()
        unsure = scene.labels.get("share", 1.0) < 1
        assert (scene.panel["exposure_spread"] > 0).any() == unsure
    assert all(scene.run is None for scene in total)


@pytest.mark.parametrize("seed", range(5))
def test_own_stations_are_nested_and_in_every_region(seed):
    grouped = kmeans_regions(CITY.stations, REGIONS)
    before: set[str] = set()
    for share in SHARES:
        own = _own_stations(grouped, share, seed)
        assert len(own) == len(set(own))
        assert before <= set(own)
        mine = grouped.of_station.filter(pl.col("station_id").is_in(own))
        counts = mine.group_by("unique_id").len().sort("unique_id")
        sizes = grouped.of_station.group_by("unique_id").len().sort("unique_id")
        assert counts["unique_id"].equals(sizes["unique_id"])
        assert ((counts["len"] - share * sizes["len"]).abs() <= 1).all()
        before = set(own)
    assert before == set(CITY.stations["station_id"])
    assert _own_stations(grouped, 0.5, seed) == _own_stations(grouped, 0.5, seed)


def test_the_seed_decides_which_stations_are_own():
    grouped = kmeans_regions(CITY.stations, REGIONS)
    assert len({tuple(sorted(_own_stations(grouped, 0.5, seed))) for seed in range(10)}) > 1


def test_the_most_censored_region_has_the_most_censored_hours(total, competition):
    for scene in (*total, *competition):
        hours = {name: part["censored"].sum() for (name,), part in scene.panel.group_by("unique_id")}
        assert hours[scene.most_censored] == max(hours.values())


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="no queue named 'express'"):
        total_scenes(CITY, ["express"], [0.5])
    with pytest.raises(InputError, match="penetration = 5"):
        total_scenes(CITY, ["first-come"], [5.0])
    for share in (0.0, -0.1, 3.0, float("nan")):
        with pytest.raises(InputError, match="market share"):
            competition_scenes(CITY, [0.5, share], "first-come", 1.0)


def test_exposure_is_that_of_the_region_it_stands_in():
    """Where nothing is full, exposure is the operator's share of the plugs of each region, as the truth has them."""
    regions = kmeans_regions(CITY.stations, REGIONS)
    for scene in competition_scenes(CITY, [0.25, 0.5], "gas-station", 0.05, REGIONS):
        own = _own_stations(regions, scene.labels["share"], 1)
        located = CITY.stations.join(regions.of_station, on="station_id")
        share = {
            name: part.filter(pl.col("station_id").is_in(own))["plugs"].sum() / part["plugs"].sum()
            for (name,), part in located.group_by("unique_id")
        }
        most = dict(scene.panel.group_by("unique_id").agg(pl.col("exposure").max()).iter_rows())
        assert most == pytest.approx(share)
