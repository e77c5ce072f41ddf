"""Hour effects: counts agree with direct integration, and simulated bursts are recovered."""

from __future__ import annotations

import numpy as np
import pytest

from tests.estimation.networks import network
from unmet.demand.spells import FREE
from unmet.estimation.clock import BINS_A_WEEK
from unmet.estimation.exposed import full_hours
from unmet.estimation.gammas import log_marginal
from unmet.estimation.hours import SHAPES, HourEffects, _counts_and_likelihoods, hour_effects
from unmet.estimation.occupancy import observe

PLUGS = (2, 3, 4, 6, 5, 4)
PER_PLUG = 0.35


def simulated(site_hour, seed=1, days=28):
    town = observe(network(PLUGS, PER_PLUG, days, 1.0, seed, site_hour=site_hour).panel())
    rate = np.repeat(PER_PLUG * np.array(PLUGS, float)[:, None], BINS_A_WEEK, axis=1)
    ones = np.ones((len(PLUGS), town.clock.days)), np.ones((len(PLUGS), max(PLUGS) + 1))
    return town, rate, *ones, full_hours(town.history.spells, town.clock, rate)


def effects(site_hour, **options):
    town, rate, level, response, rows = simulated(site_hour, **options)
    return hour_effects(town.history, town.clock, rate, level, response, rows, town.clock.hours)


def test_counts_and_expectations_are_those_of_the_exposed_part_of_the_hour():
    town, rate, level, response, rows = simulated(0.0, days=7)
    rng = np.random.default_rng(3)
    rate, level, response = (rng.uniform(0.5, 2, values.shape) for values in (rate, level, response))
    found = hour_effects(town.history, town.clock, rate, level, response, rows, town.clock.hours)
    spells, arrivals, first = town.history.spells, town.history.arrivals, town.clock.first_ms
    count, expected = np.zeros((town.sites, town.clock.hours)), np.zeros((town.sites, town.clock.hours))
    used = arrivals.state == FREE
    np.add.at(count, (arrivals.site[used], (arrivals.at_ms[used] - first) // 3_600_000), 1.0)
    for s in range(town.sites):
        for i in range(spells.first[s], spells.first[s + 1]):
            if spells.state[i] == FREE:
                edges = np.arange(town.clock.hours * 4 + 1) * 900_000 + first
                time = np.clip(
                    np.minimum(edges[1:], spells.end_ms[i]) - np.maximum(edges[:-1], spells.begin_ms[i]), 0, None
                )
                mean = (
                    time
                    / 3_600_000
                    * rate[s, town.clock.week]
                    * level[s, town.clock.day]
                    * response[s, spells.taken[i]]
                )
                expected[s] += mean.reshape(-1, 4).sum(axis=1)
    assert found.arrivals == pytest.approx(count[rows.site, rows.hour])
    assert found.expected == pytest.approx(expected[rows.site, rows.hour])
    used = np.ones(town.sites, np.bool_)
    for learned in (town.clock.hours, 50):
        value = _counts_and_likelihoods(town.history, town.clock, rate, level, response, rows, used, learned)[2]
        n, m = (each[:, :learned][expected[:, :learned] > 0] for each in (count, expected))
        direct = np.array([log_marginal(n, m, shape) for shape in SHAPES])
        assert value - value[-1] == pytest.approx(direct - direct[-1], abs=1e-6)


@pytest.mark.parametrize("variation", [0.5, 1.0])
def test_the_shape_of_bursts_is_recovered(variation):
    assert 1 / np.sqrt(effects(variation).shape) == pytest.approx(variation, rel=0.25)


@pytest.mark.parametrize("seed", range(3))
def test_without_bursts_all_hour_effects_are_one(seed):
    found = effects(0.0, seed=seed)
    assert found.shape == np.inf
    assert (found.mean == 1).all()


def test_the_mean_effect_of_an_hour_is_that_of_its_gamma_posterior():
    effects_ = HourEffects(2.0, np.array([4.0, 0.0]), np.array([1.0, 3.0]))
    assert effects_.mean == pytest.approx(np.array([6 / 3, 2 / 5]))
