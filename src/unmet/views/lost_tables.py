"""Lost demand as the tables that figures and pages read, whether just estimated or read from a run folder."""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from unmet.views.figures.map_layers import MapLayers
from unmet.views.theme import short

__all__ = ["TOP_SITES", "LostTables", "with_lost_share"]

TOP_SITES = 5
"""Number of sites that are named in answers and tables."""
WEEK_HOURS = 7 * 24
HOURS_OF_WEEK = pl.DataFrame({"week_hour": range(WEEK_HOURS)}, schema={"week_hour": pl.Int64})


@dataclass(frozen=True)
class LostTables:
    """Lost demand by site, region, week and hour, with its summary; all from the same draws."""

    summary: dict[str, Any]
    stations: pl.DataFrame
    sites: pl.DataFrame
    regions: pl.DataFrame
    weeks: pl.DataFrame
    sensitivity: pl.DataFrame
    layers: MapLayers | None = field(default=None, kw_only=True)
    """Lines and outlines to draw under its map."""

    @property
    @abstractmethod
    def hours(self) -> pl.DataFrame:
        """One row per region and hour (UTC): `unique_id, ds, observed_kwh, lost_kwh, ...`; may be large."""

    @property
    @abstractmethod
    def far_off(self) -> bool:
        """Whether the self-check says that the estimate is doubtful."""

    @property
    @abstractmethod
    def elsewhere_kwh(self) -> float:
        """Energy that is expected to have gone to competitors [kWh]."""

    @property
    def time_zone(self) -> str:
        """Name of the local time zone."""
        return str(self.summary.get("time_zone") or "UTC")

    @property
    def interval(self) -> float:
        """Probability that an interval contains the truth."""
        return float(self.summary["interval"])

    @property
    def period(self) -> tuple[dt.datetime, dt.datetime]:
        """The first hour, and the end of the last (UTC)."""
        first, last = (
            dt.datetime.strptime(self.summary[name], "%Y-%m-%dT%H:%MZ").replace(tzinfo=dt.UTC)
            for name in ("first_hour", "last_hour")
        )
        return first, last + dt.timedelta(hours=1)

    def warning(self) -> str:
        """A warning that must be read before the estimate; empty if there is none."""
        return str(self.summary["notes"][0]) if self.far_off else ""

    def notes(self) -> list[str]:
        """All notes except the warning."""
        return [str(note) for note in self.summary["notes"][1 if self.far_off else 0 :]]

    def lost_share(self) -> tuple[float, float, float]:
        """Lost energy as a share of all energy wanted at these sites: mean, low and high."""
        seen, lost = self.summary["seen_kwh"], self.summary["lost_kwh"]
        mean, low, high = (_share(lost[end], seen) for end in ("mean", "low", "high"))
        return mean, low, high

    def ranked_sites(self) -> pl.DataFrame:
        """Sites by lost energy, largest first, with `label` (a unique name) and the share of demand lost."""
        name = pl.col("name").fill_null(pl.col("site_id"))
        label = pl.when(name.is_duplicated()).then(pl.format("{} ({})", name, "site_id")).otherwise(name)
        return with_lost_share(self.sites.with_columns(label=label)).sort(
            "lost_kwh", "site_id", descending=[True, False]
        )

    def ranked_regions(self) -> pl.DataFrame:
        """Regions by lost energy, largest first, with the share of demand lost."""
        return with_lost_share(self.regions).sort("lost_kwh", "unique_id", descending=[True, False])

    def region_places(self, max_length: int = 44) -> dict[str, str]:
        """Where each region is: around its busiest station, or at its only one, in at most `max_length` letters.

        Regions named after that station are left out.
        """
        name = pl.col("name").fill_null(pl.col("station_id"))
        order = self.stations.sort("arrivals", "station_id", descending=[True, False])
        busiest = order.group_by("unique_id", maintain_order=True).agg(name.first().alias("place"), stations=pl.len())
        return {
            region: short(place, max_length) if number == 1 else f"around {short(place, max_length)}"
            for region, place, number in busiest.iter_rows()
            if place != region
        }

    def partial_weeks(self) -> set[Any]:
        """The Mondays of weeks that the records cover only in part."""
        first, last = self.period
        hours = pl.datetime_range(first, last, "1h", time_zone="UTC", closed="left", eager=True)
        monday = hours.dt.convert_time_zone(self.time_zone).dt.truncate("1w").dt.date()
        counts = monday.alias("week").value_counts(name="hours")
        return set(counts.filter(pl.col("hours") < WEEK_HOURS - 1)["week"])  # one hour is lost when clocks go forward

    @cached_property
    def week_hours(self) -> pl.DataFrame:
        """Mean lost and recorded energy by local hour of the week [kWh].

        Returns:
            `week_hour` (0 to 167, from Monday at midnight), `lost_kwh, observed_kwh`; null for hours without records.
        """
        local = pl.col("ds").dt.convert_time_zone(self.time_zone)
        week_hour = ((local.dt.weekday().cast(pl.Int64) - 1) * 24 + local.dt.hour().cast(pl.Int64)).alias("week_hour")
        by_hour = self.hours.group_by("ds").agg(pl.sum("lost_kwh"), pl.sum("observed_kwh"))
        mean = by_hour.group_by(week_hour).agg(pl.mean("lost_kwh"), pl.mean("observed_kwh"))
        return HOURS_OF_WEEK.join(mean, on="week_hour", how="left", maintain_order="left")


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
