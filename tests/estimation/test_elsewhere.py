"""Demand elsewhere: what other operators serve, from the operator's own arrivals and its market share."""

from __future__ import annotations

import numpy as np
import pytest

from tests.estimation.networks import network
from unmet.demand.market import Shares
from unmet.demand.spells import FULL
from unmet.estimation.clock import BINS_A_WEEK
from unmet.estimation.elsewhere import Parts, draw_elsewhere, expected_elsewhere, own_arrivals
from unmet.estimation.occupancy import observe

OWN = np.array([[2.0, 0.0, 5.0], [1.0, 4.0, 0.5], [3.0, 3.0, 3.0]])
KWH = np.array([[10.0, 10.0, 20.0], [10.0, 5.0, 10.0], [10.0, 10.0, 10.0]])


def test_others_serve_the_rest_of_the_market():
    shares = Shares(np.array([0.25, 1.0, 0.0]), np.zeros(3))
    result = expected_elsewhere(OWN, shares)
    assert result[0] == pytest.approx(3 * OWN[0])
    assert (result[1] == 0).all()
    assert (result[2] == 0).all()  # nothing is known without a share of one's own


def test_draws_have_the_expected_energy_and_its_variation():
    shares = Shares(np.array([0.25, 1.0, 0.0]), np.zeros(3))
    result = draw_elsewhere(OWN, shares, KWH, 0.5, 20_000, np.random.default_rng(1))
    assert result.shape == (3, 3, 20_000)
    assert result.mean(axis=2) == pytest.approx(expected_elsewhere(OWN, shares) * KWH, rel=0.03, abs=1e-9)
    variance = 3 * OWN[0] * KWH[0] ** 2 * (1 + 0.5**2)
    assert result[0].var(axis=1) == pytest.approx(variance, rel=0.06)


def test_an_uncertain_share_is_drawn_once_per_region_and_its_inverse_is_unbiased():
    """Demand elsewhere is proportional to the inverse."""
    shares = Shares(np.array([0.1, 0.2, 0.3]), np.array([0.3, 0.3, 0.0]))
    result = draw_elsewhere(50 * OWN, shares, np.ones_like(KWH), 0.05, 20_000, np.random.default_rng(2)) / 50
    assert result.mean(axis=2) == pytest.approx(expected_elsewhere(OWN, shares), rel=0.03, abs=0.01)
    assert np.corrcoef(result[0, 0], result[0, 2])[0, 1] > 0.9
    assert abs(np.corrcoef(result[0, 0], result[1, 1])[0, 1]) < 0.05
    inverse = 1 + result[0, 2] / OWN[0, 2]
    assert np.log(inverse).std() == pytest.approx(0.3, rel=0.1)


def test_own_arrivals_are_an_integral_over_free_and_full_time():
    result = observe(network((1, 2, 3), 0.3, 7, 1.5, 1).panel())
    rng = np.random.default_rng(3)
    rate, level = rng.random((3, BINS_A_WEEK)), rng.random((3, result.clock.days))
    response, at_full = rng.random((3, 4)), rng.random(3)
    parts = Parts(np.array([0, 1, 3, 4]), np.array([0, 0, 1, 1]), np.array([1.0, 0.3, 0.7, 1.0]))
    ours = own_arrivals(result.history.spells, result.clock, rate, level, response, at_full, parts, 2)
    total, spells = np.zeros((3, result.clock.hours)), result.history.spells
    edges = np.arange(len(result.clock.week) + 1) * 900_000 + result.clock.first_ms
    for s in range(3):
        for i in range(spells.first[s], spells.first[s + 1]):
            time = np.clip(
                np.minimum(edges[1:], spells.end_ms[i]) - np.maximum(edges[:-1], spells.begin_ms[i]), 0, None
            )
            weight = at_full[s] if spells.state[i] == FULL else response[s, min(spells.taken[i], 3)]
            mean = time / 3_600_000 * rate[s, result.clock.week] * level[s, result.clock.day] * weight
            total[s] += mean.reshape(-1, 4).sum(axis=1)
    assert ours[0] == pytest.approx(total[0] + 0.3 * total[1])
    assert ours[1] == pytest.approx(0.7 * total[1] + total[2])
