"""Multiple-choice knapsack: the best options within a cost, at most one per site.

Lagrange's bound shows which options no better plan can contain, and which ones every better plan contains. For any
price p of a unit of cost, a plan within a cost C gains at most

    p C + sum over sites of max(0, max over options of gain - p cost).

If all costs are multiples of a common unit (a plug, or 5,000 of some currency), dynamic programming solves the rest
exactly: with f(c) the highest gain of the sites so far at a cost of at most c units, each further site gives

    f(c) <- max(f(c), max over its options of gain + f(c - cost)).

Otherwise HiGHS solves it as an integer programme. Kellerer, Pferschy and Pisinger, *Knapsack Problems*, 2004, ch. 11.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from unmet.arrays import Booleans, Floats, Integers
from unmet.compiled import compiled

__all__ = ["Core", "core_of", "cost_units", "integer_programme", "reach_by_units", "within_by_units"]


BISECTIONS = 80  # bisection steps for the price
CENTS = 100  # per unit of money; dynamic programming needs costs in whole cents
MAX_STEPS = 1_000_000_000  # options x units of cost that dynamic programming may take (a second or two)
MAX_CELLS = 100_000_000  # sites x units of cost that it may store
RELATIVE_GAP = 1e-6  # relative distance from the optimum at which the solver stops
TIME_LIMIT_S = 60.0  # time after which the solver returns the best plan found so far, with its gap
TINY = 1e-9  # tolerance for rounding errors


class Core(NamedTuple):
    """The options that remain open once Lagrange's bound has settled the clear cases."""

    highest: float  # bound on the gain of any plan
    settled: Booleans  # (options,), part of every plan that is better than the known one
    open: Booleans  # (options,), may or may not be part of it


def core_of(site: Integers, gain: Floats, cost: Floats, max_cost: float, reached: float) -> Core:
    """Options that a plan within a cost must or may contain to gain more than `reached`.

    Args:
        site: site of each option, in order.
        gain: gain of each option.
        cost: cost of each option.
        max_cost: limit on the total cost.
        reached: gain of a known plan.
    """
    new = np.diff(site, prepend=-1) != 0
    first, own = (
        np.flatnonzero(new),
        np.cumsum(new) - 1,
    )  # first option of each site, and position of each option's site

    def bound(price: float) -> tuple[float, Floats, Floats]:
        net = gain - price * cost
        best = np.maximum(np.maximum.reduceat(net, first), 0.0)
        return float(price * max_cost + best.sum()), net, best

    low, high = 0.0, float((np.abs(gain) / np.maximum(np.abs(cost), TINY)).max())
    # The lowest bound is the most useful one. Find a price beyond it, then bisect.
    while bound(2 * high)[0] < bound(high)[0] < np.inf:
        high *= 2
    for _ in range(BISECTIONS):  # the bound is convex in the price: go where it is lower
        price = (low + high) / 2
        nearby = price * (1 + 1e-9)
        low, high = (low, nearby) if bound(price)[0] <= bound(nearby)[0] else (price, high)
    highest, net, best = bound((low + high) / 2)
    least = reached - TINY - 1e-9 * abs(reached)
    # An option is possible if the bound with it exceeds the known gain. A site is needed if the bound without it does
    # not; its option is settled if only one is possible.
    possible = highest - best[own] + net >= least
    needed = (highest - best < least) & (np.bincount(own[possible], minlength=len(first)) == 1)
    return Core(highest, possible & needed[own], possible & ~needed[own])


def cost_units(cost: Floats, max_cost: float) -> tuple[Integers, int] | None:
    """Costs and their limit in units of their greatest common divisor; None if it is not larger than a cent."""
    whole = np.rint(cost * CENTS).astype(np.int64)
    if (np.abs(cost * CENTS - whole) > 1e-9 * np.maximum(whole, 1)).any():
        return None
    unit = max(int(np.gcd.reduce(whole)), 1)
    return whole // unit, int(min(max_cost * CENTS * (1 + TINY) + TINY, float(whole.sum())) // unit)


