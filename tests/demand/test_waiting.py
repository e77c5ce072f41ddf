"""Drivers who wait for a plug: how many do is read from the records, and they are not lost."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.demand.records import sessions, stations, visits
from unmet.city.build import build_city
from unmet.demand.occupancy import HOUR_MS, releases_from_full, stays_by_station
from unmet.demand.panel import build_panel
from unmet.demand.unserved import Unserved
from unmet.errors import InputError
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate

FIRST = 1_567_296_000

stays = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 60), st.integers(0, 20)), max_size=30)


@given(stays, st.lists(st.integers(1, 3), min_size=2, max_size=2), st.integers(0, 3))
def test_releases_equal_a_count_at_every_end(rows, plugs, within):
    station, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    end = start + length
    found = releases_from_full(stays_by_station(station.copy(), start.copy(), end.copy(), 2), np.array(plugs), within)
    expected = []
    for s in range(2):
        starts, ends = start[station == s], np.sort(end[station == s])
        for gone, now in enumerate(ends):
            if (starts < now).sum() - gone >= plugs[s]:
                later = starts[starts >= now]
                retaken = (later <= now + within).any()
                expected.append((s, now, later.min(initial=10**9) if len(later) else now, retaken))
    assert list(zip(*(part.tolist() for part in found), strict=True)) == expected


@pytest.fixture(scope="module")
def crowded():
    """Sixty cars that drive far every day, and four fast plugs."""
    rng = np.random.default_rng(1)
    rows = []
    for vehicle in range(60):
        time = FIRST + int(rng.integers(0, 86_400))
        while time < FIRST + 28 * 86_400:
            start = time + int(rng.exponential(86_400))
            km = 100 + 100 * rng.random()
            time = start + int(60 * km)
            rows.append((f"v{vehicle}", start, time, 55 + 0.03 * rng.random(), 12 + 0.05 * rng.random(), km))
    columns = ["vehicle_id", "start_time", "end_time", "end_lat", "end_lon", "distance_km"]
    places = {"lat": 55 + 0.03 * rng.random(4), "lon": 12 + 0.05 * rng.random(4), "power_kw": [50.0] * 4}
    known = pl.DataFrame({"station_id": ["s0", "s1", "s2", "s3"]} | places | {"plugs": [1] * 4})
    return prepare(build_city(pl.DataFrame(rows, schema=columns, orient="row"), known))


def test_at_a_busy_place_a_plug_that_is_soon_taken_again_says_nothing_of_waiting():
    hub = visits("hub", 40.0, 36, 0, 20, 1.0, seed=1)
    small = [visits(name, 1.0, 2, 0, 20, 1.0, seed=1) for name in "abcd"]
    rows = [row for made in (hub, *small) for row in made.rows]
    panel = build_panel(sessions(*rows), stations("hub", *"abcd", plugs=[36, 2, 2, 2, 2]), regions="1")
    assert panel.exposure.waiting < 0.1
    assert panel.stations["lost_arrivals"][0] == pytest.approx(len(hub.lost), rel=0.2)
    assert panel.stations["lost_arrivals"][1:].sum() == pytest.approx(sum(len(made.lost) for made in small), rel=0.2)


def test_who_waits_is_counted_in_the_hour_in_which_the_plug_is_taken():
    """A shift ends just before noon, and the next one plugs in just after it."""
    rows = [("a", 24.0 * day + hour, 24.0 * day + hour + 1.95, 10.0) for day in range(40) for hour in (8, 10.02, 12.01)]
    exposure = build_panel(sessions(*rows), stations("a")).exposure
    assert exposure.intensity.per_hour.min() >= 0
    assert exposure.intensity.weight.min() > 0
    assert exposure.lost.min(initial=0.0) >= 0


def test_a_simulated_queue_is_told_from_drivers_who_leave(crowded):
    queued, left = (
        build_panel(outcome.sessions, outcome.stations, regions="1")
        for outcome in (simulate(crowded, Scenario(queue=q, penetration=1)) for q in ("gas-station", "first-come"))
    )
    assert queued.exposure.waiting > 0.6
    assert left.exposure.waiting < 0.1
    assert any("seem to wait" in note for note in queued.notes)
    assert not any("seem to wait" in note for note in left.notes)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_the_share_who_wait_is_found_and_lowers_what_was_lost(share):
    made = visits("a", 1, 2, 0, 90, 1.0, seed=1, waiting=share)
    table, known = sessions(*made.rows), stations("a", plugs=[2])
    ours, none, told = (
        build_panel(table, known, unserved=Unserved(waiting)).exposure for waiting in (None, 0.0, share)
    )
    assert told.lost.sum() == pytest.approx(len(made.lost), rel=0.3)
    assert ours.waiting == pytest.approx(share, abs=0.2)
    if share:
        assert abs(ours.lost.sum() - len(made.lost)) < 0.4 * abs(none.lost.sum() - len(made.lost))
    else:
        assert ours.lost.sum() == pytest.approx(len(made.lost), rel=0.15)


def test_given_shares_scale_what_is_hidden():
    made = visits("a", 1, 1, 0, 30, 1.0)
    table, known = sessions(*made.rows), stations("a")
    whole, part = (build_panel(table, known, unserved=Unserved(w, s)) for w, s in ((0.0, 0.0), (0.3, 0.5)))
    assert whole.exposure.hidden == pytest.approx(whole.exposure.full.full_ms / HOUR_MS)
    assert part.exposure.hidden == pytest.approx(0.35 * whole.exposure.hidden)
    assert (1 - part.table["exposure"]).to_numpy() == pytest.approx(0.35 * (1 - whole.table["exposure"]).to_numpy())
    assert (part.exposure.waiting, part.exposure.spill) == (0.3, 0.5)
    for waiting, spill in ((1.0, 0.0), (0.0, 1.0)):
        nobody = build_panel(table, known, unserved=Unserved(waiting, spill))
        assert nobody.exposure.lost.sum() == 0
        assert (nobody.table["exposure"] == 1).all()


@pytest.mark.parametrize("share", [-0.1, 1.1, 30.0, float("nan"), float("inf")])
def test_shares_that_make_no_sense_are_refused(share):
    with pytest.raises(InputError, match="for waiting makes no sense"):
        Unserved(waiting=share)
    with pytest.raises(InputError, match="for spill makes no sense"):
        Unserved(spill=share)


def test_energies_that_nobody_knows_are_refused():
    with pytest.raises(InputError, match="no energies 'all'"):
        Unserved(energies="all")
