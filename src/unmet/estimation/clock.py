"""The clock of the estimator: the quarter hours of a period, each with its position in the local week and its day."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Floats

__all__ = ["BINS_AN_HOUR", "BINS_A_DAY", "BINS_A_WEEK", "BIN_HOURS", "BIN_MS", "Clock", "make_clock"]

BIN_MS = 900_000
"""Length of a bin. Arrival rates change so fast in the morning that hours are too coarse: a site that is full for the
second half of an hour hides more than half of its arrivals."""
BINS_AN_HOUR, BINS_A_DAY, BINS_A_WEEK = 4, 96, 672
BIN_HOURS = 1 / BINS_AN_HOUR


class Clock(NamedTuple):
    """Quarter hours from the start of a period."""

    first_ms: int
    week: NDArray[np.int32]  # (bins,), position in the local week, 0 for Monday 00:00
    day: NDArray[np.int32]  # (bins,), local day, 0 for the first
    week_of_day: Floats  # (days, bins of the week), how often a day has a bin: 0 or 1, and 2 when clocks are set back

    @property
    def days(self) -> int:
        """Number of local days that the period touches."""
        return len(self.week_of_day)

    @property
    def hours(self) -> int:
        """Number of hours of the period."""
        return len(self.week) // BINS_AN_HOUR

    @property
    def last_ms(self) -> int:
        """End of the period [ms since 1970]."""
        return self.first_ms + len(self.week) * BIN_MS


def make_clock(first_ms: int, hours: int, time_zone: str) -> Clock:
    """The clock of a number of hours from `first_ms` [ms since 1970] on, in the local time of a zone."""
    at = pl.Series(first_ms + BIN_MS * np.arange(BINS_AN_HOUR * hours)).cast(pl.Datetime("ms", "UTC"))
    local = at.dt.convert_time_zone(time_zone)
    quarter = local.dt.hour().cast(pl.Int32) * BINS_AN_HOUR + local.dt.minute().cast(pl.Int32) // 15
    week = ((local.dt.weekday().cast(pl.Int32) - 1) * BINS_A_DAY + quarter).to_numpy()
    date = local.dt.date().to_physical().to_numpy()
    day = (date - date[0]).astype(np.int32)
    week_of_day = np.zeros((int(day[-1]) + 1, BINS_A_WEEK))
    np.add.at(week_of_day, (day, week), 1.0)
    return Clock(first_ms, week.astype(np.int32), day, week_of_day)
