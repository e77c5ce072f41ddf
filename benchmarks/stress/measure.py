"""One run of the stress tests: lost demand is estimated from the records of a simulated network with known truth."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass

import numpy as np
import polars as pl

from benchmarks.stress.arrivals import Case
from benchmarks.stress.simulator import Network, simulate
from unmet.demand.panel import Panel
from unmet.demand.spells import FULL, History
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.towns import TOWNS
from unmet.records.restarts import join_restarts

__all__ = ["Run", "full_hours_of_sites", "measure", "plain_count"]

HOUR_MS = 3_600_000
NO_RESPONSE = TOWNS._replace(no_crowding=1 - 1e-12)
"""The prior of an estimator that is told that arrivals do not depend on occupied plugs."""


@dataclass(frozen=True, slots=True)
class Run:
    """The result for one network. Ratios are estimates over the truth; NaN if something is unknown."""

    case: str
    seed: int
    network: str  # hash of the lost drivers: the same in cases that differ only in the records
    true_kwh: float
    true_share: float  # lost energy over all that drivers wanted
    kwh: float  # ratio of lost energy
    kwh_low: float
    kwh_high: float
    drivers: float  # ratio of lost drivers
    half_width: float  # of the interval of lost energy, over the estimate
    chance: float  # half-width from chance alone, if all rates were known
    inside: bool  # the interval contains the truth
    weeks: int  # region-weeks in which something was lost, or may have been according to the estimate
    weeks_inside: int
    plain: float  # ratio of lost energy by a plain count
    self_check: float
    waiting: float
    spill: float
    warns: bool
    components: str
    seconds: float


def measure(case: Case, seed: int) -> Run:
    """Simulate one network, estimate its lost demand from the records alone, and compare."""
    network = simulate(case, seed)
    started = time.perf_counter()
    sessions = network.sessions
    if "user_id" in sessions.columns:
        sessions, _ = join_restarts(sessions)
    panel = Panel(sessions, network.stations, regions="10", time_zone=network.time_zone)
    lost = LostDemand(prior=NO_RESPONSE if case.known_response else TOWNS).fit(panel)
    summary = lost.summary()
    seconds = time.perf_counter() - started
    kwh, true = summary["lost_kwh"], float(network.lost["energy_kwh"].sum())
    weeks, weeks_inside = _region_weeks(lost, network)
    return Run(
        case=case.name,
        seed=seed,
        network=hashlib.sha256(network.lost["time"].to_numpy().tobytes()).hexdigest()[:12],
        true_kwh=true,
        true_share=true / (true + float(network.sessions["energy_kwh"].sum())),
        kwh=kwh["mean"] / true,
        kwh_low=kwh["low"] / true,
        kwh_high=kwh["high"] / true,
        drivers=summary["lost_arrivals"]["mean"] / network.lost.height,
        half_width=(kwh["high"] - kwh["low"]) / 2 / kwh["mean"] if kwh["mean"] > 0 else np.nan,
        chance=1.645 * float(np.linalg.norm(network.lost["energy_kwh"].to_numpy())) / true,
        inside=bool(kwh["low"] <= true <= kwh["high"]),
        weeks=weeks,
        weeks_inside=weeks_inside,
        plain=plain_count(lost) / true,
        self_check=np.nan if summary["self_check"] is None else summary["self_check"]["ratio"],
        waiting=summary["waiting"],
        spill=summary["spill"],
        warns=_warns(summary["notes"]),
        components=", ".join(summary["components"]),
        seconds=seconds,
    )


def plain_count(lost: LostDemand) -> float:
    """Lost energy [kWh] by a plain count: at every site, arrivals per hour with a free plug x hours full x energy."""
    network, panel = lost.network_, lost.panel_
    full, free = full_hours_of_sites(network.history)
    site = network.site_of_station[network.station_of_session]
    arrivals = np.bincount(site, minlength=network.sites)
    energy = np.bincount(site, panel.sessions["energy_kwh"].to_numpy(), minlength=network.sites)
    rate = arrivals / np.maximum(free, 1e-9)
    return float((rate * full * energy / np.maximum(arrivals, 1)).sum())


def full_hours_of_sites(history: History) -> tuple[np.ndarray, np.ndarray]:
    """Hours in which each site was full, and in which it had a free plug, both (sites,)."""
    spells = history.spells
    sites = len(spells.first) - 1
    site = np.repeat(np.arange(sites), np.diff(spells.first))
    hours = (spells.end_ms - spells.begin_ms) / HOUR_MS
    is_full = spells.state == FULL
    full = np.bincount(site[is_full], hours[is_full], minlength=sites)
    return full, np.bincount(site[~is_full], hours[~is_full], minlength=sites)


def _region_weeks(lost: LostDemand, network: Network) -> tuple[int, int]:
    """Region-weeks with losses, true or estimated, and in how many of them the interval contains the truth."""
    week = pl.col("time").dt.convert_time_zone(network.time_zone).dt.truncate("1w").dt.date()
    true = (
        network.lost.with_columns(week=week)
        .join(lost.panel_.stations.select("station_id", "unique_id"), on="station_id")
        .group_by("unique_id", "week")
        .agg(actual_kwh=pl.col("energy_kwh").sum())
    )
    weeks = (
        lost.by_week()
        .filter(pl.col("unique_id") != "all")
        .join(true, on=["unique_id", "week"], how="full", coalesce=True)
        .with_columns(pl.col("actual_kwh", "lost_kwh_low", "lost_kwh_high").fill_null(0.0))
        .filter((pl.col("actual_kwh") > 0) | (pl.col("lost_kwh_high") > 0))
    )
    inside = pl.col("actual_kwh").is_between(pl.col("lost_kwh_low") - 1e-6, pl.col("lost_kwh_high") + 1e-6)
    return weeks.height, int(weeks.select(inside.sum()).item())


def _warns(notes: list[str]) -> bool:
    """Whether a note warns that the self-check is far off."""
    return any("with caution" in note for note in notes)
