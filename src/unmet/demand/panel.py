"""Panel: an operator's records of a period, with all that is known about them; what models and estimators read."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.demand.booking import Booking, book, spread
from unmet.demand.calendar import HOUR_MS, hour_of_week, hours_between, whole_days, with_calendar
from unmet.demand.capacity import infer_capacity
from unmet.demand.gate import checked_sessions, checked_stations
from unmet.demand.market import Market
from unmet.demand.openings import absent_plugs
from unmet.demand.regions import Regions, group_stations
from unmet.demand.sites import find_sites, merge_sites
from unmet.demand.spells import group_visits
from unmet.errors import InputError
from unmet.records.formats.base import OUTAGES
from unmet.records.outages import merge_outages
from unmet.shown import Shown
from unmet.zones import checked_zone

__all__ = ["Panel", "build_panel", "station_rows"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, repr=False)
class Panel(Shown):
    """Sessions, stations, sites and regions of a period, and the demand table that models read."""

    table: pl.DataFrame
    """Observed demand: `unique_id` (region), `ds` (hour, UTC), `y` [kWh], `arrivals, hour, weekday, holiday`."""
    sessions: pl.DataFrame
    """`station_id, start, end, energy_kwh`, perhaps `plug_id, user_id, charged`: those that the panel counts."""
    stations: pl.DataFrame
    """`station_id, name, lat, lon, power_kw, plugs, capacity, capacity_from, capacity_sure, site_id, unique_id,
    sessions, energy_kwh`."""
    sites: pl.DataFrame
    """`site_id, name, lat, lon, capacity, capacity_sure, stations`."""
    regions: Regions
    everyone: pl.DataFrame  # `station_id, lat, lon, plugs`: stations of all operators, where the market has others
    outages: pl.DataFrame  # `station_id, plug_id, start, end`: plugs out of order, or not there yet
    market: Market
    time_zone: str
    country: str | None = None
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        first, last = self.period
        return (
            f"Panel({self.sessions.height:,} sessions, {self.stations.height:,} stations at {self.sites.height:,} "
            f"sites, {self.regions.centres.height} regions, "
            f"{first:%Y-%m-%d} to {last - dt.timedelta(hours=1):%Y-%m-%d}, "
            f"{self.time_zone})"
        )

    @property
    def period(self) -> tuple[dt.datetime, dt.datetime]:
        """First hour, and the hour after the last."""
        first, last = self.table.select(pl.col("ds").min().alias("a"), pl.col("ds").max().alias("b")).row(0)
        return first, last + dt.timedelta(hours=1)

    @property
    def hours(self) -> int:
        """Hours of the period."""
        first, last = self.period
        return int((last - first).total_seconds() // 3600)

    def save(self, folder: Any, *, overwrite: bool = False) -> None:
        """Write the panel into a folder."""
        from unmet.demand.stored import save_panel

        save_panel(self, folder, overwrite=overwrite)

    @staticmethod
    def load(folder: Any) -> Panel:
        """Read a panel from a folder that `save` or `unmet panel` wrote."""
        from unmet.demand.stored import load_panel

        return load_panel(folder)


def build_panel(
    sessions: Any,
    stations: Any,
    *,
    regions: str | int | Regions = "10",
    time_zone: str = "UTC",
    country: str | None = None,
    booking: Booking | str = Booking.ARRIVAL,
    outages: pl.DataFrame | None = None,
    market: Market | None = None,
) -> Panel:
    """Make a panel from sessions and their stations.

    Args:
        sessions: any frame with `station_id, start, end, energy_kwh`, perhaps `plug_id, user_id, charged`. A car
            occupies a plug until its session ends, charging or idle.
        stations: any frame with `station_id`, perhaps `lat, lon, power_kw, plugs, name, operator`.
        regions: their number, `auto`, `station`, a GeoJSON file of areas, or regions of another panel.
        time_zone: of the hours of the week.
        country: for holidays, as DK or US-CA.
        booking: of energy, at the hour of `arrival` or by `delivery`.
        outages: `station_id, start, end` of plugs out of order, perhaps `plug_id`.
        market: which part of the demand this operator could have seen at all.

    Returns:
        A panel of the days in UTC from the first session's start to the last one's.
    """
    booking, market = _booking(booking), market or Market()
    listed, rows = checked_stations(stations), checked_sessions(sessions)
    own = market.own_stations(listed)
    kept = rows.join(own.select("station_id"), on="station_id", how="semi", maintain_order="left")
    if kept.is_empty():
        raise InputError("There is no session to make a panel of: see the rows that were set aside.")
    period = whole_days(kept["start"])
    hours, first_ms = hours_between(*period), int(period[0].timestamp() * 1000)
    station, start, end = station_rows(kept, own)
    visits = group_visits(station, start, end, np.arange(len(start)), own.height)
    week = hour_of_week(hours, checked_zone(time_zone)).to_numpy().astype(np.int64)
    known = infer_capacity(own, kept, visits, week, first_ms)
    known = known.with_columns(find_sites(known, kept))
    charging = known.with_columns(pl.coalesce("plugs", "capacity").cast(pl.Int32).alias("plugs"))
    everyone = market.all_stations(listed, charging)
    grouped, said = _regions(regions, everyone)
    known = known.join(grouped.of_station, on="station_id", how="left", maintain_order="left").join(
        kept.group_by("station_id", maintain_order=True).agg(sessions=pl.len(), energy_kwh=pl.sum("energy_kwh")),
        on="station_id", how="left", maintain_order="left",
    ).with_columns(pl.col("sessions", "energy_kwh").fill_null(0))  # fmt: skip
    absent = absent_plugs(kept, period[0], len(hours) * HOUR_MS)
    broken = absent if outages is None else merge_outages(pl.concat([_of_plugs(outages), absent]))
    return Panel(
        _table(kept, known, grouped, hours, booking, time_zone, country),
        kept,
        known,
        merge_sites(known),
        grouped,
        everyone,
        broken.join(known.select("station_id"), on="station_id", how="semi"),
        market,
        time_zone,
        country,
        (said, *market.notes(listed, known)),
    )


def station_rows(sessions: pl.DataFrame, stations: pl.DataFrame) -> tuple[Integers, Integers, Integers]:
    """Row of the station, start and end [ms] of each session."""
    rows = pl.Series(np.arange(stations.height))
    station = sessions["station_id"].replace_strict(stations["station_id"], rows, return_dtype=pl.Int64)
    start, end = (sessions[name].dt.epoch("ms").to_numpy(writable=True) for name in ("start", "end"))
    return station.to_numpy(writable=True), start, end


def _booking(name: Booking | str) -> Booking:
    try:
        return Booking(name)
    except ValueError:
        raise InputError(f"There is no booking {name!r}: give arrival or delivery.") from None


def _regions(regions: str | int | Regions, everyone: pl.DataFrame) -> tuple[Regions, str]:
    if isinstance(regions, Regions):
        return regions, f"Stations are in {regions.centres.height} given regions."
    return group_stations(everyone, str(regions))


def _of_plugs(rows: pl.DataFrame) -> pl.DataFrame:
    """Outages with all their columns; those without a plug's name have none."""
    if "plug_id" not in rows.columns:
        rows = rows.with_columns(pl.lit(None, pl.String).alias("plug_id"))
    return rows.select(list(OUTAGES)).cast(pl.Schema(OUTAGES))


