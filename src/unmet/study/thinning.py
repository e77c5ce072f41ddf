"""Thinning: remove plugs from real records on paper, so that the lost demand is known.

The records of a station that was often full are themselves censored, so there is no truth to test against. Only sites
that were hardly ever full are therefore used. With fewer plugs, some of their drivers would have been turned away.
The original records are the truth, and the remaining sessions are the records of an operator with fewer plugs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Integers
from unmet.compiled import compiled
from unmet.demand.calendar import HOUR_MS
from unmet.demand.panel import Panel
from unmet.demand.regions import Regions
from unmet.demand.spells import FULL
from unmet.errors import InputError
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.occupancy import observe
from unmet.estimation.panel_table import panel_table
from unmet.estimation.simulated import UNSEEN
from unmet.study.scenes import Scene, training_end, without_hindsight

__all__ = [
    "MAX_FULL_SHARE",
    "NEAR",
    "REMOVED",
    "Thinned",
    "quiet_sites",
    "sessions_between",
    "thin",
    "thinned_panel",
    "thinning_scenes",
]


REMOVED = (0.1, 0.2, 0.35)
"""Shares of the energy to turn away."""
MAX_FULL_SHARE = 0.02  # share of the time for which a station may have been full
MIN_OPEN_SHARE = 0.95  # share of the days on which it must have been open, so that there are records to train on
ORDERS = 50  # number of random orders of removing plugs to try
ORDER_STREAM = 11  # keeps these random numbers apart from others of the same seed
CLOSE = 0.01  # an order that comes this close to the share is taken at once
NEAR = 0.03  # largest difference from its nominal share with which a scene is used


class Thinned(NamedTuple):
    """Records of stations with fewer plugs."""

    sessions: pl.DataFrame  # sessions that would still have been served
    plugs: pl.DataFrame  # station_id, plugs
    removed: float  # share of the energy that was turned away


@compiled()
def turned_away(start_ms: Integers, end_ms: Integers, plugs: int) -> NDArray[np.bool_]:
    """Which stays would have found no free plug at a station with `plugs` plugs.

    Stays are sorted by start; times are in milliseconds since 1970.
    """
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
    runs: int = 1,
) -> tuple[list[Scene], list[str]]:
    """Scenes for each share of the energy to turn away, and notes on the sites used and the shares not reached.

    Every run removes different plugs, because which ones are removed can matter as much as how many.

    Args:
        sessions: records of all stations.
        stations: these stations, with their plugs.
        time_zone: local time zone.
        removed: shares of the energy to turn away.
        regions: number of regions, or another grouping that `Panel` knows.
        seed: seed of the first run.
        runs: number of runs per share.
    """
    if wrong := [share for share in removed if not 0 < share < 1]:
        raise InputError(f"A share of {wrong[0]:g} to turn away makes no sense: give one between 0 and 1, such as 0.2.")
    quiet, kept = quiet_sites(sessions, stations, time_zone)
    truth = Panel(kept, quiet, regions=regions, time_zone=time_zone)
    notes = [
        f"{quiet.height} sites (adjacent stations) had two plugs or more, were open all the time and full "
        f"for less than {100 * MAX_FULL_SHARE:g} % of it; they have {kept.height:,} of {sessions.height:,} sessions."
    ]
    scenes, plugs = [], int(quiet["plugs"].sum())
    for share in removed:
        all_thinned = [thin(kept, quiet, share, seed + run) for run in range(runs)]
        away = np.array([thinned.removed for thinned in all_thinned])
        if np.abs(away - share).max() > NEAR:
            notes.append(
                f"{100 * share:g} %: {100 * away[np.abs(away - share).argmax()]:.0f} % of the energy is the nearest "
                "that removing plugs can turn away, so this cell is left out."
            )
            continue
        fewer = plugs - np.array([int(thinned.plugs["plugs"].sum()) for thinned in all_thinned])
        notes.append(
            f"{100 * share:g} %: {_range(fewer)} of {plugs} plugs removed, which turns away "
            f"{_range(100 * away, '.1f')} % of the energy."
        )
        scenes += [
            replace(_scene(thinned, quiet, truth, time_zone, share), run=run) for run, thinned in enumerate(all_thinned)
        ]
    if not scenes:
        raise InputError("Removing plugs on paper reaches none of these shares: " + " ".join(notes[1:]))
    return scenes, notes


def _range(values: NDArray[Any], form: str = "d") -> str:
    """The smallest and largest of some numbers as text, or the number if both read the same; `form` formats them."""
    low, high = format(values.min(), form), format(values.max(), form)
    return low if low == high else f"{low} to {high}"


def sessions_between(sessions: pl.DataFrame, since: datetime | None, until: datetime | None) -> pl.DataFrame:
    """The sessions that start from `since` on and before `until`; either may be None."""
    if since is not None:
        sessions = sessions.filter(pl.col("start") >= since)
    if until is not None:
        sessions = sessions.filter(pl.col("start") < until)
    if sessions.is_empty():
        raise InputError("There are no sessions in that period: give another --since or --until.")
    return sessions


def thinned_panel(thinned: Thinned, stations: pl.DataFrame, regions: str | Regions, time_zone: str) -> Panel:
    """The panel of the remaining sessions, at stations with fewer plugs."""
    fewer = stations.drop("plugs").join(thinned.plugs, on="station_id", how="left", maintain_order="left")
    return Panel(thinned.sessions, fewer, regions=regions, time_zone=time_zone)


def thin(sessions: pl.DataFrame, stations: pl.DataFrame, share: float, seed: int = 1) -> Thinned:
    """Remove plugs, at stations in random order and never the last, until that share of the energy is turned away.

    The first order that comes within `CLOSE` of the share is taken; if there is none, the order that comes closest is.
    """
    ordered = sessions.sort("station_id", "start", maintain_order=True)
    parts = {str(name): part for (name,), part in ordered.group_by("station_id", maintain_order=True)}
    before = dict(zip(stations["station_id"].to_list(), stations["plugs"].to_list(), strict=True))
    served = {name: _served(part, before[name]) for name, part in parts.items()}
    energy = {name: part["energy_kwh"] for name, part in parts.items()}
    # Energy lost [kWh] by station with 1, 2, ... plugs.
    lost = {name: [float(energy[name].filter(~kept).sum()) for kept in served[name]] for name in parts}
    whole = float(ordered["energy_kwh"].sum())
    if not whole > 0:
        raise InputError("The sessions of these sites have no energy: nothing can be turned away.")
    removable = [name for name in parts for _ in range(before[name] - 1)]
    rng = np.random.default_rng([seed, ORDER_STREAM])
    best, nearest = before, np.inf
    for _ in range(ORDERS):
        plugs, total = dict(before), 0.0
        for name in (removable[i] for i in rng.permutation(len(removable))):
            more = lost[name][plugs[name] - 2] - lost[name][plugs[name] - 1]
            if abs(total + more - share * whole) <= abs(total - share * whole):  # the share comes nearer
                plugs[name] -= 1
                total += more
        if abs(total - share * whole) < nearest:
            best, nearest = plugs, abs(total - share * whole)
        if nearest <= CLOSE * whole:
            break
    kept = ordered.filter(pl.concat([served[name][best[name] - 1] for name in parts]))
    table = pl.DataFrame({"station_id": list(before), "plugs": [best[name] for name in before]})
    return Thinned(kept, table, 1 - float(kept["energy_kwh"].sum()) / whole)


def _served(part: pl.DataFrame, plugs: int) -> list[pl.Series]:
    """Which sessions of a station would have been served with 1, 2, ... of its plugs; with all plugs, all would."""
    start, end = (part[column].dt.epoch("ms").to_numpy().astype(np.int64) for column in ("start", "end"))
    fewer = [pl.Series(~turned_away(start, end, number)) for number in range(1, plugs)]
    return [*fewer, pl.Series(np.ones(part.height, bool))]


def quiet_sites(sessions: pl.DataFrame, stations: pl.DataFrame, time_zone: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sites that can be thinned, as stations whose plugs are the site's capacity, and their sessions.

    A site must have a capacity of at least two cars, be full for less than `MAX_FULL_SHARE` of the time, and be open on
    at least `MIN_OPEN_SHARE` of the days: otherwise its records are not the truth, or there is too little to train on.
    """
    panel = _panel_of_sites(sessions, stations, time_zone)
    full, is_open = _shares(panel)
    enough = (panel.sites["capacity"] > 1) & (panel.stations["sessions"] > 0)
    quiet = panel.stations.filter(enough & pl.Series((full < MAX_FULL_SHARE) & (is_open >= MIN_OPEN_SHARE)))
    if quiet.is_empty():
        raise InputError(
            f"No site with two plugs or more was open all the time and full for less than {100 * MAX_FULL_SHARE:g} % "
            "of it: there is no truth in these records to test against."
        )
    # With fewer plugs, cars would have used other plugs, so plug ids are meaningless.
    sessions = panel.sessions.drop("plug_id", strict=False)
    kept = sessions.join(quiet.select("station_id"), on="station_id", how="semi", maintain_order="left")
    return quiet.select("station_id", "name", "lat", "lon", "power_kw", plugs="capacity"), kept


