"""Allocation: which plugs to add within a number of plugs or a budget, or to serve a share of demand.

Every site has options, such as three more plugs of 22 kW, each with a gain and a cost. At most one per site is chosen.

- `greedy` takes the step with the highest gain per unit of cost, then the next best. A step may be several plugs at
  once. This is optimal if returns diminish at every site and all steps cost the same.
- `exact` solves the integer programme: maximise the total gain within a cost, or minimise the cost of a total gain,
  with at most one option per site (multiple-choice knapsack, solved by HiGHS through SciPy). It is needed if sites have
  fixed costs, if options differ in cost, or if returns increase at first.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from unmet.arrays import Floats, Integers

__all__ = ["Choice", "Options", "choose_to_reach", "choose_within", "exact", "greedy", "greedy_steps"]


RELATIVE_GAP = 1e-6
TIME_LIMIT_S = 60.0  # after which the solver returns the best plan found so far, with its gap
TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Options:
    """What can be built: at most one option per site."""

    site: Integers  # (options,)
    plugs: Integers  # (options,)
    power: Floats  # (options,) [kW], NaN: as the existing plugs
    gain: Floats  # (options,), mean energy per week [kWh]
    cost: Floats  # (options,), in plugs or in money

    def __len__(self) -> int:
        return len(self.site)


@dataclass(frozen=True, slots=True)
class Choice:
    """Chosen options, and how close they are to the optimum."""

    rows: Integers  # of the options
    gain: float
    cost: float
    greedy_gain: float  # of the greedy plan, for comparison
    greedy_cost: float
    gap: float  # relative bound on the distance from the optimum; 0: optimal
    method: str  # greedy or exact


def greedy(options: Options, max_cost: float = np.inf, min_gain: float = np.inf) -> Integers:
    """Rows of the options that the greedy rule takes until the cost is used up or the gain is reached."""
    last = {int(options.site[row]): int(row) for row in greedy_steps(options, max_cost, min_gain)}
    return np.array(sorted(last.values()), np.int64)


def greedy_steps(options: Options, max_cost: float = np.inf, min_gain: float = np.inf) -> list[int]:
    """Rows of options in greedy order; a later row of a site replaces its earlier one."""
    order = np.lexsort((options.plugs, options.site))
    site = options.site[order]
    bounds = np.flatnonzero(np.diff(site, prepend=-1, append=-1))
    of_site = {int(site[a]): order[a:b] for a, b in pairwise(bounds)}
    taken: dict[int, int] = {}
    steps: list[int] = []
    spent = gained = 0.0

    def step(s: int) -> tuple[float, int, int] | None:
        """The best affordable next step of a site as a heap entry: minus gain per cost, site, row of the option."""
        own, current = of_site[s], taken.get(s)
        gain, cost = options.gain[own], options.cost[own]
        if current is not None:
            gain, cost = gain - options.gain[current], cost - options.cost[current]
        possible = (gain > TINY) & (cost <= max_cost - spent + TINY)
        if not possible.any():
            return None
        rate = np.where(possible, gain / np.maximum(cost, TINY), -np.inf)
        best = int(rate.argmax())
        return -float(rate[best]), s, int(own[best])

    heap = [found for s in of_site if (found := step(s)) is not None]
    heapify(heap)
    while heap and gained < min_gain - TINY:
        rate, s, row = heappop(heap)
        best = step(s)
        if best is None:
            continue
        if best[2] != row or best[0] != rate:  # no longer affordable: another step of this site is the best now
            heappush(heap, best)
            continue
        current = taken.get(s)
        spent += options.cost[row] - (options.cost[current] if current is not None else 0.0)
        gained += options.gain[row] - (options.gain[current] if current is not None else 0.0)
        taken[s] = row
        steps.append(row)
        if (following := step(s)) is not None:
            heappush(heap, following)
    return steps


def exact(options: Options, max_cost: float | None = None, min_gain: float | None = None) -> tuple[Integers, float]:
    """Rows of the best options within a cost, or of the cheapest ones that reach a gain, and the optimality gap."""
    if not len(options):
        return np.empty(0, np.int64), 0.0
    sites, column = np.unique(options.site, return_inverse=True)
    per_site = csr_array((np.ones(len(options)), (column, np.arange(len(options)))), shape=(len(sites), len(options)))
    limits = [LinearConstraint(per_site, ub=np.ones(len(sites)))]
    if max_cost is not None:
        objective = -options.gain
        limits.append(LinearConstraint(options.cost[None, :], ub=max_cost + TINY))
    else:
        objective = options.cost + TINY * options.plugs
        limits.append(LinearConstraint(options.gain[None, :], lb=min_gain or 0.0))
    found = milp(
        objective,
        constraints=limits,
        bounds=Bounds(0, 1),
        integrality=np.ones(len(options), np.int64),
        options={"mip_rel_gap": RELATIVE_GAP, "time_limit": TIME_LIMIT_S},
    )
    if found.x is None:
        return np.empty(0, np.int64), np.inf
    gap = float(found.mip_gap) if found.mip_gap is not None else 0.0
    return np.flatnonzero(found.x > 0.5), gap


def choose_within(options: Options, max_cost: float) -> Choice:
    """The options with the highest total gain within a cost."""
    useful = _useful_rows(options)
    small = _subset(options, useful)
    rows = greedy(small, max_cost)
    gain, cost = float(small.gain[rows].sum()), float(small.cost[rows].sum())
    if _diminishing(small):
        return Choice(useful[rows], gain, cost, gain, cost, 0.0, "greedy")
    possible = _possible_rows(small, max_cost, gain, rows)
    best, gap = exact(_subset(small, possible), max_cost=max_cost)
    best = possible[best]
    if float(small.gain[best].sum()) <= gain + TINY:  # the greedy plan is as good
        return Choice(useful[rows], gain, cost, gain, cost, gap, "exact")
    found = float(small.gain[best].sum()), float(small.cost[best].sum())
    return Choice(useful[best], *found, gain, cost, gap, "exact")


def choose_to_reach(options: Options, min_gain: float) -> Choice:
    """The cheapest options that reach a total gain; the most useful option of every site if that is out of reach."""
    useful = _useful_rows(options)
    small = _subset(options, useful)
    rows = greedy(small, min_gain=min_gain)
    gain, cost = float(small.gain[rows].sum()), float(small.cost[rows].sum())
    if gain < min_gain - max(TINY, 1e-9 * abs(min_gain)):
        return Choice(useful[rows], gain, cost, gain, cost, 0.0, "greedy")
    best, gap = exact(small, min_gain=min_gain)
    if not np.isfinite(gap) or float(small.cost[best].sum()) >= cost - TINY:
        return Choice(useful[rows], gain, cost, gain, cost, gap if np.isfinite(gap) else 0.0, "exact")
    found = float(small.gain[best].sum()), float(small.cost[best].sum())
    return Choice(useful[best], *found, gain, cost, gap, "exact")


def _subset(options: Options, rows: Integers) -> Options:
    site, plugs, power = options.site[rows], options.plugs[rows], options.power[rows]
    return Options(site, plugs, power, options.gain[rows], options.cost[rows])


def _useful_rows(options: Options) -> Integers:
    """Rows of options that gain something and are not dominated by a cheaper or equally cheap one of the same site."""
    order = np.lexsort((options.plugs, -options.gain, options.cost, options.site))
    site, gain = options.site[order], options.gain[order]
    kept = np.zeros(len(order), bool)
    best, current = 0.0, -1
    for i in range(len(order)):
        if site[i] != current:
            best, current = 0.0, int(site[i])
        if gain[i] > best + TINY:
            kept[i], best = True, gain[i]
    return np.sort(order[kept])


def _possible_rows(options: Options, max_cost: float, reached: float, rows: Integers) -> Integers:
    """Rows of options that may be part of a plan that gains more than `reached`, the gain of the greedy plan `rows`.

    For any price of a unit of cost, no plan gains more than price * max_cost plus the sum over sites of the highest
    gain - price * cost (Lagrange's bound). An option is out of the question if that bound, with the option in place of
    the best one of its site, is below what is reached. The price is the lowest gain per cost in the greedy plan.
    """
    if not len(rows):
        return np.arange(len(options))
    price = float((options.gain[rows] / np.maximum(options.cost[rows], TINY)).min())
    net = options.gain - price * options.cost
    best = np.zeros(int(options.site.max()) + 1)
    np.maximum.at(best, options.site, net)
    bound = price * max_cost + best.sum() - best[options.site] + net
    return np.flatnonzero(bound >= reached - TINY - 1e-9 * abs(reached))


def _diminishing(options: Options) -> bool:
    """Whether all steps cost the same and returns diminish at every site, so that greedy is optimal."""
    order = np.lexsort((options.cost, options.site))
    site = options.site[order]
    new = np.diff(site, prepend=-1) != 0
    cost, gain = (
        np.where(new, values[order], np.diff(values[order], prepend=0.0)) for values in (options.cost, options.gain)
    )
    if not len(cost):
        return True
    same = np.allclose(cost, cost[0], rtol=1e-9)
    falling = new[1:] | (np.diff(gain) <= 1e-9 * np.abs(gain[:-1]))
    return bool(same and falling.all())
