"""Day and month in rows that follow no pattern: each row is decided on its own.

If settled dates (a part above 12) contradict any order by block of rows, orders were mixed row by row. The
period that settled dates span, the stay, and in a file sorted by time the rows before and after then decide a row's
order. If both readings remain possible, the row is open: a guess would be wrong half of the time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Booleans, Floats

__all__ = ["follow_no_pattern", "row_by_row"]

MIN_MISFITS = 3  # fewer settled dates against the pattern may be typing errors
MAX_MISFIT_SHARE = 0.05  # the same as a share of the settled dates
EDGE_DAYS = 12  # settled dates have days above 12, so the period may extend this far at either end
CROSSED = 3.0  # cost of two orders in the start and end of one row [nats]
IMPOSSIBLE = 8.0  # this and the next as in `day_order`
OPEN = 3.0
IN_ORDER = 0.5  # share of settled starts within two days of the one before: rows are in order of time
_PASSES = 3  # a row that is decided helps to decide its neighbours in the next pass
_COMBINATIONS = ((True, True), (True, False), (False, True), (False, False))  # day first in start, in end

DayNumbers = NDArray[np.int32]


def follow_no_pattern(chosen: list[Booleans], dates: list[DayNumbers], no_day: int) -> bool:
    """Whether the orders chosen for rows are unrelated to the settled dates in them.

    Args:
        chosen: for each column and row, whether the day comes first according to the pattern that was found.
        dates: for each column, rows of (date read day first, date read month first, form) [days since 1970].
        no_day: stands for a date that does not exist.
    """
    misfits = total = 0
    for form in range(3):  # `day_order.MAX_FORMS`
        counts = np.zeros((2, 2), dtype=np.int64)  # chosen, settled
        for day_first, days in zip(chosen, dates, strict=True):
            settled = ((days[:, 0] == no_day) != (days[:, 1] == no_day)) & (days[:, 2] == form)
            pair = 2 * day_first[settled] + (days[settled, 1] == no_day)
            counts += np.bincount(pair, minlength=4).reshape(2, 2)
        # Settled dates must agree with each other, not with the pattern: if a spreadsheet rewrote the dates that it
        # could parse, all that are left contradict it. So the minority are misfits.
        misfits += int(counts.min(axis=1).sum())
        total += int(counts.sum())
    return misfits >= MIN_MISFITS and misfits > MAX_MISFIT_SHARE * total


def row_by_row(start: DayNumbers, end: DayNumbers, no_day: int) -> tuple[Booleans, Booleans, Booleans]:
    """For each row: whether the day comes first in its start and in its end, and whether that is undecided."""
    known = _known(start, no_day)
    known_ends = _known(end, no_day)
    settled = np.concatenate([known[known != no_day], known_ends[known_ends != no_day]])
    period = (int(settled.min()) - EDGE_DAYS, int(settled.max()) + EDGE_DAYS)
    fixed = np.stack([_cost(start, end, first, second, period, no_day) for first, second in _COMBINATIONS], axis=1)
    fixed += _order_cost(start, end, no_day)
    starts = np.stack([_days_read(start, first, no_day) for first, _ in _COMBINATIONS], axis=1)
    ends = np.stack([_days_read(end, second, no_day) for _, second in _COMBINATIONS], axis=1)
    near = _nearness(known, no_day)
    best, is_open = _best(fixed, starts, ends)
    for _ in range(_PASSES if near > IN_ORDER else 0):
        here = np.where(is_open, no_day, np.take_along_axis(starts, best[:, None], axis=1)[:, 0])
        steps = sum(_step_cost(other, starts, near, period, no_day) for other in _neighbours(here, no_day))
        best, is_open = _best(fixed + steps, starts, ends)
    orders = np.array(_COMBINATIONS)
    return orders[best, 0], orders[best, 1], is_open


def _days_read(dates: DayNumbers, day_first: bool, no_day: int) -> DayNumbers:
    """The days of dates read in one order; settled dates keep their own order."""
    chosen, other = (dates[:, 0], dates[:, 1]) if day_first else (dates[:, 1], dates[:, 0])
    return np.where(chosen == no_day, other, chosen)


def _known(dates: DayNumbers, no_day: int) -> DayNumbers:
    """The date of each row if it has only one reading; `no_day` otherwise."""
    by_day, by_month = _days_read(dates, True, no_day), _days_read(dates, False, no_day)
    return np.where(by_day == by_month, by_day, no_day).astype(np.int32)


def _cost(
    start: DayNumbers, end: DayNumbers, first: bool, second: bool, period: tuple[int, int], no_day: int
) -> Floats:
    """Cost [nats] of each row; `first` and `second` say whether the day comes first in its start and in its end.

    Days outside the period and long or impossible stays are costly; for the cost of a stay see `day_order._stay_cost`.
    """
    starts = _days_read(start, first, no_day).astype(np.int64)
    ends = _days_read(end, second, no_day).astype(np.int64)
    cost = np.zeros(len(starts))
    for days in (starts, ends):
        cost += IMPOSSIBLE * ((days != no_day) & ((days < period[0]) | (days > period[1])))
    stay = np.where((starts == no_day) | (ends == no_day), 0, ends - starts)
    return cost + np.where((stay < 0) | (stay > 31), IMPOSSIBLE, 1.5 * np.log1p(np.clip(stay, 0, 31)))


def _order_cost(start: DayNumbers, end: DayNumbers, no_day: int) -> Floats:
    """Cost of each combination by the share of its order among settled dates, and of two orders in one row."""
    settled = [(dates[:, 0] != no_day, dates[:, 1] != no_day) for dates in (start, end)]
    day_first = sum(int((by_day & ~by_month).sum()) for by_day, by_month in settled)
    month_first = sum(int((by_month & ~by_day).sum()) for by_day, by_month in settled)
    share = (day_first + 1) / (day_first + month_first + 2)
    cost = np.zeros((len(start), len(_COMBINATIONS)))
    for number, (first, second) in enumerate(_COMBINATIONS):
        impossible = np.zeros(len(start))
        for (by_day, by_month), order in zip(settled, (first, second), strict=True):
            impossible += IMPOSSIBLE * (by_month & ~by_day if order else by_day & ~by_month)
        cost[:, number] = impossible - np.log(share if first else 1 - share) + (CROSSED if first != second else 0.0)
    return cost


def _nearness(known: DayNumbers, no_day: int) -> float:
    """Share of known starts within two days of the known start before."""
    days = known[known != no_day].astype(np.int64)
    return 0.0 if len(days) < 3 else min(float((np.abs(np.diff(days)) <= 2).mean()), 0.98)


def _neighbours(days: DayNumbers, no_day: int) -> tuple[DayNumbers, DayNumbers]:
    """The known day of the row before and of the row after; of the next known rows if those are open."""
    place = np.arange(len(days))
    before = np.maximum.accumulate(np.where(days == no_day, -1, place))
    after = np.minimum.accumulate(np.where(days == no_day, len(days), place)[::-1])[::-1]
    padded = np.append(days, np.int32(no_day))  # places -1 and len(days) have no day
    return padded[np.append(-1, before[:-1])], padded[np.append(after[1:], len(days))]


def _step_cost(other: DayNumbers, starts: DayNumbers, near: float, period: tuple[int, int], no_day: int) -> Floats:
    """-log of a mixture: a start near that of its neighbour (heavy-tailed), or anywhere in the period.

    The formula is that of `day_order._step_cost`; `other` is the day of the neighbour.
    """
    apart = starts.astype(np.float64) - other[:, None]
    cost = -np.log(near / (3.15 * (1.0 + apart * apart)) + (1.0 - near) / max(period[1] - period[0], 30))
    return np.where((other[:, None] == no_day) | (starts == no_day), 0.0, cost)


def _best(cost: Floats, starts: DayNumbers, ends: DayNumbers) -> tuple[NDArray[np.int64], Booleans]:
    """The cheapest combination for each row, and whether one with other days costs hardly more."""
    best = cost.argmin(axis=1)
    rows = np.arange(len(cost))
    same = (starts == starts[rows, best][:, None]) & (ends == ends[rows, best][:, None])
    others = np.where(same, np.inf, cost).min(axis=1)
    return best, others - cost[rows, best] < OPEN
