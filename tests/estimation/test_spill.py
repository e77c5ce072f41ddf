"""Spill: arrivals nearby when a site fills up, and how many of them came from there."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gamma, norm

from tests.estimation.networks import network
from unmet.demand.panel import Panel
from unmet.demand.spells import FREE, FULL, group_visits, sweep
from unmet.estimation.clock import BINS_A_WEEK, make_clock
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.shares import NOBODY, SHARES
from unmet.estimation.spill import (
    AFTER_MS,
    COMMON_SPREAD,
    REACH_KM,
    TRAVEL_MS,
    UNKNOWN_SPREAD,
    Nearby,
    _rate_of_full_neighbours,
    nearest_sites,
    spill_posterior,
    spilled_sessions,
    while_full,
)
from unmet.geo import haversine_km

MINUTE, HOURS, SITES = 60_000, 20, 4
CLOCK = make_clock(0, HOURS, "UTC")
NEAR = np.array([1, 0, 3, -1])


def random_history(seed, number=60, step=1):
    """Visits whose times are multiples of `step` [ms]."""
    rng = np.random.default_rng(seed)
    start = step * np.sort(rng.choice(HOURS * 60 * MINUTE // step, number, replace=False))
    end = start + step * rng.integers(1, 120 * MINUTE // step, number)
    visits = group_visits(rng.integers(0, SITES, number), start, end, np.arange(number), SITES)
    return sweep(visits, np.array([1, 1, 2, 2]), np.zeros(SITES, np.int64), np.full(SITES, HOURS * 60 * MINUTE))


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_sums_while_sites_are_full_and_their_neighbour_is_free_equal_a_count(seed):
    """Minute by minute: sites 0 and 3 both divert to 1, so that no arrival there may count twice."""
    rng = np.random.default_rng(seed)
    near = np.array([1, 0, 3, 1])
    history = random_history(seed, step=MINUTE)
    rate, level = rng.random((SITES, BINS_A_WEEK)), rng.random((SITES, CLOCK.days))
    response, at_full = rng.random((SITES, 3)), rng.random(SITES)
    state, taken = by_minute(history)
    sums, reachable = np.zeros(5), np.zeros(SITES)
    travel, after = TRAVEL_MS // MINUTE, AFTER_MS // MINUTE
    is_free_arrival = history.arrivals.state == FREE
    for minute in range(HOURS * 60):
        usual = rate[:, CLOCK.week[minute // 15]] * level[:, CLOCK.day[minute // 15]] / 60
        for o in range(SITES):
            if state[o, minute] == FULL:
                continue
            full = (near == o) & (state[:, minute] == FULL)
            lately, before = (
                (state[near == o, max(minute - m, 0) : minute + 1] == FULL).any() for m in (travel, travel + after)
            )
            turned_away = float((usual * at_full)[full].sum())
            reachable += usual * at_full * full
            if state[o, minute] == FREE and before:
                now = (history.arrivals.site == o) & (history.arrivals.at_ms == (minute + 1) * MINUTE)
                count, expected = (now & is_free_arrival).sum(), usual[o] * response[o, taken[o, minute]]
                sums += np.array([count, expected, turned_away, 0, 0] if lately else [0, 0, 0, count, expected])
    result = while_full(history, CLOCK, near, rate, level, response, at_full)
    assert result.reachable == pytest.approx(reachable)
    assert (*result[:3], *result[4:]) == pytest.approx(tuple(sums))


def by_minute(history):
    """State and taken plugs of every site in every minute."""
    state, taken = np.zeros((SITES, HOURS * 60), int), np.zeros((SITES, HOURS * 60), int)
    spells = history.spells
    for s in range(SITES):
        for i in range(spells.first[s], spells.first[s + 1]):
            part = slice(spells.begin_ms[i] // MINUTE, spells.end_ms[i] // MINUTE)
            state[s, part], taken[s, part] = spells.state[i], spells.taken[i]
    return state, taken


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_rates_of_full_neighbours_equal_a_count(seed):
    """Drivers turned away in a full spell arrive evenly from its beginning to some time after its end."""
    rng = np.random.default_rng(seed)
    history = random_history(seed)
    rate, level = rng.random((SITES, BINS_A_WEEK)), rng.random((SITES, CLOCK.days))
    result = _rate_of_full_neighbours(history, CLOCK, NEAR, rate, level)
    spells, arrivals = history.spells, history.arrivals
    for i, (target, at) in enumerate(zip(arrivals.site, arrivals.at_ms, strict=True)):
        total = 0.0
        for s in np.flatnonzero(target == NEAR):
            for k in range(spells.first[s], spells.first[s + 1]):
                begin, end = spells.begin_ms[k], spells.end_ms[k]
                if spells.state[k] == FULL and begin <= at < end + TRAVEL_MS:
                    usual = rate[s, CLOCK.week[at // 900_000]] * level[s, CLOCK.day[at // 900_000]]
                    total += usual * (end - begin) / (end - begin + TRAVEL_MS)
        assert result[i] == pytest.approx(total)


def test_arrivals_that_probably_came_from_a_full_site_are_left_out():
    history = random_history(3, 400)
    weekly = np.full((SITES, BINS_A_WEEK), 2.0)
    weekly[0] = 6.0  # whose nearest site is 1
    rates = SimpleNamespace(weekly=weekly, level=np.full((SITES, CLOCK.days), 1.5))
    response, at_full = np.full((SITES, 3), 0.8), np.array([0.5, 0.9, 0.7, 1.0])
    source = _rate_of_full_neighbours(history, CLOCK, NEAR, weekly * at_full[:, None], rates.level)
    arrivals, usable = history.arrivals, history.arrivals.state == FREE
    own = 0.8 * 1.5 * weekly[arrivals.site, 0]
    expected = np.where(usable, 0.5 * source / (own + 0.5 * source), 0.0)
    chance = np.random.default_rng(1).random((300, len(source)))
    dropped = np.zeros(len(source))
    for each in chance:
        rows = spilled_sessions(history, CLOCK, NEAR, rates, response, at_full, 0.5, each)
        dropped += np.isin(arrivals.row, rows)
        more = spilled_sessions(history, CLOCK, NEAR, rates, response, at_full, 0.8, each)
        assert np.isin(rows, more).all()
    assert dropped == pytest.approx((chance < expected).sum(axis=0))
    assert dropped.sum() / 300 == pytest.approx(expected.sum(), rel=0.05)


def prior():
    result = (1 - NOBODY) * (1 - SHARES) ** 2 / ((1 - SHARES) ** 2).sum()
    result[0] += NOBODY
    return result


def nearby(arrivals, expected, turned_away, arrivals_after=0.0, expected_after=0.0):
    return Nearby(arrivals, expected, turned_away, np.array([turned_away]), arrivals_after, expected_after)


def test_the_posterior_is_a_normal_likelihood_times_the_prior():
    """The excess is over the expected arrivals, corrected by the placebo of the hour that follows."""
    nobody = nearby(0.0, 0.0, 0.0)
    assert spill_posterior(nobody, 0.0, nobody, 0.0)[0] == 1  # nobody was turned away
    k = 1 / UNKNOWN_SPREAD**2
    for after, usual_after, burst in ((220.0, 200.0, 0.0), (220.0, 200.0, 0.2), (0.0, 0.0, 0.0), (0.0, 5.0, 0.0)):
        near = nearby(150.0, 100.0, 60.0, after, usual_after)
        result = spill_posterior(near, 0.0, near, burst)
        common = gamma(k + after, scale=1 / (k + usual_after))
        variance = 150 + (common.var() + COMMON_SPREAD**2 + burst**2) * 100**2
        expected = prior() * norm.pdf(150 - common.mean() * 100, SHARES * 60, np.sqrt(variance))
        assert result == pytest.approx(expected / expected.sum())


def test_every_share_is_judged_with_rates_fitted_without_that_share():
    """The rates of a site that drivers divert to are too high until these drivers are left out."""
    usual, without = nearby(300.0, 200.0, 200.0, 80.0, 100.0), nearby(300.0, 150.0, 160.0, 80.0, 80.0)
    result = spill_posterior(usual, 0.5, without, 0.0)
    expected, turned_away = 200 - 100 * SHARES, 200 - 80 * SHARES
    common = usual.common + (without.common - usual.common) * SHARES / 0.5
    variance = 300 + (usual.common_variance + COMMON_SPREAD**2) * expected**2
    value = prior() * norm.pdf(300 - common * expected, SHARES * turned_away, np.sqrt(variance))
    assert result == pytest.approx(value / value.sum())


@pytest.mark.parametrize(
    ("more", "low", "high"), [(-40, 0.0, 0.01), (0, 0.0, 0.02), (800, 0.3, 0.45), (1900, 0.8, 1.0)]
)
def test_the_share_follows_the_arrivals_nearby(more, low, high):
    near = nearby(1000.0 + more, 1000.0, 2000.0, 4000.0, 4000.0)
    result = spill_posterior(near, 0.0, near, 0.0)
    assert low <= result @ SHARES <= high


def test_a_busy_hour_of_the_neighbourhood_is_not_spill():
    near = nearby(1200.0, 1000.0, 400.0, 4800.0, 4000.0)
    assert spill_posterior(near, 0.0, near, 0.0) @ SHARES < 0.03


CITY = {"plugs": (2, 4, 2, 4, 2, 4, 2, 4, 2, 4), "per_plug": 0.35, "stay": 1.5, "days": 56}


def test_no_spill_is_found_if_nobody_diverts():
    lost = LostDemand(draws=100).fit(network(seed=2, **CITY).panel())
    assert lost.spill_ < 0.06


def test_drivers_who_divert_are_found_and_are_not_lost():
    town = network(seed=1, spill=0.6, **CITY)
    panel = town.panel()
    lost, ignored = (LostDemand(draws=100, spill=spill).fit(panel) for spill in (None, 0.0))
    share = town.spilled / (town.spilled + town.lost.height)
    assert 0.7 * share < lost.spill_ < 1.2 * share
    error = [abs(np.log(each.summary()["lost_arrivals"]["mean"] / town.lost.height)) for each in (lost, ignored)]
    assert error[0] < 0.7 * error[1]
    # Rates are those of a site's own drivers, without those who diverted to it.
    true = 0.35 * np.array(CITY["plugs"])
    inflated = ignored.rates_.weekly.mean(axis=1) / true - 1
    assert (lost.rates_.weekly.mean(axis=1) / true - 1)[1::2].mean() < 0.7 * inflated[1::2].mean()


def test_nobody_diverts_from_a_site_without_a_neighbour():
    """Drivers divert within pairs of sites; the sites of another town are 100 km apart."""
    pairs, alone = network(seed=1, spill=0.6, **CITY), network(seed=2, **CITY)
    far = pl.col("lat") + pl.int_range(pl.len()) + 1.0
    other = "far " + pl.col("station_id")
    sessions = pl.concat([pairs.sessions, alone.sessions.with_columns(station_id=other)])
    stations = pl.concat([pairs.stations, alone.stations.with_columns(station_id=other, lat=far)])
    lost = LostDemand(draws=100).fit(Panel(sessions, stations, regions="3"))
    found = lost.by_station().group_by(pl.col("station_id").str.starts_with("far")).agg(pl.col("lost_arrivals").sum())
    estimate = dict(found.iter_rows())
    assert lost.spill_ > 0.1
    assert estimate[True] == pytest.approx(alone.lost.height, rel=0.1)
    assert estimate[False] == pytest.approx(pairs.lost.height, rel=0.3)
    given = LostDemand(draws=100, spill=0.5).fit(Panel(sessions, stations, regions="3")).by_station()
    ratio = given["lost_arrivals"] / lost.by_station()["lost_arrivals"]
    assert ratio.filter(given["station_id"].str.starts_with("far")).to_numpy() == pytest.approx(1.0, abs=0.2)


def test_neighbours_are_the_nearest_sites_within_reach():
    rng = np.random.default_rng(4)
    sites = pl.DataFrame({"lat": 55 + 0.3 * rng.random(200), "lon": 12 + 0.3 * rng.random(200)})
    sites[7, "lat"] = None
    sites = pl.concat([sites, sites[3:4]])  # another one at the same position
    result = nearest_sites(sites)
    assert result[7] == -1
    assert result[3] == 200
    assert result[200] == 3
    lat, lon = sites["lat"].fill_null(0.0).to_numpy(), sites["lon"].to_numpy()
    km = haversine_km(lat[:, None], lon[:, None], lat, lon) + np.where(np.eye(201), np.inf, 0.0)
    for s in np.flatnonzero(sites["lat"].is_not_null()):
        nearest = km[s].min()
        assert (result[s] == -1) if nearest > REACH_KM else (km[s, result[s]] == nearest)
    assert nearest_sites(sites.head(1)).tolist() == [-1]


def test_without_positions_nobody_is_assumed_to_divert():
    town = network(seed=2, spill=0.6, **(CITY | {"days": 14}))
    unplaced = town._replace(stations=town.stations.drop("lat", "lon"))
    assert LostDemand(draws=50).fit(unplaced.panel(regions="station")).spill_ == 0
