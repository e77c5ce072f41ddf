"""Panel: an operator's records of a period with their context, as estimators and models read them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import polars as pl

from unmet.arrays import Integers
from unmet.demand.booking import Booking, book, spread
from unmet.demand.calendar import HOUR_MS, hour_of_week, hours_between, whole_days, with_calendar
from unmet.demand.capacity import infer_capacity
from unmet.demand.given import GivenRecords, read_given
from unmet.demand.market import Market
from unmet.demand.openings import absent_plugs
from unmet.demand.regions import Regions, group_stations
from unmet.demand.sites import find_sites, merge_sites
from unmet.demand.spells import group_visits
from unmet.errors import InputError
from unmet.frames import POLARS, Frame, to_frame_type
from unmet.memory import require_bytes
from unmet.records.formats.base import OUTAGES
from unmet.records.outages import merge_outages
from unmet.shown import Shown
from unmet.zones import checked_zone

__all__ = ["Panel", "PanelTables", "part_panel", "station_rows"]

BYTES_PER_ROW = 350  # memory per region and hour: the table while it is built, and posterior draws


@dataclass(frozen=True, slots=True, repr=False)
class PanelTables:
    """The tables of a panel, as Polars frames whatever library the records came in."""

    table: pl.DataFrame
    """Observed demand: `unique_id` (region), `ds` (hour, UTC), `y` [kWh], `arrivals, hour, weekday, holiday`."""
    sessions: pl.DataFrame
    """The sessions that the panel counts: `station_id, start, end, energy_kwh`, perhaps `plug_id, user_id, charged`."""
    stations: pl.DataFrame
    """`station_id, name, lat, lon, power_kw, plugs, capacity, capacity_from, capacity_sure, site_id, unique_id,
    sessions, energy_kwh`."""
    sites: pl.DataFrame
    """`site_id, name, lat, lon, capacity, capacity_sure, stations`."""
    regions: Regions
    everyone: pl.DataFrame  # `station_id, lat, lon, plugs`: stations of all operators if the market names one, else own
    outages: pl.DataFrame  # `station_id, plug_id, start, end`: plugs out of order, or not installed
    market: Market
    time_zone: str
    country: str | None = None
    notes: tuple[str, ...] = field(default=())
    frame_type: str = POLARS
    """Library of the data frames that came in, in which tables are returned."""


class Panel(PanelTables, Shown):
    """The sessions, stations, sites and regions of a period, and the hourly demand that models read.

    Args:
        records: what `unmet.read_sessions` or `unmet.simulate` returned, or any data frame of sessions with
            `station_id, start, end, energy_kwh` [kWh], perhaps `plug_id, user_id, charged`. A car occupies its plug
            until the session ends, charging or idle.
        stations: any data frame with `station_id`, perhaps `lat, lon` [degree], `power_kw` [kW], `plugs, name,
            operator`. By default the stations of the records, or those that the sessions name.
        regions: number of regions, `auto`, `station`, a GeoJSON file of areas, or the `regions` of another panel.
        time_zone: time zone of the hours of the week, such as Europe/London; by default as in the records, else UTC.
        country: country of the holidays, such as DK or US-CA.
        booking: how energy is booked: at the hour of `arrival`, or by `delivery` over the hours of charging.
        outages: data frame with `station_id, start, end` of plugs out of order, perhaps `plug_id`.
        market: market share of this operator; by default it serves all drivers.

    Returns:
        A panel of whole days (UTC), from the start of the first session to the start of the last. Its table has one row
        per region and hour with observed demand `y` [kWh], the y of the paper: sessions booked at their arrival.

    Example:
        >>> sessions = pl.DataFrame({
        ...     "station_id": ["north", "south"],
        ...     "start": [dt.datetime(2024, 5, 6, 8), dt.datetime(2024, 5, 6, 9)],
        ...     "end": [dt.datetime(2024, 5, 6, 10), dt.datetime(2024, 5, 6, 9, 30)],
        ...     "energy_kwh": [14.0, 6.5],
        ... })
        >>> Panel(sessions, regions="station", time_zone="Europe/London")
        Panel(2 sessions, 2 stations at 2 sites, 2 regions, 2024-05-06 to 2024-05-06, Europe/London)
    """

    __slots__ = ()

    def __init__(
        self,
        records: Any,
        stations: Any = None,
        *,
        regions: str | int | Regions = "10",
        time_zone: str | None = None,
        country: str | None = None,
        booking: Booking | str = Booking.ARRIVAL,
        outages: Any = None,
        market: Market | None = None,
    ) -> None:
        given = read_given(records, stations, outages, time_zone)
        _fill(self, _build_tables(given, regions, country, _booking(booking), market or Market()))

    @classmethod
    def of_tables(cls, tables: PanelTables) -> Panel:
        """A panel from existing tables, such as stored ones."""
        panel = cls.__new__(cls)
        _fill(panel, tables)
        return panel

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
        """Start of the first hour and end of the last (UTC)."""
        first, last = self.table.select(pl.col("ds").min().alias("a"), pl.col("ds").max().alias("b")).row(0)
        return first, last + dt.timedelta(hours=1)

    @property
    def hours(self) -> int:
        """Number of hours of the period."""
        first, last = self.period
        return int((last - first).total_seconds() // 3600)

    def to_frame(self) -> Frame:
        """Observed demand by region and hour, as a data frame of the library that the sessions came in.

        Returns:
            `unique_id` (region), `ds` (hour, UTC), `y` [kWh], `arrivals, hour, weekday, holiday`.
        """
        return to_frame_type(self.table, self.frame_type)

    def save(self, folder: Any, *, overwrite: bool = False) -> None:
        """Write the panel into a folder."""
        from unmet.demand.stored import save_panel

        save_panel(self, folder, overwrite=overwrite)

    @staticmethod
    def load(folder: Any) -> Panel:
        """Read a panel from a folder that `save` or `unmet panel` wrote."""
        from unmet.demand.stored import load_panel

        return load_panel(folder)


def _fill(panel: Panel, tables: PanelTables) -> None:
    """Set the fields of a panel, which is frozen, to those of `tables`."""
    PanelTables.__init__(panel, *(getattr(tables, each.name) for each in fields(tables)))


def part_panel(
    sessions: pl.DataFrame,
    stations: pl.DataFrame,
    *,
    regions: Regions,
    time_zone: str,
    country: str | None,
    booking: str,
    outages: pl.DataFrame,
    period: tuple[dt.datetime, dt.datetime],
) -> Panel:
    """The panel of some of the records, over the period of all records, without notes."""
    given = read_given(sessions, stations, outages, time_zone)
    return Panel.of_tables(
        replace(_build_tables(given, regions, country, _booking(booking), Market(), period), notes=())
    )


def _build_tables(
    given: GivenRecords,
    regions: str | int | Regions,
    country: str | None,
    booking: Booking,
    market: Market,
    period: tuple[dt.datetime, dt.datetime] | None = None,
) -> PanelTables:
    """Build all tables of a panel; each step needs the ones before it."""
    listed, rows = given.stations, given.sessions
    own = market.own_stations(listed)
    kept = rows.join(own.select("station_id"), on="station_id", how="semi", maintain_order="left")
    if kept.is_empty():
        raise InputError("There are no sessions to build a panel from: see the rows that were set aside.")
    period = period or whole_days(kept["start"])
    hours, first_ms = hours_between(*period), int(period[0].timestamp() * 1000)
    station, start, end = station_rows(kept, own)
    visits = group_visits(station, start, end, np.arange(len(start)), own.height)
    week = hour_of_week(hours, checked_zone(given.time_zone)).to_numpy().astype(np.int64)
    known = infer_capacity(own, kept, visits, week, first_ms)
    known = known.with_columns(find_sites(known, kept))
    with_plugs = known.with_columns(pl.coalesce("plugs", "capacity").cast(pl.Int32).alias("plugs"))
    everyone = market.all_stations(listed, with_plugs)
    grouped, regions_note = _regions(regions, everyone)
    require_bytes(
        grouped.centres.height * len(hours) * BYTES_PER_ROW,
        f"A panel of {grouped.centres.height:,} regions and {len(hours):,} hours",
        "ask for fewer regions (--regions), or a shorter period (--since, --until)",
    )
    # NumPy adds in a fixed order; the last digits of sums by Polars depend on its number of threads.
    energy = np.bincount(station, kept["energy_kwh"].to_numpy(), minlength=own.height)
    known = known.join(grouped.of_station, on="station_id", how="left", maintain_order="left").with_columns(
        sessions=pl.Series(np.bincount(station, minlength=own.height).astype(np.uint32)), energy_kwh=pl.Series(energy)
    )
    absent = absent_plugs(kept, period[0], len(hours) * HOUR_MS)
    outages = absent if given.outages is None else merge_outages(pl.concat([_with_plug_ids(given.outages), absent]))
    return PanelTables(
        table=_table(kept, known, grouped, hours, booking, given.time_zone, country),
        sessions=kept,
        stations=known,
        sites=merge_sites(known),
        regions=grouped,
        everyone=everyone,
        outages=outages.join(known.select("station_id"), on="station_id", how="semi"),
        market=market,
        time_zone=given.time_zone,
        country=country,
        notes=(regions_note, *market.notes(listed, known)),
        frame_type=given.frame_type,
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


def _with_plug_ids(rows: pl.DataFrame) -> pl.DataFrame:
    """Outages with all columns; `plug_id` is null if it was not given."""
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
    grid = (len(names), int(hours[0].timestamp() * 1000), len(hours))  # regions, start [ms], hours
    energy = sessions["energy_kwh"].to_numpy(writable=True)
    if booking == Booking.ARRIVAL:
        y = book(region[station], start, energy, *grid)
    else:
        until = sessions["charged"].fill_null(sessions["end"]) if "charged" in sessions.columns else sessions["end"]
        y = spread(region[station], start, until.dt.epoch("ms").to_numpy(writable=True), energy, *grid)
    table = pl.DataFrame(
        {
            "unique_id": names.gather(np.repeat(np.arange(len(names)), len(hours))),
            "ds": pl.concat([hours] * len(names)),
            "y": y.ravel(),
            "arrivals": book(region[station], start, np.ones(len(start)), *grid).ravel().astype(np.int64),
        }
    )
    return with_calendar(table, time_zone, country)
