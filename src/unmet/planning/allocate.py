"""Allocation: which plugs to add within a number of plugs or a budget, or to serve a share of demand.

Every site offers options, such as three further plugs of 22 kW, with a gain and a cost, and takes one of them or none.

- `greedy` takes the step with the highest gain per unit of cost, then the next. A step may be several plugs at once. It
  is optimal if returns diminish at every site, and steps are all of the same cost.
- `exact` solves the integer programme: maximise the total gain within the cost, or minimise the cost of a total gain,
  with one option per site at most (multiple-choice knapsack; HiGHS, by SciPy). Fixed costs of a site, options of
  different costs and returns that grow at first need it.
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
SECONDS = 60.0  # after which the integer programme gives the best plan found so far, with its gap
TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Options:
    """What can be built: at most one option per site."""

    site: Integers  # (options,)
    plugs: Integers  # (options,)
    power: Floats  # (options,) [kW], NaN: as those that are there
    gain: Floats  # (options,), mean energy per week [kWh]
    cost: Floats  # (options,), in plugs or in money

    def __len__(self) -> int:
        return len(self.site)


@dataclass(frozen=True, slots=True)
class Choice:
    """Chosen options, and how good they are known to be."""

    rows: Integers  # of the options
    gain: float
    cost: float
    greedy_gain: float  # what the greedy plan gains, or at which cost it reaches the gain
    greedy_cost: float
    gap: float  # how far from the optimum the choice may be at most, relative; 0: it is the optimum
    method: str  # greedy or exact


def greedy(options: Options, most_cost: float = np.inf, least_gain: float = np.inf) -> Integers:
    """Rows of the options that the greedy rule takes until the cost is used up or the gain is reached."""
    last = {int(options.site[row]): int(row) for row in greedy_steps(options, most_cost, least_gain)}
    return np.array(sorted(last.values()), np.int64)


def greedy_steps(options: Options, most_cost: float = np.inf, least_gain: float = np.inf) -> list[int]:
    """Rows of options in the order in which the greedy rule takes them; a later one of a site replaces an earlier."""
    order = np.lexsort((options.plugs, options.site))
    site = options.site[order]
    bounds = np.flatnonzero(np.diff(site, prepend=-1, append=-1))
    of_site = {int(site[a]): order[a:b] for a, b in pairwise(bounds)}
    taken: dict[int, int] = {}
    steps: list[int] = []
    spent = gained = 0.0

    def step(s: int) -> tuple[float, int, int] | None:
        """The best next step of a site that can be paid: less its efficiency, the site, the option."""
        own, now = of_site[s], taken.get(s)
        gain, cost = options.gain[own], options.cost[own]
        if now is not None:
            gain, cost = gain - options.gain[now], cost - options.cost[now]
        can = (gain > TINY) & (cost <= most_cost - spent + TINY)
        if not can.any():
            return None
        rate = np.where(can, gain / np.maximum(cost, TINY), -np.inf)
        best = int(rate.argmax())
        return -float(rate[best]), s, int(own[best])

    heap = [found for s in of_site if (found := step(s)) is not None]
    heapify(heap)
    while heap and gained < least_gain - TINY:
        rate, s, row = heappop(heap)
        fresh = step(s)
        if fresh is None:
            continue
        if fresh[2] != row or fresh[0] != rate:  # it no longer fits, so that another step is the best of this site
            heappush(heap, fresh)
            continue
        now = taken.get(s)
        spent += options.cost[row] - (options.cost[now] if now is not None else 0.0)
        gained += options.gain[row] - (options.gain[now] if now is not None else 0.0)
        taken[s] = row
        steps.append(row)
        if (following := step(s)) is not None:
            heappush(heap, following)
    return steps


def exact(options: Options, most_cost: float | None = None, least_gain: float | None = None) -> tuple[Integers, float]:
    """Rows of the best options within a cost, or of the cheapest that reach a gain, and the gap to the bound."""
    if not len(options):
        return np.empty(0, np.int64), 0.0
    sites, column = np.unique(options.site, return_inverse=True)
    one = csr_array((np.ones(len(options)), (column, np.arange(len(options)))), shape=(len(sites), len(options)))
    limits = [LinearConstraint(one, ub=np.ones(len(sites)))]
    if most_cost is not None:
        objective = -options.gain
        limits.append(LinearConstraint(options.cost[None, :], ub=most_cost + TINY))
    else:
        objective = options.cost + TINY * options.plugs
        limits.append(LinearConstraint(options.gain[None, :], lb=least_gain or 0.0))
    found = milp(
        objective,
        constraints=limits,
        bounds=Bounds(0, 1),
        integrality=np.ones(len(options), np.int64),
        options={"mip_rel_gap": RELATIVE_GAP, "time_limit": SECONDS},
    )
    if found.x is None:
        return np.empty(0, np.int64), np.inf
    gap = float(found.mip_gap) if found.mip_gap is not None else 0.0
    return np.flatnonzero(found.x > 0.5), gap


def choose_within(options: Options, most_cost: float) -> Choice:
    """The options of the highest gain within a cost."""
    options_rows = _useful_rows(options)
    small = _some(options, options_rows)
    rows = greedy(small, most_cost)
    gain, cost = float(small.gain[rows].sum()), float(small.cost[rows].sum())
    if _diminishing(small):
        return Choice(options_rows[rows], gain, cost, gain, cost, 0.0, "greedy")
    best, gap = exact(small, most_cost=most_cost)
    if float(small.gain[best].sum()) <= gain + TINY:  # the greedy plan is as good
        return Choice(options_rows[rows], gain, cost, gain, cost, gap, "exact")
    found = float(small.gain[best].sum()), float(small.cost[best].sum())
    return Choice(options_rows[best], *found, gain, cost, gap, "exact")


def choose_to_reach(options: Options, least_gain: float) -> Choice:
    """The cheapest options that gain so much; all of the most useful ones if that is out of reach."""
    options_rows = _useful_rows(options)
    small = _some(options, options_rows)
    rows = greedy(small, least_gain=least_gain)
    gain, cost = float(small.gain[rows].sum()), float(small.cost[rows].sum())
    if gain < least_gain - max(TINY, 1e-9 * abs(least_gain)):
        return Choice(options_rows[rows], gain, cost, gain, cost, 0.0, "greedy")
    best, gap = exact(small, least_gain=least_gain)
    if not np.isfinite(gap) or float(small.cost[best].sum()) >= cost - TINY:
        return Choice(options_rows[rows], gain, cost, gain, cost, gap if np.isfinite(gap) else 0.0, "exact")
    found = float(small.gain[best].sum()), float(small.cost[best].sum())
    return Choice(options_rows[best], *found, gain, cost, gap, "exact")


def _some(options: Options, rows: Integers) -> Options:
    site, plugs, power = options.site[rows], options.plugs[rows], options.power[rows]
    return Options(site, plugs, power, options.gain[rows], options.cost[rows])


def _useful_rows(options: Options) -> Integers:
    """Rows of options that gain something, without those that another of the same site beats at no higher cost."""
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


def _diminishing(options: Options) -> bool:
    """Whether all steps are of the same cost and returns diminish at every site, so that greedy is optimal."""
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
