"""All sites together: the sum of the sites if nobody goes from one to another, and less if drivers do."""

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
from unmet.planning.joint import Built, play_together


def built(sites, plugs):
    added = np.zeros(sites, np.int64)
    for site, number in plugs.items():
        added[site] = number
    return Built(added, np.full(sites, np.nan))


def alone(truth, plugs):
    supplies = site_curves(changed_world(truth), 8)
    return np.sum([supplies[s].curves[None].kwh[:, k] for s, k in plugs.items()], axis=0)


def test_without_spill_sites_add_up(truth):
    apart, plugs = replace(truth, spill=0.0), {0: 1, 1: 2, 4: 3}
    joint = play_together(changed_world(apart), built(truth.sites, plugs))
    assert joint.gain_kwh == pytest.approx(alone(truth, plugs))


def test_drivers_who_divert_leave_less_to_gain(truth):
    # With half of those turned away going next door, some of the drivers that a new plug serves were served there.
    together, plugs = replace(truth, spill=0.3), {0: 2}
    joint = play_together(changed_world(together), built(truth.sites, plugs))
    apart = play_together(changed_world(replace(truth, spill=0.0)), built(truth.sites, plugs))
    assert joint.before_kwh.mean() >= apart.before_kwh.mean() - 1e-9  # the neighbour's losses are played too
    assert joint.gain_kwh.mean() != pytest.approx(apart.gain_kwh.mean(), rel=1e-6)
    assert (joint.after_kwh >= -1e-9).all()


def test_a_plug_at_a_new_site_recovers_lost_demand_and_takes_some(truth):
    world = changed_world(truth)
    lat, lon = truth.panel.sites.select("lat", "lon").row(0)
    places = Candidates(("corner",), np.array([lat]), np.array([lon]), (None,), (None,))
    (score,) = score_candidates(world, places, 3)
    curve = score.supply.curves[None]
    for part in (curve, score.attracted, score.taken):
        assert (np.diff(part.kwh, axis=1) >= 0).all()
    assert score.attracted.kwh == pytest.approx(score.taken.kwh + curve.kwh)
    assert curve.kwh[:, -1].mean() > 0
    added = Built(np.append(np.zeros(truth.sites, np.int64), 3), np.full(truth.sites + 1, np.nan))
    joint = play_together(world, added, places)
    # Plugs that its drivers leave free next door serve others: together it is at least what the site recovers.
    assert joint.gain_kwh.mean() >= curve.kwh[:, -1].mean() * 0.99


def test_only_sites_of_similar_power_lose_drivers_to_a_candidate(truth):
    lat, lon = truth.panel.sites.select("lat", "lon").row(0)
    for power, number in ((None, 2), (22.0, 2), (150.0, 0)):
        places = Candidates(("corner",), np.array([lat]), np.array([lon]), (None,), (power,))
        assert len(pulls(changed_world(truth), places, 0)) == number


def test_candidates_are_proposed_apart_from_each_other_and_near_losses(truth):
    world = changed_world(truth)
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
def test_candidates_that_make_no_sense_are_refused(truth, table, sentence):
    schema = {"name": pl.String, "lat": pl.Float64, "lon": pl.Float64}
    frame = pl.DataFrame(table, schema={name: schema[name] for name in table})
    with pytest.raises(InputError, match=sentence):
        given_candidates(frame, truth.panel.sites["site_id"])
