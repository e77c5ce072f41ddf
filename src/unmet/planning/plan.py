"""Plan how many plugs to add, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from unmet.errors import InputError
from unmet.planning.candidates import given_candidates
from unmet.planning.changes import Change
from unmet.planning.costs import Money, given_costs
from unmet.planning.planner import Planner
from unmet.planning.result import Plan
from unmet.planning.source import read_source
from unmet.planning.target import Target

__all__ = ["Plan", "plan"]

MAX_GROWTH = 10.0  # highest rate per year


def plan(
    source: Any,
    *,
    plugs: int | None = None,
    budget: float | None = None,
    serve: float | None = None,
    each_site: bool = False,
    plug_cost: float | None = None,
    site_cost: float = 0.0,
    costs: Any = None,
    powers: Sequence[float] = (),
    max_per_site: int | None = None,
    price: float | None = None,
    upkeep: float = 0.0,
    years: int = 10,
    discount: float = 0.05,
    growth: float = 0.0,
    horizon: int = 1,
    more_cars: float = 1.0,
    stay_hours: float | None = None,
    idle_cut: float = 0.0,
    closed: Sequence[str] = (),
    competitors: Sequence[tuple[float, float]] = (),
    candidates: Any = None,
    propose: int = 0,
    draws: int = 200,
    interval: float | None = None,
    seed: int | None = None,
    workers: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Plan:
    """Plan where to add plugs.

    Args:
        source: a fitted `LostDemand`, a `Panel`, or the folder of a run of `unmet recover` or `unmet panel`.
        plugs: number of plugs to add. Give one of `plugs`, `budget` and `serve`.
        budget: money to spend.
        serve: share of the energy demand to serve, between 0 and 1.
        each_site: whether every site must reach that share, rather than all sites together.
        plug_cost: cost of one more plug.
        site_cost: one-off cost of each site that gets plugs.
        costs: file or frame with costs and limits by site and power (`unmet.planning.costs.COSTS`).
        powers: power levels of new plugs to choose from [kW]; by default the power of the existing plugs.
        max_per_site: highest number of additional plugs per site.
        price: earnings per kWh; gives payback and net present value.
        upkeep: cost per plug and year.
        years: number of years with earnings.
        discount: yearly discount rate.
        growth: yearly growth of demand, such as 0.2.
        horizon: number of years; plugs are added year by year, for the demand of each year.
        more_cars: factor on demand from the start.
        stay_hours: longest stay allowed [h].
        idle_cut: share of idle time that a fee ends.
        closed: ids of stations that are closed.
        competitors: latitude and longitude of new competing sites [degree].
        candidates: file or frame with positions of new sites (`unmet.planning.candidates.CANDIDATES`).
        propose: number of new sites to propose where demand is lost and no site is near.
        draws: number of posterior draws, if the source is a panel.
        interval: probability that an interval contains the truth.
        seed: the same seed gives the same plan.
        workers: threads; the plan does not depend on their number.
        progress: called with the name of each step.

    Returns:
        The plan, with `.table` (one row per site, energy in kWh per week) and `.plot()`.

    Example:
        >>> result = plan(lost, plugs=3)  # from a fitted unmet.LostDemand, an unmet.Panel, or a run folder
        >>> result.table.filter(result.table["plugs_added"] > 0)["site_id"].len() <= 3
        True
        >>> result.recovered_share()[0] > 0.2
        True
    """
    target = Target(plugs, budget, serve, each_site)
    target.check(plug_cost is not None or costs is not None)
    money = None if price is None else Money(price, upkeep, years, discount)
    if money is not None:
        money.check()
    _check_numbers(growth, horizon, max_per_site, powers, propose)
    change = Change(more_cars, stay_hours, idle_cut, tuple(closed), tuple(competitors))
    progress("Reading the drivers")
    read = read_source(source, draws=draws, interval=interval, seed=seed)
    ids = read.demand.panel.sites["site_id"]
    places = None if candidates is None else given_candidates(candidates, ids)
    names = ids if places is None else pl.concat([ids, pl.Series(places.name)])
    all_costs = given_costs(plug_cost, site_cost, costs, names)
    if money is not None and not all_costs.known:
        raise InputError("A payback needs costs: give --plug-cost (and --site-cost), or a table with --costs.")
    change.check(read.demand)
    planner = Planner(read, target, all_costs, money, tuple(powers) or (None,), max_per_site, workers)
    return planner.plan(change, growth, horizon, places, propose, progress)


def _check_numbers(
    growth: float, horizon: int, max_per_site: int | None, powers: Sequence[float], propose: int
) -> None:
    if not -1 < growth <= MAX_GROWTH:
        raise InputError(
            f"Growth of {growth:g} per year makes no sense: give a rate above -1, such as 0.2 for 20 %, and up to "
            f"{MAX_GROWTH:g}."
        )
    if not 1 <= horizon <= 30:
        raise InputError(f"A horizon of {horizon} years makes no sense: give 1 to 30.")
    if max_per_site is not None and max_per_site < 1:
        raise InputError(f"{max_per_site} additional plugs per site leave nothing to plan: give at least 1.")
    if wrong := [power for power in powers if not (np.isfinite(power) and power > 0)]:
        raise InputError(f"A power of {wrong[0]:g} kW makes no sense: give one above 0, such as 22.")
    if propose < 0:
        raise InputError(f"{propose} new sites make no sense: give 0 or more.")
