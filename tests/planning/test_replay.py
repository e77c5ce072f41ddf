"""Laws of the replay: it is a loss queue for all numbers of plugs at once, and more plugs never lose more drivers."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from unmet.planning.erlang import erlang_b, erlang_b_all, erlang_c, plugs_for_blocking
from unmet.planning.replay import NOBODY, served_by, take_plugs

HOUR = 3_600_000


def loss_queue(at, stay, forced, plugs):
    """Who is served, in plain Python."""
    ends, served = [], []
    for now, length, must in zip(at, stay, forced, strict=True):
        while ends and ends[0] <= now:
            heappop(ends)
        served.append(len(ends) < plugs or must)
        if served[-1]:
            heappush(ends, now + length)
    return np.array(served, bool)


drivers = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40), st.booleans()), min_size=0, max_size=40)


@settings(max_examples=200, deadline=None)
@given(drivers, st.integers(0, 6))
def test_one_pass_is_a_loss_queue_for_every_number_of_plugs(rows, max_plugs):
    rows = sorted(rows, key=lambda row: row[0])
    at, stay = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    plug = take_plugs(np.array([0, len(at)]), at, stay, max_plugs)
    for c in range(max_plugs + 1):
        expected = loss_queue(at, stay, np.zeros(len(at), bool), c)
        assert ((plug != NOBODY) & (plug < c) == expected).all()


@settings(max_examples=200, deadline=None)
@given(drivers, st.integers(0, 5))
def test_more_plugs_serve_everyone_who_was_served_before(rows, plugs):
    rows = sorted(rows, key=lambda row: row[0])
    at, stay = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    forced = np.array([row[2] for row in rows], bool)
    first = np.array([0, len(at)])
    fewer, more = (served_by(first, at, stay, forced, c) for c in (plugs, plugs + 1))
    assert (fewer == loss_queue(at, stay, forced, plugs)).all()
    assert (more | ~fewer).all()


def test_draws_are_replayed_independently():
    at, stay = np.array([0, 1, 0, 1], np.int64), np.full(4, 10, np.int64)
    assert take_plugs(np.array([0, 2, 4]), at, stay, 1).tolist() == [0, NOBODY, 0, NOBODY]
    assert served_by(np.array([0, 2, 4]), at, stay, np.zeros(4, bool), 1).tolist() == [True, False, True, False]


STAYS = {
    "exponential": lambda rng, n: rng.exponential(2.0, n),
    "fixed": lambda _, n: np.full(n, 2.0),
    "log-normal": lambda rng, n: rng.lognormal(np.log(2.0) - 0.5, 1.0, n),
}


@pytest.mark.parametrize("kind", STAYS)
def test_blocking_follows_erlangs_formula(kind):
    # At load 4, the blocking probability is 80 % with one plug and 12 % with six.
    rng, number = np.random.default_rng(3), 4_000_000
    at = (np.cumsum(rng.exponential(0.5, number)) * HOUR).astype(np.int64)
    stay = (STAYS[kind](rng, number) * HOUR).astype(np.int64)
    plug = take_plugs(np.array([0, number]), at, stay, 6)
    for plugs in (1, 2, 4, 6):
        blocked = ((plug == NOBODY) | (plug >= plugs)).mean()
        assert blocked == pytest.approx(float(erlang_b(plugs, 4.0)), rel=0.01)


def test_blocking_in_a_rush_follows_a_markov_chain():
    # The arrival rate varies over the day in quarter hours; stays are exponential, so the chain is exact.
    rate = 1.5 + 1.4 * np.sin(np.arange(96) * 2 * np.pi / 96)
    plugs, stay = 4, 2.0
    steps = []
    for value in rate:
        chain = np.diag(np.full(plugs, value), 1) + np.diag(np.arange(1, plugs + 1) / stay, -1)
        steps.append(expm((chain - np.diag(chain.sum(axis=1))) * 0.025))
    probability, blocked, arrived = np.eye(plugs + 1)[0], 0.0, 0.0
    for day in range(4):  # after three days the initial state no longer matters
        for value, step in zip(rate, steps, strict=True):
            for _ in range(10):  # finely discretised, to integrate the blocking within a quarter hour
                before, probability = probability, probability @ step
                if day == 3:
                    blocked += value * 0.025 * (before[-1] + probability[-1]) / 2
                    arrived += value * 0.025
    rng, days = np.random.default_rng(5), 60_000
    count = rng.poisson(np.tile(rate, days) * 0.25)
    at = np.repeat(np.arange(96 * days) * 0.25, count) + 0.25 * rng.random(count.sum())
    at = np.sort((at * HOUR).astype(np.int64))
    length = (rng.exponential(stay, len(at)) * HOUR).astype(np.int64)
    plug = take_plugs(np.array([0, len(at)]), at, length, plugs)
    assert (plug == NOBODY).mean() == pytest.approx(blocked / arrived, rel=0.02)


def test_erlangs_formulas_reproduce_published_values():
    # From published tables: 5 Erlang on 10 lines, and an M/M/5 queue at load 3.
    assert float(erlang_b(10, 5.0)) == pytest.approx(0.018385, abs=1e-6)
    assert float(erlang_c(5, 3.0)) == pytest.approx(0.236152, abs=1e-6)
    assert float(erlang_b(3, 0.0)) == 0.0
    assert float(erlang_c(2, 5.0)) == 1.0
    assert erlang_b_all([1.0, 2.0], 2).shape == (3, 2)


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 80), st.floats(0.001, 1))
def test_plugs_for_blocking_is_the_smallest_sufficient_number(load, share):
    plugs = plugs_for_blocking(load, share)
    assert float(erlang_b(plugs, load)) <= share + 1e-12
    assert plugs == 0 or float(erlang_b(plugs - 1, load)) > share
