"""Lost demand of a network that does not fit into memory, estimated area by area and added up.

Areas share only the options. Weekly profiles, day effects and the shares of drivers who wait or divert are estimated
separately in each area, and diversions across the border of two areas are not considered.

Demand adds up, and so do draws: draw i of a total is the sum of one draw from each area. Which draws to combine is a
choice. The error that all sites of an area share (above all the error found in other towns) probably has the same sign
in other areas. Draws are therefore combined by the rank of that factor, as if the error were fully correlated:
intervals of totals are too wide rather than too narrow, and intervals of single sites are not affected.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from unmet.arrays import Floats, Integers
from unmet.demand.calendar import hours_between
from unmet.demand.market import Market
from unmet.demand.panel import Panel, PanelTables
from unmet.demand.regions import Regions
from unmet.errors import InputError
from unmet.estimation.one_area import AreaEstimate
from unmet.estimation.selfcheck import Z_90
from unmet.estimation.sums import Recovered, RegionDraws, estimate, region_hour_table
from unmet.estimation.tables import hour_table, region_table, week_table
from unmet.records.formats.base import OUTAGES

__all__ = ["AddedUp", "WholeNetwork", "add_up"]

MAX_NOTES = 12  # highest number of notes on single areas in the summary


@dataclass(frozen=True, slots=True)
class WholeNetwork:
    """Properties of the whole network, common to all areas."""

    stations: pl.DataFrame
    regions: Regions
    areas_of_region: dict[str, int]  # number of areas with stations of a region
    period: tuple[dt.datetime, dt.datetime]
    time_zone: str
    interval: float
    note: str  # sentence about the regions


@dataclass(frozen=True, slots=True)
class AddedUp:
    """Lost demand of the whole network."""

    summary: dict[str, Any]
    stations: pl.DataFrame
    sites: pl.DataFrame
    regions: pl.DataFrame
    weeks: pl.DataFrame
    hours: pl.DataFrame
    sensitivity: pl.DataFrame
    areas: pl.DataFrame  # one row per area: `area, stations, sites, sessions, lost_kwh, ..., self_check`
    rejected: list[pl.DataFrame]
    counts: dict[str, int]


def add_up(estimates: Iterable[AreaEstimate | None], network: WholeNetwork) -> AddedUp:
    """Add up areas in the given order; the table of a region is made once all of its areas are added."""
    sums = _Sums(network)
    for result in estimates:
        if result is not None:
            sums.add(result)
    if not sums.areas:
        raise InputError("None of the rows can be used: see the rows that were set aside.")
    return sums.added_up()


@dataclass(slots=True)
class _Sums:
    """Sums over the areas so far."""

    network: WholeNetwork
    order: Integers | None = None  # order of the first area's draws by the common factor, to which others are aligned
    areas: list[dict[str, Any]] = field(default_factory=list)
    stations: list[pl.DataFrame] = field(default_factory=list)
    sites: list[pl.DataFrame] = field(default_factory=list)
    panel_stations: list[pl.DataFrame] = field(default_factory=list)
    panel_sites: list[pl.DataFrame] = field(default_factory=list)
    tables: list[pl.DataFrame] = field(default_factory=list)
    sensitivity: list[pl.DataFrame] = field(default_factory=list)
    summaries: list[dict[str, Any]] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)  # arrivals expected at full sites
    total_kwh: Floats = field(default_factory=lambda: np.zeros(0))
    total_arrivals: Floats = field(default_factory=lambda: np.zeros(0))
    weeks: dict[str, tuple[Floats, Floats]] = field(default_factory=dict)  # by region, (draws, weeks)
    week_names: pl.Series = field(default_factory=pl.Series)
    open_regions: dict[str, list[RegionDraws]] = field(default_factory=dict)  # regions that still lack areas
    hours: list[pl.DataFrame] = field(default_factory=list)
    rejected: list[pl.DataFrame] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    checks: list[tuple[float, float, int]] = field(default_factory=list)  # log ratio, its spread, arrivals checked

    def add(self, result: AreaEstimate) -> None:
        """Add an area."""
        rank = np.argsort(result.error, kind="stable")
        if self.order is None:
            self.order = rank
            self.total_kwh = self.total_arrivals = np.zeros(len(rank))
        take = np.empty_like(rank)
        take[self.order] = rank  # draw i of the sum takes this draw of the area
        kwh, arrivals = (
            result.recovered.station_kwh.sum(axis=1)[take],
            result.recovered.station_arrivals.sum(axis=1)[take],
        )
        self.total_kwh, self.total_arrivals = self.total_kwh + kwh, self.total_arrivals + arrivals
        self._add_regions(result, take)
        for name in ("stations", "sites", "panel_stations", "panel_sites", "sensitivity"):
            getattr(self, name).append(getattr(result, name))
        self.tables.append(result.table)
        self.summaries.append(result.summary)
        self.weights.append(result.turned_away)
        self.rejected.append(result.rejected)
        for name, count in result.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        if result.check.known:
            self.checks.append((float(np.log(result.check.ratio)), result.check.spread, result.check.recorded))
        self.areas.append(self._row(result, kwh, arrivals))

    def _row(self, result: AreaEstimate, kwh: Floats, arrivals: Floats) -> dict[str, Any]:
        """The row of an area in the table of areas; `kwh` and `arrivals` are its losses, (draws,)."""
        lost = {
            f"lost_{what}{end}": float(value)
            for what, draws in (("kwh", kwh), ("arrivals", arrivals))
            for end, value in zip(("", "_low", "_high"), estimate(draws, self.network.interval), strict=True)
        }
        return {
            "area": result.area.number,
            "stations": result.panel_stations.height,
            "sites": result.panel_sites.height,
            "sessions": int(result.summary["seen_arrivals"]),
            "observed_kwh": float(result.summary["seen_kwh"]),
            **lost,
            "self_check": result.check.ratio if result.check.known else None,
            "waiting": result.summary["waiting"],
            "spill": result.summary["spill"],
        }

    def _add_regions(self, result: AreaEstimate, take: Integers) -> None:
        """Add the draws of an area to those of its regions, in the order `take`."""
        recovered = result.recovered
        self.week_names = recovered.weeks
        for r, drawn in enumerate(recovered.region_draws):
            weeks = recovered.week_kwh[take, r], recovered.week_arrivals[take, r]
            before = self.weeks.get(drawn.region)
            self.weeks[drawn.region] = weeks if before is None else (before[0] + weeks[0], before[1] + weeks[1])
            aligned = RegionDraws(drawn.region, drawn.hour, drawn.arrivals[:, take], drawn.kwh[:, take])
            parts = self.open_regions.setdefault(drawn.region, [])
            parts.append(aligned)
            if len(parts) == self.network.areas_of_region.get(drawn.region, 1):
                self._close_region(drawn.region)

    def _close_region(self, region: str) -> None:
        """Add the hourly table of a region, and free the memory of its draws."""
        parts = self.open_regions.pop(region)
        hours = np.unique(np.concatenate([part.hour for part in parts]))
        draws = parts[0].arrivals.shape[1]
        arrivals, kwh = np.zeros((len(hours), draws)), np.zeros((len(hours), draws))
        for part in parts:
            at = np.searchsorted(hours, part.hour)
            arrivals[at] += part.arrivals
            kwh[at] += part.kwh
        times = hours_between(*self.network.period).gather(hours)
        self.hours.append(region_hour_table(region, times, arrivals, kwh, self.network.interval, 0))

    def added_up(self) -> AddedUp:
        """The tables and the summary of the whole network."""
        for region in list(self.open_regions):  # an area of such a region had no valid rows
            self._close_region(region)
        interval, panel, recovered = self.network.interval, self._panel(), self._recovered()
        return AddedUp(
            self._summary(panel),
            _in_order(self.stations, self.network.stations, "station_id"),
            pl.concat(self.sites),
            region_table(panel, recovered, interval),
            week_table(panel, recovered, interval),
            hour_table(panel, recovered),
            self._sensitivity(),
            pl.DataFrame(self.areas).sort("area"),
            self.rejected,
            self.counts,
        )

    def _panel(self) -> Panel:
        """The panel of the whole network, without its sessions."""
        rows = pl.concat(self.tables)
        calendar = [name for name in rows.columns if name not in ("unique_id", "ds", "y", "arrivals")]
        table = (
            rows.group_by("unique_id", "ds", maintain_order=True)
            .agg(pl.sum("y", "arrivals"), *(pl.first(name) for name in calendar))
            .sort("unique_id", "ds")
        )
        used = self.network.regions.centres.join(table.select("unique_id").unique(), on="unique_id", how="semi")
        regions = Regions(self.network.regions.of_station, used.sort("unique_id"))
        nothing = pl.DataFrame(schema=dict.fromkeys(("station_id", "start", "end", "energy_kwh"), pl.Null))
        tables = PanelTables(
            table=table,
            sessions=nothing,
            stations=pl.concat(self.panel_stations),
            sites=pl.concat(self.panel_sites),
            regions=regions,
            everyone=nothing,
            outages=pl.DataFrame(schema=OUTAGES),
            market=Market(),
            time_zone=self.network.time_zone,
        )
        return Panel.of_tables(tables)

    def _recovered(self) -> Recovered:
        """The sums by region, week and hour; those of stations are in the tables of the areas."""
        names = sorted(self.weeks)
        kwh, arrivals = (np.stack([self.weeks[name][i] for name in names], axis=1) for i in (0, 1))
        empty = np.zeros((len(kwh), 0))
        hours = pl.concat(self.hours).sort("unique_id", "ds")
        return Recovered(
            station_arrivals=empty,
            station_kwh=empty,
            week_arrivals=arrivals,
            week_kwh=kwh,
            weeks=self.week_names,
            hours=hours,
            station_hours=pl.DataFrame(),
            drivers=None,
        )

    def _sensitivity(self) -> pl.DataFrame:
        """Sums over the areas, for each assumption that was evaluated in all of them."""
        rows = pl.concat(self.sensitivity).with_columns(pl.int_range(pl.len()).alias("row"))
        sums = rows.group_by("assumption").agg(
            pl.sum("lost_kwh", "lost_arrivals"), pl.len().alias("areas"), pl.min("row")
        )
        kept = sums.filter(pl.col("areas") == len(self.sensitivity)).sort("row")
        return kept.select("assumption", "lost_kwh", "lost_arrivals")

    def _summary(self, panel: Panel) -> dict[str, Any]:
        """The summary of `LostDemand` for all areas; shares are weighted by the drivers turned away."""
        first, last = panel.period
        weight = np.maximum(np.array(self.weights), 1e-9)

        def mean(name: str) -> float:
            return float(np.average([summary[name] for summary in self.summaries], weights=weight))

        busiest = [found for summary in self.summaries if (found := summary["busiest"]) is not None]
        return {
            "lost_kwh": self._interval(self.total_kwh),
            "lost_arrivals": self._interval(self.total_arrivals),
            "seen_kwh": float(sum(summary["seen_kwh"] for summary in self.summaries)),
            "seen_arrivals": int(sum(summary["seen_arrivals"] for summary in self.summaries)),
            "self_check": self._self_check(),
            "waiting": mean("waiting"),
            "spill": mean("spill"),
            "busiest": max(busiest, key=lambda found: found["taken"] / max(found["capacity"], 1), default=None),
            "sites": panel.sites.height,
            "stations": panel.stations.height,
            "regions": panel.regions.centres.height,
            "areas": len(self.areas),
            "first_hour": f"{first:%Y-%m-%dT%H:%MZ}",
            "last_hour": f"{last - dt.timedelta(hours=1):%Y-%m-%dT%H:%MZ}",
            "hours": panel.hours,
            "interval": self.network.interval,
            "components": sorted({name for summary in self.summaries for name in summary["components"]}),
            **{name: mean(name) for name in ("from_prior", "prior_shift", "prior_interval")},
            "notes": self._notes(),
        }

    def _notes(self) -> list[str]:
        """The first notes on single areas, with the number of the area if there are several."""
        if len(self.summaries) == 1:
            return [*self.summaries[0]["notes"], self.network.note]
        found = [
            f"Area {row['area']}: {note}"
            for row, summary in zip(self.areas, self.summaries, strict=True)
            for note in summary["notes"]
        ]
        separately = (
            f"Estimated in {len(self.areas)} separate areas: diversions across their borders are not considered, and "
            "intervals of totals assume that the areas share their errors."
        )
        hidden = len(found) - MAX_NOTES
        more = [f"There are {hidden:,} more notes on single areas."] if hidden > 0 else []
        return [separately, *found[:MAX_NOTES], *more, self.network.note]

    def _self_check(self) -> dict[str, float] | None:
        """The ratio over all areas: a mean of log ratios, weighted by the arrivals that were checked."""
        if not self.checks:
            return None
        ratio, spread, recorded = (np.array(values, float) for values in zip(*self.checks, strict=True))
        share = recorded / recorded.sum()
        centre, width = float(share @ ratio), Z_90 * float(np.sqrt((share**2) @ spread**2))
        return {name: float(np.exp(centre + end * width)) for name, end in (("ratio", 0), ("low", -1), ("high", 1))}

    def _interval(self, draws: Floats) -> dict[str, float]:
        values = estimate(draws, self.network.interval)
        return {name: float(value) for name, value in zip(("mean", "low", "high"), values, strict=True)}


def _in_order(parts: list[pl.DataFrame], stations: pl.DataFrame, key: str) -> pl.DataFrame:
    """Rows of all parts in the order of the station table."""
    return stations.select(key).join(pl.concat(parts), on=key, how="inner", maintain_order="left")
