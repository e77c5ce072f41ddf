"""Sites: adjacent stations of similar power are one choice for a driver."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.demand.records import sessions, stations
from unmet.demand.sites import SITE_KM, find_sites, merge_sites
from unmet.geo import haversine_km

KM = 1 / 111.195  # degrees of latitude
NONE = sessions(("a", 0, 1, 1.0)).clear()


def at(*km, power=None, ids=None):
    """Stations at these distances [km] along a meridian."""
    names = ids or [f"s{i}" for i in range(len(km))]
    columns = {} if power is None else {"power_kw": power}
    return stations(*names, **columns).with_columns(lat=55 + KM * pl.Series(km, dtype=pl.Float64), lon=pl.lit(12.0))


def test_adjacent_stations_of_similar_power_are_one_site_named_after_the_first():
    found = find_sites(at(0, 0.05, 0.5, 0.55, power=[22.0, 11.0, 22.0, 43.0]), NONE)
    assert found.to_list() == ["s0", "s0", "s2", "s2"]


def test_a_rapid_charger_is_not_joined_to_slow_ones():
    found = find_sites(at(0, 0.01, 0.02, power=[22.0, 50.0, 22.0]), NONE)
    assert found.to_list() == ["s0", "s1", "s0"]


def test_a_chain_of_neighbours_is_one_site():
    assert find_sites(at(0, 0.09, 0.18, 0.27, 0.4), NONE).to_list() == ["s0"] * 4 + ["s4"]


def test_stations_without_positions_are_sites_of_their_own():
    unplaced = at(0, 0, 0).with_columns(lat=pl.Series([55.0, None, 55.0]))
    assert find_sites(unplaced, NONE).to_list() == ["s0", "s1", "s0"]
    nowhere = unplaced.with_columns(lat=pl.lit(None, pl.Float64), lon=pl.lit(None, pl.Float64))
    assert find_sites(nowhere, NONE).to_list() == ["s0", "s1", "s2"]


def test_stations_of_one_name_are_one_site_only_where_positions_are_missing():
    here = at(0, 0, 5, power=[50.0, 50.0, 50.0]).with_columns(name=pl.lit("Hub"))
    assert find_sites(here, NONE).to_list() == ["s0", "s0", "s2"]
    nowhere = here.with_columns(lat=pl.lit(None, pl.Float64), lon=pl.lit(None, pl.Float64))
    assert find_sites(nowhere, NONE).to_list() == ["s0"] * 3
    assert find_sites(nowhere.with_columns(power_kw=pl.Series([50.0, 7.0, 50.0])), NONE).to_list() == ["s0", "s1", "s0"]
    names = nowhere.with_columns(name=pl.Series(["Hub", None, "Rink"]))
    assert find_sites(names, NONE).to_list() == ["s0", "s1", "s2"]
    many = pl.concat([nowhere] * 5).with_columns(station_id=pl.format("s{}", pl.int_range(15)))
    assert find_sites(many, NONE).n_unique() == 15  # a name that so many share is no place


def test_sessions_show_the_power_if_the_table_does_not():
    fast = [("s0", i, i + 1, 45.0) for i in range(20)] + [("s2", i, i + 1, 43.0) for i in range(20)]
    rows = sessions(*fast, *[("s1", i, i + 1, 7.0) for i in range(20)])
    assert find_sites(at(0, 0.01, 0.02, power=[None] * 3), rows).to_list() == ["s0", "s1", "s0"]
    # A listed power takes precedence over the sessions.
    assert find_sites(at(0, 0.01, 0.02, power=[7.0, 7.0, 7.0]), rows).to_list() == ["s0"] * 3
    # Two stations of unknown power are similar to each other, but to no station of known power.
    unknown = at(0, 0.01, 0.02, power=[None, None, 50.0])
    assert find_sites(unknown, NONE).to_list() == ["s0", "s0", "s2"]


def test_idle_time_after_charging_does_not_count_as_slow_charging():
    idle = sessions(*[("s0", i, i + 10, 45.0) for i in range(20)])
    charged = idle.with_columns(charged=pl.col("start").dt.offset_by("1h"))
    known = at(0, 0.01, power=[None, 50.0])
    assert find_sites(known, charged).to_list() == ["s0", "s0"]
    assert find_sites(known, idle).to_list() == ["s0", "s1"]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.sampled_from([11.0, 50.0])), min_size=1, max_size=12)
)
def test_sites_are_the_connected_components_of_nearby_similar_stations(rows):
    number = len(rows)
    lat, lon = (np.array([55 + 0.0004 * row[0] for row in rows]), np.array([12 + 0.0007 * row[1] for row in rows]))
    power = np.array([row[2] for row in rows])
    known = stations(*(f"s{i}" for i in range(number)), power_kw=power).with_columns(
        lat=pl.Series(lat), lon=pl.Series(lon)
    )
    km = haversine_km(lat[:, None], lon[:, None], lat, lon)
    if np.abs(km - SITE_KM).min() < 1e-9:
        return
    label = np.arange(number)
    for _ in range(number):
        for i in range(number):
            label[i] = min(label[j] for j in range(number) if km[i, j] < SITE_KM and power[i] == power[j])
    assert find_sites(known, NONE).to_list() == [f"s{i}" for i in label]


def test_a_site_has_the_mean_position_the_summed_capacity_and_the_joint_probability():
    known = at(0, 0.05, 5.0).with_columns(
        site_id=pl.Series(["s0", "s0", "s2"]),
        capacity=pl.Series([2, 3, 1]),
        capacity_sure=pl.Series([0.5, 0.8, 1.0]),
        name=pl.Series([None, "Second", "Third"]),
    )
    found = merge_sites(known)
    assert found.select("site_id", "name", "capacity", "stations").rows() == [("s0", "s0", 5, 2), ("s2", "Third", 1, 1)]
    assert found["capacity_sure"].to_list() == pytest.approx([0.4, 1.0])
    assert found["lat"][0] == pytest.approx(55 + KM * 0.025)
