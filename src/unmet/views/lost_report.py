"""The contents of pages and summaries of lost demand, from a fitted estimator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from unmet import __version__
from unmet.demand.panel import Panel
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.notes import FAR_OFF
from unmet.estimation.panel_table import panel_table
from unmet.estimation.sensitivity import sensitivity_table
from unmet.estimation.tables import hour_table, region_table, site_table, station_table, week_table
from unmet.views.lost_tables import TOP_SITES, LostTables

__all__ = ["TOP_SITES", "LostReport", "plain_values"]


@dataclass(frozen=True)
class LostReport(LostTables):
    """Lost demand of a fitted estimator, ready to be written and drawn."""

    lost: LostDemand

    @classmethod
    def of(cls, lost: LostDemand) -> LostReport:
        """The report of a fitted estimator."""
        panel, found = lost.panel_, lost.recovered_
        settings = {
            "version": __version__,
            "seed": lost.seed,
            "draws": lost.draws,
            "energies": lost.energies,
            "time_zone": panel.time_zone,
            "given": {"waiting": lost.waiting, "spill": lost.spill},
        }
        return cls(
            plain_values(lost.summary()) | settings,
            station_table(panel, lost.network_, lost.rows_, found, lost.interval),
            site_table(panel, lost.network_, lost.rows_, found, lost.interval),
            region_table(panel, found, lost.interval),
            week_table(panel, found, lost.interval),
            sensitivity_table(lost),
            lost,
        )

    @cached_property
    def table(self) -> pl.DataFrame:
        """The panel's table with columns of lost demand; computed on first access, because it may be large."""
        return panel_table(self.lost)

    @cached_property
    def hours(self) -> pl.DataFrame:
        """One row per region and hour."""
        return hour_table(self.lost.panel_, self.lost.recovered_)

    @property
    def panel(self) -> Panel:
        """The records."""
        return self.lost.panel_

    @property
    def far_off(self) -> bool:
        """Whether the self-check says that the estimate is doubtful."""
        check = self.lost.self_check_
        return bool(check.known and check.excess >= FAR_OFF)

    @property
    def elsewhere_kwh(self) -> float:
        """Energy that is expected to have gone to competitors [kWh]."""
        market = self.panel.market
        alone = market.operator is None and market.share is None
        return 0.0 if alone else float(self.table["elsewhere_kwh"].sum())

    def for_machines(self) -> dict[str, Any]:
        """The summary, with the sites that lost the most and the estimate under other assumptions."""
        measures = [name for name in self.sites.columns if name.startswith("lost_")]
        worst = self.ranked_sites().filter(pl.col("lost_kwh") > 0).head(TOP_SITES)
        share = self.lost_share()
        return self.summary | {
            "doubtful": self.far_off,
            "elsewhere_kwh": round(self.elsewhere_kwh, 4),
            "lost_share": {end: round(value, 6) for end, value in zip(("mean", "low", "high"), share, strict=True)},
            "most_lost": plain_values(worst.select("site_id", "name", "capacity", "full_share", *measures).to_dicts()),
            "sensitivity": plain_values(self.sensitivity.to_dicts()),
        }


def plain_values(value: Any) -> Any:
    """The value for JSON: plain numbers with four decimals, and None for NaN and infinity."""
    if isinstance(value, dict):
        return {name: plain_values(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(part) for part in value]
    if isinstance(value, float | np.floating):
        return round(float(value), 4) if np.isfinite(value) else None
    return value
