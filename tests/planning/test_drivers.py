"""Drivers: what was recorded is replayed as it was, and lost drivers are where the estimate puts them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unmet.demand.spells import FULL
from unmet.planning.changes import Change, changed_world
from unmet.planning.gains import site_curves
from unmet.planning.hidden import read_hidden, write_hidden
from unmet.planning.replay import served_by


def test_lost_drivers_are_those_of_the_estimate(lost, truth):
    by_site = np.zeros((truth.draws, truth.sites))
    for site in range(truth.sites):
        drivers = truth.lost(site)
        by_site[:, site] = np.diff(drivers.first)
    stations = lost.recovered_.station_arrivals
    assert (by_site == stations[:, np.argsort(truth.network.site_of_station)]).all()


def test_their_energy_is_the_estimators_on_average(lost, truth):
    ours = sum(truth.lost(site).kwh.sum() for site in range(truth.sites)) / truth.draws
    assert ours == pytest.approx(lost.summary()["lost_kwh"]["mean"], rel=0.03)


def test_they_come_while_the_site_is_full(truth):
    spells = truth.network.history.spells
    for site in range(truth.sites):
        part = slice(spells.first[site], spells.first[site + 1])
        at = truth.lost(site).at_ms
        i = np.searchsorted(spells.begin_ms[part], at, side="right") - 1
        assert (spells.state[part][i] == FULL).all()
        assert (at < spells.end_ms[part][i]).all()


def test_they_are_in_order_of_time(truth):
    for site in range(truth.sites):
        for drivers in (truth.lost(site), truth.everyone(site)):
            ordered = np.diff(drivers.at_ms) >= 0
            assert ordered[np.setdiff1d(np.arange(len(ordered)), drivers.first[1:-1] - 1)].all()


def test_the_present_plugs_serve_exactly_the_records(truth):
    for site in range(truth.sites):
        everyone = truth.everyone(site)
        plugs = int(truth.network.capacity[site])
        served = served_by(everyone.first, everyone.at_ms, everyone.stay_ms, everyone.forced, plugs)
        assert (served == everyone.recorded).all()


def test_first_draws_are_the_same_drivers(truth):
    few = truth.first_draws(7)
    for site in range(truth.sites):
        whole, part = truth.lost(site), few.lost(site)
        assert (part.at_ms == whole.at_ms[: len(part.at_ms)]).all()
        assert (part.kwh == whole.kwh[: len(part.at_ms)]).all()


def test_gains_of_lost_drivers_alone_are_those_of_everyone(truth):
    # A change so small that it changes nobody forces the replay of all drivers.
    short, whole = (site_curves(changed_world(truth, change), 6) for change in (Change(), Change(growth=1 + 1e-12)))
    for one, other in zip(short, whole, strict=True):
        assert one.curves[None].kwh == pytest.approx(other.curves[None].kwh)
        assert one.lost_kwh == pytest.approx(other.lost_kwh)
        assert one.served_kwh == pytest.approx(other.served_kwh)


def test_more_plugs_never_lose_more_in_any_draw(truth):
    for supply in site_curves(changed_world(truth), 30):
        curve = supply.curves[None]
        for values, lost in ((curve.kwh, supply.lost_kwh), (curve.drivers, supply.lost_drivers)):
            assert (np.diff(values, axis=1) >= 0).all()
            assert (values[:, -1] <= lost + 1e-9).all()
        assert curve.drivers[:, -1] == pytest.approx(supply.lost_drivers)  # enough for all


def test_stays_are_those_of_the_records(truth):
    recorded = np.concatenate([truth.recorded(site).stay_ms for site in range(truth.sites)])
    assert set(truth.lost(0).stay_ms) <= set(recorded)


def test_draws_survive_a_file(truth, tmp_path):
    write_hidden(truth.hidden, truth.panel, tmp_path)
    again = read_hidden(truth.panel, tmp_path)
    assert (again.drivers == truth.hidden.drivers).all()
    for name in ("site", "hour", "kwh"):
        assert (getattr(again, name) == getattr(truth.hidden, name)).all()
    for site in range(truth.sites):
        assert (replace(truth, hidden=again).lost(site).at_ms == truth.lost(site).at_ms).all()
