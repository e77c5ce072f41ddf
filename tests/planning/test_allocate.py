"""Allocation beside brute force: greedy is optimal if returns diminish, integer programming always."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmet.planning import allocate
from unmet.planning.allocate import Options, choose_to_reach, choose_within, greedy, greedy_steps
from unmet.planning.knapsack import core_of, cost_units, integer_programme


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


def cheapest(choices: Options, min_gain):
    """The lowest cost of a gain, by brute force; None if it is out of reach."""
    sites = [[None, *np.flatnonzero(choices.site == s)] for s in np.unique(choices.site)]
    costs = []
    for rows in product(*sites):
        taken = [row for row in rows if row is not None]
        if choices.gain[taken].sum() >= min_gain - 1e-9:
            costs.append(choices.cost[taken].sum())
    return min(costs, default=None)


@settings(max_examples=60, deadline=None)
@given(increments, st.floats(0.5, 30), st.sampled_from([0.0, 1.0, 4.0, np.pi]), st.sampled_from([2.5, np.e]))
def test_a_gain_is_reached_at_the_lowest_cost(steps, min_gain, site_cost, plug_cost):
    """With a common unit of costs (dynamic programming) and without one (integer programming)."""
    choices = options([np.cumsum(own) for own in steps], lambda _, k: plug_cost * k + site_cost)
    lowest, chosen = cheapest(choices, min_gain), choose_to_reach(choices, min_gain)
    if lowest is None:
        assert chosen.gain < min_gain
    else:
        assert chosen.gain >= min_gain - 1e-5
        assert chosen.cost == pytest.approx(lowest, rel=1e-5)


def many_options(cost=lambda site, plugs: float(plugs), sites=400):
    rng = np.random.default_rng(1)
    return options([np.cumsum(rng.gamma(1.0, scale, 6)) for scale in rng.gamma(1.0, 3.0, sites)], cost)


@pytest.mark.parametrize("cost", [lambda _, k: float(k), lambda s, k: (1 + s % 7 / np.pi) * k + np.e])
def test_a_large_problem_shrinks_and_keeps_its_optimum(cost):
    """Options that are in no better plan, or in every one, are settled by Lagrange's bound."""
    choices = many_options(cost)
    reached = float(choices.gain[greedy(choices, 60.0)].sum())
    core = core_of(choices.site, choices.gain, choices.cost, 60.0, reached)
    assert core.open.sum() < 0.1 * len(choices)
    best, _ = integer_programme(choices.site, choices.gain, choices.cost, 60.0)
    assert core.highest >= choices.gain[best].sum() >= reached - 1e-6
    chosen = choose_within(choices, 60.0)
    assert chosen.method == "exact"
    assert chosen.gain == pytest.approx(choices.gain[best].sum(), rel=2e-6)
    assert chosen.gap <= 2e-6


def test_a_solver_that_runs_out_of_time_leaves_the_greedy_plan_and_its_gap(monkeypatch):
    choices = many_options(lambda s, k: (1 + s % 7 / np.pi) * k + np.e)
    monkeypatch.setattr(allocate, "integer_programme", lambda *_: (np.empty(0, np.int64), np.inf))
    chosen = choose_within(choices, 60.0)
    assert chosen.gain == chosen.greedy_gain > 0
    assert 0 < chosen.gap < 0.05
    reached = choose_to_reach(choices, chosen.gain)
    assert reached.cost == reached.greedy_cost
    assert 0 <= reached.gap < 0.05


@pytest.mark.parametrize(
    ("cost", "limit", "found"),
    [
        ([2.0, 4.0, 6.0], 7.0, ([1, 2, 3], 3)),
        ([25_000.0, 40_000.0], 149_999.99, ([5, 8], 13)),
        ([0.1, 0.3], 0.3, ([1, 3], 3)),
        ([0.0, 3.0], 3.0, ([0, 1], 1)),
        ([np.pi, 1.0], 9.0, None),
    ],
)
def test_costs_are_counted_in_their_common_unit(cost, limit, found):
    units = cost_units(np.array(cost), limit)
    assert (None if units is None else (units[0].tolist(), units[1])) == found


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
