"""Climatology: demand in the same hour of days of the same type, of the last weeks."""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.models.direct.history import HourlyHistory

__all__ = ["WINDOWS", "climatology"]


WINDOWS = {"climatology": 8, "long-climatology": 26}  # weeks


def climatology(history: HourlyHistory, hours: Integers, horizon: Integers, weeks: int, levels: Floats) -> Floats:
    """Quantiles of the targets in the same hour and day type over the last weeks before the forecast.

    Quantiles are linear between order statistics, as NumPy's.

    Returns:
        (targets, regions, levels + 2): quantiles and mean [kWh], and the share of zeros, which is 1 where a region has
        no such hour yet.
    """
    cells, origin = history.day_type, hours - horizon
    last = cells.rank(cells.label[hours], origin)
    return _window_quantiles(
        history.target, cells.order, last, origin - weeks * 168, cells.label[hours], cells.label, levels
    )


@compiled()
def _window_quantiles(
    values: Floats, order: Integers, last: Integers, after: Integers, wanted: Integers, label: Integers, levels: Floats
) -> Floats:
    """Quantiles, mean and share of zeros of a cell, from its hour of rank `last` back to those after `after`."""
    regions, number = values.shape[1], len(levels)
    made = np.zeros((len(last), regions, number + 2))
    made[..., number + 1] = 1.0
    sample = np.empty(len(order))
    for i in range(len(last)):
        for r in range(regions):
            n = 0
            place = last[i]
            while place >= 0 and label[order[place]] == wanted[i] and order[place] > after[i]:
                value = values[order[place], r]
                if not np.isnan(value):
                    sample[n] = value
                    n += 1
                place -= 1
            if n == 0:
                continue
            chosen = np.sort(sample[:n])
            for j in range(number):
                at = levels[j] * (n - 1)
                low = int(at)
                high = min(low + 1, n - 1)
                made[i, r, j] = chosen[low] + (at - low) * (chosen[high] - chosen[low])
            made[i, r, number] = chosen.mean()
            made[i, r, number + 1] = np.searchsorted(chosen, 0.0, side="right") / n
    return made
