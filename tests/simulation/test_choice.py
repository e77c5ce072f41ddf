from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc
from scipy.stats import beta, kstest

from unmet.simulation.choice import beta_table, choose_station, interpolate, willingness


@pytest.mark.parametrize(("a", "b"), [(0.7, 0.7), (1, 1), (3.4, 3.7), (9, 2)])
def test_the_table_is_the_beta_distribution(a, b):
    table = beta_table(a, b)
    x = np.random.default_rng(1).random(500)
    ours = [interpolate(table, v) for v in x]
    # below a = 1 the distribution function has infinite slope at the ends, where interpolation is less accurate
    assert np.allclose(ours, betainc(a, b, x), atol=1e-6 if min(a, b) >= 1 else 1e-3)
    assert interpolate(table, 0.0) == 0
    assert interpolate(table, 1.0) == 1


def test_willingness_is_the_papers_formula():
    a, b = 3.4, 3.7
    expected = (betainc(a, b, 0.7) - betainc(a, b, 0.4)) / betainc(a, b, 0.7)
    assert willingness(beta_table(a, b), 0.7, 0.4) == pytest.approx(expected, abs=1e-6)


@given(st.floats(0, 1), st.floats(0, 1))
def test_willingness_is_a_probability_and_certain_when_empty(one, other):
    before, after = max(one, other), min(one, other)
    table = beta_table(3.4, 3.7)
    assert 0 <= willingness(table, before, after) <= 1
    assert willingness(table, before, 0.0) == 1
    assert willingness(table, max(before, 0.01), max(before, 0.01)) == 0


def test_drivers_plug_in_at_beta_distributed_states_of_charge():
    a, b = 3.4, 3.7
    table, rng = beta_table(a, b), np.random.default_rng(7)
    plugged_in = []
    for _ in range(4000):
        soc = 1.0
        while True:
            after = max(soc - 0.002, 0.0)
            if rng.random() < willingness(table, soc, after):
                plugged_in.append(after)
                break
            soc = after
    assert kstest(plugged_in, beta(a, b).cdf).pvalue > 0.001
    assert np.mean(plugged_in) == pytest.approx(a / (a + b), abs=0.01)


def test_stations_are_chosen_by_the_softmax_of_distance():
    km = np.array([0.2, 0.5, 1.0, 2.0, 4.0])
    for sensitivity in (1.0, 0.0, -1.0):
        weight = np.exp(-sensitivity * km)
        draws = (np.arange(100_000) + 0.5) / 100_000
        chosen = [choose_station(km, sensitivity, u) for u in draws]
        assert np.allclose(np.bincount(chosen, minlength=5) / 1e5, weight / weight.sum(), atol=2e-5)


def test_a_station_is_chosen_even_far_from_all_of_them():
    assert choose_station(np.array([900.0, 901.0]), 1.0, 0.5) == 0
    assert choose_station(np.array([900.0, 5000.0]), -1.0, 0.5) == 1
    assert choose_station(np.array([3.0]), 1.0, 0.999) == 0
