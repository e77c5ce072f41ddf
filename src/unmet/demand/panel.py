"""Panel: the table region x hour that every model reads, from an operator's sessions."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.demand.booking import Booking, book, spread
from unmet.demand.calendar import hour_of_week, hours_between, whole_days, with_calendar
from unmet.demand.exposure import CENSORED_FROM, LEAST_EXPOSED, Exposure, fit_exposure, region_exposure
from unmet.demand.market import Market
from unmet.demand.occupancy import HOUR_MS, Stays, full_hours, longest_silence, stays_by_station
from unmet.demand.plugs import count_plugs
from unmet.demand.regions import Regions, group_stations
from unmet.errors import InputError
from unmet.records.formats.base import OUTAGES
from unmet.records.outages import merge_outages
from unmet.zones import checked_zone

__all__ = ["Panel", "build_panel"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Panel:
    """A demand panel, and what it was made from."""

    table: pl.DataFrame  # unique_id, ds, y, arrivals, censored, exposure, hour, weekday, holiday
    stations: (
        pl.DataFrame
    )  # and plugs, plugs_from, plugs_sure, unique_id, sessions, energy_kwh, full_share, lost_arrivals
    sessions: pl.DataFrame  # those that the panel counts
    regions: Regions
    exposure: Exposure
    time_zone: str
    notes: tuple[str, ...]

    @property
    def period(self) -> tuple[dt.datetime, dt.datetime]:
        """First hour, and the hour after the last."""
        first, last = self.table.select(pl.col("ds").min().alias("a"), pl.col("ds").max().alias("b")).row(0)
        return first, last + dt.timedelta(hours=1)

    def station_hours(self) -> pl.DataFrame:
        """Station-hours with arrivals or without full exposure: `station_id, ds, arrivals, energy_kwh, exposure`."""
        first, last = self.period
        first_ms, hours = int(first.timestamp() * 1000), int((last - first).total_seconds() // 3600)
        station, start, _ = _codes(self.sessions, self.stations)
        cell = station * hours + (start - first_ms) // HOUR_MS
        full = self.exposure.full
        hidden = full.station * hours + full.hour
        cells, place = np.unique(np.concatenate([cell, hidden]), return_inverse=True)
        exposure = np.ones(len(cells))
        exposure[place[len(cell) :]] = 1 - self.exposure.hidden
        energy = np.bincount(place[: len(cell)], self.sessions["energy_kwh"].to_numpy(), minlength=len(cells))
        return pl.DataFrame(
            {
                "station_id": self.stations["station_id"].gather(cells // hours),
                "ds": hours_between(first, last).gather(cells % hours),
                "arrivals": np.bincount(place[: len(cell)], minlength=len(cells)),
                "energy_kwh": energy,
                "exposure": exposure,
            }
        )


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
) -> Panel:
    """Make a panel from sessions (`station_id, start, end, energy_kwh`, perhaps `plug_id, charged`) and their stations.

    The panel covers the days in UTC from the first session's start to the last one's. A car occupies a plug until the
    session ends, charging or idle. `outages` (`station_id, start, end`) take a plug each. `market` says which part of
    the demand this operator could have seen at all.
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
    if isinstance(regions, Regions):
        grouped, said = regions, f"Stations are in {regions.centres.height} given regions."
    else:
        grouped, said = group_stations(market.all_stations(stations, counted), regions)
    of_station = pl.Series(grouped.codes())
    region = counted["station_id"].replace_strict(grouped.of_station["station_id"], of_station, return_dtype=pl.Int64)
    codes, plugs = region.to_numpy(writable=True), counted["plugs"].to_numpy(writable=True)

    stays = cars if outages is None or outages.is_empty() else _with_outages(kept, outages, counted)
    week = hour_of_week(hours, checked_zone(time_zone)).to_numpy(writable=True)
    full = full_hours(stays, plugs, first_ms, len(hours))
    exposure = fit_exposure(station, (start - first_ms) // HOUR_MS, own.height, full, week)
    names = grouped.centres["unique_id"]
    seen_share, lost = region_exposure(exposure, codes, len(names), plugs)
    share = market.share_of_regions(grouped, counted)
    rate = _rate(exposure, codes, len(names))[:, week]
    # Drivers who went to competitors: of a region without own plugs, all.
    others = np.divide(1 - share, share, out=np.full(len(share), np.inf), where=share > 0)[:, None]
    elsewhere = np.where(np.isinf(others), np.inf, rate * np.where(np.isinf(others), 0, others))

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
            "censored": (lost + elsewhere >= CENSORED_FROM).ravel(),
            "exposure": (seen_share * share[:, None]).ravel(),
        }
    )
    return Panel(
        with_calendar(table, time_zone, country),
        _station_summary(counted, kept, grouped, exposure, len(hours)),
        kept,
        grouped,
        exposure,
        time_zone,
        (
            said,
            *market.notes(stations, counted),
            *_gaps(cars, own, first_ms, len(hours)),
            *_always_full(exposure, own.height, len(hours)),
        ),
    )


