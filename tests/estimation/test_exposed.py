"""Sums over exposed time equal a count minute by minute, over a night in which clocks change."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.demand.spells import FREE, FULL, group_visits, sweep
from unmet.estimation.clock import BINS_A_WEEK, make_clock
from unmet.estimation.exposed import (
    BLOCK_BINS,
    expected_by_day,
    expected_by_step,
    exposed_by_week,
    exposed_by_week_weighted,
    full_hours,
    time_sums,
    usual_of_rows,
)

MINUTE, HOURS, SITES = 60_000, 36, 2
FIRST = int(dt.datetime(2019, 10, 26, 12, tzinfo=dt.UTC).timestamp() * 1000)
CLOCK = make_clock(FIRST, HOURS, "Europe/Copenhagen")
CAPACITY = np.array([1, 3])
NONE = np.zeros((0, 0), np.bool_)

visits = st.lists(st.tuples(st.integers(0, SITES - 1), st.integers(-60, HOURS * 60), st.integers(1, 400)), max_size=40)


def history(rows):
    site, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    start_ms, end_ms = FIRST + start * MINUTE, FIRST + (start + length) * MINUTE
    grouped = group_visits(site.copy(), start_ms, end_ms, np.arange(len(site)), SITES)
    opened, closed = (
        np.array([FIRST, FIRST + 97 * MINUTE]),
        np.array([FIRST + HOURS * 60 * MINUTE, FIRST + 2000 * MINUTE]),
    )
    return sweep(grouped, CAPACITY, opened, closed)


def minutes(spells):
    """Site, minute, taken and state of every open minute."""
    for s in range(SITES):
        for i in range(spells.first[s], spells.first[s + 1]):
            for now in range(spells.begin_ms[i] // MINUTE, spells.end_ms[i] // MINUTE):
                yield s, now - FIRST // MINUTE, int(spells.taken[i]), int(spells.state[i])


@given(visits, st.integers(0, 2**32 - 1), st.booleans())
def test_exposed_sums_equal_a_count_minute_by_minute(rows, seed, leave_out):
    rng = np.random.default_rng(seed)
    spells = history(rows).spells
    rate, level = rng.random((SITES, BINS_A_WEEK)), rng.random((SITES, CLOCK.days))
    response = rng.random((SITES, 3))  # the last one also for more
    step = np.array([[0, 1, 1, 1], [0, 1, 2, 3]])
    held = rng.random((SITES, -(-len(CLOCK.week) // BLOCK_BINS))) < 0.4 if leave_out else NONE
    by_week, by_day, by_step = (
        np.zeros((SITES, BINS_A_WEEK)),
        np.zeros((2, SITES, CLOCK.days)),
        np.zeros((SITES, CLOCK.days, 4)),
    )
    for s, now, taken, state in minutes(spells):
        if state != FREE:
            continue
        week, day, out = CLOCK.week[now // 15], CLOCK.day[now // 15], leave_out and held[s, now // 15 // BLOCK_BINS]
        factor = response[s, min(taken, 2)] / 60
        by_week[s, week] += 0 if out else factor * level[s, day]
        by_day[int(out), s, day] += factor * rate[s, week]
        by_step[s, day, step[s, min(taken, 3)]] += 0 if out else rate[s, week] / 60
    assert exposed_by_week(spells, CLOCK, level, response, held) == pytest.approx(by_week)
    assert expected_by_day(spells, CLOCK, rate, response, held, False) == pytest.approx(by_day[0])
    if leave_out:
        assert expected_by_day(spells, CLOCK, rate, response, held, True) == pytest.approx(by_day[1])
    assert expected_by_step(spells, CLOCK, rate, step, 4, held) == pytest.approx(by_step)
    weight = rng.random((3, CLOCK.days))
    often = exposed_by_week_weighted(spells, CLOCK, level, response, held, weight)
    for hours, each in zip(often, weight, strict=True):
        assert hours == pytest.approx(exposed_by_week(spells, CLOCK, level * each, response, held))


@given(visits, st.integers(0, 2**32 - 1))
def test_full_hours_equal_a_count_minute_by_minute(rows, seed):
    rate = np.random.default_rng(seed).random((SITES, BINS_A_WEEK))
    spells = history(rows).spells
    result = full_hours(spells, CLOCK, rate)
    full, usual = np.zeros((SITES, HOURS)), np.zeros((SITES, HOURS))
    for s, now, _, state in minutes(spells):
        if state == FULL:
            full[s, now // 60] += 1 / 60
            usual[s, now // 60] += rate[s, CLOCK.week[now // 15]] / 60
    cells = list(zip(result.site.tolist(), result.hour.tolist(), strict=True))
    assert cells == sorted(set(cells)) == list(zip(*(index.tolist() for index in np.nonzero(full)), strict=True))
    assert result.full == pytest.approx(full[result.site, result.hour])
    assert result.usual == pytest.approx(usual[result.site, result.hour])
    often = usual_of_rows(spells, CLOCK, result, np.stack([rate, 2 * rate]))
    assert often == pytest.approx(np.stack([result.usual, 2 * result.usual], axis=1))


def test_arrays_of_full_hours_grow_as_needed():
    hours = 3000
    clock = make_clock(FIRST, hours, "UTC")
    ends = np.array([FIRST + hours * 60 * MINUTE])
    grouped = group_visits(np.zeros(1, np.int64), np.array([FIRST]), ends, np.zeros(1, np.int64), 1)
    spells = sweep(grouped, np.array([1]), np.array([FIRST]), ends).spells
    result = full_hours(spells, clock, np.ones((1, BINS_A_WEEK)))
    assert result.hour.tolist() == list(range(hours))
    assert (result.usual == 1).all()


@given(visits)
def test_time_sums_equal_a_count_minute_by_minute(rows):
    """A full period continues if one car follows another, or if a plug is free for less than five minutes."""
    spells = history(rows).spells
    result = time_sums(spells)
    for s in range(SITES):
        own = [(taken, state) for site, _, taken, state in minutes(spells) if site == s]
        states = np.array([state for _, state in own])
        assert result.whole[s] == pytest.approx(len(own) / 60)
        assert result.cars[s] == pytest.approx(sum(taken for taken, _ in own) / 60)
        assert result.free[s] == pytest.approx((states == FREE).sum() / 60)
        periods = np.cumsum(states == FREE)
        lengths = np.bincount(periods, states == FULL) if len(states) else np.zeros(1)
        assert result.full_squared[s] == pytest.approx((lengths**2).sum() / 3600)
