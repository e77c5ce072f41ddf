"""Allocation: choose plugs within a number or a budget, or the fewest that serve a share of demand.

Every site has options, such as three more plugs of 22 kW, each with a gain and a cost. At most one per site is chosen.

- `greedy` takes the step with the highest gain per unit of cost, then the next best. A step may be several plugs at
  once. This is optimal if returns diminish at every site and all steps cost the same.
- If sites have fixed costs, if options differ in cost, or if returns increase at first, the best plan is found exactly
  (`unmet.planning.knapsack`): the highest total gain within a cost, or the lowest cost that reaches a total gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np

from unmet.arrays import Booleans, Floats, Integers
from unmet.planning.knapsack import Core, core_of, integer_programme, reach_by_units, within_by_units

__all__ = ["NEGLIGIBLE_GAP", "Choice", "Options", "choose_to_reach", "choose_within", "greedy", "greedy_steps"]


TINY = 1e-9  # tolerance for rounding errors of gains and costs
NEGLIGIBLE_GAP = 1e-5  # relative distance from the optimum, of the order of what the solver tolerates


@dataclass(frozen=True, slots=True)
class Options:
    """The plugs that can be built; at most one option per site is chosen."""

    site: Integers  # (options,)
    plugs: Integers  # (options,)
    power: Floats  # (options,) [kW], NaN for the power of the existing plugs
    gain: Floats  # (options,), mean energy per week [kWh]
    cost: Floats  # (options,), in plugs or in money

    def __len__(self) -> int:
        return len(self.site)

    def where(self, rows: Integers | Booleans) -> Options:
        """The options in these rows."""
        site, plugs, power = self.site[rows], self.plugs[rows], self.power[rows]
        return Options(site, plugs, power, self.gain[rows], self.cost[rows])


@dataclass(frozen=True, slots=True)
class Choice:
    """Chosen options, and how close they are to the optimum."""

    rows: Integers  # rows of the chosen options
    gain: float
    cost: float
    greedy_gain: float  # gain of the greedy plan, for comparison
    greedy_cost: float
    gap: float  # upper bound on the relative distance from the optimum; 0 if optimal
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
        if best[2] != row or best[0] != rate:  # no longer affordable: the site's best step is now another one
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


def choose_within(options: Options, max_cost: float) -> Choice:
    """The options with the highest total gain within a cost."""
    useful = _useful_rows(options)
    small = options.where(useful)
    rows = greedy(small, max_cost)
    gain, cost = _totals(small, rows)
    if _diminishing(small):
        return Choice(useful[rows], gain, cost, gain, cost, 0.0, "greedy")
    core = core_of(small.site, small.gain, small.cost, max_cost, gain)
    settled, rest = _split(core)
    left = small.where(rest)
    limit = max_cost - float(small.cost[settled].sum())
    highest: float | None = None
    found = within_by_units(left.site, left.gain, left.cost, limit)
    if found is None:
        found, highest = integer_programme(left.site, left.gain, left.cost, limit)
    best = np.sort(np.concatenate([settled, rest[found]]))
    best_gain, best_cost = _totals(small, best)
    if best_gain <= gain + TINY:  # the greedy plan is as good
        best, best_gain, best_cost = rows, gain, cost
    bound = best_gain if highest is None else min(highest + float(small.gain[settled].sum()), core.highest)
    return Choice(useful[best], best_gain, best_cost, gain, cost, _gap(bound - best_gain, best_gain), "exact")


def choose_to_reach(options: Options, min_gain: float) -> Choice:
    """The cheapest options that reach a total gain; the most useful option of every site if that is out of reach."""
    useful = _useful_rows(options)
    small = options.where(useful)
    rows = greedy(small, min_gain=min_gain)
    gain, cost = _totals(small, rows)
    if gain < min_gain - max(TINY, 1e-9 * abs(min_gain)):
        return Choice(useful[rows], gain, cost, gain, cost, 0.0, "greedy")
    # The lowest cost is the highest negative cost, within a limit on the negative gain.
    core = core_of(small.site, -small.cost, -small.gain, -min_gain, -cost)
    settled, rest = _split(core)
    left = small.where(rest)
    needed, spent = min_gain - float(small.gain[settled].sum()), float(small.cost[settled].sum())
    lowest: float | None = None
    found = reach_by_units(left.site, left.gain, left.cost, needed, cost - spent)
    if found is None:
        found, highest = integer_programme(left.site, -left.cost, -left.gain, -needed)
        lowest = max(spent - highest, -core.highest)
    best = np.sort(np.concatenate([settled, rest[found]]))
    best_gain, best_cost = _totals(small, best)
    if best_cost >= cost - TINY or best_gain < min_gain - 1e-6 * max(min_gain, 1.0):
        best, best_gain, best_cost = rows, gain, cost
    gap = 0.0 if lowest is None else _gap(best_cost - lowest, best_cost)
    return Choice(useful[best], best_gain, best_cost, gain, cost, gap, "exact")


def _split(core: Core) -> tuple[Integers, Integers]:
    """Rows of the options that are settled, and rows of the open ones."""
    return np.flatnonzero(core.settled), np.flatnonzero(core.open)


def _totals(options: Options, rows: Integers) -> tuple[float, float]:
    """Gain and cost of some options."""
    return float(options.gain[rows].sum()), float(options.cost[rows].sum())


def _gap(distance: float, value: float) -> float:
    """Distance of a value from a bound, relative to the value; 0 if it is only a rounding error."""
    return max(distance, 0.0) / value if value > 0 and distance > 1e-9 * value else 0.0


def _useful_rows(options: Options) -> Integers:
    """Rows of options that gain something and are not dominated by a cheaper or equally cheap one of the same site.

    They are in order of site and cost.
    """
    order = np.lexsort((options.plugs, -options.gain, options.cost, options.site))
    site, gain = options.site[order], options.gain[order]
    kept = np.zeros(len(order), bool)
    best, current = 0.0, -1
    for i in range(len(order)):
        if site[i] != current:
            best, current = 0.0, int(site[i])
        if gain[i] > best + TINY:
            kept[i], best = True, gain[i]
    return order[kept]


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
