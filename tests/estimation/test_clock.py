"""The clock: quarter hours agree with the local time of the standard library."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmet.estimation.clock import BIN_MS, BINS_A_DAY, BINS_A_WEEK, make_clock

ZONES = ["UTC", "Europe/Copenhagen", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]


def local_times(first: dt.datetime, hours: int, zone: str) -> list[dt.datetime]:
    return [(first + dt.timedelta(minutes=15 * i)).astimezone(ZoneInfo(zone)) for i in range(4 * hours)]


@settings(max_examples=30)
@given(st.integers(0, 24 * 730), st.integers(1, 60), st.sampled_from(ZONES))
def test_bins_follow_local_time(since, hours, zone):
    first = dt.datetime(2019, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=since)
    clock = make_clock(int(first.timestamp() * 1000), hours, zone)
    at = local_times(first, hours, zone)
    assert clock.week.tolist() == [t.weekday() * 96 + t.hour * 4 + t.minute // 15 for t in at]
    assert clock.day.tolist() == [(t.date() - at[0].date()).days for t in at]
    assert clock.days == clock.day[-1] + 1
    assert clock.hours == hours
    assert clock.last_ms - clock.first_ms == hours * 4 * BIN_MS
    assert clock.week_of_day.sum() == len(clock.week)


@pytest.mark.parametrize(
    ("date", "hours", "most"), [((2019, 10, 27), 25, 2), ((2019, 3, 31), 23, 1), ((2019, 6, 2), 24, 1)]
)
def test_days_on_which_clocks_change_have_25_or_23_hours(date, hours, most):
    sunday = dt.datetime(*date, tzinfo=ZoneInfo("Europe/Copenhagen"))
    clock = make_clock(int(sunday.timestamp() * 1000), 72, "Europe/Copenhagen")
    assert clock.week_of_day[0].sum() == 4 * hours
    assert clock.week_of_day[0].max() == most
    twice = np.flatnonzero(clock.week_of_day[0] == 2)
    night = 6 * BINS_A_DAY + 2 * 4
    assert twice.tolist() == (list(range(night, night + 4)) if most == 2 else [])
    assert (clock.week_of_day[1] == 1).sum() == BINS_A_DAY
    assert clock.week_of_day.shape[1] == BINS_A_WEEK
