"""Allocation beside brute force: greedy is optimal if returns diminish, integer programming always."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmet.planning.allocate import (
    Options,
    _possible_rows,
    choose_to_reach,
    choose_within,
    exact,
    greedy,
    greedy_steps,
)


def options(gains, cost=lambda site, plugs: float(plugs)):
    """Options of sites, given the gains of their 1, 2, ... plugs."""
    rows = [(s, k, gain, cost(s, k)) for s, own in enumerate(gains) for k, gain in enumerate(own, start=1)]
    site, plugs, gain, price = (np.array(column, float) for column in zip(*rows, strict=True))
    return Options(site.astype(int), plugs.astype(int), np.full(len(site), np.nan), gain, price)


def brute_force(choices: Options, budget):
    sites = [[None, *np.flatnonzero(choices.site == s)] for s in np.unique(choices.site)]
    best = 0.0
    for rows in product(*sites):
        taken = [row for row in rows if row is not None]
        if choices.cost[taken].sum() <= budget + 1e-9:
            best = max(best, choices.gain[taken].sum())
    return best


increments = st.lists(st.lists(st.floats(0, 10), min_size=1, max_size=3), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(increments, st.integers(1, 6))
def test_greedy_is_optimal_where_returns_diminish(steps, plugs):
    choices = options([np.cumsum(sorted(own, reverse=True)) for own in steps])
    chosen = choose_within(choices, float(plugs))
    assert chosen.gain == pytest.approx(brute_force(choices, plugs), abs=1e-6)
    assert choices.gain[greedy(choices, float(plugs))].sum() == pytest.approx(chosen.gain, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(increments, st.floats(1, 30), st.floats(0, 8))
def test_fixed_costs_are_solved_exactly(steps, budget, site_cost):
    choices = options([np.cumsum(own) for own in steps], lambda _, k: 2.5 * k + site_cost)
    chosen = choose_within(choices, budget)
    assert chosen.gain == pytest.approx(brute_force(choices, budget), rel=1e-5, abs=1e-6)
    assert chosen.cost <= budget + 1e-6
    assert chosen.gain >= chosen.greedy_gain - 1e-6
    assert len(set(choices.site[chosen.rows])) == len(chosen.rows)


def test_options_that_cannot_be_part_of_a_better_plan_are_left_out():
    """The programme is much smaller, and its optimum the same."""
    rng = np.random.default_rng(1)
    choices = options([np.cumsum(rng.gamma(1.0, scale, 6)) for scale in rng.gamma(1.0, 3.0, 400)])
    rows = greedy(choices, 60.0)
    reached = float(choices.gain[rows].sum())
    possible = _possible_rows(choices, 60.0, reached, rows)
    assert len(possible) < 0.2 * len(choices)
    best, _ = exact(choices, max_cost=60.0)
    chosen = choose_within(choices, 60.0)
    assert chosen.method == "exact"
    assert chosen.gain == pytest.approx(choices.gain[best].sum(), rel=1e-5)


def test_greedy_is_not_optimal_with_fixed_costs():
    # The best first step costs most of the budget; two others together gain more.
    choices = options([[10.0], [6.0], [6.0]], lambda s, _: 6.0 if s == 0 else 5.0)
    chosen = choose_within(choices, 10.0)
    assert (chosen.gain, chosen.greedy_gain, chosen.method) == (12.0, 10.0, "exact")


def test_the_cheapest_options_that_reach_a_gain_are_chosen():
    choices = options([[4.0, 7.0, 9.0], [5.0, 6.0]])
    chosen = choose_to_reach(choices, 11.0)
    assert (chosen.gain, chosen.cost) == (12.0, 3.0)
    out_of_reach = choose_to_reach(choices, 99.0)
    assert out_of_reach.gain == 15.0


def test_greedy_steps_are_in_order_of_gain_per_cost():
    choices = options([[4.0, 7.0, 9.0], [5.0, 6.0]])
    assert [(int(choices.site[row]), int(choices.plugs[row])) for row in greedy_steps(choices, 4.0)] == [
        (1, 1),
        (0, 1),
        (0, 2),
        (0, 3),
    ]


def test_without_options_nothing_is_chosen():
    empty = Options(np.empty(0, int), np.empty(0, int), np.empty(0), np.empty(0), np.empty(0))
    assert len(choose_within(empty, 5.0).rows) == 0
    assert choose_to_reach(empty, 1.0).gain == 0.0
