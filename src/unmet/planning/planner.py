"""The steps of planning, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unmet.arrays import Floats, Integers
from unmet.errors import InputError
from unmet.estimation.spill import REACH_KM
from unmet.planning.allocate import NEGLIGIBLE_GAP, Choice
from unmet.planning.candidates import (
    Attracted,
    Candidates,
    proposed_candidates,
    score_candidates,
)
from unmet.planning.changes import Change, World, changed_world, require_memory
from unmet.planning.costs import Costs, Money
from unmet.planning.drivers import DrawnDemand
from unmet.planning.gains import Supply, site_curves
from unmet.planning.joint import Built, Joint, simulate_jointly
from unmet.planning.menu import Menu, make_menu
from unmet.planning.plan_tables import PlanTables
from unmet.planning.result import Plan, PlannedEnergy, Stage
from unmet.planning.site_table import Chosen, plan_table
from unmet.planning.source import PlanSource
from unmet.planning.target import Decision, Target, decide
from unmet.planning.uncertainty import chosen_share, gain_by_plugs, knee, sensitivity

__all__ = ["Planner"]


OnStep = Callable[[str], None]
CURVE_FACTOR = 1.6  # the curve of gain against plugs extends to this multiple of the plan's plugs
MIN_CURVE_PLUGS = 12  # smallest number of plugs to which the curve extends
MAX_SIMULATIONS = 4  # highest number of simulations; in between, plugs are added if the share to serve is missed
TRIAL_PLUGS, MAX_UNUSED = 2, 5  # plugs for describing candidates that get none, and how many of them to describe
DISAGREE = 0.02  # relative difference of the joint gain from the sum over sites that is worth a note


@dataclass(frozen=True, slots=True)
class Planner:
    """Chooses plugs year by year, simulates all sites together, and assesses the uncertainty of the choice."""

    source: PlanSource
    target: Target
    costs: Costs
    money: Money | None
    powers: tuple[float | None, ...]
    max_per_site: int | None
    workers: int | None

    def plan(
        self, change: Change, growth: float, horizon: int, candidates: Candidates | None, propose: int, progress: OnStep
    ) -> Plan:
        """Make the plan.

        Args:
            change: other differences from the records.
            growth: yearly growth of demand, such as 0.2.
            horizon: number of years.
            candidates: positions of new sites, if given.
            propose: number of new sites to propose otherwise.
            progress: called with the name of each step.
        """
        demand = self.source.demand
        stages: list[Stage] = []
        built, power, year_of = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
        factors = [change.growth * (1 + growth) ** (year if growth else 0) for year in range(1, horizon + 1)]
        require_memory(demand, replace(change, growth=max(factors)))
        # 1. Year by year: the gain of every possible plug, and which ones to add.
        for year, factor in enumerate(factors, start=1):
            progress("Replaying drivers" if horizon == 1 else f"Replaying drivers, year {year} of {horizon}")
            world = changed_world(demand, replace(change, growth=factor))
            supplies = site_curves(world, self.target.max_plugs, self.powers, self.workers)
            if candidates is None and propose:
                candidates = proposed_candidates(world, supplies, propose)
            attracted = score_candidates(world, candidates, self.target.max_plugs, self.powers) if candidates else []
            menu = self._menu(world, supplies, attracted, candidates)
            if year == 1:
                _check_demand(menu)
                _check_budget(menu, self.target)
                none = np.zeros(len(menu.supplies), np.int64)
                built, power, year_of = none, np.full(len(none), np.nan), none
            progress("Choosing plugs")
            before = built, power  # at the start of the year
            decision = self._decide(world, menu, self.target.until(year / horizon), *before, candidates)
            year_of = np.where((built == 0) & (decision.plugs > 0), year, year_of)
            built, power = decision.plugs, decision.power
            stages.append(self._stage(menu, year, factor, built, power))
        # 2. All sites together; if they miss the share to be served, more plugs are added.
        for _ in range(MAX_SIMULATIONS):
            progress("Simulating all sites together")
            joint = simulate_jointly(world, Built(built, power), candidates) if built.any() else None
            gain, interplay = _joint_gain(menu, built, power, joint)
            if not self._is_missed(menu, decision, gain):
                break
            decision = decide(menu, self.target, *before, self.costs.known, interplay)
            if (decision.plugs == built).all():
                break
            year_of = np.where((built == 0) & (decision.plugs > 0), horizon, year_of)
            built, power = decision.plugs, decision.power
            stages[-1] = self._stage(menu, horizon, factor, built, power)
        # 3. How the choice depends on the estimate.
        progress("Assessing the uncertainty of the choice")
        chosen = Chosen(built, power, year_of, chosen_share(menu, int(built.sum())))
        tables = self._tables(world, menu, chosen, candidates, attracted)
        return Plan(
            tables=tables,
            energy=_energy(menu, gain, interplay),
            knee=knee(tables.curve),
            stages=tuple(stages),
            target=self.target,
            change=replace(change, growth=stages[-1].growth),
            interval=self.source.interval,
            decision=decision,
            money=self.money,
            notes=(*self._notes(world, decision, interplay, candidates, attracted), *self.source.notes),
            seed=demand.seed,
            frame_type=demand.panel.frame_type,
        )

    def _tables(
        self, world: World, menu: Menu, chosen: Chosen, candidates: Candidates | None, attracted: list[Attracted]
    ) -> PlanTables:
        """The sites, the gain against the number of plugs, and the gain under other assumptions."""
        plugs = max(int(CURVE_FACTOR * chosen.plugs.sum()), MIN_CURVE_PLUGS)
        return PlanTables(
            plan_table(world, menu, chosen, candidates, attracted, self.money, self.source.interval),
            gain_by_plugs(menu, plugs, self.source.interval),
            sensitivity(world, menu, chosen.plugs, chosen.power, self.workers),
        )

    def _menu(
        self, world: World, supplies: list[Supply], attracted: list[Attracted], candidates: Candidates | None
    ) -> Menu:
        demand = world.demand
        ids = [*demand.panel.sites["site_id"].to_list(), *(candidates.name if candidates else ())]
        new_kw = [np.nan if power is None else power for power in (candidates.power_kw if candidates else ())]
        kw = np.concatenate([demand.stays.power_kw, np.array(new_kw, float)])
        allowed = np.concatenate([demand.is_open, np.ones(len(attracted), bool)])
        own_space = [self.max_per_site if plugs else 0 for plugs in world.capacity]  # none at closed sites
        space = [*own_space, *(candidates.max_plugs if candidates else ())]
        all_supplies = [*supplies, *(part.supply for part in attracted)]
        return make_menu(ids, all_supplies, demand.sites, kw, allowed, self.costs, space)

    def _decide(
        self, world: World, menu: Menu, target: Target, built: Integers, power: Floats, candidates: Candidates | None
    ) -> Decision:
        """The best plugs to add.

        The gain of a new site consists of drivers whom its neighbours lost, so adding up both counts them twice. Plans
        with and without new sites are therefore both simulated, and the better one is returned.
        """
        decision = decide(menu, target, built, power, self.costs.known)
        if candidates is None or not decision.plugs[world.demand.sites :].any() or target.serve is not None:
            return decision
        other = decide(menu.of_existing(world.demand.sites), target, built, power, self.costs.known)
        gains = [
            float(simulate_jointly(world, Built(each.plugs, each.power), candidates).gain_kwh.mean())
            if each.plugs.any()
            else 0.0
            for each in (decision, other)
        ]
        return decision if gains[0] >= gains[1] else other

    def _is_missed(self, menu: Menu, decision: Decision, gain: Floats) -> bool:
        """Whether the joint simulation misses the share to be served that the sum over sites reaches."""
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

    def _notes(
        self,
        world: World,
        decision: Decision,
        interplay: float,
        candidates: Candidates | None,
        attracted: list[Attracted],
    ) -> list[str]:
        notes, demand = [], world.demand
        if not decision.reached and decision.short:
            names = ", ".join(decision.short[:3]) + (" and others" if len(decision.short) > 3 else "")
            notes.append(
                f"{100 * (self.target.serve or 0):g} % cannot be served at {len(decision.short)} sites ({names}) "
                "within the limits; they get the plugs that serve the most."
            )
        if np.abs(interplay - 1) > DISAGREE:
            notes.append(
                f"Simulated together, the sites recover {interplay:.2f} times the sum of what each recovers alone, "
                "because drivers move between sites; totals come from the joint simulation."
            )
        if (closed := np.flatnonzero(~demand.is_open)).size:
            number = "1 site" if len(closed) == 1 else f"{len(closed)} sites"
            notes.append(
                f"{number} closed before the records end ({_named(demand, closed)}): no plugs are added there, and "
                "totals exclude them."
            )
        notes += [_closure(world, int(s)) for s in np.flatnonzero(demand.is_open & (world.capacity == 0))]
        if decision.choice.method == "exact" and decision.choice.greedy_gain > 0 and not self.target.each_site:
            notes.append(_optimality(decision.choice))
        if candidates is not None:
            notes.append(
                "New sites are scored by the lost demand that they recover. Drivers who would come only because of a "
                "new site appear in no record, and there may be many of them."
            )
            if not decision.plugs[demand.sites :].any():
                notes.append("No new site is part of the plan: the same plugs recover more at existing sites.")
            unused = [j for j in range(len(candidates)) if not decision.plugs[demand.sites + j]]
            notes += [_unused(candidates.name[j], attracted[j]) for j in unused[:MAX_UNUSED]]
        return notes


def _named(demand: DrawnDemand, sites: Integers) -> str:
    """Names of up to three sites."""
    names = [_name(demand, int(s)) for s in sites[:3]]
    return ", ".join(names) + (" and others" if len(sites) > 3 else "")


def _name(demand: DrawnDemand, site: int) -> str:
    row = demand.panel.sites.row(site, named=True)
    return str(row.get("name") or row["site_id"])


def _closure(world: World, site: int) -> str:
    """A sentence on where the drivers of a closed site go."""
    target, share = world.leaving[site][0]
    closed = f"{_name(world.demand, site)} is closed: "
    if target < 0:
        return closed + f"no open site of similar power is within {REACH_KM:g} km, so all of its drivers are lost."
    return closed + (
        f"{100 * share:.0f} % of its drivers go to {_name(world.demand, target)}, the nearest open site of similar "
        "power, and the others are lost."
    )


def _unused(name: str, candidate: Attracted) -> str:
    """A sentence on what a candidate that gets no plug would attract and recover with a few plugs."""
    if not candidate.supply.lost_kwh.any():
        return f"{name}: no open site of similar power is within {REACH_KM:g} km, so records say nothing about it."
    recovers = next(iter(candidate.supply.curves.values()))
    attracts, gains = (float(curve.kwh[:, curve.at(TRIAL_PLUGS)].mean()) for curve in (candidate.attracted, recovers))
    return (
        f"{name} gets no plug. With {TRIAL_PLUGS}, it would attract {attracts:,.0f} kWh per week: "
        f"{gains:,.0f} are lost today, and its neighbours serve the rest."
    )


def _optimality(choice: Choice) -> str:
    """A sentence on how good the choice is, and how much better than the greedy one."""
    better = choice.gain / choice.greedy_gain - 1
    cheaper = 1 - choice.cost / choice.greedy_cost if choice.greedy_cost else 0.0
    optimal = choice.gap < NEGLIGIBLE_GAP
    start = "The choice is optimal" if optimal else f"The choice is within {100 * choice.gap:.1g} % of the optimum"
    if max(better, cheaper) < 0.0005:
        return f"{start}: no other choice recovers more, according to the estimate." if optimal else f"{start}."
    return (
        f"{start}: it gains {100 * better:+.1f} % and costs {100 * cheaper:.1f} % less, compared with adding plugs one "
        "by one where they gain the most."
    )


def _energy(menu: Menu, gain: Floats, interplay: float) -> PlannedEnergy:
    """Energy of all open sites, with the gain of the joint simulation."""
    lost = np.sum([menu.supplies[s].lost_kwh for s in menu.own], axis=0)
    served = float(sum(menu.supplies[s].served_kwh.mean() for s in menu.own))
    return PlannedEnergy(gain, lost, served, interplay)


def _check_demand(menu: Menu) -> None:
    if not menu.own:
        raise InputError("No site is open at the end of the records: there is nowhere to add plugs.")
    if not any(menu.supplies[s].lost_kwh.mean() > 0 for s in menu.own):
        raise InputError(
            "No lost demand was found, so more plugs would gain nothing: a plug was free whenever a driver came. To "
            "plan for growth, add --more-cars 2 or --growth 0.3."
        )
    if not len(menu.options):
        raise InputError("No plug fits anywhere: raise the limits on space and grid, or --max-per-site.")


def _check_budget(menu: Menu, target: Target) -> None:
    if target.budget is None:
        return
    cheapest = float(menu.priced().cost.min())
    if cheapest > target.budget:
        raise InputError(f"A budget of {target.budget:,.10g} buys no plug: give {cheapest:,.10g} or more.")


def _joint_gain(menu: Menu, built: Integers, power: Floats, joint: Joint | None) -> tuple[Floats, float]:
    """Gain of all sites together in every draw, and its ratio to the sum over sites.

    A large network is simulated in some of the draws only; their ratio is then applied to all.
    """
    chosen = np.flatnonzero(built)
    draws = len(menu.supplies[0].lost_kwh)
    alone = np.sum([menu.draw_gain(int(s), int(built[s]), float(power[s])) for s in chosen], axis=0)
    if joint is None or not len(chosen):
        return np.zeros(draws), 1.0
    simulated = len(joint.before_kwh)
    interplay = float(joint.gain_kwh.sum() / max(alone[:simulated].sum(), 1e-9))
    return (joint.gain_kwh if simulated == draws else alone * interplay), interplay
