"""Plans: their gains follow from the draws, and what cannot be planned is refused with a clear message."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import unmet
from unmet.demand.panel import Panel
from unmet.errors import InputError
from unmet.planning.plan import plan


@pytest.fixture(scope="module")
def eight(lost):
    return plan(lost, plugs=8)


def test_all_plugs_are_used_and_losses_fall(eight):
    table = eight.table
    assert (eight.plugs, int(table["plugs_added"].sum())) == (8, 8)
    assert (table["gain_kwh"] >= 0).all()
    assert (table["lost_drivers_after"] <= table["lost_drivers"] + 1e-9).all()
    changed = table.filter(pl.col("plugs_added") > 0)
    assert (changed["gain_kwh_low"] <= changed["gain_kwh"]).all()
    assert (changed["utilisation_after"] < changed["utilisation"]).all()
    low, mean, high = (eight.recovered_share()[i] for i in (1, 0, 2))
    assert 0 < low < mean < high <= 1
    assert table["chosen_share"].is_between(0, 1).all()


def test_the_total_gain_is_the_sum_over_sites_times_the_interplay(eight):
    total = float(eight.table["gain_kwh"].sum())
    assert eight.gain()[0] == pytest.approx(total * eight.energy.interplay, rel=1e-6)


def test_no_other_choice_gains_more(eight):
    # Returns diminish, so the greedy curve at eight plugs is the best gain of eight plugs.
    curve = eight.curve
    assert (np.diff(curve["gain_kwh"].to_numpy()) >= 0).all()
    at_eight = curve.filter(pl.col("plugs") == 8)["gain_kwh"][0]
    assert at_eight == pytest.approx(float(eight.table["gain_kwh"].sum()), rel=0.01)
    assert eight.sensitivity["gain_kwh"][0] == pytest.approx(eight.sensitivity["best_kwh"][0], rel=0.01)


def test_the_same_seed_gives_the_same_plan_with_any_number_of_workers(lost, eight):
    assert plan(lost, plugs=8, workers=1).table.equals(eight.table)
    assert plan(lost, plugs=8, workers=3).table.equals(eight.table)
    assert not plan(lost, plugs=8, seed=9).table.equals(eight.table)


def test_a_panel_and_its_estimate_give_the_same_plan(lost, eight):
    assert plan(lost.panel_, plugs=8, draws=40).table.equals(eight.table)


def test_a_budget_pays_for_sites_and_plugs(lost):
    result = plan(lost, budget=40_000, plug_cost=3000, site_cost=8000, price=0.4)
    assert result.cost is not None
    assert result.cost <= 40_000
    assert result.cost == 3000 * result.plugs + 8000 * result.sites
    choice = result.decision.choice
    assert choice.method == "exact"
    assert choice.gain >= choice.greedy_gain - 1e-9
    chosen = result.table.filter(pl.col("plugs_added") > 0)
    assert chosen["payback_years"].null_count() == 0
    assert (chosen["gain_kwh_per_cost"] > 0).all()


def test_a_share_of_demand_is_served(lost):
    result = plan(lost, serve=0.95)
    assert result.decision.reached
    before, after = result.served_share()
    assert before < 0.95 <= after + 1e-6
    fewer = plan(lost, plugs=result.plugs - 1)
    assert fewer.served_share()[1] < 0.95
    everywhere = plan(lost, serve=0.95, each_site=True)
    served, lost_after = everywhere.table["served_kwh"], everywhere.table["lost_kwh_after"]
    lost_before = everywhere.table["lost_kwh"]
    assert (1 - lost_after / (served + lost_before) >= 0.95 - 1e-6).all()


def test_a_share_that_cannot_be_served_is_reported(lost):
    result = plan(lost, serve=0.999, max_per_site=1)
    assert not result.decision.reached
    assert result.table["plugs_added"].max() == 1
    at_sites = plan(lost, serve=0.999, each_site=True, max_per_site=1)
    assert at_sites.decision.short
    assert any("cannot be served at" in note for note in at_sites.notes)


def test_plans_respect_limits_of_grid_and_space(lost):
    costs = pl.DataFrame(
        {"site_id": ["s0", None], "plug_cost": [1.0, 1.0], "grid_kw": [50.0, None], "max_plugs": [None, 1]}
    )
    result = plan(lost, plugs=30, costs=costs)
    added = dict(result.table.select("site_id", "plugs_added").iter_rows())
    assert added["s0"] <= 2  # of 22 kW each
    assert max(added.values()) <= 2
    assert all(number <= 1 for site, number in added.items() if site != "s0")


def test_power_levels_are_chosen_by_cost(lost):
    costs = pl.DataFrame({"power_kw": [22.0, 150.0], "plug_cost": [3000.0, 60_000.0]})
    cheap = plan(lost, budget=30_000, costs=costs, powers=(22.0, 150.0))
    assert set(cheap.table.filter(pl.col("plugs_added") > 0)["power_kw"]) == {22.0}
    rapid = plan(lost, plugs=3, powers=(150.0,))
    slow = plan(lost, plugs=3, powers=(22.0,))
    assert rapid.gain()[0] > slow.gain()[0]  # stays are shorter


def test_growth_is_planned_year_by_year(lost):
    result = plan(lost, plugs=9, growth=0.2, horizon=3)
    assert [stage.plugs for stage in result.stages] == [3, 6, 9]
    assert [round(stage.growth, 3) for stage in result.stages] == [1.2, 1.44, 1.728]
    assert result.stages[2].lost_kwh > result.stages[0].lost_kwh
    years = result.table.filter(pl.col("plugs_added") > 0)["year"]
    assert set(years) <= {1, 2, 3}
    assert 1 in set(years)


def test_new_sites_compete_with_existing_ones(lost):
    lat, lon = lost.panel_.sites.select("lat", "lon").row(0)
    table = pl.DataFrame({"name": ["corner"], "lat": [lat], "lon": [lon]})
    result = plan(lost, plugs=10, candidates=table)
    new = result.table.filter("is_new")
    assert new.height == 1
    assert new["attracted_kwh"][0] >= new["taken_kwh"][0] >= 0
    assert result.gain()[0] >= plan(lost, plugs=10).gain()[0] * 0.98  # the better of the plans with and without it
    proposed = plan(lost, plugs=10, propose=2)
    assert proposed.table["is_new"].sum() == 2


def test_plan_is_exported_and_its_result_has_a_plot(eight):
    assert unmet.plan is plan
    figure = eight.plot()
    assert max(figure.data[2].x) >= 8


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({}, "one of --plugs, --budget and --serve"),
        ({"plugs": 3, "serve": 0.9}, "--plugs and --serve are given"),
        ({"plugs": 0}, "at least 1"),
        ({"budget": -5.0, "plug_cost": 1.0}, "above 0"),
        ({"budget": 100.0}, "needs costs"),
        ({"budget": 100.0, "plug_cost": 3000.0}, "A budget of 100 buys no plug: give 3,000 or more"),
        ({"plugs": 3, "price": 0.3, "plug_cost": 1.0, "upkeep": np.nan}, "Upkeep of nan"),
        ({"plugs": 3, "price": 0.3, "plug_cost": 1.0, "discount": np.inf}, "discount rate of inf"),
        ({"serve": 1.5}, "between 0 and 1"),
        ({"plugs": 3, "each_site": True}, "--serve as well"),
        ({"plugs": 3, "price": 0.3}, "payback needs costs"),
        ({"plugs": 3, "price": -0.3, "plug_cost": 1.0}, "price"),
        ({"plugs": 3, "closed": ["nowhere"]}, "no station 'nowhere'"),
        ({"plugs": 3, "horizon": 0}, "horizon"),
        ({"plugs": 3, "growth": -1.0}, "rate above -1"),
        ({"plugs": 3, "growth": 9.0, "horizon": 12}, "assume less growth"),
        ({"plugs": 3, "more_cars": 1e9}, "assume less growth"),
        ({"plugs": 3, "max_per_site": 0}, "at least 1"),
        ({"plugs": 3, "powers": (0.0,)}, "above 0"),
        ({"plugs": 3, "propose": -1}, "0 or more"),
        ({"plugs": 3, "costs": pl.DataFrame({"plug_cost": [1.0], "max_plugs": [0]})}, "No plug fits"),
    ],
)
def test_invalid_arguments_are_refused(lost, asked, sentence):
    with pytest.raises(InputError, match=sentence):
        plan(lost, **asked)


def test_powers_of_a_site_do_not_compete_for_the_share_of_draws(lost):
    """With a second power that never gains more, every site is chosen in as many draws as without it."""
    alone, both = (plan(lost, plugs=6, powers=powers).tables.sites for powers in ((22.0,), (22.0, 3.7)))
    shares = alone.select("site_id", "chosen_share").join(both.select("site_id", other="chosen_share"), on="site_id")
    assert shares["other"].to_list() == pytest.approx(shares["chosen_share"].to_list(), abs=0.02)
    assert shares["chosen_share"].max() > 0.5


def test_records_without_lost_demand_are_refused(town):
    few, many = town.sessions.gather_every(25), town.stations.with_columns(plugs=pl.lit(6))
    with pytest.raises(InputError, match="No lost demand"):
        plan(Panel(few, many, regions="3"), plugs=3, draws=20)


@pytest.mark.parametrize("source", [42, "nowhere"])
def test_a_source_without_records_is_refused(source):
    with pytest.raises(InputError):
        plan(source, plugs=3)
