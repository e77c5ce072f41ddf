"""Drivers: records are replayed as they were, and lost drivers are where the estimate puts them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unmet.demand.calendar import HOUR_MS
from unmet.demand.spells import FULL
from unmet.planning.changes import Change, changed_world
from unmet.planning.drivers import place_drivers
from unmet.planning.gains import site_curves
from unmet.planning.hidden import read_hidden, write_hidden
from unmet.planning.replay import served_by


def test_the_number_of_lost_drivers_is_that_of_the_estimate(lost, demand):
    by_site = np.zeros((demand.draws, demand.sites))
    for site in range(demand.sites):
        drivers = demand.lost(site)
        by_site[:, site] = np.diff(drivers.first)
    stations = lost.recovered_.station_arrivals
    assert (by_site == stations[:, np.argsort(demand.network.site_of_station)]).all()


def test_the_energy_of_lost_drivers_is_that_of_the_estimate(lost, demand):
    mean_kwh = sum(demand.lost(site).kwh.sum() for site in range(demand.sites)) / demand.draws
    assert mean_kwh == pytest.approx(lost.summary()["lost_kwh"]["mean"], rel=0.03)


def test_lost_drivers_arrive_while_the_site_is_full(demand):
    spells = demand.network.history.spells
    for site in range(demand.sites):
        part = slice(spells.first[site], spells.first[site + 1])
        at = demand.lost(site).at_ms
        i = np.searchsorted(spells.begin_ms[part], at, side="right") - 1
        assert (spells.state[part][i] == FULL).all()
        assert (at < spells.end_ms[part][i]).all()


def test_drivers_are_in_order_of_time(demand):
    for site in range(demand.sites):
        for drivers in (demand.lost(site), demand.everyone(site)):
            ordered = np.diff(drivers.at_ms) >= 0
            assert ordered[np.setdiff1d(np.arange(len(ordered)), drivers.first[1:-1] - 1)].all()


def test_the_existing_plugs_serve_exactly_the_recorded_drivers(demand):
    for site in range(demand.sites):
        everyone = demand.everyone(site)
        plugs = int(demand.network.capacity[site])
        served = served_by(everyone.first, everyone.at_ms, everyone.stay_ms, everyone.forced, plugs)
        assert (served == everyone.recorded).all()


def test_the_first_draws_hold_the_same_drivers_as_all_draws(demand):
    few = demand.first_draws(7)
    for site in range(demand.sites):
        whole, part = demand.lost(site), few.lost(site)
        assert (part.at_ms == whole.at_ms[: len(part.at_ms)]).all()
        assert (part.kwh == whole.kwh[: len(part.at_ms)]).all()


def test_replaying_lost_drivers_alone_gives_the_gains_of_replaying_everyone(demand):
    # A growth too small to add a driver still makes the replay use all drivers.
    short, whole = (site_curves(changed_world(demand, change), 6) for change in (Change(), Change(growth=1 + 1e-12)))
    for one, other in zip(short, whole, strict=True):
        assert one.curves[None].kwh == pytest.approx(other.curves[None].kwh)
        assert one.lost_kwh == pytest.approx(other.lost_kwh)
        assert one.served_kwh == pytest.approx(other.served_kwh)


def test_more_plugs_never_lose_more_drivers_in_any_draw(demand):
    for supply in site_curves(changed_world(demand), 30):
        curve = supply.curves[None]
        for values, lost in ((curve.kwh, supply.lost_kwh), (curve.drivers, supply.lost_drivers)):
            assert (np.diff(values, axis=1) >= 0).all()
            assert (values[:, -1] <= lost + 1e-9).all()
        assert curve.drivers[:, -1] == pytest.approx(supply.lost_drivers)  # enough for all


def test_stays_of_lost_drivers_are_recorded_stays(demand):
    recorded = np.concatenate([demand.recorded(site).stay_ms for site in range(demand.sites)])
    assert set(demand.lost(0).stay_ms) <= set(recorded)


def test_draws_are_the_same_after_writing_and_reading(demand, tmp_path):
    write_hidden(demand.hidden, demand.panel, tmp_path)
    again = read_hidden(demand.panel, tmp_path)
    assert (again.drivers == demand.hidden.drivers).all()
    for name in ("site", "hour", "kwh"):
        assert (getattr(again, name) == getattr(demand.hidden, name)).all()
    for site in range(demand.sites):
        assert (replace(demand, hidden=again).lost(site).at_ms == demand.lost(site).at_ms).all()


def test_few_records_leave_stays_uncertain():
    """Means over a draw vary as those of the Bayesian bootstrap: s2 (n + m) / (m (n + 1)) for m of n records."""
    n, m, draws = 20, 200, 4000
    one, none = np.ones(1), np.zeros(1)
    record = place_drivers(
        np.random.default_rng(1), np.full((draws, 1), m, np.uint16), np.array([0]), np.array([0, HOUR_MS]),
        np.array([0]), np.array([HOUR_MS]), np.array([0]), one, none, np.array([0, n]), np.arange(n),
        np.array([0, 0]), np.arange(0), n,
    )[2].reshape(draws, m)  # fmt: skip
    stays = np.arange(n) % 2.0
    means = stays[record].mean(axis=1)
    assert means.mean() == pytest.approx(stays.mean(), abs=4 * stays.std() / np.sqrt(n * draws))
    assert means.var() == pytest.approx(stays.var() * (n + m) / (m * (n + 1)), rel=0.1)