def within_by_units(site: Integers, gain: Floats, cost: Floats, max_cost: float) -> Integers | None:
    """Rows of the options with the highest gain within a cost; None if costs have no unit that is large enough."""
    return _by_units(site, gain, cost, max_cost, np.inf)


def reach_by_units(site: Integers, gain: Floats, cost: Floats, min_gain: float, max_cost: float) -> Integers | None:
    """Rows of the cheapest options that reach a gain possible within `max_cost`; None as for `within_by_units`."""
    return _by_units(site, gain, cost, max_cost, min_gain - max(TINY, 1e-9 * abs(min_gain)))


def _by_units(site: Integers, gain: Floats, cost: Floats, max_cost: float, enough: float) -> Integers | None:
    """Rows of the cheapest options that gain as much as possible within a cost, up to `enough`."""
    if not len(site):
        return np.empty(0, np.int64)
    found = cost_units(cost, max_cost)
    if found is None:
        return None
    units, most = found
    first = np.append(np.flatnonzero(np.diff(site, prepend=-1)), len(site))
    if len(site) * (most + 1) > MAX_STEPS or (len(first) - 1) * (most + 1) > MAX_CELLS:
        return None
    reached, taken = _best_by_cost(first, gain, units, most)
    left = int(np.searchsorted(reached, min(enough, reached[-1])))
    rows = []
    for s in range(len(first) - 2, -1, -1):
        if option := int(taken[s, left]):
            rows.append(int(first[s]) + option - 1)
            left -= int(units[rows[-1]])
    return np.array(rows[::-1], np.int64)


@compiled()
def _best_by_cost(first: Integers, gain: Floats, cost: Integers, most: int) -> tuple[Floats, NDArray[np.uint16]]:
    """The highest gain at a cost of at most 0, 1, ..., `most` units, and the options that reach it.

    Args:
        first: position of the first option of each site, and the number of options last, (sites + 1,).
        gain: gain of each option.
        cost: cost of each option in units, 0 or more.
        most: highest cost.

    Returns:
        Gains, (most + 1,); and the option of each site (1 for its first, 0 for none) by the number of units left for
        the site and all sites before it, (sites, most + 1).
    """
    sites = len(first) - 1
    reached = np.zeros(most + 1)
    taken = np.zeros((sites, most + 1), np.uint16)
    for s in range(sites):
        for c in range(most, -1, -1):  # downwards, so that gains at lower costs do not include this site yet
            best, option = reached[c], 0
            for i in range(first[s], first[s + 1]):
                if cost[i] <= c and gain[i] + reached[c - cost[i]] > best:
                    best, option = gain[i] + reached[c - cost[i]], i - first[s] + 1
            reached[c], taken[s, c] = best, option
    return reached, taken


def integer_programme(site: Integers, gain: Floats, cost: Floats, max_cost: float) -> tuple[Integers, float]:
    """Rows of the options with the highest gain within a cost, by HiGHS, and an upper bound on that gain.

    Gains and costs may be negative: to find the cheapest options that reach a gain, maximise the negative cost within
    a limit on the negative gain.
    """
    if not len(site):
        return np.empty(0, np.int64), 0.0
    sites, column = np.unique(site, return_inverse=True)
    per_site = csr_array((np.ones(len(site)), (column, np.arange(len(site)))), shape=(len(sites), len(site)))
    found = milp(
        -gain,
        constraints=[
            LinearConstraint(per_site, ub=np.ones(len(sites))),
            LinearConstraint(cost[None, :], ub=max_cost + TINY),
        ],
        bounds=Bounds(0, 1),
        integrality=np.ones(len(site), np.int64),
        options={"mip_rel_gap": RELATIVE_GAP, "time_limit": TIME_LIMIT_S},
    )
    if found.x is None:
        return np.empty(0, np.int64), np.inf
    rows = np.flatnonzero(found.x > 0.5)
    return rows, float(gain[rows].sum()) if found.mip_dual_bound is None else -float(found.mip_dual_bound)
