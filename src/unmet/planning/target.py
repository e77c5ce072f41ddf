"""Targets: what a plan has to achieve, and the options that achieve it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unmet.arrays import Floats, Integers
from unmet.errors import InputError
from unmet.planning.allocate import Choice, Options, choose_to_reach, choose_within
from unmet.planning.menu import Menu

__all__ = ["Decision", "Target", "decide"]

MAX_PLUGS = 100  # highest number of plugs added at one site


@dataclass(frozen=True, slots=True)
class Target:
    """A number of plugs, a budget, or a share of demand to serve (over all sites, or at every site)."""

    plugs: int | None = None
    budget: float | None = None
    serve: float | None = None
    each_site: bool = False

    def check(self, costs_known: bool) -> None:
        """Raise InputError for invalid values."""
        given = [name for name in ("plugs", "budget", "serve") if getattr(self, name) is not None]
        if len(given) != 1:
            which = "none of them is" if not given else " and ".join(f"--{name}" for name in given) + " are"
            raise InputError(
                f"A plan needs exactly one of --plugs, --budget and --serve, but {which} given: try --plugs 10."
            )
        if self.plugs is not None and self.plugs < 1:
            raise InputError(f"A plan of {self.plugs} plugs makes no sense: give at least 1.")
        if self.budget is not None and not (np.isfinite(self.budget) and self.budget > 0):
            raise InputError(f"A budget of {self.budget:g} makes no sense: give one above 0.")
        if self.budget is not None and not costs_known:
            raise InputError("A budget needs costs: give --plug-cost (and --site-cost), or a table with --costs.")
        if self.serve is not None and not 0 < self.serve < 1:
            raise InputError(
                f"Serving a share of {self.serve:g} makes no sense: give one between 0 and 1, such as 0.95."
            )
        if self.each_site and self.serve is None:
            raise InputError("--each-site asks every site to reach the share --serve: give --serve as well.")

    @property
    def max_plugs(self) -> int:
        """Highest number of plugs that one site may get."""
        return min(self.plugs or MAX_PLUGS, MAX_PLUGS)

    def until(self, part: float) -> Target:
        """The target for the first part of the horizon, from 0 to 1; a share to serve is the same in every year."""
        if self.plugs is not None:
            return replace(self, plugs=round(part * self.plugs))
        return self if self.budget is None else replace(self, budget=part * self.budget)


@dataclass(frozen=True, slots=True)
class Decision:
    """Plugs to add at every site, and how they were chosen."""

    plugs: Integers  # (sites + candidates,)
    power: Floats  # (sites + candidates,) [kW], NaN for the power of the existing plugs
    choice: Choice
    reached: bool = True  # whether the share to be served is reached, on average over the draws
    short: tuple[str, ...] = ()  # sites that miss the share


def decide(
    menu: Menu, target: Target, built: Integers, power: Floats, use_money: bool, interplay: float = 1.0
) -> Decision:
    """The best plugs to add to those already built.

    Args:
        menu: the options.
        target: what the plan has to achieve.
        built: plugs that are already built, (sites + candidates,).
        power: power of these plugs [kW].
        use_money: whether to serve a share of demand at the lowest cost, rather than with the fewest plugs.
        interplay: gain of all sites together over the sum of their gains; 1 until it is known.
    """
    rest = menu.beyond(built, power)
    options = rest.priced() if use_money or target.budget is not None else rest.options
    plugs, kw = built.copy(), power.copy()
    if target.plugs is not None:
        choice = choose_within(rest.options, target.plugs - int(built.sum()))
    elif target.budget is not None:
        spent = sum(menu.cost_of(int(s), int(built[s]), float(power[s])) for s in np.flatnonzero(built))
        choice = choose_within(options, target.budget - spent)
    elif target.each_site:
        return _at_every_site(menu, options, target.serve or 0.0, plugs, kw)
    else:
        served = sum(float(menu.supplies[s].served_kwh.mean()) for s in menu.own)
        lost = sum(float(menu.supplies[s].lost_kwh.mean()) for s in menu.own)
        needed = ((target.serve or 0.0) * (served + lost) - served) / interplay - menu.gain_of(built, power)
        choice = choose_to_reach(options, needed) if needed > 0 else _empty_choice()
        _apply(options, choice.rows, plugs, kw)
        return Decision(plugs, kw, choice, choice.gain >= needed - 1e-6 * max(needed, 1.0))
    _apply(options, choice.rows, plugs, kw)
    return Decision(plugs, kw, choice)


def _apply(options: Options, rows: Integers, plugs: Integers, power: Floats) -> None:
    """Write the chosen options into `plugs` and `power`."""
    plugs[options.site[rows]] = options.plugs[rows]
    power[options.site[rows]] = options.power[rows]


def _empty_choice() -> Choice:
    return Choice(np.empty(0, np.int64), gain=0.0, cost=0.0, greedy_gain=0.0, greedy_cost=0.0, gap=0.0, method="greedy")


def _at_every_site(menu: Menu, options: Options, share: float, plugs: Integers, power: Floats) -> Decision:
    """The cheapest option that serves the share at each site, or the option with the highest gain if none does."""
    rows, short = [], []
    order = np.argsort(options.site, kind="stable")
    first = np.searchsorted(options.site[order], np.arange(len(menu.supplies) + 1))
    for s in menu.own:
        supply = menu.supplies[s]
        served, lost = float(supply.served_kwh.mean()), float(supply.lost_kwh.mean())
        gained = menu.gain_of_site(s, int(plugs[s]), float(power[s]))
        needed = share * (served + lost) - served - gained
        if needed <= 0:
            continue
        own = order[first[s] : first[s + 1]]
        enough = own[options.gain[own] >= needed - 1e-9]
        if len(enough):
            rows.append(int(enough[np.lexsort((options.plugs[enough], options.cost[enough]))[0]]))
            continue
        short.append(menu.site_ids[s])
        if len(own):
            rows.append(int(own[options.gain[own].argmax()]))
    chosen = np.array(rows, np.int64)
    gain, cost = float(options.gain[chosen].sum()), float(options.cost[chosen].sum())
    _apply(options, chosen, plugs, power)
    choice = Choice(chosen, gain, cost, greedy_gain=gain, greedy_cost=cost, gap=0.0, method="exact")
    return Decision(plugs, power, choice, not short, tuple(short))