def _panel_of_sites(sessions: pl.DataFrame, stations: pl.DataFrame, time_zone: str) -> Panel:
    """A panel in which every site is one station. Merging can bring sites within reach of each other, so it repeats."""
    while True:
        panel = Panel(sessions, stations, regions="station", time_zone=time_zone)
        if panel.sites.height == panel.stations.height:
            return panel
        power = panel.stations.group_by("site_id").agg(pl.col("power_kw").max())
        stations = panel.sites.join(power, on="site_id", maintain_order="left").select(
            "name", "lat", "lon", "power_kw", station_id="site_id", plugs="capacity"
        )
        site = panel.stations.select("station_id", "site_id")
        merged = panel.sessions.join(site, on="station_id", maintain_order="left")
        if "plug_id" in merged.columns:  # plugs of two stations may have the same name
            merged = merged.with_columns(plug_id=pl.col("station_id") + " " + pl.col("plug_id"))
        sessions = merged.drop("station_id").rename({"site_id": "station_id"})


def _shares(panel: Panel) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Share of its open time for which each site was full, and share of the period for which it was open."""
    network = observe(panel)
    spells = network.history.spells
    site = np.repeat(np.arange(network.sites), np.diff(spells.first))
    length = (spells.end_ms - spells.begin_ms).astype(np.float64)
    full = np.bincount(site, length * (spells.state == FULL), minlength=network.sites)
    open_ms = (network.closed_ms - network.opened_ms).astype(np.float64)
    return full / np.maximum(open_ms, 1.0), open_ms / (panel.hours * HOUR_MS)


def _scene(thinned: Thinned, stations: pl.DataFrame, truth: Panel, time_zone: str, share: float) -> Scene:
    """The scene of thinned records; `truth` is the panel of the original ones."""
    until = training_end(truth.period)

    def make_table(sessions: pl.DataFrame) -> pl.DataFrame:
        panel = thinned_panel(thinned._replace(sessions=sessions), stations, truth.regions, time_zone)
        return panel_table(LostDemand().fit(panel, until))

    seen = without_hindsight(thinned.sessions, until, make_table)
    columns = [name for name in UNSEEN if name in seen.columns]
    joined = truth.table.select("unique_id", "ds", y_true="y").join(
        seen.select("unique_id", "ds", "y", "arrivals", "censored", *columns),
        on=["unique_id", "ds"],
        how="left",
        maintain_order="left",
    )
    # Before the first remaining session and after the last one, no site was full.
    panel = joined.with_columns(
        pl.col("censored").fill_null(value=False),
        pl.col("exposure").fill_null(1.0),
        pl.col("y", "arrivals", "lost_kwh", "elsewhere_kwh", "lost_kwh_before").fill_null(0),
    )
    centres = truth.regions.centres.select("unique_id", "lat", "lon")
    positions = None if centres["lat"].null_count() else centres
    return Scene({"removed": share}, panel, positions, time_zone, reports_all_hours=True)
