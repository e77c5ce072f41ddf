"""What-if questions: worlds that differ from the records in one respect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unmet.errors import InputError
from unmet.planning.changes import Change, attraction, changed_world, is_similar_power
from unmet.planning.gains import RAPID_KW, site_curves, stays_at_power


def totals(demand, change):
    supplies = site_curves(changed_world(demand, change), 1)
    return sum(s.served_kwh.mean() for s in supplies), sum(s.lost_kwh.mean() for s in supplies)


def test_growth_multiplies_demand(demand):
    served, lost = totals(demand, Change())
    more_served, more_lost = totals(demand, Change(growth=1.5))
    # Some recorded drivers who find no plug wait and are served; served and lost demand together are all demand.
    assert more_served + more_lost == pytest.approx(1.5 * (served + lost), rel=0.03)
    assert more_lost > 1.5 * lost
    assert more_lost < 4 * lost  # copies arrive in other weeks, so they do not block their originals
    fewer = totals(demand, Change(growth=0.5))
    assert sum(fewer) == pytest.approx(0.5 * (served + lost), rel=0.03)
    assert fewer[1] < 0.5 * lost


def test_copies_keep_the_hour_of_the_week_but_not_the_week(demand):
    hour = 3_600_000
    now, more = (changed_world(demand, change).drivers(3).at_ms for change in (Change(), Change(growth=2.0)))
    assert len(more) == 2 * len(now)
    profiles = [np.bincount(at // (6 * hour) % 28, minlength=28) / len(at) for at in (now, more)]
    assert np.abs(profiles[0] - profiles[1]).max() < 0.01
    weeks = [np.bincount(at // (168 * hour) - now.min() // (168 * hour)) for at in (now, more)]
    assert len(weeks[0]) == len(weeks[1])


def test_shorter_stays_lose_less_demand(demand):
    _, lost = totals(demand, Change())
    _, limited = totals(demand, Change(stay_hours=1.0))
    assert limited < 0.8 * lost
    assert totals(demand, Change(stay_hours=1000.0)) == pytest.approx(totals(demand, Change()))
    _, fee = totals(demand, Change(idle_cut=0.5))
    assert fee < lost


def test_a_limit_below_the_time_to_charge_costs_energy(demand):
    site = 3
    before, after = (changed_world(demand, change).drivers(site) for change in (Change(), Change(stay_hours=0.2)))
    assert (after.stay_ms <= 0.2 * 3_600_000).all()
    assert (after.kwh <= before.kwh + 1e-9).all()
    possible = before.kwh <= 22.0 * before.stay_ms / 3_600_000  # simulated sessions may exceed the power of the plug
    assert possible.mean() > 0.5
    assert (after.kwh[possible] <= 0.2 * 22.0 + 1e-9).all()


def closed(demand, site):
    """The station of a site, and the world without it."""
    station = demand.panel.stations["station_id"][int(np.flatnonzero(demand.network.site_of_station == site)[0])]
    return changed_world(demand, Change(closed=(station,)))


def test_drivers_of_a_closed_site_go_next_door_or_are_lost(demand):
    site = 0
    world = closed(demand, site)
    assert world.capacity[site] == 0
    ((target, share),) = world.leaving[site]
    moved = len(world.drivers(target).at_ms) - len(changed_world(demand).drivers(target).at_ms)
    everyone = len(demand.everyone(site).at_ms)
    assert share == pytest.approx(np.exp(-0.5), abs=0.01)  # half a kilometre away
    assert moved / everyone == pytest.approx(share, abs=0.03)
    assert moved + len(world.drivers(site).at_ms) == everyone
    split = world.split(site)
    assert (split.kwh == 0).all()  # nobody is served there, or waits
    assert (split.leaves == 1).all()


def test_drivers_of_a_closed_site_do_not_use_plugs_of_another_power(demand):
    power = demand.stays.power_kw.copy()
    power[0], power[1:] = 150.0, 22.0
    slow = replace(demand, stays=replace(demand.stays, power_kw=power))
    world = closed(slow, 0)
    assert world.coming == ((),) * demand.sites
    assert len(world.drivers(0).at_ms) == len(demand.everyone(0).at_ms)
    assert is_similar_power(150.0, np.array([50.0, 75.0, 300.0, np.nan])).tolist() == [False, True, True, True]


def test_closing_a_site_serves_less(demand):
    same, world = changed_world(demand), closed(demand, 0)
    before, after = (sum(of.split(s).kwh for s in range(demand.sites)) for of in (same, world))
    assert after.mean() < before.mean()  # in some draws, drivers who were turned away find a plug next door


def test_a_competitor_takes_drivers_of_nearby_sites_only(demand):
    lat, lon = demand.panel.sites.select("lat", "lon").row(0)
    world, same = changed_world(demand, Change(competitors=((lat, lon),))), changed_world(demand)
    share = [len(world.drivers(s).at_ms) / len(same.drivers(s).at_ms) for s in range(demand.sites)]
    assert share[0] == pytest.approx(0.5, abs=0.02)
    assert share[1] == pytest.approx(1 - float(attraction(np.array(0.5))), abs=0.02)
    assert share[2:] == [1.0] * (demand.sites - 2)  # eight kilometres away


def test_attraction_falls_with_distance_and_is_zero_out_of_reach():
    assert attraction(np.array([0.0, 1.0, 2.9, 3.1])) == pytest.approx([0.5, 0.2689, 0.0522, 0.0], abs=1e-4)


def test_rapid_plugs_shorten_stays_and_slow_ones_deliver_less():
    stay, kwh = np.array([4, 4]) * 3_600_000, np.array([30.0, 10.0])
    same = stays_at_power(stay, kwh, 22.0, None)
    assert (same[0] == stay).all()
    rapid, energy = stays_at_power(stay, kwh, 22.0, 150.0)
    assert rapid / 3_600_000 == pytest.approx([30 / 112.5 + 1 / 6, 10 / 112.5 + 1 / 6], abs=1e-4)
    assert (energy == kwh).all()
    slow, less = stays_at_power(stay, kwh, 22.0, 3.7)
    assert (slow == stay).all()
    assert less.tolist() == [14.8, 10.0]
    assert RAPID_KW < 150


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (Change(growth=0.0), "factor above 0"),
        (Change(stay_hours=-1.0), "above 0"),
        (Change(idle_cut=1.5), "from 0 to 1"),
        (Change(closed=("nowhere",)), "no station 'nowhere'"),
        (Change(competitors=((95.0, 0.0),)), "latitude,longitude"),
    ],
)
def test_invalid_changes_are_refused(demand, change, sentence):
    with pytest.raises(InputError, match=sentence):
        changed_world(demand, change)
