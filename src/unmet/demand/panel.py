"""Panel: the table region x hour that every model reads, from an operator's sessions."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.demand.booking import Booking, book, spread
from unmet.demand.calendar import hour_of_week, hours_between, whole_days, with_calendar
from unmet.demand.energies import BLOCK, station_energies
from unmet.demand.exposure import CENSORED_FROM, Exposure, Seen, fit_exposure, lost_spread, region_exposure
from unmet.demand.market import Market
from unmet.demand.notes import panel_notes
from unmet.demand.occupancy import (
    HOUR_MS,
    RETAKEN_MS,
    Releases,
    Stays,
    full_hours,
    releases_from_full,
    stays_by_station,
)
from unmet.demand.openings import DAY_MS, absent_plugs, openings
from unmet.demand.plugs import count_plugs
from unmet.demand.regions import Regions, group_stations
from unmet.demand.unserved import Unserved
from unmet.errors import InputError
from unmet.geo import haversine_km
from unmet.records.formats.base import OUTAGES
from unmet.records.outages import merge_outages
from unmet.zones import checked_zone

__all__ = ["UNSEEN", "Panel", "build_panel"]

UNSEEN = ("exposure", "turnout", "exposure_spread", "lost_spread", "session_kwh")
"""Columns of a panel that say what was not seen."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Panel:
    """A demand panel, and what it was made from."""

    table: pl.DataFrame
    """`unique_id, ds, y, arrivals, censored`, what was not seen (`UNSEEN`), `hour, weekday,
    holiday`."""
    stations: pl.DataFrame
    """And `plugs, plugs_from, plugs_sure, unique_id, sessions, energy_kwh, full_share, lost_arrivals, lost_kwh`."""
    sessions: pl.DataFrame  # those that the panel counts
    regions: Regions
    exposure: Exposure
    session_kwh: Floats  # (stations, blocks of the day), of a driver who was not seen
    time_zone: str
    notes: tuple[str, ...]

    @property
    def period(self) -> tuple[dt.datetime, dt.datetime]:
        """First hour, and the hour after the last."""
        first, last = self.table.select(pl.col("ds").min().alias("a"), pl.col("ds").max().alias("b")).row(0)
        return first, last + dt.timedelta(hours=1)

    def station_hours(self) -> pl.DataFrame:
        """Station-hours with arrivals or without full exposure.

        Columns: `station_id, ds, arrivals, energy_kwh, exposure, lost_arrivals, lost_kwh`, the last two to be expected.
        """
        first, last = self.period
        first_ms, hours = int(first.timestamp() * 1000), int((last - first).total_seconds() // 3600)
        station, start, _ = _codes(self.sessions, self.stations)
        cell = station * hours + (start - first_ms) // HOUR_MS
        full = self.exposure.full
        hidden = full.station * hours + full.hour
        cells, place = np.unique(np.concatenate([cell, hidden]), return_inverse=True)
        exposure, lost, lost_kwh = np.ones(len(cells)), np.zeros(len(cells)), np.zeros(len(cells))
        rows = place[len(cell) :]
        exposure[rows] = 1 - self.exposure.hidden
        lost[rows] = self.exposure.lost
        lost_kwh[rows] = self.exposure.lost * self.session_kwh[full.station, self._block(full.hour)]
        energy = np.bincount(place[: len(cell)], self.sessions["energy_kwh"].to_numpy(), minlength=len(cells))
        return pl.DataFrame(
            {
                "station_id": self.stations["station_id"].gather(cells // hours),
                "ds": hours_between(first, last).gather(cells % hours),
                "arrivals": np.bincount(place[: len(cell)], minlength=len(cells)),
                "energy_kwh": energy,
                "exposure": exposure,
                "lost_arrivals": lost,
                "lost_kwh": lost_kwh,
            }
        )

    def _block(self, hour: Integers) -> Integers:
        return self.exposure.hour_of_week[hour] % 24 // BLOCK


def build_panel(
    sessions: pl.DataFrame,
    stations: pl.DataFrame,
    *,
    regions: str | Regions = "10",
    time_zone: str = "UTC",
    country: str | None = None,
    booking: Booking = Booking.ARRIVAL,
    outages: pl.DataFrame | None = None,
    market: Market | None = None,
    unserved: Unserved = Unserved(),  # noqa: B008 (it is frozen)
) -> Panel:
    """Make a panel from sessions (`station_id, start, end, energy_kwh`, perhaps `plug_id, charged`) and their stations.

    The panel covers the days in UTC from the first session's start to the last one's. A car occupies a plug until the
    session ends, charging or idle. `outages` (`station_id, start, end`) take a plug each. `market` says which part of
    the demand this operator could have seen at all, `unserved` what becomes of drivers who find no plug.
    """
    market = market or Market()
    own = market.own_stations(stations)
    kept = sessions.join(own.select("station_id"), on="station_id", how="semi", maintain_order="left")
    if kept.is_empty():
        raise InputError("There is not one session to make a panel of: see the rows that were set aside.")
    period = whole_days(kept["start"])
    hours = hours_between(*period)
    first_ms = int(period[0].timestamp() * 1000)
    station, start, end = _codes(kept, own)
    cars = stays_by_station(station, start, end, own.height)
    counted = count_plugs(own, kept, cars)
    everyone = market.all_stations(stations, counted)
    if isinstance(regions, Regions):
        grouped, said = regions, f"Stations are in {regions.centres.height} given regions."
    else:
        grouped, said = group_stations(everyone, regions)
    of_station = pl.Series(grouped.codes())
    region = counted["station_id"].replace_strict(grouped.of_station["station_id"], of_station, return_dtype=pl.Int64)
    codes, plugs = region.to_numpy(writable=True), counted["plugs"].to_numpy(writable=True)
    names = grouped.centres["unique_id"]
    week = hour_of_week(hours, checked_zone(time_zone)).to_numpy(writable=True)

    opened, closed = openings(cars, first_ms, first_ms + len(hours) * HOUR_MS)
    absent = absent_plugs(kept, counted["station_id"], opened, closed, period[0], len(hours) * HOUR_MS)
    gone = absent if outages is None else pl.concat([_of_plugs(outages), absent])
    stays = cars if gone.is_empty() else _with_outages(kept, gone, counted)
    seen = Seen(
        station,
        (start - first_ms) // HOUR_MS,
        full_hours(stays, plugs, first_ms, len(hours)),
        _since(releases_from_full(stays, plugs, RETAKEN_MS), first_ms),
        stays,
        first_ms,
        opened // DAY_MS,
        -(-closed // DAY_MS),
        plugs,
        _distances(counted),
    )
    exposure = fit_exposure(seen, week, unserved.waiting, unserved.spill)
    session_kwh = station_energies(station, week[seen.hour] % 24, kept, counted, unserved.energies)
    regional = region_exposure(exposure, codes, len(names), plugs)
    shares = market.share_of_regions(grouped, everyone, counted, exposure.mean_rate())
    # Drivers who went to competitors: of a region without own plugs, all.
    share = shares.share[:, None]
    turnout = regional.turnout
    come = share * turnout + (1 - share)  # to stations of all operators
    elsewhere = np.where(share > 0, regional.rate * (1 - share) / np.maximum(share, 1e-9), np.inf)

    frame = (len(names), first_ms, len(hours))
    energy = kept["energy_kwh"].to_numpy(writable=True)
    if booking is Booking.ARRIVAL:
        y = book(codes[station], start, energy, *frame)
    else:
        until = kept["charged"].fill_null(kept["end"]) if "charged" in kept.columns else kept["end"]
        y = spread(codes[station], start, until.dt.epoch("ms").to_numpy(writable=True), energy, *frame)
    table = pl.DataFrame(
        {
            "unique_id": names.gather(np.repeat(np.arange(len(names)), len(hours))),
            "ds": pl.concat([hours] * len(names)),
            "y": y.ravel(),
            "arrivals": book(codes[station], start, np.ones(len(start)), *frame).ravel().astype(np.int64),
            "censored": (regional.lost + elsewhere >= CENSORED_FROM).ravel(),
            "exposure": (share * turnout * regional.exposure / come).ravel(),
            "turnout": come.ravel(),
            "exposure_spread": np.repeat(shares.spread, len(hours)),
            "lost_spread": np.repeat(lost_spread(exposure, codes, len(names)), len(hours)),
            "session_kwh": _region_energies(exposure, session_kwh, codes, regional.rate, elsewhere).ravel(),
        }
    )
    return Panel(
        with_calendar(table, time_zone, country),
        _station_summary(counted, kept, grouped, exposure, session_kwh, len(hours)),
        kept,
        grouped,
        exposure,
        session_kwh,
        time_zone,
        (
            said,
            *market.notes(stations, counted),
            *panel_notes(exposure, counted, cars, first_ms, absent.height, unserved.waiting, unserved.spill),
        ),
    )


def _since(releases: Releases, first_ms: int) -> Releases:
    return releases._replace(at_ms=releases.at_ms - first_ms, next_ms=releases.next_ms - first_ms)


def _distances(stations: pl.DataFrame) -> Floats | None:
    """Distances between stations [km], where all have a position."""
    if stations["lat"].null_count() or stations["lon"].null_count():
        return None
    lat, lon = stations["lat"].to_numpy(), stations["lon"].to_numpy()
    return haversine_km(lat[:, None], lon[:, None], lat, lon)


def _region_energies(
    exposure: Exposure, session_kwh: Floats, region: Integers, rate: Floats, elsewhere: Floats
) -> Floats:
    """Mean energy of a driver who was not seen in each region and hour, (regions, hours).

    Stations count by the drivers that each lost; competitors' drivers take what those of the region's stations do.
    """
    regions, hours = rate.shape
    block = exposure.hour_of_week % 24 // BLOCK
    mean = exposure.mean_rate()[:, None] + 1e-12
    usual = np.zeros((regions, session_kwh.shape[1]))
    np.add.at(usual, region, session_kwh * mean)
    total = np.zeros((regions, 1))
    np.add.at(total, region, mean)
    overall = float((session_kwh * mean).sum() / (mean.sum() * session_kwh.shape[1]))
    usual = np.where(total > 0, usual / np.where(total > 0, total, 1.0), overall)[:, block]
    full = exposure.full
    cell = region[full.station] * hours + full.hour
    kwh = session_kwh[full.station, block[full.hour]]
    lost, energy = (
        np.bincount(cell, values, minlength=regions * hours).reshape(regions, hours)
        for values in (exposure.lost, exposure.lost * kwh)
    )
    others = np.where(np.isfinite(elsewhere), elsewhere, 1.0) + 1e-9
    return np.asarray((energy + usual * others) / (lost + others))


def _codes(sessions: pl.DataFrame, stations: pl.DataFrame) -> tuple[Integers, Integers, Integers]:
    """Row of the station, start and end in ms of each session."""
    rows = pl.Series(np.arange(stations.height))
    station = sessions["station_id"].replace_strict(stations["station_id"], rows, return_dtype=pl.Int64)
    start, end = (sessions[name].dt.epoch("ms").to_numpy(writable=True) for name in ("start", "end"))
    return station.to_numpy(writable=True), start, end


def _of_plugs(rows: pl.DataFrame) -> pl.DataFrame:
    """Stays or outages with the columns of outages; those without a plug's name have none."""
    if "plug_id" not in rows.columns:
        rows = rows.with_columns(pl.lit(None, pl.String).alias("plug_id"))
    return rows.select(list(OUTAGES)).cast(pl.Schema(OUTAGES))


def _with_outages(sessions: pl.DataFrame, outages: pl.DataFrame, stations: pl.DataFrame) -> Stays:
    """When plugs are taken, by a car or because they are out of order; a broken plug with a car on it is one plug."""
    known = outages.join(stations.select("station_id"), on="station_id", how="semi")
    both = [_of_plugs(sessions), _of_plugs(known)]
    return stays_by_station(*_codes(merge_outages(pl.concat(both)), stations), stations.height)


def _station_summary(
    stations: pl.DataFrame,
    sessions: pl.DataFrame,
    regions: Regions,
    exposure: Exposure,
    session_kwh: Floats,
    hours: int,
) -> pl.DataFrame:
    rows = exposure.full
    kwh = session_kwh[rows.station, exposure.hour_of_week[rows.hour] % 24 // BLOCK]
    full, lost, lost_kwh = (
        np.bincount(rows.station, values, minlength=stations.height)
        for values in (rows.full_ms / HOUR_MS / hours, exposure.lost, exposure.lost * kwh)
    )
    totals = sessions.group_by("station_id").agg(sessions=pl.len(), energy_kwh=pl.sum("energy_kwh").round(6))
    return (
        stations.with_columns(full_share=pl.Series(full), lost_arrivals=pl.Series(lost), lost_kwh=pl.Series(lost_kwh))
        .join(regions.of_station, on="station_id", how="left", maintain_order="left")
        .join(totals, on="station_id", how="left", maintain_order="left")
        .with_columns(pl.col("sessions", "energy_kwh").fill_null(0))
    )
