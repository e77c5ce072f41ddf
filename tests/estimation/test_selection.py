"""Selection: components are kept if the simulated network has them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.estimation.networks import network
from unmet.estimation import selection
from unmet.estimation.occupancy import observe
from unmet.estimation.selection import select_components

PLUGS = (3, 4, 3, 4, 3, 4, 3, 4)


def chosen(seed=1, days=70, **options):
    return select_components(observe(network(PLUGS, 0.3, days, 1.2, seed, **options).panel()))


def test_a_plain_network_needs_no_components():
    components, tried = chosen()
    gains = {each.name: each.gain for each in tried}
    assert gains["2 weekly profiles"] < 5
    assert not components.slow or gains["growth and season"] < 2
    assert not components.site_day or gains["days of each site"] < 2
    assert components.crowding  # always included: its prior allows for none


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"growth": 3.0}, "growth and season"),
        ({"city_day": 0.4}, "days of the network"),
        ({"site_day": 0.5}, "days of each site"),
        ({"kinds": (0, 1) * 4}, "2 weekly profiles"),
    ],
)
def test_components_that_a_network_has_are_kept(options, name):
    components, tried = chosen(**options)
    gains = {each.name: each for each in tried}
    assert gains[name].kept
    assert gains[name].gain > 10
    assert gains[name].gain == max(each.gain for each in tried)
    kept = {
        "growth and season": components.slow,
        "days of the network": components.city_day,
        "days of each site": components.site_day,
        "2 weekly profiles": components.rank >= 2,
    }
    assert kept[name]


def test_the_best_number_of_profiles_is_kept_and_other_components_if_they_gain():
    components, tried = chosen(kinds=(0, 1, 2, 0, 1, 2, 0, 1), site_day=0.5)
    profiles = {each.name: each for each in tried if "weekly" in each.name}
    assert list(profiles) == [f"{rank} weekly profiles" for rank in (2, 3, 4)]
    best = max(profiles.values(), key=lambda each: each.gain)
    assert [each for each in profiles.values() if each.kept] == [best]
    assert best.name == f"{components.rank} weekly profiles"
    assert components.rank >= 3
    assert all(each.kept == (each.gain > 0) for each in tried if each.name not in profiles)


def test_more_profiles_are_tried_if_two_are_no_better_than_one(monkeypatch):
    """As in towns with three kinds of sites, of which any two look alike from the third."""
    scores = iter([0.0, -7.0, 167.0, 147.0, -1.0, -1.0, -1.0])
    monkeypatch.setattr(selection, "fit_rates", lambda *_, **__: None)
    monkeypatch.setattr(selection, "held_out_score", lambda *_: next(scores))
    components, tried = chosen(days=28)
    assert components.rank == 3
    assert [each.gain for each in tried if "weekly" in each.name] == [-7.0, 167.0, 147.0]


def test_the_same_records_choose_the_same_components():
    assert chosen(seed=4, days=28) == chosen(seed=4, days=28)


def test_a_single_site_has_no_days_or_profiles_of_its_own():
    components, tried = select_components(observe(network((3,), 0.3, 28, 1.2, 1).panel(regions="1")))
    assert components.rank == 1
    assert not components.site_day
    assert np.isfinite([each.gain for each in tried]).all()
