"""Notes: what an analyst should know before using an estimate of lost demand, the most serious first."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.demand.calendar import HOUR_MS
from unmet.demand.panel import Panel
from unmet.estimation.exposed import FullHours
from unmet.estimation.occupancy import Network
from unmet.estimation.selfcheck import SelfCheck

__all__ = ["FAR_OFF", "estimate_notes"]

FAR_OFF = 0.1
"""Distance of the self-check's log ratio from 0, beyond chance, from which the estimate is doubtful."""
FEW_SESSIONS, FEW_DAYS = 200, 14  # fewer sessions or days than these are too few to learn from
SILENT_DAYS = 30  # time without a session at a site from which it is mentioned
NOTABLE = 0.1  # share of drivers from which waiting, spill and restarts are mentioned
ALWAYS = 0.95  # share of the time from which a site counts as always full
SURE = 0.9  # probability from which a capacity counts as certain
UNSURE_LOSS = 0.2  # share of the loss at sites of uncertain capacity from which that is mentioned
SINGLE_LOSS = 0.5  # share of the loss at sites with one plug from which that is mentioned


def estimate_notes(
    panel: Panel,
    network: Network,
    rows: FullHours,
    lost: NDArray[np.float64],
    check: SelfCheck,
    waiting: float,
    spill: float,
    restarts: float,
    burst_shape: float,
) -> list[str]:
    """Sentences about doubts and findings, the most serious first.

    Args:
        panel: the records.
        network: sites as the estimator sees them.
        rows: hours in which sites were full.
        lost: lost arrivals, (sites,).
        check: the self-check.
        waiting: share of the drivers at full sites who wait until they are served.
        spill: share who are served at another site nearby.
        restarts: departures that are followed at once by another session of the same car, per departure.
        burst_shape: shape of the effects of single hours; infinite for no bursts.
    """
    hours = np.maximum((network.closed_ms - network.opened_ms) / 3_600_000, 1e-9)
    full = np.bincount(rows.site, rows.full, minlength=network.sites) / hours
    return [
        *_self_check(check),
        *_few_records(panel),
        *_always_full(panel, full),
        *_capacity(panel, lost),
        *_single(network, lost),
        *_waiting(waiting, spill, restarts),
        *_bursts(burst_shape),
        *_openings(panel, network),
        *_silences(panel, network),
        *panel.notes,
    ]


def _self_check(check: SelfCheck) -> list[str]:
    if not check.known:
        return ["The estimate could not be checked on these records: too few drivers came while one plug was free."]
    if check.excess < FAR_OFF:
        return []
    direction = "more" if check.ratio > 1 else "fewer"
    reason = (
        "as happens if vehicles come on a schedule, or the same drivers come every day"
        if check.ratio > 1
        else "as happens if drivers come in groups or bursts"
    )
    return [
        f"Treat this estimate with caution: with the last free plug of every site hidden, the method finds {direction} "
        f"drivers there than the records show ({check.ratio:.2f} times as many, {check.low:.2f} to {check.high:.2f}), "
        f"{reason}. The interval is wider because of this."
    ]


def _few_records(panel: Panel) -> list[str]:
    days = panel.hours / 24
    if panel.sessions.height >= FEW_SESSIONS and days >= FEW_DAYS:
        return []
    return [
        f"{_count(panel.sessions.height, 'session', 'sessions')} over {_count(round(days), 'day', 'days')} are too few "
        "to learn from: give at least a few weeks of records."
    ]


def _always_full(panel: Panel, full: NDArray[np.float64]) -> list[str]:
    names = panel.sites["name"].to_list()
    always = [names[s] for s in np.argsort(-full) if full[s] > ALWAYS]
    if not always:
        return []
    return [
        f"{_count(len(always), 'site was', 'sites were')} full almost all the time "
        f"({', '.join(map(str, always[:3]))}): their loss is little "
        "more than a guess. Check how many cars they can charge at once."
    ]


