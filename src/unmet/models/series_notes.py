"""Notes about a panel, which models of every kind report. This module does not import torch."""

from __future__ import annotations

import numpy as np

from unmet.models.series import PanelSeries

__all__ = ["missing_hours_notes", "set_aside_notes"]


def set_aside_notes(series: PanelSeries) -> list[str]:
    """A sentence on the rows of a panel that could not be used, if there are any."""
    if series.set_aside.is_empty():
        return []
    first = series.set_aside.row(0, named=True)
    return [
        f"{series.set_aside.height:,} rows of the panel could not be used, such as line {first['line']}: "
        f"{first['column']} {first['reason']}. They count as missing."
    ]


def missing_hours_notes(series: PanelSeries) -> list[str]:
    """A sentence on the region-hours that are missing, if any are."""
    missing = int(np.isnan(series.demand).sum())
    if not missing:
        return []
    return [f"{missing:,} of {series.demand.size:,} region-hours are missing; nothing is learned from them."]
