"""Joint simulation: the gain is the sum over sites if nobody goes from one to another, and less if drivers do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from unmet.errors import InputError
from unmet.planning.candidates import (
    Candidates,
    given_candidates,
    proposed_candidates,
    pulls,
    score_candidates,
)
from unmet.planning.changes import changed_world
from unmet.planning.gains import site_curves
from unmet.planning.joint import Built, simulate_jointly


def built(sites, plugs):
    added = np.zeros(sites, np.int64)
    for site, number in plugs.items():
        added[site] = number
    return Built(added, np.full(sites, np.nan))


def alone(demand, plugs):
    supplies = site_curves(changed_world(demand), 8)
    return np.sum([supplies[s].curves[None].kwh[:, k] for s, k in plugs.items()], axis=0)


def test_gains_add_up_without_spill(demand):
    apart, plugs = replace(demand, spill=0.0), {0: 1, 1: 2, 4: 3}
    joint = simulate_jointly(changed_world(apart), built(demand.sites, plugs))
    assert joint.gain_kwh == pytest.approx(alone(demand, plugs))


def test_slower_plugs_deliver_less_in_the_joint_simulation_too(demand):
    """Gains of plugs of another power add up as well, with the energy that they can deliver in the stay."""
    apart, plugs = replace(demand, spill=0.0), {0: 1, 1: 2}
    for power in (3.7, 150.0):
        supplies = site_curves(changed_world(apart), 3, (power,))
        expected = np.sum([supplies[s].curves[power].kwh[:, k] for s, k in plugs.items()], axis=0)
        added = replace(built(demand.sites, plugs), power=np.full(demand.sites, power))
        assert simulate_jointly(changed_world(apart), added).gain_kwh == pytest.approx(expected)
    slow, fast = (site_curves(changed_world(apart), 1, (power,))[0].curves[power] for power in (3.7, 22.0))
    assert slow.kwh[:, 1].mean() < 0.9 * fast.kwh[:, 1].mean()


def test_drivers_who_divert_change_the_gain(demand):
    # With 30 % of the drivers turned away served next door, a new plug serves some who were served there before.
    together, plugs = replace(demand, spill=0.3), {0: 2}
    joint = simulate_jointly(changed_world(together), built(demand.sites, plugs))
    apart = simulate_jointly(changed_world(replace(demand, spill=0.0)), built(demand.sites, plugs))
    assert joint.before_kwh.mean() >= apart.before_kwh.mean() - 1e-9  # losses of the neighbour are simulated too
    assert joint.gain_kwh.mean() != pytest.approx(apart.gain_kwh.mean(), rel=1e-6)
    assert (joint.after_kwh >= -1e-9).all()


def test_a_new_site_recovers_lost_demand_and_takes_some_from_its_neighbours(demand):
    world = changed_world(demand)
    lat, lon = demand.panel.sites.select("lat", "lon").row(0)
    places = Candidates(("corner",), np.array([lat]), np.array([lon]), (None,), (None,))
    (score,) = score_candidates(world, places, 3)
    curve = score.supply.curves[None]
    for part in (curve, score.attracted, score.taken):
        assert (np.diff(part.kwh, axis=1) >= 0).all()
    assert score.attracted.kwh == pytest.approx(score.taken.kwh + curve.kwh)
    assert curve.kwh[:, -1].mean() > 0
    added = Built(np.append(np.zeros(demand.sites, np.int64), 3), np.full(demand.sites + 1, np.nan))
    joint = simulate_jointly(world, added, places)
    # Plugs that its drivers leave free next door serve others, so the joint gain is no lower than that of the site.
    assert joint.gain_kwh.mean() >= curve.kwh[:, -1].mean() * 0.99


def test_only_sites_of_similar_power_lose_drivers_to_a_candidate(demand):
    lat, lon = demand.panel.sites.select("lat", "lon").row(0)
    for power, number in ((None, 2), (22.0, 2), (150.0, 0)):
        places = Candidates(("corner",), np.array([lat]), np.array([lon]), (None,), (power,))
        assert len(pulls(changed_world(demand), places, 0)) == number


def test_proposed_candidates_are_near_sites_with_lost_demand(demand):
    world = changed_world(demand)
    places = proposed_candidates(world, site_curves(world, 1), 3)
    assert len(places) == 3
    assert all(pulls(world, places, j) for j in range(3))


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"name": ["a"], "lat": [95.0], "lon": [1.0]}, "above 90"),
        ({"name": ["a", "a"], "lat": [1.0, 2.0], "lon": [1.0, 2.0]}, "same name"),
        ({"name": ["s0"], "lat": [1.0], "lon": [2.0]}, "same name"),
        ({"name": [], "lat": [], "lon": []}, "no rows"),
        ({"name": ["a"], "lat": [1.0]}, "no column lon"),
    ],
)
def test_invalid_candidates_are_refused(demand, table, sentence):
    schema = {"name": pl.String, "lat": pl.Float64, "lon": pl.Float64}
    frame = pl.DataFrame(table, schema={name: schema[name] for name in table})
    with pytest.raises(InputError, match=sentence):
        given_candidates(frame, demand.panel.sites["site_id"])
