"""Thinning: real records with plugs removed on paper, so that what was lost is known.

A station that was often full has no truth to test against: its own records are censored. So only sites that were
hardly ever full are kept. With fewer plugs, some of their drivers would have been turned away; the untouched records
are the truth, and what is left of them is what an operator with fewer plugs would have had.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.compiled import compiled
from unmet.demand.panel import Panel, build_panel
from unmet.demand.sites import merge_sites
from unmet.errors import InputError
from unmet.study.scenes import Scene

__all__ = ["MOST_FULL", "NEAR", "REMOVED", "Thinned", "quiet_sites", "thin", "thinning_scenes"]

Integers = NDArray[np.int64]

REMOVED = (0.1, 0.2, 0.35)
"""Shares of the energy to turn away."""
MOST_FULL = 0.02  # share of the time for which a station may have been full
LEAST_OPEN = 0.95  # share of the days on which it must have been open: a site that opens late has nothing to learn from
NEAR = 0.03  # how far from the share asked for a scene may be
SAID = ("arrivals", "censored", "exposure", "exposure_spread", "lost_spread", "session_kwh")


class Thinned(NamedTuple):
    """Records of stations with fewer plugs."""

    sessions: pl.DataFrame  # those that would still have been served
    plugs: pl.DataFrame  # station_id, plugs
    removed: float  # share of the energy that was turned away


@compiled()
def turned_away(start_ms: Integers, end_ms: Integers, plugs: int) -> NDArray[np.bool_]:
    """Which of these stays, sorted by their start, would have found no plug free at a station with so many."""
    free_at = np.full(plugs, np.iinfo(np.int64).min)
    away = np.zeros(len(start_ms), np.bool_)
    for i in range(len(start_ms)):
        best = free_at.argmin()
        if free_at[best] <= start_ms[i]:
            free_at[best] = max(end_ms[i], start_ms[i])
        else:
            away[i] = True
    return away


def thinning_scenes(
    sessions: pl.DataFrame,
    stations: pl.DataFrame,
    time_zone: str,
    removed: Sequence[float] = REMOVED,
    regions: str = "10",
    seed: int = 1,
) -> tuple[list[Scene], list[str]]:
    """A scene for each share of the energy to turn away, and sentences on what was kept and what could not be had."""
    if wrong := [share for share in removed if not 0 < share < 1]:
        raise InputError(f"A share of {wrong[0]:g} to turn away makes no sense: give one between 0 and 1, as 0.2.")
    quiet, kept = quiet_sites(sessions, stations, time_zone)
    truth = build_panel(kept, quiet, regions=regions, time_zone=time_zone)
    notes = [
        f"{quiet.height} sites (stations beside each other) had two plugs or more, were open all the time and full "
        f"for less than {100 * MOST_FULL:g} % of it; they have {kept.height:,} of {sessions.height:,} sessions."
    ]
    scenes, plugs = [], int(quiet["plugs"].sum())
    for share in removed:
        made = thin(kept, quiet, share, seed)
        if abs(made.removed - share) > NEAR:
            notes.append(
                f"With plugs removed, {100 * made.removed:.0f} % of the energy is turned away where "
                f"{100 * share:g} % was asked for: that cell is left out."
            )
            continue
        fewer = plugs - int(made.plugs["plugs"].sum())
        notes.append(
            f"{100 * share:g} %: {fewer} of {plugs} plugs removed, which turns away {100 * made.removed:.1f} % of the "
            "energy."
        )
        scenes.append(_scene(made, quiet, truth, time_zone, share))
    if not scenes:
        raise InputError("With plugs removed on paper no share asked for can be reached: " + notes[-1])
    return scenes, notes


def thin(sessions: pl.DataFrame, stations: pl.DataFrame, share: float, seed: int = 1) -> Thinned:
    """Remove plugs, at stations in random order and never the last, until that share of the energy is turned away."""
    ordered = sessions.sort("station_id", "start", maintain_order=True)
    parts = {name: part for (name,), part in ordered.group_by("station_id", maintain_order=True)}
    names = stations["station_id"].to_list()
    plugs = dict(zip(names, stations["plugs"].to_list(), strict=True))
    whole = float(ordered["energy_kwh"].sum())
    away: dict[str, NDArray[np.bool_]] = {}
    lost = dict.fromkeys(names, 0.0)
    rng = np.random.default_rng([seed, 11])
    turn = [name for name in names for _ in range(plugs[name] - 1) if name in parts]
    for name in (turn[i] for i in rng.permutation(len(turn))):
        part = parts[name]
        start, end = (part[column].dt.epoch("ms").to_numpy() for column in ("start", "end"))
        gone = turned_away(start.astype(np.int64), end.astype(np.int64), plugs[name] - 1)
        energy = float(part["energy_kwh"].to_numpy()[gone].sum())
        before = sum(lost.values()) / whole
        after = before + (energy - lost[name]) / whole
        if after - share > share - before:  # without it the share is nearer
            continue
        plugs[name], away[name], lost[name] = plugs[name] - 1, gone, energy
    mask = np.concatenate([away.get(name, np.zeros(part.height, bool)) for name, part in parts.items()])
    table = pl.DataFrame({"station_id": names, "plugs": [plugs[name] for name in names]})
    return Thinned(ordered.filter(~mask), table, sum(lost.values()) / whole)


def quiet_sites(sessions: pl.DataFrame, stations: pl.DataFrame, time_zone: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sites that can be thinned, with their plugs, and their sessions."""
    counted = build_panel(sessions, stations, regions="station", time_zone=time_zone).stations
    sessions, sites = merge_sites(sessions, counted.select(stations.columns))
    panel = build_panel(sessions, sites, regions="station", time_zone=time_zone)
    always = pl.Series(panel.exposure.open.mean(axis=1) >= LEAST_OPEN)
    enough = (pl.col("full_share") < MOST_FULL) & (pl.col("plugs") > 1) & (pl.col("sessions") > 0)
    quiet = panel.stations.filter(enough & always)
    if quiet.is_empty():
        raise InputError(
            f"No site with two plugs or more was open all the time and full for less than {100 * MOST_FULL:g} % of it: "
            "there is no truth in these records to test against."
        )
    kept = sessions.join(quiet.select("station_id"), on="station_id", how="semi", maintain_order="left")
    return quiet.select(sites.columns), kept


def _scene(made: Thinned, stations: pl.DataFrame, truth: Panel, time_zone: str, share: float) -> Scene:
    fewer = stations.drop("plugs").join(made.plugs, on="station_id", how="left", maintain_order="left")
    seen = build_panel(made.sessions, fewer, regions=truth.regions, time_zone=time_zone)
    labels: dict[str, Any] = {"removed": share}
    panel = (
        truth.table.select("unique_id", "ds", y_true="y")
        .join(
            seen.table.select("unique_id", "ds", "y", *SAID), on=["unique_id", "ds"], how="left", maintain_order="left"
        )
        .with_columns(
            pl.col("y").fill_null(0.0),
            pl.col("arrivals").fill_null(0),
            pl.col("censored").fill_null(value=False),
            pl.col(SAID[2:]).fill_null(pl.col(SAID[2:]).max().over("unique_id")),
        )
    )
    centres = truth.regions.centres.select("unique_id", "lat", "lon")
    return Scene(labels, panel, None if centres["lat"].null_count() else centres, time_zone)
