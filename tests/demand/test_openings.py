"""Openings: stations and plugs that open or close are found, and those that are only quiet or taken are not."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.demand.records import MONDAY, sessions, stations, visits
from unmet.demand.openings import DAY_MS, absent_plugs, openings
from unmet.demand.panel import Panel
from unmet.demand.spells import group_visits
from unmet.estimation.occupancy import observe

DAYS = 120


def days_open(*units):
    """First and last day of units, given as rows of start and end in days."""
    unit = np.repeat(np.arange(len(units)), [len(rows) for rows in units])
    start, end = (np.array([round(row[i] * DAY_MS) for rows in units for row in rows], np.int64) for i in (0, 1))
    begin, until = openings(group_visits(unit, start, end, np.arange(len(unit)), len(units)), 0, DAYS * DAY_MS)
    return list(zip(begin / DAY_MS, until / DAY_MS, strict=True))


def busy(first, last, each=0.3):
    return [(day, day + 0.1) for day in np.arange(first, last - 0.1, each)]


def test_opening_and_closing_of_a_busy_unit_are_found():
    always, late, early, between = days_open(busy(0, DAYS), busy(40, DAYS), busy(0, 80), busy(40, 80))
    assert always == (0, DAYS)
    assert late == (pytest.approx(40, abs=1), DAYS)
    assert early == (0, pytest.approx(80, abs=1))
    assert between == (pytest.approx(40, abs=1), pytest.approx(80, abs=1))


@pytest.mark.parametrize(
    "rows",
    [
        [(60 + i, 60.1 + i) for i in range(5)],
        [(60, 60.1)],
        [],
        busy(10, DAYS),
        [*busy(30, 50), *busy(65, DAYS)],
        [*busy(0, 20), (20, 115)],
        [(0, 100), *busy(100, DAYS)],
    ],
    ids=["few", "one", "none", "silent for days only", "silent as long before", "long stay", "long first stay"],
)
def test_a_quiet_or_taken_unit_is_not_called_closed(rows):
    assert days_open(rows, busy(0, DAYS))[0] == (0, DAYS)


@given(st.lists(st.lists(st.tuples(st.floats(0, DAYS - 1), st.floats(0, 30)), max_size=30), min_size=1, max_size=4))
def test_every_session_is_within_the_open_time_of_its_unit(units):
    units = [sorted((start, min(start + length, DAYS)) for start, length in rows) for rows in units]
    for rows, (begin, end) in zip(units, days_open(*units), strict=True):
        assert 0 <= begin < end <= DAYS
        assert all(begin <= a + 1e-6 and b - 1e-6 <= end for a, b in rows)


def absent_days(rows, plug_id):
    table = sessions(*rows) if plug_id is None else sessions(*rows, plug_id=plug_id)
    found = absent_plugs(table, MONDAY, DAYS * DAY_MS)
    days = [(pl.col(name) - MONDAY).dt.total_seconds() / 86_400 for name in ("start", "end")]
    return found.select("station_id", "plug_id", *days).rows()


def of_plugs(**plugs):
    """Sessions at one station, by plug: first and last day."""
    rows = [(name, 24 * a, 24 * b) for name, days in plugs.items() for a, b in busy(*days)]
    return [("a", start, end, 5.0) for _, start, end in rows], [name for name, _, _ in rows]


def test_a_plug_that_is_installed_later_or_removed_is_out_of_order_until_or_from_then():
    rows, names = of_plugs(one=(0, DAYS), two=(40, DAYS), three=(0, 80))
    assert absent_days(rows, names) == [
        ("a", "three", pytest.approx(80, abs=0.5), DAYS),
        ("a", "two", 0, pytest.approx(40, abs=0.5)),
    ]
    assert absent_days(rows, None) == []


def test_a_plug_is_absent_only_while_its_station_is_open():
    rows, names = of_plugs(one=(30, 90), two=(50, 90), three=(30, 70))
    assert absent_days(rows, names) == [
        ("a", "three", pytest.approx(70, abs=0.5), pytest.approx(90, abs=0.5)),
        ("a", "two", pytest.approx(30, abs=0.5), pytest.approx(50, abs=0.5)),
    ]
    assert absent_days(*of_plugs(one=(30, 90))) == []


def test_a_site_that_opens_midway_has_no_spells_before():
    old, new = visits("a", 2, 2, 0, DAYS, 0.6, seed=1), visits("b", 2, 2, DAYS / 2, DAYS, 0.6, seed=1)
    panel = Panel(sessions(*old.rows, *new.rows), stations("a", "b", plugs=[2, 2]), regions="1")
    network = observe(panel)
    days = (network.opened_ms - network.clock.first_ms) / DAY_MS
    assert days[0] == pytest.approx(0, abs=0.2)  # the first session of all
    assert days[1] == pytest.approx(DAYS / 2, abs=0.5)
    spells = network.history.spells
    assert spells.begin_ms[spells.first[1]] == network.opened_ms[1]


def test_a_plug_that_is_installed_midway_counts_as_taken_before():
    one, two = visits("a", 1.5, 1, 0, 60, 0.5, seed=3), visits("a", 1.5, 2, 60, DAYS, 0.5, seed=4)
    table = sessions(*one.rows, *two.rows, plug_id=[*one.plug_id, *two.plug_id])
    panel = Panel(table, stations("a", plugs=[2]))
    assert panel.outages.height == 1
    assert (panel.outages["end"][0] - MONDAY) / dt.timedelta(days=1) == pytest.approx(60, abs=1)
    spells = observe(panel).history.spells
    early = spells.end_ms < MONDAY.timestamp() * 1000 + 60 * DAY_MS
    assert spells.taken[early].min() == 1  # the absent plug counts as taken
    assert spells.taken[~early].min() == 0
