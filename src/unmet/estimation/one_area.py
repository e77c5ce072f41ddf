"""Estimate the lost demand of one area of partitioned records, in this process or in a worker."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unmet.arrays import Floats
from unmet.demand.areas import Area, regions_of
from unmet.demand.panel import Panel, part_panel
from unmet.demand.regions import Regions
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.selfcheck import SelfCheck
from unmet.estimation.sensitivity import sensitivity_table
from unmet.estimation.sums import Recovered
from unmet.estimation.tables import site_table, station_table
from unmet.records.partitions import Partition

__all__ = ["AreaEstimate", "AreaTask", "estimate_area"]


@dataclass(frozen=True, slots=True)
class AreaTask:
    """Everything that a process needs to estimate an area; sessions stay on disk."""

    area: Area
    partition: Partition
    stations: pl.DataFrame  # stations of this area
    regions: Regions  # regions of the whole network
    outages: pl.DataFrame
    period: tuple[dt.datetime, dt.datetime]
    time_zone: str
    country: str | None
    booking: str
    options: dict[str, Any]  # options of `LostDemand`


@dataclass(frozen=True, slots=True)
class AreaEstimate:
    """Lost demand of an area: its tables, and the draws that are added to those of other areas."""

    area: Area
    stations: pl.DataFrame  # LostDemand.by_station
    sites: pl.DataFrame  # LostDemand.by_site
    panel_stations: pl.DataFrame  # Panel.stations
    panel_sites: pl.DataFrame  # Panel.sites
    table: pl.DataFrame  # Panel.table
    recovered: Recovered  # with `region_draws`; what is not added up is left out, as it is sent between processes
    error: Floats  # (draws,), error that all sites of the area share
    sensitivity: pl.DataFrame
    summary: dict[str, Any]  # LostDemand.summary
    check: SelfCheck
    turned_away: float  # arrivals expected at full sites
    rejected: pl.DataFrame
    counts: dict[str, int]


class _AreaLostDemand(LostDemand):
    """Lost demand that keeps all draws of region-hours: a region may be in several areas."""

    _keep_regions = True


def estimate_area(task: AreaTask) -> AreaEstimate | None:
    """Estimate the lost demand of an area; None if it has no valid rows."""
    panel, rejected, counts = _panel(task)
    if panel is None:
        return None
    lost = _AreaLostDemand(**(task.options | {"seed": area_seed(task.options["seed"], task.area.number)})).fit(panel)
    whole = lost.recovered_
    return AreaEstimate(
        area=task.area,
        stations=station_table(panel, lost.network_, lost.rows_, whole, lost.interval),
        sites=site_table(panel, lost.network_, lost.rows_, whole, lost.interval),
        panel_stations=panel.stations,
        panel_sites=panel.sites,
        table=panel.table,
        recovered=replace(whole, hours=whole.hours.clear(), station_hours=whole.station_hours.clear(), drivers=None),
        error=lost.ingredients_.common.error,
        sensitivity=sensitivity_table(lost),
        summary=lost.summary(),
        check=lost.self_check_,
        turned_away=float(lost.turned_away_.sum()),
        rejected=rejected,
        counts=counts,
    )


def area_seed(seed: int, area: int) -> int:
    """The seed of an area. The first has the seed of the estimate, so a single area gives the usual result."""
    return seed if area == 0 else int(np.random.SeedSequence([seed, area]).generate_state(1)[0])


def _panel(task: AreaTask) -> tuple[Panel | None, pl.DataFrame, dict[str, int]]:
    """The panel of an area, with the regions, the period and the time zone of the whole network."""
    sessions, rejected, counts = task.partition.read(task.area.cells)
    if sessions.is_empty():
        return None, rejected, counts
    ids = task.stations["station_id"]
    panel = part_panel(
        sessions,
        task.stations,
        regions=regions_of(task.regions, ids),
        time_zone=task.time_zone,
        country=task.country,
        booking=task.booking,
        outages=task.outages.filter(pl.col("station_id").is_in(ids.implode())),
        period=task.period,
    )
    return panel, rejected, counts
