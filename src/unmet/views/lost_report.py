"""What pages and summaries of lost demand show: the tables of a fitted estimator, and the answer in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from unmet.demand.panel import Panel
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.notes import FAR_OFF

__all__ = ["MOST", "LostReport"]

MOST = 5
"""Sites that are named first."""
WEEK_HOURS = 7 * 24


@dataclass(frozen=True)
class LostReport:
    """Lost demand, ready to be written and drawn; every table comes from the same draws."""

    lost: LostDemand
    summary: dict[str, Any]
    stations: pl.DataFrame
    sites: pl.DataFrame
    regions: pl.DataFrame
    weeks: pl.DataFrame
    sensitivity: pl.DataFrame

    @classmethod
    def of(cls, lost: LostDemand) -> LostReport:
        """The report of a fitted estimator."""
        return cls(
            lost,
            _plain(lost.summary()) | {"seed": lost.seed, "draws": lost.draws},
            lost.by_station(),
            lost.by_site(),
            lost.by_region(),
            lost.by_week(),
            lost.sensitivity(),
        )

    @cached_property
    def table(self) -> pl.DataFrame:
        """The panel's table with what it does not show; made when it is first asked for, because it may be large."""
        return self.lost.panel_table()

    @property
    def panel(self) -> Panel:
        """The records."""
        return self.lost.panel_

    @property
    def interval(self) -> float:
        """Probability that an interval contains the truth."""
        return float(self.summary["interval"])

    @property
    def far_off(self) -> bool:
        """Whether the self-check says that the estimate is doubtful."""
        check = self.lost.self_check_
        return bool(check.known and check.excess >= FAR_OFF)

    def warning(self) -> str:
        """What must be read before the number; empty if nothing must."""
        return str(self.summary["notes"][0]) if self.far_off else ""

    def notes(self) -> list[str]:
        """All other notes."""
        return [str(note) for note in self.summary["notes"][1 if self.far_off else 0 :]]

    def lost_share(self) -> tuple[float, float, float]:
        """Lost energy over all energy wanted at these sites: mean, low and high."""
        seen, lost = self.summary["seen_kwh"], self.summary["lost_kwh"]
        mean, low, high = (_share(lost[end], seen) for end in ("mean", "low", "high"))
        return mean, low, high

    @property
    def elsewhere_kwh(self) -> float:
        """Energy that is expected to have gone to competitors [kWh]."""
        market = self.panel.market
        alone = market.operator is None and market.share is None
        return 0.0 if alone else float(self.table["elsewhere_kwh"].sum())

    def ranked_sites(self) -> pl.DataFrame:
        """Sites that lost most first, with `label` (a name that no other site has) and the share that they lost."""
        name = pl.col("name").fill_null(pl.col("site_id"))
        twice = name.is_duplicated()
        label = pl.when(twice).then(pl.format("{} ({})", name, "site_id")).otherwise(name)
        return with_lost_share(self.sites.with_columns(label=label)).sort(
            "lost_kwh", "site_id", descending=[True, False]
        )

    def ranked_regions(self) -> pl.DataFrame:
        """Regions that lost most first, with the share that they lost."""
        return with_lost_share(self.regions).sort("lost_kwh", "unique_id", descending=[True, False])

    def cut_weeks(self) -> set[Any]:
        """The Mondays of weeks of which the panel holds a part only."""
        hours = self.panel.table["ds"].unique()
        monday = hours.dt.convert_time_zone(self.panel.time_zone).dt.truncate("1w").dt.date()
        counts = monday.alias("week").value_counts(name="hours")
        return set(counts.filter(pl.col("hours") < WEEK_HOURS - 1)["week"])  # clocks go forward by an hour

    def for_machines(self) -> dict[str, Any]:
        """The summary with the sites that lost most and the estimate under other assumptions."""
        measures = [name for name in self.sites.columns if name.startswith("lost_")]
        worst = self.ranked_sites().filter(pl.col("lost_kwh") > 0).head(MOST)
        share = self.lost_share()
        return self.summary | {
            "elsewhere_kwh": round(self.elsewhere_kwh, 4),
            "lost_share": {end: round(value, 6) for end, value in zip(("mean", "low", "high"), share, strict=True)},
            "most_lost": _plain(worst.select("site_id", "name", "capacity", "full_share", *measures).to_dicts()),
            "sensitivity": _plain(self.sensitivity.to_dicts()),
        }


def with_lost_share(table: pl.DataFrame) -> pl.DataFrame:
    """The table with `lost_share`, `_low` and `_high`: lost energy over lost and observed energy."""
    shares = [
        pl.when(pl.col(name) > 0)
        .then(pl.col(name) / (pl.col(name) + pl.col("observed_kwh")))
        .otherwise(0.0)
        .alias(name.replace("lost_kwh", "lost_share"))
        for name in ("lost_kwh", "lost_kwh_low", "lost_kwh_high")
    ]
    return table.with_columns(shares)


def _share(lost: float, seen: float) -> float:
    return lost / (lost + seen) if lost > 0 else 0.0


def _plain(value: Any) -> Any:
    """The value for JSON: plain numbers, no more digits than anybody reads, and null for what is not a number."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float | np.floating):
        return round(float(value), 4) if np.isfinite(value) else None
    return value
