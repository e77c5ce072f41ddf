"""Crowding: drivers who come less the fewer plugs are free, and connectors that share a charger."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.demand.records import sessions, stations, visits
from unmet.demand.crowding import STEPS, _by_taken
from unmet.demand.occupancy import RETAKEN_MS, stays_by_station
from unmet.demand.panel import build_panel
from unmet.demand.plugs import SHARED

PLUGS = 4


def shy(station: str, beta: float, days: int = 40, seed: int = 0, waiting: float = 0.0):
    """Drivers of whom exp(beta x) come where a share x of the plugs is taken: sessions, and how many were lost.

    Of those who find none free, some wait for one.
    """
    rng = np.random.default_rng([seed, *station.encode()])
    free_at, rows, lost = np.zeros(PLUGS), [], 0
    for at in np.sort(rng.uniform(0, 24 * days, rng.poisson(6 * 24 * days))):
        taken = free_at > at
        if rng.random() >= np.exp(beta * taken.mean()):
            continue
        if taken.all() and rng.random() >= waiting:
            lost += 1
            continue
        plug = int(free_at.argmin())
        start = max(at, free_at[plug] + 0.02)
        free_at[plug] = start + rng.gamma(4, 1 / 4)
        rows.append((station, start, free_at[plug], 10.0))
    return rows, lost


@pytest.mark.parametrize("beta", [0.0, -1.0, -2.0])
def test_drivers_whom_a_crowd_keeps_away_are_not_lost(beta):
    made = [shy(name, beta) for name in "ab"]
    exposure = build_panel(
        sessions(*(row for rows, _ in made for row in rows)), stations("a", "b", plugs=[PLUGS] * 2)
    ).exposure
    lost = sum(number for _, number in made)
    assert exposure.lost.sum() == pytest.approx(lost, rel=0.15)
    without = exposure.lost / exposure.crowding[exposure.full.station]
    if beta:
        assert without.sum() > 1.4 * lost
    else:
        assert exposure.crowding.min() > 0.95


@pytest.mark.parametrize(("beta", "waiting"), [(-1.0, 0.3), (-1.0, 0.5)])
def test_of_those_who_come_to_a_full_station_some_wait(beta, waiting):
    made = [shy(name, beta, waiting=waiting) for name in "abcd"]
    rows = [row for rows, _ in made for row in rows]
    panel = build_panel(sessions(*rows), stations(*"abcd", plugs=[PLUGS] * 4))
    assert panel.exposure.waiting == pytest.approx(waiting, abs=0.12)
    assert panel.exposure.lost.sum() == pytest.approx(sum(number for _, number in made), rel=0.3)


def test_one_station_does_not_speak_for_those_that_cannot():
    """A station with one plug is empty or full: what comes to it when it is full, others have to say."""
    made = [shy("a", -2.0, days=80), *(shy(name, 0.0, days=20) for name in "bc")]
    lonely = visits("z", 0.4, 1, 0, 40, 1.0, seed=5)
    rows = [row for rows, _ in made for row in rows] + lonely.rows
    panel = build_panel(sessions(*rows), stations(*"abcz", plugs=[PLUGS] * 3 + [1]))
    share, spread = panel.exposure.crowding, panel.exposure.crowding_spread
    assert share[0] < 0.4
    assert share[1:3].min() > 0.85
    assert share[3] > 0.7  # although the first has the most arrivals
    assert spread[3] > 3 * spread[:3].max()
    unsure = panel.table.group_by("unique_id").agg(pl.col("lost_spread").first())
    assert unsure["lost_spread"].max() > 0.3  # that of the region of z


@given(st.lists(st.tuples(st.integers(0, 170), st.integers(1, 60)), max_size=25), st.integers(1, 3))
def test_time_and_arrivals_by_plugs_taken_equal_a_count_by_the_minute(rows, plugs):
    """Without the minutes after a plug of a full station got free: who comes then may have waited."""
    minute, minutes = 60_000, 180
    start, length = np.array(rows, np.int64).reshape(-1, 2).T
    end = start + length
    stays = stays_by_station(np.zeros(len(start), np.int64), start * minute, end * minute, 1)
    time, came = _by_taken(stays, np.array([plugs]), 0, np.zeros(3, np.int64), np.ones((1, 1)))
    count_time, count_came, waited = np.zeros(STEPS), np.zeros(STEPS), 0
    cars = 0
    for now in range(minutes):
        leaving = int((end == now).sum())
        if leaving and cars >= plugs:
            waited = now + RETAKEN_MS // minute
        cars -= leaving
        for _ in range(int((start == now).sum())):
            if cars < plugs and now >= waited:
                count_came[STEPS * cars // plugs] += 1
            cars += 1
        if cars < plugs and now >= waited:
            count_time[STEPS * cars // plugs] += 1 / 60
    assert time[0].sum(axis=0) == pytest.approx(count_time)
    assert came[0].sum(axis=0).tolist() == count_came.tolist()


def test_no_station_is_taken_to_draw_more_drivers_when_it_is_full():
    exposure = build_panel(sessions(*shy("a", 0.5)[0]), stations("a", plugs=[PLUGS])).exposure
    assert exposure.crowding.tolist() == [1.0]


def test_connectors_that_share_a_charger_are_as_many_as_the_cars_they_take():
    rng = np.random.default_rng(3)
    shared, apart = visits("a", 2, 2, 0, 30, 1.0, seed=3), visits("b", 2, 4, 0, 30, 1.0, seed=3)
    plug_id = [f"a{i}" for i in rng.integers(0, 4, len(shared.rows))] + apart.plug_id
    panel = build_panel(sessions(*shared.rows, *apart.rows, plug_id=plug_id), stations("a", "b", plugs=[4, 4]))
    assert panel.stations["plugs"].to_list() == [2, 4]
    assert panel.stations["plugs_from"].to_list() == [SHARED, "table of stations"]
    assert panel.stations["plugs_sure"].all()
    assert panel.stations["lost_arrivals"][0] == pytest.approx(len(shared.lost), rel=0.15)
    assert panel.stations["lost_arrivals"][1] == pytest.approx(len(apart.lost), rel=0.3)
    assert any("1 stations take fewer cars at once" in note for note in panel.notes)


def test_a_station_with_few_sessions_keeps_its_plugs():
    quiet = visits("a", 0.1, 2, 0, 30, 1.0, seed=4)
    panel = build_panel(sessions(*quiet.rows), stations("a", plugs=[4]))
    assert panel.stations.select("plugs", "plugs_from").row(0) == (4, "table of stations")
