"""The result of planning: plugs to add, and their gain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from unmet.arrays import Floats
from unmet.estimation.sums import estimate
from unmet.frames import POLARS, Frame, to_frame_type
from unmet.planning.changes import Change
from unmet.planning.costs import Money
from unmet.planning.plan_tables import PlanTables
from unmet.planning.target import Decision, Target
from unmet.shown import Shown

__all__ = ["Plan", "PlannedEnergy", "Stage"]


@dataclass(frozen=True, slots=True)
class Stage:
    """Plugs that are built by the end of a year."""

    year: int
    growth: float  # demand of the year relative to the records
    plugs: int  # plugs built so far
    lost_kwh: float  # energy lost per week without the plan
    gain_kwh: float  # energy per week that the plugs built so far recover
    cost: float | None  # cost of the plugs built so far


@dataclass(frozen=True, slots=True)
class PlannedEnergy:
    """Energy per week, in every draw of the lost drivers [kWh]."""

    gain_draws: Floats  # (draws,), energy recovered by all sites together
    lost_draws: Floats  # (draws,), energy lost without the plan
    served_kwh: float
    interplay: float  # gain of all sites together over the sum of their gains


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Shown):
    """Plugs to add, and their gain. Energies and drivers are per week.

    Example:
        >>> plan = unmet.plan(lost, plugs=3)  # from a fitted unmet.LostDemand
        >>> plan.plugs, plan.table["plugs_added"].sum()
        (3, 3)
        >>> mean, low, high = plan.gain()  # [kWh per week]
        >>> low < mean < high
        True
    """

    tables: PlanTables
    energy: PlannedEnergy
    knee: int | None  # number of plugs beyond which more plugs gain little
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
        gain = f"{mean:,.0f} kWh per week ({low:,.0f}-{high:,.0f})"
        return f"Plan({self.plugs} plugs at {self.sites} sites, recovers {gain})"

    @property
    def table(self) -> Frame:
        """One row per site, highest gain first, as a data frame of the library that the records came in.

        Columns: `site_id, name, lat, lon` [degree], `plugs_now, plugs_added, power_kw` [kW], and per week `lost_kwh`
        and `gain_kwh` with their `_low` and `_high` [kWh], and more.
        """
        return to_frame_type(self.tables.sites, self.frame_type)

    @property
    def curve(self) -> Frame:
        """Gain against plugs: `plugs, gain_kwh, gain_kwh_low, gain_kwh_high` [kWh per week]."""
        return to_frame_type(self.tables.curve, self.frame_type)

    @property
    def sensitivity(self) -> Frame:
        """Gain of the plan, and of the best plan, under other assumptions about drivers [kWh per week]."""
        return to_frame_type(self.tables.sensitivity, self.frame_type)

    @property
    def plugs(self) -> int:
        """Number of plugs added."""
        return int(self.tables.sites["plugs_added"].sum())

    @property
    def sites(self) -> int:
        """Number of sites that get plugs."""
        return int((self.tables.sites["plugs_added"] > 0).sum())

    @property
    def cost(self) -> float | None:
        """Cost of the plan, if it is known."""
        chosen = self.tables.sites.filter(pl.col("plugs_added") > 0)["cost"]
        return None if chosen.null_count() or not len(chosen) else float(chosen.sum())

    @property
    def draws(self) -> int:
        """Number of draws of the lost drivers."""
        return len(self.energy.gain_draws)

    @property
    def lost_kwh(self) -> float:
        """Energy lost per week without the plan [kWh]."""
        return float(self.energy.lost_draws.mean())

    def gain(self) -> tuple[float, float, float]:
        """Energy recovered per week [kWh]: mean, and low and high end of the interval."""
        mean, low, high = (float(value) for value in estimate(self.energy.gain_draws, self.interval))
        return mean, low, high

    def recovered_share(self) -> tuple[float, float, float]:
        """Share of the lost energy that is recovered: mean, and low and high end of the interval."""
        gain, lost = self.energy.gain_draws, self.energy.lost_draws
        if not lost.mean() > 0:
            return 0.0, 0.0, 0.0
        share = gain / np.maximum(lost, 1e-9)
        _, low, high = (float(value) for value in estimate(share[lost > 0], self.interval))
        return float(gain.mean() / lost.mean()), low, high

    def served_share(self) -> tuple[float, float]:
        """Share of all demand that is served, before and after the plan."""
        lost, gain = float(self.energy.lost_draws.mean()), float(self.energy.gain_draws.mean())
        true = self.energy.served_kwh + lost
        return (1.0, 1.0) if true <= 0 else (1 - lost / true, 1 - (lost - gain) / true)
