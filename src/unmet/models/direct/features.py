"""Features of an hour to forecast, from the history up to the time of the forecast.

Most are logarithms of demand divided by its scale, or of recent demand divided by expected demand. Busy and quiet
regions, or a region before and after growth, then look alike, and one model serves them all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats, Integers
from unmet.demand.calendar import HOURS_A_DAY
from unmet.models.direct.history import DAY_TYPE_MEMORIES, LEVEL_MEMORIES, USUAL, HourlyHistory, day_type_of

__all__ = ["CALENDAR", "TABLES", "WEEK", "band_of", "bands", "blocks_of_origins", "features"]


WEEK = 168
SMALL = 0.05  # added to demand over scale before taking logarithms
TABLES = 3  # the first features are the logarithms of the tables by hour and day type
CALENDAR = 3  # the last features before covariates are hour, weekday and horizon as numbers, for trees only
FIRST_OF_BAND = (1, 2, 7, 25, 73)  # first horizon of each band [h]; horizons of a band share coefficients and weights


def bands(horizon: int) -> list[tuple[int, int]]:
    """First and last horizon of every band up to a horizon [h]."""
    first = [h for h in FIRST_OF_BAND if h <= horizon]
    return list(zip(first, [*(h - 1 for h in first[1:]), horizon], strict=True))


def band_of(horizon: Integers) -> Integers:
    """The band of each horizon [h]."""
    return np.searchsorted(FIRST_OF_BAND, horizon, side="right") - 1


def features(
    history: HourlyHistory, hours: Integers, horizon: Integers, week: Integers | None = None
) -> tuple[Floats, Floats]:
    """Features of each region for these hours at these horizons, and the scale of demand.

    Args:
        history: states up to the last past hour.
        hours: hours to forecast, counted from the first hour of the history.
        horizon: horizon of each [h]; `hours - horizon` must be past hours.
        week: hours of the week used to look up the tables; by default those of `hours`.

    Returns:
        (targets, regions, features) and (targets, regions) [kWh].
    """
    origin = hours - horizon
    week = history.week[hours] if week is None else week
    label = day_type_of(week)
    scale = history.scale[origin]
    # The last known hour with the same hour and day type, and with the same hour of the week; -1 if there is none.
    same, weekly = history.day_type.last(label, origin), history.by_week.last(week, origin)

    def of(state: Floats, at: Integers) -> Floats:
        """A state at past hours; 0 if there was no such hour yet."""
        return np.where(at[:, None] >= 0, state[np.maximum(at, 0)], 0.0)

    def log(demand: Floats) -> Floats:
        """Logarithm of demand over scale."""
        return np.asarray(np.log(np.maximum(np.nan_to_num(demand) / scale, 0.0) + SMALL))

    usual_table = history.day_tables[DAY_TYPE_MEMORIES.index(USUAL)]
    usual = of(usual_table, same)
    hour, weekend = label % HOURS_A_DAY, label // HOURS_A_DAY
    neighbours = [
        of(usual_table, history.day_type.last((hour + step) % HOURS_A_DAY + HOURS_A_DAY * weekend, origin))
        for step in (-1, 1)
    ]
    columns = [log(of(table, same)) for table in history.day_tables]
    columns.append(log((neighbours[0] + neighbours[1]) / 2))
    for table, count in zip(history.week_tables, history.week_counts, strict=True):
        # Shrunk towards the usual table, which counts as half a week.
        weeks = of(count, weekly)
        columns.append(log((weeks * of(table, weekly) + 0.5 * usual) / (weeks + 0.5)))
    # The level of three weeks is left out: the scale consists mostly of it, so their ratio hardly varies.
    columns += [log(level[origin]) for level, m in zip(history.levels, LEVEL_MEMORIES, strict=True) if m != 504]
    columns += [np.log(ratio[origin]) for ratio in history.ratios]
    columns += [np.broadcast_to(np.log(np.maximum(ratio[origin], SMALL)), scale.shape) for ratio in history.town]
    columns += [log(history.known[origin]), log(of(history.known, same)), log(of(history.known, weekly))]
    columns.append(of(history.zero_share, same))
    day = week // HOURS_A_DAY
    columns += [_for_all_regions(day == weekday, scale) for weekday in range(1, 7)]  # Monday has none of these flags
    # Trees do not tell horizons beyond 30 h apart.
    columns += [_for_all_regions(part, scale) for part in (hour, day, np.minimum(horizon, 30))]
    columns += [history.extras[hours, :, i] for i in range(history.extras.shape[2])]
    return np.stack(columns, axis=-1), scale


def _for_all_regions(of_hours: NDArray[np.generic], like: Floats) -> Floats:
    """Values of hours, repeated for every region; `like` has the shape to return."""
    return np.broadcast_to(of_hours.astype(float)[:, None], like.shape)


def blocks_of_origins(origin: Integers, fitted: int, size: int) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Blocks of `size` hours after the end of the fit: the first hour of each, and which origins are in it.

    `fitted` is the first hour after the fit. Origins before it are in the first block.
    """
    block = np.maximum((origin - fitted) // size, 0)
    for number in np.unique(block):
        yield fitted + int(number) * size, block == number
