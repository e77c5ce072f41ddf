"""Stays: how long lost drivers would have stayed, and how much they would have charged, drawn from the records.

A lost driver is assigned both the stay and the energy of a recorded one, so that long stays go with large energies. The
record is drawn from the site itself at that time of day (in blocks of three hours) or, more often if the site has few
records, from all sites of similar power. The proportions are those with which `unmet.estimation.energies` pools means.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from unmet.arrays import Floats, Integers
from unmet.demand.panel import Panel
from unmet.estimation.clock import BIN_MS, BINS_AN_HOUR
from unmet.estimation.energies import BLOCK, POOL
from unmet.estimation.occupancy import Network, failed_attempts

__all__ = ["BLOCKS", "Stays", "recorded_stays"]


BLOCKS = 24 // BLOCK
MIN_STAY_MS = 60_000
FAST_SESSIONS = 0.9  # quantile of the mean power of a site's sessions that replaces an unknown power


@dataclass(frozen=True, slots=True)
class Group:
    """Records grouped by a key and block of the day."""

    first: Integers  # (keys * blocks + 1,)
    row: Integers  # (records,), rows of the records, grouped
    total_kwh: Floats  # (keys * blocks,)

    @classmethod
    def of(cls, cell: Integers, cells: int, kwh: Floats) -> Group:
        """Group records by their cell (key times the number of blocks, plus block)."""
        order = np.argsort(cell, kind="stable")
        first = np.searchsorted(cell[order], np.arange(cells + 1))
        return cls(first, order, np.bincount(cell, kwh, minlength=cells).astype(float))

    def number(self) -> Integers:
        """Number of records in each cell, (keys * blocks,)."""
        return np.diff(self.first)

    def pooled_kwh(self, cell: Integers, around: Floats) -> Floats:
        """Mean energy of the records of cells, pooled with the means around them."""
        number = self.first[cell + 1] - self.first[cell]
        return np.asarray((self.total_kwh[cell] + POOL * around) / (number + POOL))


@dataclass(frozen=True, slots=True)
class Stays:
    """Recorded stays and energies, to draw from."""

    stay_ms: Integers  # (records,)
    kwh: Floats  # (records,)
    power_kw: Floats  # (sites,), power at which cars charge, NaN if unknown
    of_class: Integers  # (sites,), class of power
    by_site: Group
    by_class: Group

    def weights(self, site: int) -> tuple[Floats, Floats]:
        """By block of the day: probability of a record of the site itself, and of a record of the site or its class."""
        blocks = np.arange(BLOCKS)
        own = self.by_site.number()[site * BLOCKS + blocks]
        alike = self.by_class.number()[self.of_class[site] * BLOCKS + blocks]
        from_own = own / (own + POOL)
        return from_own, from_own + (1 - from_own) * alike / (alike + POOL)

    def mean_kwh(self, site: int) -> Floats:
        """Mean energy of a driver drawn for a site, by block of the day, (blocks,)."""
        blocks = np.arange(BLOCKS)
        everywhere = np.full(BLOCKS, self.by_class.total_kwh.sum() / len(self.kwh))
        alike = self.by_class.pooled_kwh(self.of_class[site] * BLOCKS + blocks, everywhere)
        return self.by_site.pooled_kwh(site * BLOCKS + blocks, alike)


def recorded_stays(panel: Panel, network: Network) -> Stays:
    """The stays of all sessions that delivered energy."""
    used = ~failed_attempts(panel.sessions)
    sessions = panel.sessions.filter(pl.Series(used))
    if sessions.is_empty():
        sessions, used = panel.sessions, np.ones(panel.sessions.height, bool)
    site = network.site_of_station[network.station_of_session[used]]
    start, end = (sessions[name].dt.epoch("ms").to_numpy() for name in ("start", "end"))
    bin_ = np.clip((start - network.clock.first_ms) // BIN_MS, 0, len(network.clock.week) - 1)
    block = network.clock.week[bin_].astype(np.int64) // BINS_AN_HOUR % 24 // BLOCK
    power = _power(panel, network, sessions, site)
    # Classes are a factor of two wide; sites of unknown power form a separate class.
    log_power = np.where(np.isfinite(power), np.round(np.log2(np.maximum(np.nan_to_num(power, nan=1.0), 0.1))), -99)
    of_class = np.unique(log_power, return_inverse=True)[1].astype(np.int64)
    kwh = sessions["energy_kwh"].to_numpy()
    classes = int(of_class.max(initial=0)) + 1
    return Stays(
        np.maximum(end - start, MIN_STAY_MS),
        kwh,
        power,
        of_class,
        Group.of(site * BLOCKS + block, network.sites * BLOCKS, kwh),
        Group.of(of_class[site] * BLOCKS + block, classes * BLOCKS, kwh),
    )


def _power(panel: Panel, network: Network, sessions: pl.DataFrame, site: Integers) -> Floats:
    """Power at which cars charge at each site [kW]: as listed, else the 90 % quantile of the mean power of sessions."""
    until = pl.coalesce("charged", "end") if "charged" in sessions.columns else pl.col("end")
    hours = (until - pl.col("start")).dt.total_milliseconds() / 3_600_000
    fast = (
        sessions.select(site=pl.Series(site), kw=pl.col("energy_kwh") / hours, hours=hours)
        .filter(pl.col("hours") > 0.05)  # shorter sessions have no reliable mean power
        .group_by("site")
        .agg(pl.col("kw").quantile(FAST_SESSIONS))
    )
    power = np.full(network.sites, np.nan)
    power[fast["site"].to_numpy()] = fast["kw"].to_numpy()
    if "power_kw" in panel.stations.columns:
        listed = panel.stations["power_kw"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        for s, value in zip(network.site_of_station, listed, strict=True):
            if value > 0:
                power[s] = value
    return np.where(power > 0, power, np.nan)