def _gaps(stays: Stays, stations: pl.DataFrame, first_ms: int, hours: int) -> list[str]:
    """A warning where stations are silent for weeks: they may have been closed, or records may be missing."""
    days = longest_silence(stays, first_ms, first_ms + hours * HOUR_MS) / (24 * HOUR_MS)
    silent = int((days >= SILENT_DAYS).sum())
    if not silent:
        return []
    longest = int(days.argmax())
    return [
        f"Of the stations with sessions, {silent} have none for {SILENT_DAYS} days or more at a time (the longest: "
        f"{stations['station_id'][longest]}, {days[longest]:.0f} days). Those hours count as seen and without demand."
    ]


SILENT_DAYS = 30


def _always_full(exposure: Exposure, stations: int, hours: int) -> list[str]:
    """A warning where stations were full nearly all the time: what they lost cannot be known."""
    full = np.bincount(exposure.full.station, exposure.hidden, minlength=stations) / hours
    number = int((full > 1 - LEAST_EXPOSED).sum())
    if not number:
        return []
    return [
        f"{number} stations were full for more than {100 * (1 - LEAST_EXPOSED):.0f} % of the time: what they lost is "
        "only a guess."
    ]


def _codes(sessions: pl.DataFrame, stations: pl.DataFrame) -> tuple[Integers, Integers, Integers]:
    """Row of the station, start and end in ms of each session."""
    rows = pl.Series(np.arange(stations.height))
    station = sessions["station_id"].replace_strict(stations["station_id"], rows, return_dtype=pl.Int64)
    start, end = (sessions[name].dt.epoch("ms").to_numpy(writable=True) for name in ("start", "end"))
    return station.to_numpy(writable=True), start, end


def _with_outages(sessions: pl.DataFrame, outages: pl.DataFrame, stations: pl.DataFrame) -> Stays:
    """When plugs are taken, by a car or because they are out of order; a broken plug with a car on it is one plug."""
    unknown = pl.lit(None, pl.String).alias("plug_id")
    known = outages.join(stations.select("station_id"), on="station_id", how="semi")
    both = [
        (rows if "plug_id" in rows.columns else rows.with_columns(unknown)).select(list(OUTAGES))
        for rows in (sessions, known)
    ]
    return stays_by_station(*_codes(merge_outages(pl.concat(both)), stations), stations.height)


def _rate(exposure: Exposure, region: Integers, regions: int) -> NDArray[np.float64]:
    """Arrivals an hour at the operator's own stations, (regions, hours of week)."""
    rate = np.zeros((regions, exposure.intensity.per_hour.shape[1]))
    np.add.at(rate, region, exposure.intensity.per_hour)
    return rate


def _station_summary(
    stations: pl.DataFrame, sessions: pl.DataFrame, regions: Regions, exposure: Exposure, hours: int
) -> pl.DataFrame:
    full = np.bincount(exposure.full.station, exposure.hidden, minlength=stations.height) / hours
    lost = np.bincount(exposure.full.station, exposure.lost, minlength=stations.height)
    totals = sessions.group_by("station_id").agg(sessions=pl.len(), energy_kwh=pl.sum("energy_kwh").round(6))
    return (
        stations.with_columns(full_share=pl.Series(full), lost_arrivals=pl.Series(lost))
        .join(regions.of_station, on="station_id", how="left", maintain_order="left")
        .join(totals, on="station_id", how="left", maintain_order="left")
        .with_columns(pl.col("sessions", "energy_kwh").fill_null(0))
    )
