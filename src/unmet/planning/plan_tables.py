"""Tables of a plan, as plans hold them and run folders store them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

__all__ = ["PlanTables"]


@dataclass(frozen=True, slots=True)
class PlanTables:
    """Where plugs are added, what more of them would gain, and how that depends on the estimate."""

    sites: pl.DataFrame  # one row per site, those that gain most first
    curve: pl.DataFrame  # gain against plugs: `plugs, gain_kwh, gain_kwh_low, gain_kwh_high` [kWh per week]
    sensitivity: pl.DataFrame  # gain of the plan and of the best one under other assumptions [kWh per week]
