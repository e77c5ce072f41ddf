"""Tables of a plan, in memory and in run folders."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

__all__ = ["PlanTables"]


@dataclass(frozen=True, slots=True)
class PlanTables:
    """Where plugs are added, the gain by number of plugs, and its sensitivity to assumptions."""

    sites: pl.DataFrame  # one row per site, highest gain first
    curve: pl.DataFrame  # gain against plugs: `plugs, gain_kwh, gain_kwh_low, gain_kwh_high` [kWh per week]
    sensitivity: pl.DataFrame  # gain of the plan, and of the best one, under other assumptions [kWh per week]
