"""Climatology: demand in the same hour of the day, on days of the same type, over the last weeks."""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.models.direct.history import LABEL_STEP, Cells, HourlyHistory, blend, day_type_of
from unmet.models.direct.moving import moved_quantiles

__all__ = ["WINDOWS", "climatology", "climatology_mean"]


WINDOWS = {"climatology": 8, "long-climatology": 26}  # weeks


def climatology(
    history: HourlyHistory, hours: Integers, horizon: Integers, weeks: int, levels: Floats, ratio: Floats | None = None
) -> Floats:
    """Quantiles of the targets in the same hour and day type over the last weeks before the forecast.

    Args:
        history: running states of demand, up to the last past hour.
        hours: hours to forecast.
        horizon: horizon of each [h]; only hours up to `hours - horizon` are used.
        weeks: number of weeks before the forecast to use.
        levels: levels of the quantiles, interpolated linearly between order statistics as in NumPy.
        ratio: factor on the level of each region, or of each target and region; by default 1.

    Returns:
        (targets, regions, levels + 2): quantiles and mean [kWh], and the share of zeros, which is 1 if a region has no
        such hour yet.
    """
    cells, origin = history.day_type, hours - horizon
    ratio = np.broadcast_to(1.0 if ratio is None else ratio, (len(hours), history.regions)).copy()
    label_of_order = cells.key // LABEL_STEP

    def table(chosen: Integers, week: Integers) -> Floats:
        label, until = day_type_of(week), origin[chosen]
        last = cells.rank(label, until)
        return _window_quantiles(
            history.target, cells.order, last, until - weeks * 168, label, label_of_order, levels, ratio[chosen]
        )

    result, days_off = table(np.arange(len(hours)), history.week[hours]), np.flatnonzero(history.quiet[hours] > 0)
    if len(days_off):
        closed = np.append(np.zeros(len(levels) + 1), 1.0)  # quantiles and mean are 0, the share of zeros is 1
        sundays = table(days_off, history.sunday(hours[days_off]))
        result[days_off] = blend(result[days_off], sundays, history.quiet[hours[days_off]][:, None, None], closed)
        # A mean of quantiles is positive if any of them is: restore the point mass at zero.
        result[days_off, :, :-2] = np.where(levels <= result[days_off, :, -1:], 0.0, result[days_off, :, :-2])
    return result


def climatology_mean(history: HourlyHistory, hours: Integers, horizon: Integers, weeks: int) -> Floats:
    """The mean that `climatology` returns, (targets, regions) [kWh], from cumulative sums; NaN without such hours."""
    cells, origin = history.day_type, hours - horizon
    values = history.target[cells.order]
    known = np.isfinite(values)
    none = np.zeros((1, history.regions))
    total = np.concatenate([none, np.cumsum(np.where(known, values, 0.0), axis=0)])
    count = np.concatenate([none, np.cumsum(known, axis=0)])

    def table(chosen: Integers, week: Integers) -> Floats:
        label, until = day_type_of(week), origin[chosen]
        first, last = _after(cells, label, until - weeks * 168), _after(cells, label, until)
        known_hours = count[last] - count[first]
        return np.where(known_hours > 0, (total[last] - total[first]) / np.maximum(known_hours, 1), np.nan)

    result, days_off = table(np.arange(len(hours)), history.week[hours]), np.flatnonzero(history.quiet[hours] > 0)
    if len(days_off):
        sundays = table(days_off, history.sunday(hours[days_off]))
        result[days_off] = blend(result[days_off], sundays, history.quiet[hours[days_off]][:, None])
    return result


def _after(cells: Cells, label: Integers, until: Integers) -> Integers:
    """Position in `cells.order` of the first hour of a label after `until`."""
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
    """Quantiles, mean and share of zeros over the hours of a cell, (targets, regions, levels + 2).

    Args:
        values: demand, (hours, regions) [kWh]; NaN if missing.
        order: hours by label, then by time, as in `Cells`.
        last: position in `order` of the last hour to use, (targets,).
        after: only later hours are used, (targets,).
        wanted: label of each target, (targets,).
        label: label of each hour in `order`.
        levels: levels of the quantiles.
        ratio: factor on the mean, (targets, regions).
    """
    regions, n_levels = values.shape[1], len(levels)
    result = np.zeros((len(last), regions, n_levels + 2))
    result[..., n_levels + 1] = 1.0
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
                result[i, r] = moved_quantiles(np.sort(sample[:n]), ratio[i, r], levels)
    return result
