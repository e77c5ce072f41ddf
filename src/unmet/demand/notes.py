"""Notes: what an analyst must know before a panel is believed."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.demand.calendar import HOURS_A_DAY
from unmet.demand.exposure import LEAST_EXPOSED, Exposure
from unmet.demand.occupancy import HOUR_MS, Stays, longest_silence
from unmet.demand.plugs import SHARED

__all__ = ["panel_notes"]

SILENT_DAYS = 30
FULL_DAYS = 14
NOTABLE = 0.1  # share of drivers who wait from which that is told
UNSURE_LOSS = 0.2  # share of all lost drivers at stations whose plugs are not sure from which that is told


def panel_notes(
    exposure: Exposure,
    stations: pl.DataFrame,
    stays: Stays,
    first_ms: int,
    absent: int,
    waiting: float | None,
    spill: float | None,
) -> list[str]:
    """Sentences on what makes the estimate of lost drivers doubtful, and on what was found in the records."""
    hours = len(exposure.hour_of_week)
    full = np.bincount(exposure.full.station, exposure.full.full_ms / HOUR_MS, minlength=stations.height) / hours
    return [
        *_openings(exposure, absent),
        *_gaps(stays, stations, first_ms, hours),
        *_waiting(exposure, waiting),
        *_diverted(exposure, spill),
        *_always_full(full),
        *_full_for_weeks(exposure, stations),
        *_unsure_plugs(exposure, stations),
        *_shared(stations),
    ]


def _diverted(exposure: Exposure, given: float | None) -> list[str]:
    if given is not None:
        return []
    return [
        f"{100 * exposure.spill:.0f} % of the drivers who find no plug and do not wait seem to go to a station nearby: "
        "so much do arrivals there rise when a station fills up. They count as seen."
    ]


def _shared(stations: pl.DataFrame) -> list[str]:
    number = stations.filter(pl.col("plugs_from") == SHARED).height
    if not number:
        return []
    return [
        f"{number} stations take fewer cars at once than they have plugs: hardly anybody comes while some are still "
        "free, as where connectors share a charger. Those plugs do not count."
    ]


def _openings(exposure: Exposure, absent: int) -> list[str]:
    partly = int((~exposure.open.all(axis=1)).sum())
    said = []
    if partly:
        said.append(f"{partly} stations opened or closed within the period, as their sessions tell.")
    if absent:
        said.append(f"Plugs were added or taken away {absent} times, as their sessions tell.")
    return said


def _gaps(stays: Stays, stations: pl.DataFrame, first_ms: int, hours: int) -> list[str]:
    """A warning where stations are silent for weeks: they may have been closed, or records may be missing."""
    days = longest_silence(stays, first_ms, first_ms + hours * HOUR_MS) / (24 * HOUR_MS)
    silent = int((days >= SILENT_DAYS).sum())
    if not silent:
        return []
    longest = int(days.argmax())
    return [
        f"Of the stations with sessions, {silent} have none for {SILENT_DAYS} days or more at a time (the longest: "
        f"{stations['station_id'][longest]}, {days[longest]:.0f} days). But for stations that opened or closed, those "
        "hours count as seen and without demand."
    ]


def _waiting(exposure: Exposure, asked: float | None) -> list[str]:
    if asked is not None or exposure.waiting < NOTABLE:
        return []
    return [
        f"{100 * exposure.waiting:.0f} % of the drivers who come to a full station seem to wait until a plug is free: "
        "so often is a plug taken at the moment at which it gets free. They count as seen."
    ]


def _always_full(full: NDArray[np.float64]) -> list[str]:
    """A warning where stations were full nearly all the time: what they lost cannot be known."""
    number = int((full > 1 - LEAST_EXPOSED).sum())
    if not number:
        return []
    return [
        f"{number} stations were full for more than {100 * (1 - LEAST_EXPOSED):.0f} % of the time: what they lost is "
        "only a guess."
    ]


def _full_for_weeks(exposure: Exposure, stations: pl.DataFrame) -> list[str]:
    """A warning where stations had no free plug for weeks on end: that part is borrowed from other times and places."""
    days = exposure.open.shape[1]
    full = np.zeros((stations.height, days))
    np.add.at(
        full, (exposure.full.station, exposure.full.hour // HOURS_A_DAY), exposure.full.full_ms / HOUR_MS / HOURS_A_DAY
    )
    blind = (full > 1 - LEAST_EXPOSED) & exposure.open
    run, longest = np.zeros(stations.height), np.zeros(stations.height)
    for day in range(days):
        run = np.where(blind[:, day], run + 1, 0)
        longest = np.maximum(longest, run)
    number = int((longest >= FULL_DAYS).sum())
    if not number:
        return []
    worst = int(longest.argmax())
    return [
        f"{number} stations had no free plug for {FULL_DAYS} days or more on end (the longest: "
        f"{stations['station_id'][worst]}, {longest[worst]:.0f} days). What is said of such times is borrowed from "
        "other times and from neighbours; check the number of plugs."
    ]


def _unsure_plugs(exposure: Exposure, stations: pl.DataFrame) -> list[str]:
    """A warning where much of the estimate hangs on numbers of plugs that are only inferred."""
    unsure = ~stations["plugs_sure"].to_numpy()
    lost = np.bincount(exposure.full.station, exposure.lost, minlength=stations.height)
    if not lost.sum() > 0 or lost[unsure].sum() < UNSURE_LOSS * lost.sum():
        return []
    return [
        f"{100 * lost[unsure].sum() / lost.sum():.0f} % of the drivers who were probably lost are at stations whose "
        "number of plugs is not sure: one plug too few makes a station seem full that is not. Give plugs with "
        "--stations."
    ]
