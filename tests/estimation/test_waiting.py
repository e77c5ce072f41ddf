"""Waiting: arrivals soon after departures, with departures from sites with another free plug as the placebo."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.estimation.networks import network
from unmet.demand.panel import Panel
from unmet.demand.spells import RELEASED_MS, group_visits, sweep
from unmet.estimation.clock import BINS_A_WEEK, make_clock
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.waiting import RESTARTS, RESTARTS_SPREAD, Departures, after_departures, waiting_drivers

MINUTE, HOURS = 60_000, 30
CLOCK = make_clock(0, HOURS, "UTC")
QUEUE = (np.array([[5000.0, 0.0]]), np.array([[5000.0, 0.0]]), np.array([[2.0, 0.0]]))  # of `Departures`
BUSY = {"plugs": (2, 2, 3, 2, 3, 4, 2, 3), "per_plug": 0.4, "stay": 1.5, "days": 42}


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 3))
def test_arrivals_after_departures_equal_a_count(seed, number, capacity):
    """All times differ, so that no car leaves as another arrives."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.choice(HOURS * 30, number, replace=False)) * 2  # even minutes
    odd = rng.permutation(HOURS * 30) * 2 + 1
    end = np.array([odd[(odd > at) & (odd < at + 90)][0] if i % 2 else at + 1 for i, at in enumerate(start)])
    end = np.where(
        np.isin(np.arange(number), np.unique(end, return_index=True)[1]), end, HOURS * 60 + np.arange(number)
    )
    site = rng.integers(0, 2, len(start))
    visits = group_visits(site, start * MINUTE, end * MINUTE, np.arange(len(start)), 2)
    history = sweep(visits, np.full(2, capacity), np.zeros(2, np.int64), np.full(2, HOURS * 60 * MINUTE))
    rate, level, response = rng.random((2, BINS_A_WEEK)), rng.random((2, CLOCK.days)), rng.random((2, capacity + 1))
    number, retaken, chance = np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2))
    for s in range(2):
        starts, ends = start[site == s], end[site == s]
        for at in ends[ends < HOURS * 60]:
            cars = (starts < at).sum() - (ends < at).sum()
            kind = 0 if cars >= capacity else 1
            later = starts[(starts > at) & (starts * MINUTE < at * MINUTE + RELEASED_MS)]
            until = later.min() if len(later) else at + RELEASED_MS // MINUTE
            number[s, kind] += 1
            found = (starts < until).sum() - (ends < until).sum()
            retaken[s, kind] += len(later) > 0 and found < capacity  # arrivals at a full site are counted separately
            hourly = (
                rate[s, CLOCK.week[at // 15]] * level[s, CLOCK.day[at // 15]] * response[s, min(cars - 1, capacity)]
            )
            chance[s, kind] += hourly * (until - at) / 60
    result = after_departures(history, CLOCK, rate, level, response)
    assert result.number.tolist() == number.tolist()
    assert result.arrivals.tolist() == retaken.tolist()
    assert result.by_chance == pytest.approx(chance)


def of_one_site(departures, arrivals, by_chance, at_full=0.0, turned_away=1e6):
    """Drivers who waited at a network of one site; each argument has full, then free departures."""
    given = Departures(*(np.array([values]) for values in (departures, arrivals, by_chance)))
    return waiting_drivers(given, np.array([at_full]), np.array([turned_away]))


def test_waiting_drivers_are_arrivals_beyond_chance_and_restarts():
    result = of_one_site([1000.0, 1e7], [400.0, 2e6], [50.0, 5e5])
    assert result.restarts == pytest.approx(0.15, abs=1e-3)
    assert result.excess.drivers == pytest.approx([400 - 50 - 0.15 * 1000], abs=1)
    assert result.excess.variance == pytest.approx([400], rel=0.01)
    assert result.excess.common == pytest.approx([0], abs=0.1)
    assert result.retaken == 400
    assert of_one_site([1000.0, 1e7], [400.0, 2e6], [50.0, 5e5], at_full=30.0).retaken == 430


def test_without_a_placebo_restarts_have_their_prior_mean():
    result = of_one_site([100.0, 0.0], [30.0, 0.0], [5.0, 0.0])
    assert result.restarts == pytest.approx(RESTARTS)
    assert result.excess.drivers == pytest.approx([30 - 5 - 100 * RESTARTS])
    assert result.excess.variance == pytest.approx([30 + (100 * RESTARTS_SPREAD) ** 2])
    assert result.excess.common == pytest.approx([100 * RESTARTS_SPREAD])


def test_restarts_are_shrunk_to_those_of_the_network_and_of_the_prior():
    """With D departures and N arrivals, the variance of restarts per departure is N / D squared."""
    given = Departures(
        np.array([[100.0, 50.0], [10.0, 0.0]]), np.array([[30.0, 20.0], [4.0, 0.0]]), np.array([[5.0, 2.0], [1.0, 0.0]])
    )
    result = waiting_drivers(given, np.zeros(2), np.full(2, 1e6))
    data, prior = 50**2 / 20, 1 / RESTARTS_SPREAD**2
    pooled = (data * 18 / 50 + prior * RESTARTS) / (data + prior)
    own = (data * 18 / 50 + prior * pooled) / (data + prior)
    assert result.restarts == pytest.approx(pooled)
    assert result.excess.drivers == pytest.approx([30 - 5 - 100 * own, 4 - 1 - 10 * pooled])
    assert result.excess.variance == pytest.approx([30 + 100**2 / (data + prior), 4 + 10**2 / prior])
    error = 1 / np.sqrt(data + prior)  # of the network's restarts
    assert result.excess.common == pytest.approx([100 * error * prior / (data + prior), 10 * error])


@pytest.mark.parametrize("expected", [3.0, 200.0])
def test_a_site_with_a_permanent_queue_says_nothing_about_others(expected):
    """Everybody waits at the second site. The first is as it would be alone, and nothing is known of the second."""
    first = Departures(*(np.array([values]) for values in ([1000.0, 1e7], [400.0, 2e6], [50.0, 5e5])))
    both = Departures(*(np.concatenate([values, extra]) for values, extra in zip(first, QUEUE, strict=True)))
    alone = waiting_drivers(first, np.zeros(1), np.array([900.0]))
    together = waiting_drivers(both, np.zeros(2), np.array([900.0, expected]))
    assert together.queue.tolist() == [False, True]
    assert not alone.queue.any()
    assert [each[0] for each in together.excess] == pytest.approx([each[0] for each in alone.excess], rel=1e-6)
    assert [each[1] for each in together.excess] == [0.0, np.inf, 0.0, 0.0]
    assert together[1:3] == pytest.approx(alone[1:3], rel=1e-6)


def test_a_permanent_queue_at_one_site_does_not_hide_the_losses_of_others():
    """One site is always full, and its plugs are retaken at once; nobody waits anywhere else."""
    town = network(seed=5, **BUSY)
    queue = network((2,), 8.0, BUSY["days"], BUSY["stay"], 9, waiting=1.0)
    sessions = pl.concat([town.sessions, queue.sessions.with_columns(station_id=pl.lit("queue"))])
    own = queue.stations.with_columns(station_id=pl.lit("queue"), lat=pl.col("lat") + 1.0)
    lost = LostDemand(draws=100).fit(Panel(sessions, pl.concat([town.stations, own]), regions="3"))
    found = lost.by_station().filter(pl.col("station_id") != "queue")["lost_arrivals"].sum()
    assert lost.waiting_ < 0.15
    assert found == pytest.approx(town.lost.height, rel=0.25)


@pytest.mark.parametrize(("waiting", "per_plug"), [(0.6, 0.5), (0.9, 1.5)])
def test_drivers_who_wait_at_one_site_do_not_hide_the_losses_of_others(waiting, per_plug):
    town, busy = network(seed=5, **BUSY), network((3,), per_plug, BUSY["days"], BUSY["stay"], 9, waiting=waiting)
    sessions = pl.concat([town.sessions, busy.sessions.with_columns(station_id=pl.lit("busy"))])
    own = busy.stations.with_columns(station_id=pl.lit("busy"), lat=pl.col("lat") + 1.0)
    lost = LostDemand(draws=100).fit(Panel(sessions, pl.concat([town.stations, own]), regions="3"))
    of_station = dict(lost.by_station().select("station_id", "lost_arrivals").iter_rows())
    assert of_station.pop("busy") < 0.6 * (busy.waited + busy.lost.height)
    assert sum(of_station.values()) == pytest.approx(town.lost.height, rel=0.15)


def fitted(**options):
    town = network(seed=5, **(BUSY | options))
    return town, LostDemand(draws=100).fit(town.panel())


def test_restarts_alone_are_not_mistaken_for_waiting():
    _, lost = fitted(restarts=0.4)
    assert lost.restarts_ > 0.15
    assert lost.waiting_ < 0.12


@pytest.mark.parametrize("restarts", [0.0, 0.3])
def test_drivers_who_wait_are_found_and_are_not_lost(restarts):
    town, lost = fitted(waiting=0.5, restarts=restarts)
    share = town.waited / (town.waited + town.lost.height)
    assert lost.waiting_ == pytest.approx(share, abs=0.17)
    if restarts:  # without ids, a restart is an arrival, and inflates rates
        return
    ignored = LostDemand(draws=100, waiting=0.0).fit(lost.panel_)
    error = [abs(np.log(each.summary()["lost_arrivals"]["mean"] / town.lost.height)) for each in (lost, ignored)]
    assert error[0] < 0.6 * error[1]


def test_a_given_share_scales_the_loss():
    panel = network(seed=6, **BUSY).panel()
    totals = [
        LostDemand(draws=60, waiting=w, spill=0.0).fit(panel).recovered_.station_arrivals.sum() for w in (0, 0.4, 1)
    ]
    assert totals[1] == pytest.approx(0.6 * totals[0], rel=0.03)
    assert totals[2] == 0
