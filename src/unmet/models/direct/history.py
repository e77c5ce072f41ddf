"""History: running tables and levels of demand, computed once for every hour.

A forecast made after hour o looks up their state at o. Nothing is computed twice for overlapping windows or for several
origins, so the cost is proportional to the length of the panel.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.demand.calendar import HOURS_A_DAY

__all__ = ["SUNDAY", "Cells", "HourlyHistory", "blend", "build_history", "day_type_of", "level_scale"]


DAY_TYPE_MEMORIES = (10, 40, 160)  # half-lives of the tables by hour and day type [days of that type]
WEEK_MEMORIES = (4, 16)  # half-lives of the tables by hour of the week [weeks]
LEVEL_MEMORIES = (24, 72, 168, 504, 2016)  # half-lives of the levels [h]
RATIO_MEMORIES = (3, 12, 48, 168)  # half-lives of recent demand over the demand expected by the table [h]
TOWN_MEMORIES = (12, 72)  # the same for all regions together [h]
USUAL = 40  # half-life of the table with which recent demand is compared, one of `DAY_TYPE_MEMORIES`
MIN_SESSIONS = 1e-3  # a region with fewer sessions per hour counts as silent
LABEL_STEP = 1 << 32  # more hours than any panel has, so that label x LABEL_STEP + hour sorts by label, then by hour
SUNDAY = 6
FREE = -1  # label of past hours of days off, which belong to no table


@dataclass(frozen=True, slots=True)
class Cells:
    """Hours grouped by a label, such as hour and day type, in order of time within each group."""

    label: Integers  # (hours,), label of each hour
    order: Integers  # past hours, sorted by the label of their group, then by time
    key: Integers  # label x LABEL_STEP + hour, in the same order

    @classmethod
    def of(cls, label: Integers, hours: int) -> Cells:
        """Group the first `hours` hours; labels may extend beyond them."""
        past = np.arange(hours)
        order = np.lexsort((past, label[:hours]))
        return cls(label, order, label[:hours][order] * LABEL_STEP + order)

    def rank(self, label: Integers, until: Integers) -> Integers:
        """Position in `order` of the last hour of a label that is not after `until`; -1 if there is none."""
        place = np.searchsorted(self.key, label * LABEL_STEP + until, side="right") - 1
        found = (place >= 0) & (self.key[np.maximum(place, 0)] // LABEL_STEP == label)
        return np.where(found, place, -1)

    def first(self, label: Integers) -> Integers:
        """Position in `order` of the first hour of a label."""
        return np.searchsorted(self.key, label * LABEL_STEP, side="left")

    def last(self, label: Integers, until: Integers) -> Integers:
        """The last hour of a label that is not after `until`; -1 if there is none."""
        place = self.rank(label, until)
        return np.where(place >= 0, self.order[place] if len(self.order) else -1, -1)

    def previous(self) -> Integers:
        """The hour of the same label before each past hour; -1 if there is none."""
        hours = np.arange(len(self.order))
        return self.last(self.label[: len(hours)], hours - 1)


@dataclass(frozen=True, slots=True)
class HourlyHistory:
    """Running states of demand, each (hours, regions); a state includes its own hour and all earlier hours.

    Means are in kWh per hour. Missing hours leave every state unchanged.
    """

    known: Floats  # observed demand plus the expected loss [kWh]; NaN if missing
    target: Floats  # demand to be forecast [kWh]; NaN if missing
    extras: Floats  # (past and future hours, regions, columns), covariates known in advance
    week: Integers  # (past and future hours,), hour of the week
    quiet: Floats  # (past and future hours,), quietness of days off, see `free_days`; 0 on other days
    day_type: Cells  # by hour and day type (weekdays, weekends)
    day_tables: tuple[Floats, ...]  # mean of the cell, by memory
    zero_share: Floats  # share of hours of the cell without demand
    by_week: Cells  # by hour of the week
    week_tables: tuple[Floats, ...]
    week_counts: tuple[Floats, ...]  # discounted number of weeks in a cell
    levels: tuple[Floats, ...]
    ratios: tuple[Floats, ...]  # recent demand over the demand expected by the usual table
    town: tuple[Floats, ...]  # (hours, 1), the same for all regions together
    scale: Floats  # moving level by which features are scaled, never 0
    floor: Floats = field(repr=False)  # (regions,), smallest scale

    def sunday(self, hours: Integers) -> Integers:
        """Hours of the week on Sunday with the same hour of the day."""
        return SUNDAY * HOURS_A_DAY + self.week[hours] % HOURS_A_DAY

    @property
    def hours(self) -> int:
        """Number of past hours."""
        return len(self.known)

    @property
    def regions(self) -> int:
        """Number of regions."""
        return int(self.known.shape[1])


def build_history(
    known: Floats,
    target: Floats,
    extras: Floats,
    week: Integers,
    session_kwh: Floats,
    quiet: Floats | None = None,
) -> HourlyHistory:
    """The states of all hours.

    Args:
        known: observed demand plus the expected loss, (hours, regions) [kWh], NaN if missing.
        target: demand to be forecast, of the same shape.
        extras: covariates of past and future hours, (hours + ahead, regions, columns).
        week: local hour of the week, (hours + ahead,).
        session_kwh: energy of one session in each region [kWh], which defines the smallest scale.
        quiet: quietness of days off, (hours + ahead,). Days off count for levels, but belong to no table.
    """
    hours = len(known)
    quiet = np.zeros(len(week)) if quiet is None else quiet
    day_type, by_week = (Cells.of(np.where(quiet > 0, FREE, label), hours) for label in (day_type_of(week), week))
    levels = tuple(_ratio(*decayed(known, _keep(memory))) for memory in LEVEL_MEMORIES)
    floor = MIN_SESSIONS * session_kwh
    earlier = day_type.previous()
    tables = tuple(_ratio(*decayed_in_cells(known, earlier, _keep(memory))) for memory in DAY_TYPE_MEMORIES)
    zeros = np.where(np.isnan(known), np.nan, (known <= 0).astype(float))
    weeks = tuple(decayed_in_cells(known, by_week.previous(), _keep(memory)) for memory in WEEK_MEMORIES)
    scale = level_scale(levels, floor)
    usual = tables[DAY_TYPE_MEMORIES.index(USUAL)]
    expected = _usual_before(usual, day_type, week[:hours], quiet[:hours])
    return HourlyHistory(
        known=known,
        target=target,
        extras=extras,
        week=week,
        quiet=quiet,
        day_type=day_type,
        day_tables=tables,
        zero_share=_ratio(*decayed_in_cells(zeros, earlier, _keep(USUAL))),
        by_week=by_week,
        week_tables=tuple(_ratio(*state) for state in weeks),
        week_counts=tuple(count for _, count in weeks),
        levels=levels,
        ratios=_recent(known, expected, RATIO_MEMORIES, scale),
        town=_recent(*_totals(known, expected), TOWN_MEMORIES, np.nansum(scale, axis=1, keepdims=True)),
        scale=scale,
        floor=floor,
    )


def day_type_of(week: Integers) -> Integers:
    """Label of hours of the week: the hour of the day, plus 24 on weekends."""
    return np.asarray(week % HOURS_A_DAY + HOURS_A_DAY * (week // HOURS_A_DAY >= 5))


def blend(
    weekday: Floats | float, sunday: Floats | float, quiet: Floats | float, closed: Floats | float = 0.0
) -> Floats:
    """Expected demand on a day off, interpolated between a weekday (quietness 0), a Sunday (1) and a closed day (2).

    Other values are interpolated in the same way, such as quantiles; `closed` is their value on a closed day.
    """
    beyond = np.maximum(quiet - 1, 0) * closed
    return np.asarray(np.maximum(1 - quiet, 0) * weekday + np.minimum(quiet, 2 - quiet) * sunday + beyond)


def _usual_before(usual: Floats, cells: Cells, week: Integers, quiet: Floats) -> Floats:
    """Demand that the usual table expected of each past hour, (hours, regions) [kWh]; NaN if it was empty."""

    def table(hours: Integers, label: Integers) -> Floats:
        last = cells.last(label, hours - 1)
        return np.where(last[:, None] >= 0, usual[np.maximum(last, 0)], np.nan)

    hours, free = np.arange(len(week)), np.flatnonzero(quiet > 0)
    result = table(hours, day_type_of(week))
    sundays = table(free, day_type_of(SUNDAY * HOURS_A_DAY + week[free] % HOURS_A_DAY))
    result[free] = blend(result[free], sundays, quiet[free][:, None])
    return result


def level_scale(levels: tuple[Floats, ...], floor: Floats) -> Floats:
    """The scale of every hour: mostly the level with a half-life of three weeks, partly that of twelve weeks."""
    return 0.8 * levels[LEVEL_MEMORIES.index(504)] + 0.2 * levels[LEVEL_MEMORIES.index(2016)] + floor


def _recent(known: Floats, expected: Floats, memories: tuple[int, ...], scale: Floats) -> tuple[Floats, ...]:
    """Recent over expected demand, shrunk towards 1: a tenth of the usual demand over the memory is added to both."""
    both = np.isfinite(known) & np.isfinite(expected)
    demand, predicted = np.where(both, known, 0.0), np.where(both, expected, 0.0)
    return tuple(
        (decayed(demand, _keep(m))[0] + 0.1 * m * scale) / (decayed(predicted, _keep(m))[0] + 0.1 * m * scale)
        for m in memories
    )


def _totals(known: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Observed and expected demand of all regions together, over the cells where both are known, (hours, 1) [kWh]."""
    both = np.isfinite(known) & np.isfinite(expected)
    demand, predicted = (np.where(both, part, 0.0).sum(axis=1, keepdims=True) for part in (known, expected))
    return demand, predicted


