"""Notes of a direct forecaster: what a user should know before using its forecasts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unmet.models.series import HOUR, PanelSeries
from unmet.models.series_notes import missing_hours_notes, set_aside_notes

__all__ = ["direct_notes"]

WEEK = 168
QUIET = 4 * WEEK  # hours without demand at the end of a panel after which a region may be closed
NEW = 2 * WEEK  # hours since its first demand for which a region is new, in panels of more than `QUIET` hours
NAMED = 5  # highest number of regions named in a sentence


def direct_notes(series: PanelSeries, fit_hours: int, missing: Sequence[str], min_hours: int) -> tuple[str, ...]:
    """Sentences on rows set aside, missing hours, parts left out and regions that are silent, closed or new.

    Args:
        series: the whole panel.
        fit_hours: number of its hours that the model learns from.
        missing: titles of the members that are left out because their library is not installed.
        min_hours: number of hours from which members are used.
    """
    notes = set_aside_notes(series)
    if fit_hours < min_hours:
        notes.append(
            f"The panel has {fit_hours / WEEK:.1f} weeks to learn from. With fewer than {min_hours // WEEK} weeks, "
            "the forecast is a table of past demand in the same hour: give a longer panel for a better one."
        )
    elif missing:
        notes.append(
            f"{', '.join(missing)} are left out, because LightGBM is not installed: `pip install 'unmet[trees]'` adds "
            "them. Without them, tables and regression are used."
        )
    return (*notes, *missing_hours_notes(series), *_region_notes(series))


def _region_notes(series: PanelSeries) -> list[str]:
    """Regions that are silent, closed or new at the end of the panel, from where forecasts start."""
    notes = []
    active = np.nan_to_num(series.demand) > 0
    silent = [name for name, part in zip(series.names, active.T, strict=True) if not part.any()]
    if silent:
        notes.append(f"No demand was observed in {_named(silent)}: the forecast there is zero.")
    recent = active[-QUIET:]
    closed = [
        name
        for i, name in enumerate(series.names)
        if active[:, i].any() and not recent[:, i].any() and len(active) > QUIET
    ]
    if closed:
        notes.append(
            f"Nothing was charged in {_named(closed)} for the last four weeks: hardly any demand is expected until "
            "it returns."
        )
    new = []
    for i, name in enumerate(series.names):
        where = np.flatnonzero(active[:, i])
        if len(where) and len(active) - where[0] < NEW and len(active) > QUIET:
            new.append(f"{name} (since {series.first + int(where[0]) * HOUR:%Y-%m-%d})")
    if new:
        notes.append(f"Demand began only recently in {_named(new)}: forecasts there are based on few hours.")
    return notes


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
