"""Scenes: an operator observes part of the true demand, and less with a smaller share of the stations."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.simulation.cities import small_city
from unmet.demand.regions import kmeans_regions
from unmet.errors import InputError
from unmet.simulation.queues import queue_names
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate
from unmet.study import scenes
from unmet.study.cells import forecaster_of, plan_runs
from unmet.study.scenes import (
    Scene,
    SceneRecords,
    competition_scenes,
    observed_and_true,
    own_stations,
    seen_by,
    total_scenes,
    training_end,
)

CITY = small_city(4, 80, 60, 12, 2)
SHARES = (0.1, 0.4, 0.7, 1.0)
REGIONS = 4


@pytest.fixture(scope="module")
def total() -> list[Scene]:
    return total_scenes(CITY, queue_names()[:3], [0.5, 1.0], REGIONS)


@pytest.fixture(scope="module")
def competition() -> list[Scene]:
    return competition_scenes(CITY, SHARES, "first-come", 1.0, REGIONS)


def test_there_is_one_scene_per_queue_and_penetration(total):
    found = [(scene.labels["queue"], scene.labels["penetration"]) for scene in total]
    assert found == [(queue, penetration) for queue in queue_names()[:3] for penetration in (0.5, 1.0)]
    hours = (CITY.period[1] - CITY.period[0]).total_seconds() / 3600
    for scene in total:
        assert scene.panel.height == REGIONS * hours
        assert scene.positions["unique_id"].to_list() == scene.panel["unique_id"].unique().sort().to_list()


def test_observed_demand_is_at_most_true_demand(total, competition):
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


def test_an_operator_of_all_stations_observes_the_whole_city(total, competition):
    alone = next(s for s in total if (s.labels["queue"], s.labels["penetration"]) == ("first-come", 1.0))
    whole = competition[-1]
    assert whole.labels == {"queue": "first-come", "penetration": 1.0, "share": 1.0}
    assert whole.panel.equals(alone.panel)
    assert whole.fingerprint() == alone.fingerprint()


def test_a_smaller_share_observes_less_in_every_hour(competition):
    assert [scene.labels["share"] for scene in competition] == list(SHARES)
    seen = np.array([scene.panel["y"].to_numpy() for scene in competition])
    elsewhere = [scene.panel["elsewhere_kwh"].sum() for scene in competition]
    assert (np.diff(seen, axis=0) >= -1e-9).all()
    assert (np.diff(seen.sum(axis=1)) > 0).all()
    assert (np.diff(elsewhere) < 0).all()
    assert elsewhere[-1] == 0


def test_every_run_has_its_own_operator(competition):
    scenes = competition_scenes(CITY, [0.4, 1.0], "first-come", 1.0, REGIONS, runs=range(3), estimated=False)
    assert [(scene.run, scene.labels["share"]) for scene in scenes] == [(r, s) for r in range(3) for s in (0.4, 1.0)]
    assert len({scene.fingerprint() for scene in scenes if scene.labels["share"] == 0.4}) == 3
    assert len({scene.fingerprint() for scene in scenes if scene.labels["share"] == 1.0}) == 1
    assert [scene.fingerprint() for scene in scenes[:2]] == [competition[n].fingerprint() for n in (1, 3)]
    (alone,) = competition_scenes(CITY, [0.4], "first-come", 1.0, REGIONS)
    assert alone.panel.equals(competition[1].panel)
    for scene in scenes:
        assert scene.panel["y_true"].to_numpy() == pytest.approx(competition[-1].panel["y_true"].to_numpy())


def test_a_scene_has_estimates_from_its_records_alone(total, competition):
    for scene in (*total, *competition):
        panel, draws = scene.panel, scene.panel["lost_draws"].to_numpy()
        assert panel.select(pl.all().null_count()).row(0) == (0,) * panel.width
        assert draws.shape == (panel.height, 32)
        assert (draws >= 0).all()
        lost = (panel["lost_kwh"] + panel["elsewhere_kwh"]).to_numpy()
        assert draws.mean() == pytest.approx(lost.mean(), rel=0.35)
        assert ((panel["elsewhere_kwh"] > 0).any()) == (scene.labels.get("share", 1.0) < 1)
        assert (panel["lost_kwh_before"] >= 0).all()
        assert panel["lost_kwh_before"].sum() > 0
    assert all(scene.run is None for scene in total)


def test_scenes_and_models_have_the_same_training_part(total):
    (run,) = plan_runs(total[-1:], ["exposure"], ["seasonal"], 1, 1, 1)
    model = forecaster_of(run, CITY.time_zone).set_params(lags=24).fit(total[-1].panel)
    assert model.split_.train_end == training_end(CITY.period)


def later_changed(arrivals: pl.DataFrame, since: dt.datetime) -> pl.DataFrame:
    """The arrivals, changed from a time on: without every third one, and with twice the energy."""
    later, third = pl.col("arrival") >= since, pl.int_range(pl.len()) % 3 == 0
    return arrivals.filter(~(later & third)).with_columns(
        energy_kwh=pl.col("energy_kwh") * pl.when(later).then(2.0).otherwise(1.0)
    )


@pytest.mark.parametrize("own", [None, 0.4])
def test_the_training_part_does_not_depend_on_later_arrivals(own):
    """Neither the training data nor the lags of the training part may use later information."""
    outcome = simulate(prepare(CITY), Scenario(queue="first-come", penetration=1.0))
    grouped, until = kmeans_regions(CITY.stations, REGIONS), training_end(CITY.period)
    changed = replace(outcome, arrivals=later_changed(outcome.arrivals, until))
    assert changed.sessions.height < outcome.sessions.height
    panels = []
    for each in (outcome, changed):
        whole = SceneRecords(each.arrivals, each.sessions, each.stations)
        observation = whole if own is None else seen_by(own_stations(grouped, own, 1), each)
        panels.append(observed_and_true(observation, grouped, CITY.period, CITY.time_zone))
    before = [panel.filter(pl.col("ds") < until) for panel in panels]
    assert before[0]["lost_kwh_before"].sum() > 0
    assert_frame_equal(*before, check_exact=True)


def test_scenes_made_in_other_processes_are_the_same(total, monkeypatch):
    monkeypatch.setattr(scenes, "MANY_ESTIMATES", 1)
    again = total_scenes(CITY, queue_names()[:1], [0.5, 1.0], REGIONS)
    for one, other in zip(total[:2], again, strict=True):
        assert one.labels == other.labels
        assert_frame_equal(one.panel, other.panel, check_exact=True)


@pytest.mark.parametrize("seed", range(5))
def test_own_stations_are_nested_and_in_every_region(seed):
    grouped = kmeans_regions(CITY.stations, REGIONS)
    before: set[str] = set()
    for share in SHARES:
        own = own_stations(grouped, share, seed)
        assert len(own) == len(set(own))
        assert before <= set(own)
        is_own = grouped.of_station.filter(pl.col("station_id").is_in(own))
        counts = is_own.group_by("unique_id").len().sort("unique_id")
        sizes = grouped.of_station.group_by("unique_id").len().sort("unique_id")
        assert counts["unique_id"].equals(sizes["unique_id"])
        assert ((counts["len"] - share * sizes["len"]).abs() <= 1).all()
        before = set(own)
    assert before == set(CITY.stations["station_id"])
    assert own_stations(grouped, 0.5, seed) == own_stations(grouped, 0.5, seed)


def test_the_seed_decides_which_stations_are_own():
    grouped = kmeans_regions(CITY.stations, REGIONS)
    assert len({tuple(sorted(own_stations(grouped, 0.5, seed))) for seed in range(10)}) > 1


def test_the_most_censored_region_has_the_most_censored_hours(total, competition):
    for scene in (*total, *competition):
        hours = {name: part["censored"].sum() for (name,), part in scene.panel.group_by("unique_id")}
        assert hours[scene.most_censored] == max(hours.values())


def test_invalid_arguments_are_refused():
    with pytest.raises(InputError, match="no queue named 'express'"):
        total_scenes(CITY, ["express"], [0.5])
    with pytest.raises(InputError, match="penetration = 5"):
        total_scenes(CITY, ["first-come"], [5.0])
    for share in (0.0, -0.1, 3.0, float("nan")):
        with pytest.raises(InputError, match="market share"):
            competition_scenes(CITY, [0.5, share], "first-come", 1.0)
