"""Self-check: about 1 if the estimator is right, far from 1 if vehicles come on a schedule."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests.estimation.networks import KM, Simulated, moments, network
from unmet.demand.spells import FREE
from unmet.estimation.clock import BINS_A_WEEK
from unmet.estimation.occupancy import observe
from unmet.estimation.rates import Components
from unmet.estimation.selfcheck import MIN_RECORDED, SelfCheck, _expected_at, self_check
from unmet.estimation.site_errors import SCALE
from unmet.estimation.towns import TOWNS

PLAIN = Components(1, slow=False, city_day=False, site_day=False)
NO_RESPONSE = TOWNS._replace(no_crowding=0.999)


def depot(days=56, sites=6, plugs=3, seed=1) -> Simulated:
    """Vehicles come back at three fixed times a day, give or take three minutes; there are as many as plugs."""
    rng = np.random.default_rng(seed)
    rows = []
    for site in range(sites):
        late = rng.uniform(-1, 1)
        for day in range(days):
            for hour in (6, 14, 22):
                start = 24 * day + hour + late + rng.normal(0, 1 / 20, rng.binomial(plugs, 0.8))
                rows += [(f"s{site}", at, at + rng.uniform(2, 3)) for at in start]
    table = pl.DataFrame(
        {
            "station_id": [row[0] for row in rows],
            "start": moments([row[1] for row in rows]),
            "end": moments([row[2] for row in rows]),
            "energy_kwh": np.full(len(rows), 10.0),
        }
    )
    known = pl.DataFrame(
        {
            "station_id": [f"s{i}" for i in range(sites)],
            "lat": 55 + KM * np.arange(sites),
            "lon": np.full(sites, 12.0),
            "plugs": [plugs] * sites,
        }
    )
    return Simulated(table, known, pl.DataFrame(), 0, 0)


def checked(town, components=PLAIN, prior=NO_RESPONSE):
    return self_check(observe(town.panel()), components, prior)


@pytest.mark.parametrize("seed", range(3))
def test_the_ratio_is_about_one_on_a_poisson_network(seed):
    result = checked(network((2, 3, 4, 2, 3, 4), 0.3, 70, 1.5, seed))
    assert result.ratio == pytest.approx(1.0, abs=0.12)
    assert result.low < 1.08
    assert result.high > 0.93
    assert result.excess < 0.1


def test_the_ratio_is_far_from_one_for_a_depot():
    result = checked(depot())
    assert result.ratio < 0.5 or result.ratio > 2.0
    assert result.excess > 0.3


def test_arrivals_at_the_last_free_plug_are_compared():
    network_ = observe(network((2, 3, 1), 0.3, 28, 1.5, 2).panel())
    arrivals = network_.history.arrivals
    last = (arrivals.state == FREE) & (arrivals.taken == network_.capacity[arrivals.site] - 1) & (arrivals.site < 2)
    result = self_check(network_, PLAIN, NO_RESPONSE)
    assert result.recorded == last.sum()
    assert result.low < result.ratio < result.high


def test_expected_arrivals_at_the_last_free_plug_are_an_integral():
    result = observe(network((2, 3), 0.3, 14, 1.5, 2).panel())
    rate = np.random.default_rng(1).random((2, BINS_A_WEEK))
    taken = np.array([1, 2])
    total, spells = np.zeros((2, result.clock.days)), result.history.spells
    for s in range(2):
        for i in range(spells.first[s], spells.first[s + 1]):
            if spells.state[i] == FREE and spells.taken[i] == taken[s]:
                edges = np.arange(len(result.clock.week) + 1) * 900_000 + result.clock.first_ms
                time = np.clip(
                    np.minimum(edges[1:], spells.end_ms[i]) - np.maximum(edges[:-1], spells.begin_ms[i]), 0, None
                )
                np.add.at(total[s], result.clock.day, time / 3_600_000 * rate[s, result.clock.week])
    assert _expected_at(result.history.spells, result.clock, rate, taken) == pytest.approx(total)


def test_without_arrivals_at_a_last_free_plug_the_check_is_unknown():
    single = checked(network((1, 1, 1), 0.2, 28))
    assert single.recorded == 0
    assert not single.known
    assert single.excess == 0
    few = SelfCheck(3.0, 1.0, 9.0, MIN_RECORDED - 1, 0.5)
    assert not few.known
    assert few.excess == 0


def test_only_the_distance_beyond_chance_counts():
    """A distance counts from the ends of the 90 % interval on, in quadrature: 0.5^2 - 0.3^2 is 0.4^2."""
    spread = 0.3 / 1.645
    assert SelfCheck(np.exp(0.5), 1.0, 2.0, 100, spread).excess == pytest.approx(0.4)
    assert SelfCheck(np.exp(-0.5), 1.0, 2.0, 100, spread).excess == pytest.approx(0.4)
    assert SelfCheck(np.exp(0.29), 1.0, 2.0, 100, spread).excess == 0


def test_the_interval_includes_counting_the_response_and_errors_of_sites():
    result = checked(network((2, 3, 4), 0.3, 42, 1.5, 3))
    assert result.spread >= np.hypot(1 / np.sqrt(result.recorded), result.site_error / np.sqrt(3)) - 1e-9
    assert np.log(result.high / result.low) == pytest.approx(2 * 1.645 * result.spread)


def test_a_single_site_may_err_as_sites_of_other_towns_do():
    result = checked(network((3,), 0.6, 42, 1.5, 3))
    assert result.site_error == pytest.approx(SCALE, rel=0.05)
    assert result.spread > result.site_error
