"""The history of the sites of a panel: outages, subsets of sites, and what was known at a time."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from tests.demand.records import sessions, stations
from tests.estimation.networks import MONDAY, MONDAY_MS, network
from unmet.demand.panel import Panel
from unmet.demand.spells import FULL
from unmet.estimation.occupancy import observe

HOUR = 3_600_000


def full_time(network, site=0):
    """Start and end of the full spells of a site, in hours since the first."""
    spells = network.history.spells
    part = slice(spells.first[site], spells.first[site + 1])
    full = spells.state[part] == FULL
    begin, end = ((times[part][full] - network.clock.first_ms) / HOUR for times in (spells.begin_ms, spells.end_ms))
    return list(zip(begin.tolist(), end.tolist(), strict=True))


def panel_of(*rows, known, outages=None, plug_id=None):
    """A panel of these sessions, with one more at a distant station that extends the records to the end of the day."""
    rows = [*rows, ("z", 23, 23.5, 5.0)]
    table = sessions(*rows) if plug_id is None else sessions(*rows, plug_id=[*plug_id, "z"])
    far = stations("z").with_columns(lat=pl.lit(10.0))
    return Panel(table, pl.concat([known, far]), regions="1", outages=outages)


def outage(*rows, **columns):
    frame = sessions(*((station, a, b, 0.0) for station, a, b in rows)).select("station_id", "start", "end")
    return frame.with_columns(pl.Series(name, values, pl.String) for name, values in columns.items())


def test_every_session_arrives_at_its_site():
    town = network()
    found = observe(town.panel())
    arrivals = found.history.arrivals
    assert sorted(arrivals.row) == list(range(town.sessions.height))
    assert (found.site_of_station[found.station_of_session[arrivals.row]] == arrivals.site).all()
    start = town.sessions["start"].dt.epoch("ms").to_numpy()
    assert (arrivals.at_ms == start[arrivals.row]).all()


def test_a_plug_out_of_order_counts_as_taken():
    row = ("a", 1, 2, 5.0)
    one = panel_of(row, known=stations("a"), outages=outage(("a", 6, 8)))
    assert full_time(observe(one)) == [(1.0, 2.0), (6.0, 8.0)]
    two = panel_of(row, ("a", 6.5, 7, 5.0), known=stations("a", plugs=[2]), outages=outage(("a", 6, 8)))
    assert full_time(observe(two)) == [(6.5, 7.0)]


def test_a_broken_plug_with_a_car_counts_once():
    broken, known = outage(("a", 0.5, 3), plug_id=["1"]), stations("a", plugs=[2])
    one = observe(panel_of(("a", 1, 2, 5.0), ("a", 5, 6, 5.0), known=known, outages=broken, plug_id=["1", "2"]))
    assert full_time(one) == []
    assert one.visits.row.tolist().count(-1) == 2  # before the car, and after it
    two = observe(panel_of(("a", 1, 2, 5.0), ("a", 1.5, 6, 5.0), known=known, outages=broken, plug_id=["1", "2"]))
    assert full_time(two) == [(1.5, 2.0), (2.0, 3.0)]


def test_a_spare_plug_replaces_a_broken_one():
    """Two connectors share a charger that takes one car."""
    rng = np.random.default_rng(1)
    at = np.cumsum(rng.uniform(0.55, 1.2, 500))
    rows = [("a", t, t + 0.5, 5.0) for t in at]
    shared = sessions(*rows, plug_id=[str(i % 2) for i in range(500)])
    panel = Panel(shared, stations("a", plugs=[2]), outages=outage(("a", 30, 40), plug_id=["1"]))
    assert panel.stations["capacity"].to_list() == [1]
    assert (observe(panel).visits.row >= 0).all()


def test_adjacent_stations_are_full_together():
    rows = [("a", 1, 3, 5.0), ("b", 2, 4, 5.0)]
    together = stations("a", "b").with_columns(lat=pl.lit(55.0), lon=pl.lit(12.0))
    assert full_time(observe(panel_of(*rows, known=together))) == [(2.0, 3.0)]
    apart = observe(panel_of(*rows, known=stations("a", "b")))
    assert [full_time(apart, s) for s in (0, 1)] == [[(1.0, 3.0)], [(2.0, 4.0)]]


@pytest.mark.parametrize("day", [3.0, 7.4])
def test_what_was_known_at_a_time_is_the_history_up_to_it(day):
    panel = network(days=14).panel()
    whole = observe(panel)
    at = MONDAY_MS + int(day * 24) * HOUR
    known = whole.before(at)
    begun = panel.sessions.filter(pl.col("start") < MONDAY + dt.timedelta(milliseconds=at - MONDAY_MS))
    spells, also = known.history.spells, whole.history.spells
    for s in range(whole.sites):
        part = slice(spells.first[s], spells.first[s + 1])
        same = slice(also.first[s], also.first[s] + (part.stop - part.start))
        assert (spells.begin_ms[part] == also.begin_ms[same]).all()
        assert (spells.end_ms[part] == np.minimum(also.end_ms[same], at)).all()
        assert (spells.taken[part] == also.taken[same]).all()
        assert (spells.state[part] == also.state[same]).all()
    assert len(known.history.arrivals.row) == begun.height
    assert (known.closed_ms == at).all()


def test_before_the_first_session_and_after_the_last_there_are_no_records():
    town = observe(panel_of(("a", 1, 2, 5.0), known=stations("a", "b")))
    hours = [(times - town.clock.first_ms) / HOUR for times in (town.opened_ms, town.closed_ms)]
    assert hours[0].tolist() == [1.0, 1.0, 1.0]
    assert hours[1] == pytest.approx(np.full(3, 23.0), abs=1e-6)


def test_a_subset_of_sites_keeps_their_histories():
    whole = observe(network(days=14).panel())
    part = whole.only(np.array([1, 4]))
    assert part.capacity.tolist() == whole.capacity[[1, 4]].tolist()
    for ours, theirs in ((0, 1), (1, 4)):
        assert full_time(part, ours) == full_time(whole, theirs)
        assert (part.history.arrivals.site == ours).sum() == (whole.history.arrivals.site == theirs).sum()


def test_another_capacity_changes_only_when_sites_are_full():
    whole = observe(network(days=14).panel())
    more = whole.with_capacity(whole.capacity + 1)
    assert (more.history.arrivals.row == whole.history.arrivals.row).all()
    assert (more.history.arrivals.taken == whole.history.arrivals.taken).all()
    share = [sum(b - a for s in range(each.sites) for a, b in full_time(each, s)) for each in (more, whole)]
    assert share[0] < 0.5 * share[1]