def _capacity(panel: Panel, lost: NDArray[np.float64]) -> list[str]:
    notes = []
    stations_by_source = dict(panel.stations["capacity_from"].value_counts().iter_rows())
    if fewer := stations_by_source.get("fewer than listed", 0):
        notes.append(
            f"{_count(fewer, 'station charges', 'stations charge')} fewer cars at once than "
            f"{'it has' if fewer == 1 else 'they have'} plugs or connectors ({_names(panel, 'fewer than listed')}): "
            "drivers stop coming before all are taken, as happens if connectors share a charger. If that is wrong, so "
            "is most of the loss there: see capacity_from in stations.csv."
        )
    if more := stations_by_source.get("more than listed", 0):
        notes.append(
            f"{_count(more, 'station had', 'stations had')} more cars at once than listed plugs "
            f"({_names(panel, 'more than listed')}): the records take precedence. Check the table of stations."
        )
    unsure = panel.sites["capacity_sure"].to_numpy() < SURE
    if lost.sum() > 0 and lost[unsure].sum() > UNSURE_LOSS * lost.sum():
        notes.append(
            f"{100 * lost[unsure].sum() / lost.sum():.0f} % of the loss is at sites whose capacity is inferred from "
            "the records and uncertain. List their plugs in the table of stations."
        )
    merged = panel.stations.height - panel.sites.height
    if merged:
        notes.append(
            f"{panel.stations.height:,} stations form {panel.sites.height:,} sites: adjacent stations are one choice "
            "for a driver, and so are stations of the same name where positions are missing."
        )
    return notes


def _names(panel: Panel, capacity_from: str) -> str:
    """Names of the busiest stations with this source of capacity."""
    rows = panel.stations.filter(pl.col("capacity_from") == capacity_from).sort("sessions", descending=True)
    names = rows.head(3).select(pl.coalesce("name", "station_id")).to_series().to_list()
    return ", ".join(map(str, names)) + (" and others" if rows.height > len(names) else "")


def _single(network: Network, lost: NDArray[np.float64]) -> list[str]:
    single = lost[network.capacity == 1].sum()
    if lost.sum() <= 0 or single < SINGLE_LOSS * lost.sum():
        return []
    return [
        f"{100 * single / lost.sum():.0f} % of the loss is at sites that charge one car at a time. Their records "
        "cannot show whether fewer drivers come to a full site: that is inferred from the other sites, and from other "
        "towns if these do not show it either."
    ]


def _waiting(waiting: float, spill: float, restarts: float) -> list[str]:
    notes = []
    if waiting >= NOTABLE:
        notes.append(
            f"About {100 * waiting:.0f} % of the drivers who find a site full wait until they are served: plugs are "
            "retaken at once more often there than at sites with another free plug. They are not counted as lost."
        )
    if spill >= NOTABLE:
        notes.append(
            f"About {100 * spill:.0f} % of the drivers who are turned away charge at another site nearby: arrivals "
            "there rise when a site fills up. They are not counted as lost."
        )
    if restarts >= NOTABLE:
        notes.append(
            f"{100 * restarts:.0f} % of departures are followed at once by another session, even if other plugs are "
            "free: probably of the same car. Give a column with the driver, card or vehicle to join such sessions."
        )
    return notes


def _bursts(shape: float) -> list[str]:
    if np.isinf(shape):
        return []
    return [f"Arrivals come in bursts: single hours vary by {100 / np.sqrt(shape):.0f} % beyond the week and the day."]


def _openings(panel: Panel, network: Network) -> list[str]:
    partly = int(((network.opened_ms > network.opened_ms.min()) | (network.closed_ms < network.closed_ms.max())).sum())
    return [f"{_count(partly, 'site', 'sites')} opened or closed within the period."] if partly else []


def _silences(panel: Panel, network: Network) -> list[str]:
    visits, silent = network.visits, np.zeros(network.sites)
    is_car = visits.row >= 0
    site = np.repeat(np.arange(network.sites), np.diff(visits.first))[is_car]
    days = np.diff(visits.start_ms[is_car]) / (24 * HOUR_MS)
    same = site[1:] == site[:-1]
    np.maximum.at(silent, site[1:][same], days[same])
    number, worst = int((silent >= SILENT_DAYS).sum()), int(silent.argmax())
    if number == 0:
        return []
    return [
        f"{_count(number, 'site has', 'sites have')} no session for {SILENT_DAYS} days or more at a time (the "
        f"longest: {panel.sites['name'][worst]}, {silent[worst]:.0f} days). Those days count as days without demand: "
        "if a site was out of order, give it with --outages."
    ]


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
