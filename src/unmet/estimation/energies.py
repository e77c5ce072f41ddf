"""Energies: how much a lost driver would have charged, inferred from recorded sessions.

By default (`seen`) it is the mean energy of the station's sessions at that time of day, shrunk towards the mean of
stations of the same power. The paper instead assigns a lost driver the energy to 80 %: `to-80` computes it from the
energy of each session, the power of the station and the charging time. A battery charges at full power to 80 % and at a
quarter of it above. If a car left at full power, its energy to 80 % is right-censored, so the Kaplan-Meier mean is
used.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Floats, Integers
from unmet.errors import InputError
from unmet.simulation.battery import TAPER_SHARE

__all__ = ["BLOCK", "ENERGIES", "energy_variation", "station_energies"]

ENERGIES = ("seen", "to-80")
BLOCK = 3  # hours of the day that share a mean
POOL = 10.0  # weight of the mean that a cell is shrunk to [sessions]
AT_FULL_POWER = 0.98  # a session with at least this share of the energy at full power ended before 80 %
MIN_SESSIONS = 200  # sessions that a block of the day needs for a mean of its own
MAX_SURVIVAL = 0.2  # highest survival probability at the end of the curve for its mean to be used


def station_energies(
    station: Integers, hour_of_day: Integers, sessions: pl.DataFrame, stations: pl.DataFrame, energies: str = "seen"
) -> Floats:
    """Mean energy of a lost driver [kWh], (stations, blocks of the day).

    Args:
        station: row of each session's station in `stations`.
        hour_of_day: local hour at which each session starts.
        sessions: sessions with `energy_kwh`; `to-80` also needs `start` and `end`, and uses `charged` if present.
        stations: stations, with `power_kw` if known.
        energies: one of `ENERGIES`.
    """
    if energies not in ENERGIES:
        raise InputError(f"Unknown energies {energies!r}: choose one of {', '.join(ENERGIES)}.")
    block, blocks = hour_of_day // BLOCK, 24 // BLOCK
    energy = sessions["energy_kwh"].to_numpy()
    if energies == "to-80":
        mean = _mean_to_80(energy, station, block, sessions, stations)
        return np.broadcast_to(mean, (stations.height, blocks)).copy()
    power = stations["power_kw"] if "power_kw" in stations.columns else pl.Series([None] * stations.height)
    classes = power.cast(pl.Float64).fill_null(0.0).rank("dense").to_numpy().astype(np.int64) - 1
    class_of_session, n_classes = classes[station], int(classes.max(initial=0)) + 1
    overall = float(energy.mean()) if len(energy) else 0.0
    by_class = _shrunk_means(class_of_session * blocks + block, energy, n_classes * blocks, overall)
    usual = by_class.reshape(n_classes, blocks)[classes].ravel()
    return _shrunk_means(station * blocks + block, energy, stations.height * blocks, usual).reshape(-1, blocks)


def _shrunk_means(cell: Integers, energy: Floats, cells: int, usual: Floats | float) -> Floats:
    """Mean energy of the sessions of each cell, shrunk towards `usual` as if `POOL` more sessions had that energy."""
    total, number = np.bincount(cell, energy, minlength=cells), np.bincount(cell, minlength=cells)
    return np.asarray((total + POOL * usual) / (number + POOL))


def _mean_to_80(
    energy: Floats, station: Integers, block: Integers, sessions: pl.DataFrame, stations: pl.DataFrame
) -> Floats:
    """Mean energy to 80 % by block of the day.

    A car that charges for T hours at a station of power P takes the energy x to 80 % at full power, and then charges at
    a share s of that power (`TAPER_SHARE`). Its energy is E = x + s (P T - x), so x = (E - s P T) / (1 - s).
    """
    if "power_kw" not in stations.columns or stations["power_kw"].null_count() == stations.height:
        raise InputError("Energies to 80 % need `power_kw` in the table of stations: give it with --stations.")
    power = stations["power_kw"].cast(pl.Float64).to_numpy()[station]
    ended = sessions["charged"].fill_null(sessions["end"]) if "charged" in sessions.columns else sessions["end"]
    hours = (ended - sessions["start"]).dt.total_milliseconds().to_numpy() / 3_600_000
    at_full_power = power * hours
    censored = energy >= AT_FULL_POWER * at_full_power  # left before 80 %
    to_80 = np.clip((energy - TAPER_SHARE * at_full_power) / (1 - TAPER_SHARE), 0.0, energy)
    value = np.where(censored, energy, to_80)
    known = np.isfinite(value)
    overall = _restricted_mean(value[known], censored[known])
    means = np.full(24 // BLOCK, overall)
    for i in range(len(means)):
        part = known & (block == i)
        if part.sum() >= MIN_SESSIONS:
            means[i] = _restricted_mean(value[part], censored[part])
    return means


def _restricted_mean(value: Floats, censored: NDArray[np.bool_]) -> float:
    """Mean of right-censored values, restricted to the largest one (area under the Kaplan-Meier curve).

    If too many are censored, for example because all drivers leave at 80 %, it is the mean of the values themselves.
    """
    if not len(value):
        return 0.0
    order = np.lexsort((censored, value))  # at ties, uncensored values come first
    value, censored = value[order], censored[order]
    at_risk = len(value) - np.arange(len(value))
    survival = np.cumprod(np.where(censored, 1.0, 1 - 1 / at_risk))
    if survival[-1] > MAX_SURVIVAL:
        return float(value.mean())
    steps = np.diff(np.concatenate([[0.0], value]))
    return float((steps * np.concatenate([[1.0], survival[:-1]])).sum())


def energy_variation(sessions: pl.DataFrame) -> float:
    """Coefficient of variation of the energy of a session, at least 0.05 and at most 3; 1 if there are no energies.

    The bounds keep draws of energies from being certain or extreme.
    """
    energy = sessions["energy_kwh"].to_numpy()
    mean = float(energy.mean()) if len(energy) else 0.0
    return float(np.clip(energy.std() / mean, 0.05, 3.0)) if mean > 0 else 1.0
