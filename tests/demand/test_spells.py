"""Spells: the sweep over all visits equals a count minute by minute."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.demand.spells import FREE, FULL, RELEASED, RELEASED_MS, group_visits, sweep

MINUTE = 60_000
WAIT = RELEASED_MS // MINUTE
SITES, FIRST, LAST = 3, -100, 400

# Site, start, length in minutes, and whether it is a car (rather than a plug out of order).
visits_of_sites = st.lists(
    st.tuples(
        st.integers(0, SITES - 1), st.integers(FIRST, LAST), st.integers(1, 120), st.sampled_from([True] * 4 + [False])
    ),
    max_size=40,
)
capacities = st.lists(st.integers(1, 3), min_size=SITES, max_size=SITES)
periods = st.lists(st.tuples(st.integers(-50, 200), st.integers(1, 250)), min_size=SITES, max_size=SITES)


def grouped(rows):
    site, start, length, car = np.array(rows, np.int64).reshape(-1, 4).T
    row = np.where(car, np.arange(len(site)), -1)
    return group_visits(site.copy(), start * MINUTE, (start + length) * MINUTE, row, SITES)


def count_by_minute(rows, site, capacity, opened, closed):
    """Taken plugs and state of every minute, and what each car found: (row, taken, state)."""
    own = [(start, start + length, i if car else -1) for i, (s, start, length, car) in enumerate(rows) if s == site]
    own.sort(key=lambda visit: visit[0])
    taken, state, found = [], [], []
    present, waited = [], FIRST - 1  # ends of the cars present; minute until which an arrival may have waited

    def leave(now):
        nonlocal waited
        for end in sorted(end for end in present if end <= now):
            if len(present) == capacity:
                waited = end + WAIT
            present.remove(end)

    def state_now(now):
        if len(present) >= capacity:
            return FULL
        return RELEASED if now < waited else FREE

    for now in range(FIRST, closed):
        leave(now)
        for start, end, row in own:
            if start == now:
                if row >= 0 and opened <= now:
                    found.append((row, now, len(present), state_now(now)))
                present.append(end)
                leave(now)
        if now >= opened:
            taken.append(len(present))
            state.append(state_now(now))
    return taken, state, found


@given(visits_of_sites, capacities, periods)
def test_spells_and_arrivals_equal_a_count_minute_by_minute(rows, capacity, period):
    opened, closed = np.array([a for a, _ in period]), np.array([a + n for a, n in period])
    spells, arrivals = sweep(grouped(rows), np.array(capacity), opened * MINUTE, closed * MINUTE)
    for s in range(SITES):
        taken, state, found = count_by_minute(rows, s, capacity[s], opened[s], closed[s])
        part = slice(spells.first[s], spells.first[s + 1])
        minutes = (spells.end_ms[part] - spells.begin_ms[part]) // MINUTE
        assert np.repeat(spells.taken[part], minutes).tolist() == taken
        assert np.repeat(spells.state[part], minutes).tolist() == state
        own = arrivals.site == s
        at = arrivals.at_ms[own] // MINUTE
        ours = list(zip(arrivals.row[own], at, arrivals.taken[own], arrivals.state[own], strict=True))
        assert ours == found


@given(visits_of_sites, capacities, periods)
def test_spells_tile_the_open_time_and_every_car_in_it_arrives_once(rows, capacity, period):
    opened, closed = (np.array([a for a, _ in period]) * MINUTE, np.array([a + n for a, n in period]) * MINUTE)
    visits = grouped(rows)
    spells, arrivals = sweep(visits, np.array(capacity), opened, closed)
    for s in range(SITES):
        part = slice(spells.first[s], spells.first[s + 1])
        begin, end = spells.begin_ms[part], spells.end_ms[part]
        assert (begin[0], end[-1]) == (opened[s], closed[s])
        assert (begin[1:] == end[:-1]).all()
        assert (begin < end).all()
        released = spells.state[part] == RELEASED
        assert ((end - begin)[released] <= RELEASED_MS).all()
        assert ((spells.state[part] == FULL) == (spells.taken[part] >= capacity[s])).all()
    cars = [i for i, (s, a, _, car) in enumerate(rows) if car and opened[s] <= a * MINUTE < closed[s]]
    assert sorted(arrivals.row) == cars


@given(visits_of_sites, st.randoms(use_true_random=False))
def test_the_order_of_the_records_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    one, other = (grouped(order) for order in (rows, shuffled))
    assert (one.first == other.first).all()
    assert (one.start_ms == other.start_ms).all()
    assert (one.end_ms == other.end_ms).all()
    limits = np.full(SITES, 2), np.full(SITES, FIRST * MINUTE), np.full(SITES, LAST * MINUTE)
    for column, shuffled_column in zip(sweep(one, *limits).spells, sweep(other, *limits).spells, strict=True):
        assert (column == shuffled_column).all()


def test_a_car_that_arrives_as_another_leaves_finds_its_plug_free():
    visits = group_visits(
        np.zeros(2, np.int64), np.array([0, 10]) * MINUTE, np.array([10, 20]) * MINUTE, np.arange(2), 1
    )
    spells, arrivals = sweep(visits, np.array([1]), np.array([0]), np.array([30 * MINUTE]))
    assert arrivals.taken.tolist() == [0, 0]
    assert arrivals.state.tolist() == [FREE, RELEASED]  # it may have waited for it
    assert spells.state.tolist() == [FULL, FULL, RELEASED, FREE]
    assert (np.diff(spells.begin_ms) // MINUTE).tolist() == [10, 10, WAIT]


@pytest.mark.parametrize(("capacity", "state"), [(1, FULL), (2, FREE)])
def test_a_visit_without_duration_finds_the_cars_present(capacity, state):
    start, end = np.array([0, 10]) * MINUTE, np.array([30, 10]) * MINUTE
    visits = group_visits(np.zeros(2, np.int64), start, end, np.arange(2), 1)
    spells, arrivals = sweep(visits, np.array([capacity]), np.array([0]), np.array([60 * MINUTE]))
    assert arrivals.taken.tolist() == [0, 1]
    assert arrivals.state.tolist() == [FREE, state]
    assert (spells.end_ms - spells.begin_ms).sum() == 60 * MINUTE


def test_an_outage_takes_a_plug_but_is_no_arrival():
    visits = group_visits(np.zeros(1, np.int64), np.array([5 * MINUTE]), np.array([9 * MINUTE]), np.array([-1]), 1)
    spells, arrivals = sweep(visits, np.array([1]), np.array([0]), np.array([20 * MINUTE]))
    assert len(arrivals.row) == 0
    assert spells.state.tolist()[:2] == [FREE, FULL]


@pytest.mark.parametrize("sites", [1, 4])
def test_sites_without_visits_are_free_throughout(sites):
    empty = np.empty(0, np.int64)
    visits = group_visits(empty, empty, empty, empty, sites)
    spells, arrivals = sweep(visits, np.ones(sites, np.int64), np.zeros(sites, np.int64), np.full(sites, 60 * MINUTE))
    assert spells.state.tolist() == [FREE] * sites
    assert (spells.end_ms - spells.begin_ms == 60 * MINUTE).all()
    assert len(arrivals.site) == 0
