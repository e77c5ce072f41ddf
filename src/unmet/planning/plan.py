"""A plan: how many plugs to add, and where, with what that gains. The file reads in the order of the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import polars as pl

from unmet.arrays import Floats, Integers
from unmet.errors import InputError
from unmet.estimation.sums import estimate
from unmet.frames import POLARS, Frame, to_frame_type
from unmet.planning.candidates import (
    Attracted,
    Candidates,
    given_candidates,
    proposed_candidates,
    score_candidates,
)
from unmet.planning.changes import Change, World, changed_world
from unmet.planning.costs import Costs, Money, given_costs
from unmet.planning.doubt import chosen_share, gain_by_plugs, knee, sensitivity
from unmet.planning.gains import Supply, site_curves
from unmet.planning.joint import Built, Joint, play_together
from unmet.planning.menu import Menu, make_menu
from unmet.planning.plan_tables import PlanTables
from unmet.planning.site_table import Chosen, plan_table
from unmet.planning.source import PlanSource, read_source
from unmet.planning.target import Decision, Target, decide

__all__ = ["Plan", "Stage", "plan"]


BEYOND = 1.6  # plugs over those of the plan up to which gain is drawn
LEAST_CURVE = 12
PLAYED = 4  # times that a plan is played, and mended if it misses its share
DISAGREE = 0.02  # distance of the joint gain from the sum over sites that is worth a note


@dataclass(frozen=True, slots=True)
class Stage:
    """What is built by the end of a year."""

    year: int
    growth: float  # demand over that of the records
    plugs: int  # built so far
    lost_kwh: float  # per week without the plan
    gain_kwh: float  # per week, of what is built so far
    cost: float | None  # so far


@dataclass(frozen=True, slots=True)
class PlannedEnergy:
    """Energy per week, in every draw of the lost drivers [kWh]."""

    gain_draws: Floats  # (draws,), recovered by all sites together
    lost_draws: Floats  # (draws,), lost before
    served_kwh: float
    interplay: float  # gain of all sites together over the sum of their gains


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """Plugs to add, and what they gain. Energies and drivers are per week.

    Example:
        >>> made = unmet.plan("runs/dundee", plugs=24)  # doctest: +SKIP
        >>> made.table.select("name", "plugs_now", "plugs_added", "gain_kwh")  # doctest: +SKIP
        >>> made.plot().show()  # doctest: +SKIP
    """

    tables: PlanTables
    energy: PlannedEnergy
    knee: int | None  # plugs beyond which further ones gain little
    stages: tuple[Stage, ...]
    target: Target
    change: Change
    interval: float
    decision: Decision
    money: Money | None
    notes: tuple[str, ...]
    seed: int
    frame_type: str = POLARS

    def __repr__(self) -> str:
        mean, low, high = self.gain()
        return (
            f"Plan({self.plugs} plugs at {self.sites} sites, recovers {mean:,.0f} kWh a week ({low:,.0f}-{high:,.0f}))"
        )

    @property
    def table(self) -> Frame:
        """One row per site, those that gain most first, as a data frame of the library that the records came in.

        Columns: `site_id, name, lat, lon` [degree], `plugs_now, plugs_added, power_kw` [kW], and per week `lost_kwh`,
        `gain_kwh` with `_low` and `_high` [kWh], and more.
        """
        return to_frame_type(self.tables.sites, self.frame_type)

    @property
    def curve(self) -> Frame:
        """Gain against plugs: `plugs, gain_kwh, gain_kwh_low, gain_kwh_high` [kWh per week]."""
        return to_frame_type(self.tables.curve, self.frame_type)

    @property
    def sensitivity(self) -> Frame:
        """Gain of the plan, and of the best one, under other assumptions on drivers [kWh per week]."""
        return to_frame_type(self.tables.sensitivity, self.frame_type)

    @property
    def plugs(self) -> int:
        """Plugs added."""
        return int(self.tables.sites["plugs_added"].sum())

    @property
    def sites(self) -> int:
        """Sites that get plugs."""
        return int((self.tables.sites["plugs_added"] > 0).sum())

    @property
    def cost(self) -> float | None:
        """Cost of all of them, if it is known."""
        chosen = self.tables.sites.filter(pl.col("plugs_added") > 0)["cost"]
        return None if chosen.null_count() or not len(chosen) else float(chosen.sum())

    @property
    def draws(self) -> int:
        """Draws of the lost drivers that it rests on."""
        return len(self.energy.gain_draws)

    @property
    def lost_kwh(self) -> float:
        """Energy lost per week without the plan [kWh]."""
        return float(self.energy.lost_draws.mean())

    def gain(self) -> tuple[float, float, float]:
        """Energy recovered per week: mean, low and high."""
        mean, low, high = (float(value) for value in estimate(self.energy.gain_draws, self.interval))
        return mean, low, high

    def recovered_share(self) -> tuple[float, float, float]:
        """Share of the lost energy that is recovered: mean, low and high."""
        gain, lost = self.energy.gain_draws, self.energy.lost_draws
        if not lost.mean() > 0:
            return 0.0, 0.0, 0.0
        share = gain / np.maximum(lost, 1e-9)
        _, low, high = (float(value) for value in estimate(share[lost > 0], self.interval))
        return float(gain.mean() / lost.mean()), low, high

    def served_share(self) -> tuple[float, float]:
        """Share of all demand that is served, before and after."""
        lost, gain = float(self.energy.lost_draws.mean()), float(self.energy.gain_draws.mean())
        true = self.energy.served_kwh + lost
        return (1.0, 1.0) if true <= 0 else (1 - lost / true, 1 - (lost - gain) / true)

    def plot(self) -> Any:
        """Gain against plugs, as a Plotly figure."""
        # Drawing is a room below: it is looked up when asked for.
        return import_module("unmet.views.figures.plan_gain").PLAN_GAIN.draw(self)


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
    most_per_site: int | None = None,
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
        plugs: number of plugs to add,
        budget: or money to spend,
        serve: or share of the demanded energy to serve.
        each_site: whether every site must reach that share, not only all together.
        plug_cost: of one more plug.
        site_cost: once per site that gets plugs.
        costs: file or frame with costs and limits by site and power (`unmet.planning.costs.COSTS`).
        powers: of new plugs [kW] to choose from; by default they are like those that are there.
        most_per_site: further plugs per site.
        price: earned per kWh; gives payback and net present value.
        upkeep: per plug and year.
        years: over which money is earned.
        discount: yearly rate.
        growth: of demand per year, as 0.2.
        horizon: years; plugs are added year by year, for the demand of each.
        more_cars: factor on demand at once.
        stay_hours: limit of stays.
        idle_cut: share of idle time that a fee ends.
        closed: stations that are closed.
        competitors: latitude and longitude of sites that others open.
        candidates: file or frame with positions of new sites (`unmet.planning.candidates.CANDIDATES`).
        propose: number of new sites to propose where demand is lost and no site is near.
        draws: posterior draws, if a panel is estimated here.
        interval: probability that an interval contains the truth.
        seed: the same seed gives the same plan.
        workers: threads; the plan does not depend on them.
        progress: called with what is being done.

    Returns:
        The plan, with `.table` and `.plot()`.
    """
    target = Target(plugs, budget, serve, each_site)
    target.check(plug_cost is not None or costs is not None)
    money = None if price is None else Money(price, upkeep, years, discount)
    if money is not None:
        money.check()
    _check_numbers(growth, horizon, most_per_site, powers, propose)
    change = Change(more_cars, stay_hours, idle_cut, tuple(closed), tuple(competitors))
    progress("Reading the drivers")
    read = read_source(source, draws=draws, interval=interval, seed=seed)
    ids = read.truth.panel.sites["site_id"]
    places = None if candidates is None else given_candidates(candidates, ids)
    names = ids if places is None else pl.concat([ids, pl.Series(places.name)])
    asked = given_costs(plug_cost, site_cost, costs, names)
    if money is not None and not asked.known:
        raise InputError("A payback needs costs: give --plug-cost (and --site-cost), or a table with --costs.")
    change.check(read.truth)
    makes = _Maker(read, target, asked, money, tuple(powers) or (None,), most_per_site, workers)
    return makes.plan(change, growth, horizon, places, propose, progress)