def _keep(half_life: float) -> float:
    """The discount factor per step that halves a value in `half_life` steps."""
    return float(0.5 ** (1 / half_life))


def _ratio(total: Floats, count: Floats) -> Floats:
    """Mean from a discounted sum and count; 0 if nothing was counted."""
    return np.asarray(total / np.maximum(count, 1e-12))


@compiled()
def decayed(values: Floats, keep: float) -> tuple[Floats, Floats]:
    """Discounted sum and count of all values so far, (hours, regions); `keep` is the discount factor per hour."""
    hours, regions = values.shape
    total, count = np.zeros((hours, regions)), np.zeros((hours, regions))
    for r in range(regions):
        s, n = 0.0, 0.0
        for t in range(hours):
            value = values[t, r]
            if not np.isnan(value):
                s = keep * s + value
                n = keep * n + 1.0
            total[t, r], count[t, r] = s, n
    return total, count


@compiled()
def decayed_in_cells(values: Floats, previous: Integers, keep: float) -> tuple[Floats, Floats]:
    """`decayed` within cells; `previous` is the preceding hour of the same cell."""
    hours, regions = values.shape
    total, count = np.zeros((hours, regions)), np.zeros((hours, regions))
    for t in range(hours):
        before = previous[t]
        for r in range(regions):
            s = total[before, r] if before >= 0 else 0.0
            n = count[before, r] if before >= 0 else 0.0
            value = values[t, r]
            if not np.isnan(value):
                s = keep * s + value
                n = keep * n + 1.0
            total[t, r], count[t, r] = s, n
    return total, count
