"""Capacity: how many cars a station charges at once, even if its table is wrong."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests.demand.records import sessions, stations, visits
from unmet.demand.capacity import (
    KEEP_COMING,
    LASTING_MS,
    LISTED_WRONG,
    OVERLAPS,
    UNLISTED_FULL,
    _by_cars,
    _lasting_peak,
    _probability_full,
)
from unmet.demand.panel import Panel
from unmet.demand.spells import Spells

DAYS = 40


def inferred(rows, known, **columns):
    table = Panel(sessions(*rows, **columns), known, regions="1").stations
    return table.select("capacity", "capacity_from", "capacity_sure").rows()


def test_connectors_that_exclude_each_other_count_once():
    """Two posts with two connectors each, of which one works at a time."""
    drawn = visits("a", 2.0, 2, 0, DAYS, 1.0, seed=3)
    rng = np.random.default_rng(3)
    plug_id = [f"{name}{rng.integers(2)}" for name in drawn.plug_id]
    for plugs in ([4], [None]):  # whether listed or counted from the records
        capacity, known_from, sure = inferred(drawn.rows, stations("a", plugs=plugs), plug_id=plug_id)[0]
        assert (capacity, known_from) == (2, "fewer than listed")
        assert sure > 0.9


def test_a_table_that_lists_one_plug_too_many_is_corrected():
    drawn = visits("a", 1.5, 2, 0, DAYS, 1.0, seed=1)
    assert inferred(drawn.rows, stations("a", plugs=[3]))[0][:2] == (2, "fewer than listed")


def test_a_table_that_lists_one_plug_too_few_is_corrected():
    drawn = visits("a", 1.5, 3, 0, DAYS, 1.0, seed=1)
    capacity, known_from, sure = inferred(drawn.rows, stations("a", plugs=[2]))[0]
    assert (capacity, known_from) == (3, "more than listed")
    assert sure > 0.99


def test_a_correct_table_is_kept():
    busy, quiet = visits("a", 1.5, 3, 0, DAYS, 1.0, seed=1), visits("b", 0.1, 2, 0, DAYS, 1.0, seed=1)
    rows = inferred([*busy.rows, *quiet.rows], stations("a", "b", plugs=[3, 4]))
    assert rows == [(3, "listed", 1.0), (4, "listed", 1.0)]  # a few sessions are no evidence against four plugs


def test_a_station_where_drivers_keep_arriving_is_not_full():
    """At a quiet station with eight plugs, the most cars present are no sign of its capacity."""
    drawn = visits("a", 0.5, 8, 0, DAYS, 1.0, seed=2)
    capacity, known_from, sure = inferred(drawn.rows, stations("a", plugs=[None]))[0]
    assert known_from == "most cars at once"
    assert 2 <= capacity <= 8
    busy = visits("a", 3.0, 2, 0, DAYS, 1.0, seed=2)
    full = inferred(busy.rows, stations("a", plugs=[None]))[0]
    assert full[:2] == (2, "most cars at once")
    assert full[2] > 0.99
    assert sure < full[2]


def test_brief_overlaps_are_attributed_to_wrong_clocks():
    drawn = visits("a", 1.5, 2, 0, DAYS, 1.0, seed=4)
    late = [(name, a, b + 0.04 * (i % 3 == 0), kwh) for i, (name, a, b, kwh) in enumerate(drawn.rows)]
    assert inferred(late, stations("a", plugs=[2]))[0] == (2, "listed", 1.0)
    assert inferred(late, stations("a", plugs=[None]))[0][:2] == (2, "most cars at once")


def test_without_sessions_or_table_one_plug_is_assumed():
    known = stations("a", "empty", plugs=[1, None])
    assert inferred([("a", 1, 2, 5.0)], known)[1] == (1, "unknown", pytest.approx(UNLISTED_FULL))


def test_connectors_count_only_if_every_session_names_one():
    rows = [("a", 0, 1, 1.0), ("a", 2, 3, 1.0), ("b", 0, 1, 1.0), ("b", 2, 3, 1.0)]
    known = stations("a", "b", plugs=[None, None])
    capacities = inferred(rows, known, plug_id=["1", "2", "1", None])
    assert [row[:2] for row in capacities] == [(2, "connectors"), (1, "most cars at once")]


@pytest.mark.parametrize("prior", [LISTED_WRONG / 4, UNLISTED_FULL])
@pytest.mark.parametrize(("observed", "hours"), [(0, 3.0), (1, 3.0), (2, 10.0), (6, 10.0)])
def test_the_odds_of_being_full_are_those_of_two_poisson_counts(prior, observed, hours):
    from scipy.stats import poisson

    usual, arrivals = np.zeros(25), np.zeros(25)
    usual[:2], usual[2:4], arrivals[:2], arrivals[2] = 20.0, hours / 2, 10.0, observed
    mean = hours * 20.0 / 40.0  # 20 arrivals in 40 predicted ones with fewer cars
    full, free = (poisson.pmf(observed, factor * mean) for factor in (OVERLAPS, KEEP_COMING))
    expected = prior * full / (prior * full + (1 - prior) * free)
    assert _probability_full(2, usual, arrivals, prior) == pytest.approx(expected)


def test_only_cars_that_are_present_together_for_a_while_count():
    at = np.array([0, 10, 10 + LASTING_MS - 1, 2 * LASTING_MS + 9, 2 * LASTING_MS + 20])
    spells = Spells(
        np.array([0, 4]), at[:-1], at[1:], np.array([1, 3, 2, 5], np.int32), np.zeros(4, np.int8)
    )  # fmt: skip
    assert _lasting_peak(spells).tolist() == [2]


def test_usual_arrivals_by_number_of_cars_are_an_integral_over_time():
    hour = 3_600_000
    spells = Spells(
        np.array([0, 2]),
        np.array([hour // 2, 2 * hour]),
        np.array([2 * hour, 3 * hour]),
        np.array([0, 29], np.int32),
        np.zeros(2, np.int8),
    )
    shape = np.arange(168.0)
    usual = _by_cars(spells, np.arange(168), shape, 0, 24)
    assert usual[0, 0] == pytest.approx(0.5 * shape[0] + shape[1])
    assert usual[0, 24] == pytest.approx(shape[2])
    assert usual.sum() == pytest.approx(0.5 * shape[0] + shape[1] + shape[2])


def test_sites_add_up_the_capacities_of_their_stations():
    known = stations("a", "b", plugs=[2, 3]).with_columns(lat=pl.lit(55.0), lon=pl.lit(12.0))
    panel = Panel(sessions(("a", 1, 2, 5.0), ("b", 3, 4, 5.0)), known, regions="1")
    assert panel.sites.select("site_id", "capacity", "stations").rows() == [("a", 5, 2)]