def _check_numbers(
    growth: float, horizon: int, most_per_site: int | None, powers: Sequence[float], propose: int
) -> None:
    if not (np.isfinite(growth) and growth > -1):
        raise InputError(f"Growth of {growth:g} a year makes no sense: give a rate over -1, as 0.2 for 20 %.")
    if not 1 <= horizon <= 30:
        raise InputError(f"A horizon of {horizon} years makes no sense: give 1 to 30.")
    if most_per_site is not None and most_per_site < 1:
        raise InputError(f"{most_per_site} further plugs per site leave nothing to plan: give at least 1.")
    if wrong := [power for power in powers if not (np.isfinite(power) and power > 0)]:
        raise InputError(f"A power of {wrong[0]:g} kW makes no sense: give one over 0, as 22.")
    if propose < 0:
        raise InputError(f"{propose} new sites make no sense: give 0 or more.")


@dataclass(frozen=True, slots=True)
class _Maker:
    """What all steps of a plan need."""

    read: PlanSource
    target: Target
    costs: Costs
    money: Money | None
    powers: tuple[float | None, ...]
    most_per_site: int | None
    workers: int | None

    def plan(
        self,
        change: Change,
        growth: float,
        horizon: int,
        places: Candidates | None,
        propose: int,
        progress: Callable[[str], None],
    ) -> Plan:
        """All steps, in order."""
        truth = self.read.truth
        stages: list[Stage] = []
        built, power, year_of = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
        # 1. Year by year: what every plug would gain, and which ones to add.
        for year in range(1, horizon + 1):
            factor = change.growth * (1 + growth) ** (year if growth else 0)
            progress("Replaying drivers" if horizon == 1 else f"Replaying drivers, year {year} of {horizon}")
            world = changed_world(truth, replace(change, growth=factor))
            supplies = site_curves(world, self.target.most, self.powers, self.workers)
            if places is None and propose:
                places = proposed_candidates(world, supplies, propose)
            attracted = score_candidates(world, places, self.target.most, self.powers) if places else []
            menu = self._menu(world, supplies, attracted, places)
            if year == 1:
                _check_demand(menu)
                number = len(menu.supplies)
                built, power, year_of = np.zeros(number, np.int64), np.full(number, np.nan), np.zeros(number, np.int64)
            progress("Choosing plugs")
            before = built, power
            decision = self._decide(world, menu, self.target.until(year / horizon), *before, places)
            year_of = np.where((built == 0) & (decision.plugs > 0), year, year_of)
            built, power = decision.plugs, decision.power
            stages.append(self._stage(menu, year, factor, built, power))
        # 2. All sites together; a share that they miss then needs more plugs.
        for _ in range(PLAYED):
            progress("Playing all sites together")
            joint = play_together(world, Built(built, power), places) if built.any() else None
            gain, interplay = _together(menu, built, power, joint)
            if not self._is_missed(menu, decision, gain):
                break
            decision = decide(menu, self.target, *before, self.costs.known, interplay)
            if (decision.plugs == built).all():
                break
            year_of = np.where((built == 0) & (decision.plugs > 0), horizon, year_of)
            built, power = decision.plugs, decision.power
            stages[-1] = self._stage(menu, horizon, factor, built, power)
        # 3. How the choice depends on the estimate.
        progress("Asking how sure the choice is")
        number = int(built.sum())
        chosen = Chosen(built, power, year_of, chosen_share(menu, number))
        most = max(int(BEYOND * number), LEAST_CURVE)
        curve = gain_by_plugs(menu, most, self.read.interval)
        doubts = sensitivity(world, menu, built, power, self.workers)
        table = plan_table(world, menu, chosen, places, attracted, self.money, self.read.interval)
        lost = np.sum([menu.supplies[s].lost_kwh for s in menu.own], axis=0)
        served = float(sum(menu.supplies[s].served_kwh.mean() for s in menu.own))
        return Plan(
            tables=PlanTables(table, curve, doubts),
            energy=PlannedEnergy(gain, lost, served, interplay),
            knee=knee(curve),
            stages=tuple(stages),
            target=self.target,
            change=replace(change, growth=stages[-1].growth),
            interval=self.read.interval,
            decision=decision,
            money=self.money,
            notes=(*self._notes(world, decision, interplay, places), *self.read.notes),
            seed=truth.seed,
            frame_type=truth.panel.frame_type,
        )

    def _menu(
        self, world: World, supplies: list[Supply], attracted: list[Attracted], places: Candidates | None
    ) -> Menu:
        truth = world.truth
        ids = [*truth.panel.sites["site_id"].to_list(), *(places.name if places else ())]
        new_kw = [np.nan if power is None else power for power in (places.power_kw if places else ())]
        kw = np.concatenate([truth.stays.power_kw, np.array(new_kw, float)])
        allowed = np.concatenate([truth.is_open & (world.capacity > 0), np.ones(len(attracted), bool)])
        most = [*[self.most_per_site] * truth.sites, *(places.most_plugs if places else ())]
        everyone = [*supplies, *(part.supply for part in attracted)]
        return make_menu(ids, everyone, truth.sites, kw, allowed, self.costs, most)

    def _decide(
        self, world: World, menu: Menu, target: Target, built: Integers, power: Floats, places: Candidates | None
    ) -> Decision:
        """The best plugs to add. Plans with and without new sites are both played, since these share lost drivers."""
        decision = decide(menu, target, built, power, self.costs.known)
        if places is None or not decision.plugs[world.truth.sites :].any() or target.serve is not None:
            return decision
        other = decide(menu.of_existing(world.truth.sites), target, built, power, self.costs.known)
        gains = [
            float(play_together(world, Built(one.plugs, one.power), places).gain_kwh.mean()) if one.plugs.any() else 0.0
            for one in (decision, other)
        ]
        return decision if gains[0] >= gains[1] else other

    def _is_missed(self, menu: Menu, decision: Decision, gain: Floats) -> bool:
        """Whether a share of demand that each site's own gains reach is not reached by all of them together."""
        if self.target.serve is None or self.target.each_site or not decision.reached:
            return False
        served = sum(float(menu.supplies[s].served_kwh.mean()) for s in menu.own)
        true = served + sum(float(menu.supplies[s].lost_kwh.mean()) for s in menu.own)
        return served + float(gain.mean()) < self.target.serve * true - 1e-9 * true

    def _stage(self, menu: Menu, year: int, growth: float, built: Integers, power: Floats) -> Stage:
        cost = sum(menu.cost_of(int(s), int(built[s]), float(power[s])) for s in np.flatnonzero(built))
        lost = float(sum(menu.supplies[s].lost_kwh.mean() for s in menu.own))
        known = self.costs.known and not np.isnan(cost)
        return Stage(year, growth, int(built.sum()), lost, menu.gain_of(built, power), float(cost) if known else None)

    def _notes(self, world: World, decision: Decision, interplay: float, places: Candidates | None) -> list[str]:
        notes, truth = [], world.truth
        if not decision.reached and decision.short:
            names = ", ".join(decision.short[:3]) + (" and others" if len(decision.short) > 3 else "")
            notes.append(
                f"{100 * (self.target.serve or 0):g} % cannot be served at {len(decision.short)} sites ({names}) "
                "within the limits; they get what serves most."
            )
        if np.abs(interplay - 1) > DISAGREE:
            notes.append(
                f"Played together, the sites recover {interplay:.2f} times the sum of what each recovers on its own, "
                "since drivers go from one to another; totals are those of all together."
            )
        shut = int((~truth.is_open).sum())
        if shut:
            notes.append(f"{shut} sites had closed before the records end, and get no plugs.")
        if decision.choice.method == "exact" and decision.choice.greedy_gain > 0:
            better = decision.choice.gain / decision.choice.greedy_gain - 1
            cheaper = 1 - decision.choice.cost / decision.choice.greedy_cost if decision.choice.greedy_cost else 0.0
            gap = f"it is within {100 * decision.choice.gap:.2g} % of the optimum"
            if max(better, cheaper) < 0.0005:
                notes.append(f"Integer programming finds nothing better than the greedy choice; {gap}.")
            else:
                notes.append(
                    f"Integer programming: {100 * better:+.1f} % gain at {100 * cheaper:.1f} % less cost than the "
                    f"greedy choice; {gap}."
                )
        if places is not None:
            notes.append(
                "New sites are scored by lost demand that they recover. Drivers who would come only because a site is "
                "new are in no record, and may be many."
            )
            if not decision.plugs[truth.sites :].any():
                notes.append("No new site is part of the plan: the same plugs recover more at sites that are there.")
        return notes


def _check_demand(menu: Menu) -> None:
    if not menu.own:
        raise InputError("No site is open at the end of the records: there is nowhere to add plugs.")
    if not any(menu.supplies[s].lost_kwh.mean() > 0 for s in menu.own):
        raise InputError(
            "No lost demand was found, so that no plug would gain anything: a plug was free whenever a driver came."
        )
    if not len(menu.options):
        raise InputError("No plug fits anywhere: raise the limits of space and grid, or --most-per-site.")


def _together(menu: Menu, built: Integers, power: Floats, joint: Joint | None) -> tuple[Floats, float]:
    """Gain of all sites together in every draw, and its ratio to the sum over sites.

    Where a large network is played in some of the draws only, their ratio holds for all.
    """
    chosen = np.flatnonzero(built)
    draws = len(menu.supplies[0].lost_kwh)
    alone = np.sum([menu.draw_gain(int(s), int(built[s]), float(power[s])) for s in chosen], axis=0)
    if joint is None or not len(chosen):
        return np.zeros(draws), 1.0
    played = len(joint.before_kwh)
    interplay = float(joint.gain_kwh.sum() / max(alone[:played].sum(), 1e-9))
    return (joint.gain_kwh if played == draws else alone * interplay), interplay
