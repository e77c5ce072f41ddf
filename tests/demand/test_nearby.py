"""Stations that could hardly be seen borrow from their neighbours, and those that could be seen do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.demand.records import sessions, stations, visits
from unmet.demand.intensity import fit_intensity, nearness, rates_nearby
from unmet.demand.panel import build_panel

WEEKS = 10.0


def seen_week(rate, exposure, seed=0):
    """Arrivals seen and hours exposed by hour of the week, at stations with one rate for all hours."""
    exposed = np.repeat(WEEKS * np.asarray(exposure, float)[:, None], 168, axis=1)
    return np.random.default_rng(seed).poisson(np.asarray(rate)[:, None] * exposed).astype(float), exposed


def test_a_station_that_was_always_full_borrows_from_its_neighbours():
    # Two towns 50 km apart: a busy one, whose last station was never open to be seen, and a quiet one.
    place = np.array([0.0, 1, 2, 3, 50, 51, 52])
    km = np.abs(place[:, None] - place)
    seen, exposed = seen_week([2.0, 2.0, 2.0, 2.0, 0.2, 0.2, 0.2], [1, 1, 1, 0, 1, 1, 1])
    nearby = rates_nearby(seen.sum(axis=1), exposed.sum(axis=1), np.ones(7), nearness(7, km))
    assert nearby[3] == pytest.approx(2.0, rel=0.1)
    assert nearby[4:] == pytest.approx(np.full(3, 0.2), rel=0.2)
    busier = rates_nearby(seen.sum(axis=1) * [10, 1, 1, 1, 1, 1, 1], exposed.sum(axis=1), np.ones(7), nearness(7, km))
    assert busier[0] == pytest.approx(nearby[0], rel=0.05)  # it is not its own neighbour
    assert busier[1] > 2 * nearby[1]
    fitted = fit_intensity(seen, exposed, nearby)
    assert fitted.per_hour[3].mean() == pytest.approx(2.0, rel=0.1)
    assert fitted.nearby[3] > 0.9
    assert np.delete(fitted.nearby, 3).max() < 0.1
    assert fitted.own[3].max() < 0.1
    assert fitted.weight[3].max() < fitted.weight[0].min()


def test_a_station_that_was_open_and_had_nobody_has_no_drivers():
    seen, exposed = seen_week([2.0, 2.0, 0.0], [1, 1, 1])
    fitted = fit_intensity(
        seen, exposed, rates_nearby(seen.sum(axis=1), exposed.sum(axis=1), np.ones(3), nearness(3, None))
    )
    assert (fitted.per_hour[2] == 0).all()
    assert fitted.nearby[2] == 0
    assert fitted.per_hour[:2].mean() == pytest.approx(2.0, rel=0.1)


def test_more_plugs_let_expect_more():
    seen, exposed = seen_week([1.0, 2.0, 4.0], [1, 1, 1])
    plugs = np.array([1.0, 2.0, 4.0])
    nearby = rates_nearby(seen.sum(axis=1), exposed.sum(axis=1), plugs, nearness(3, None))
    assert nearby / plugs == pytest.approx(np.ones(3), rel=0.1)


totals = st.lists(st.tuples(st.integers(0, 50), st.floats(0, 100), st.integers(1, 9)), min_size=1, max_size=6)


@given(totals, st.booleans())
def test_rates_nearby_are_finite_and_not_below_zero(rows, placed):
    seen, exposed, plugs = (np.array(column, float) for column in zip(*rows, strict=True))
    place = np.arange(len(rows), dtype=float)
    near = nearness(len(seen), np.abs(place[:, None] - place) if placed else None)
    nearby = rates_nearby(seen, exposed, plugs, near)
    assert np.isfinite(nearby).all()
    assert (nearby >= 0).all()


def test_in_a_panel_a_station_out_of_order_all_along_has_the_rate_of_its_neighbours():
    rows = [row for name in "abc" for row in visits(name, 0.5, 3, 0, 42, 1.0, seed=5).rows]
    broken = sessions(("d", 0, 42 * 24, 0), plug_id=["1"]).select("station_id", "plug_id", "start", "end")
    known = stations("a", "b", "c", "d", "e", plugs=[3, 3, 3, 1, 1])
    panel = build_panel(sessions(*rows), known, regions="1", outages=broken)
    assert panel.stations["full_share"].to_list()[3:] == pytest.approx([1, 0])
    rate = panel.exposure.mean_rate()
    assert rate[:3] == pytest.approx(np.full(3, 0.5), rel=0.15)
    assert rate[3] == pytest.approx(0.5 / 3, rel=0.2)
    assert rate[4] == 0  # it was open, and nobody came
    assert panel.exposure.intensity.nearby[3] > 0.5
    assert any("only a guess" in note for note in panel.notes)
    assert any("no free plug for 14 days or more on end (the longest: d, 42 days)" in note for note in panel.notes)
