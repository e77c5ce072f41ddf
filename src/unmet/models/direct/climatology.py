"""Climatology: demand in the same hour of days of the same type, of the last weeks."""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.models.direct.history import SIZE, Cells, HourlyHistory
from unmet.models.direct.moving import moved_quantiles

__all__ = ["WINDOWS", "climatology", "climatology_mean"]


WINDOWS = {"climatology": 8, "long-climatology": 26}  # weeks


def climatology(
    history: HourlyHistory, hours: Integers, horizon: Integers, weeks: int, levels: Floats, ratio: Floats | None = None
) -> Floats:
    """Quantiles of the targets in the same hour and day type over the last weeks before the forecast.

    Args:
        history: states up to the last past hour.
        hours: targets.
        horizon: of each [h].
        weeks: to look back from the hour of the forecast.
        levels: of the quantiles, linear between order statistics, as NumPy's.
        ratio: by which the level of each region is moved; the table as it is if not given.

    Returns:
        (targets, regions, levels + 2): quantiles and mean [kWh], and the share of zeros, which is 1 where a region has
        no such hour yet.
    """
    cells, origin = history.day_type, hours - horizon
    last = cells.rank(cells.label[hours], origin)
    ratio = np.ones(history.regions) if ratio is None else ratio
    return _window_quantiles(
        history.target, cells.order, last, origin - weeks * 168, cells.label[hours], cells.key // SIZE, levels, ratio
    )


def climatology_mean(history: HourlyHistory, hours: Integers, horizon: Integers, weeks: int) -> Floats:
    """The mean of the same table, (targets, regions) [kWh], by sums that are computed once; NaN where it is empty."""
    cells, origin = history.day_type, hours - horizon
    label = cells.label[hours]
    first, last = _after(cells, label, origin - weeks * 168), _after(cells, label, origin)
    values = history.target[cells.order]
    known = np.isfinite(values)
    none = np.zeros((1, history.regions))
    total = np.concatenate([none, np.cumsum(np.where(known, values, 0.0), axis=0)])
    count = np.concatenate([none, np.cumsum(known, axis=0)])
    number = count[last] - count[first]
    return np.where(number > 0, (total[last] - total[first]) / np.maximum(number, 1), np.nan)


def _after(cells: Cells, label: Integers, until: Integers) -> Integers:
    """Place in the order of cells of the first hour of a label that is after `until`."""
    place = cells.rank(label, until)
    return np.where(place >= 0, place + 1, cells.first(label))


@compiled()
def _window_quantiles(
    values: Floats,
    order: Integers,
    last: Integers,
    after: Integers,
    wanted: Integers,
    label: Integers,
    levels: Floats,
    ratio: Floats,
) -> Floats:
    """Quantiles, mean and share of zeros of a cell, from its hour of rank `last` back to those after `after`.

    `label` is that of the hours in `order`.
    """
    regions, number = values.shape[1], len(levels)
    made = np.zeros((len(last), regions, number + 2))
    made[..., number + 1] = 1.0
    sample = np.empty(len(order))
    for i in range(len(last)):
        for r in range(regions):
            n = 0
            place = last[i]
            while place >= 0 and label[place] == wanted[i] and order[place] > after[i]:
                value = values[order[place], r]
                if not np.isnan(value):
                    sample[n] = value
                    n += 1
                place -= 1
            if n > 0:
                made[i, r] = moved_quantiles(np.sort(sample[:n]), ratio[r], levels)
    return made