def _table(
    sessions: pl.DataFrame,
    stations: pl.DataFrame,
    regions: Regions,
    hours: pl.Series,
    booking: Booking,
    time_zone: str,
    country: str | None,
) -> pl.DataFrame:
    """Observed demand and arrivals of every region and hour."""
    names = regions.centres["unique_id"]
    rows = pl.Series(np.arange(len(names)))
    region = stations["unique_id"].replace_strict(names, rows, return_dtype=pl.Int64).to_numpy()
    station, start, _ = station_rows(sessions, stations)
    frame = (len(names), int(hours[0].timestamp() * 1000), len(hours))
    energy = sessions["energy_kwh"].to_numpy(writable=True)
    if booking == Booking.ARRIVAL:
        y = book(region[station], start, energy, *frame)
    else:
        until = sessions["charged"].fill_null(sessions["end"]) if "charged" in sessions.columns else sessions["end"]
        y = spread(region[station], start, until.dt.epoch("ms").to_numpy(writable=True), energy, *frame)
    table = pl.DataFrame(
        {
            "unique_id": names.gather(np.repeat(np.arange(len(names)), len(hours))),
            "ds": pl.concat([hours] * len(names)),
            "y": y.ravel(),
            "arrivals": book(region[station], start, np.ones(len(start)), *frame).ravel().astype(np.int64),
        }
    )
    return with_calendar(table, time_zone, country)
