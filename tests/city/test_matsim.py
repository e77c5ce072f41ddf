"""A MATSim scenario, from its files to its lost demand, and the estimate from its records alone."""

from __future__ import annotations

import datetime as dt
import gzip
import os

import numpy as np
import polars as pl
import pytest
from pyproj import Transformer

from tests.city.matsim_scenario import CRS, EAST, NORTH, SPACING, write_scenario
from tests.fuzz_inputs import EVENTS, PLANS, ROADS
from unmet.city.build import build_city
from unmet.city.export import MatsimSource, write_matsim
from unmet.city.matsim import MatsimDay, read_chargers, read_matsim_trips
from unmet.city.matsim.network import read_road_network
from unmet.demand.regions import kmeans_regions
from unmet.errors import InputError
from unmet.estimation.simulated import estimate_simulated
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate

BERLIN = "Europe/Berlin"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_scenario(tmp_path_factory.mktemp("matsim"), people=700)


def test_plans_become_trips_at_their_places_and_local_times(files):
    scenario = read_matsim_trips(files["plans"], CRS, MatsimDay(dt.date(2024, 7, 1), 2, BERLIN))
    trips = scenario.trips
    assert trips.height == 2 * scenario.legs
    assert scenario.rejected.is_empty()
    first = trips.filter(pl.col("vehicle_id") == "p0").sort("start_time")
    leaves = first["start_time"].dt.convert_time_zone(BERLIN)
    assert leaves[0].hour == 7
    assert (leaves[2] - leaves[0]) == dt.timedelta(days=1)
    assert first["end_lat"][1] == pytest.approx(first["start_lat"][0])  # home again
    x, y = Transformer.from_crs("EPSG:4326", CRS, always_xy=True).transform(trips["end_lon"], trips["end_lat"])
    assert ((np.array(x) >= EAST - 1) & (np.array(x) <= EAST + 5 * SPACING + 1)).all()
    assert ((np.array(y) >= NORTH - 1) & (np.array(y) <= NORTH + 5 * SPACING + 1)).all()
    assert trips["distance_km"].min() > 20  # of the routes, not of the straight line


def test_events_need_the_network_for_places_and_give_its_lengths(files):
    network = read_road_network(files["network"])
    scenario = read_matsim_trips(files["events"], CRS, MatsimDay(), network)
    plans = read_matsim_trips(files["plans"], CRS, MatsimDay())
    assert scenario.trips.height == plans.trips.height // 2  # only mornings are in the events
    assert (scenario.trips["distance_km"] == SPACING / 1000).all()
    with pytest.raises(InputError, match="give --network"):
        read_matsim_trips(files["events"], CRS, MatsimDay())


def test_chargers_are_placed_on_their_links(files):
    network = read_road_network(files["network"])
    stations = read_chargers(files["chargers"], network, CRS)
    assert stations["plugs"].to_list() == [6, 6, 6]
    assert stations["power_kw"].unique().to_list() == [22.0]
    x, y = Transformer.from_crs("EPSG:4326", CRS, always_xy=True).transform(stations["lon"][0], stations["lat"][0])
    assert (x, y) in [pytest.approx(place, abs=0.1) for place in network.middle.values()]


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("network", "give plans"),
        ("cut", "not a complete XML file"),
        ("crs", "coordinate system with --crs"),
        ("bad crs", "not a coordinate reference system"),
        ("mode", "no leg by bike"),
        ("days", "make no sense"),
    ],
)
def test_unreadable_scenarios_are_explained(files, tmp_path, what, says):
    cut = tmp_path / "cut.xml"
    cut.write_text("<population><person id='a'>", encoding="utf-8")
    path = {"network": files["network"], "cut": cut}.get(what, files["plans"])
    crs = {"crs": None, "bad crs": "EPSG:0"}.get(what, CRS)
    mode, days = "bike" if what == "mode" else "car", 0 if what == "days" else 1
    with pytest.raises(InputError, match=says):
        read_matsim_trips(path, crs, MatsimDay(days=days), None, mode)


@pytest.mark.parametrize(
    ("chargers", "says"),
    [
        ("<chargers/>", "holds no chargers"),
        ("<chargers><charger id='c' link='nowhere' plug_power='22'/></chargers>", "which the network does not have"),
        ("<chargers><charger id='c' link='0_0-1_0' plug_power='fast'/></chargers>", "no usable plug_power"),
        (None, "There is no file"),
    ],
)
def test_unusable_chargers_are_explained(files, tmp_path, chargers, says):
    if chargers is not None:
        (tmp_path / "chargers.xml").write_text(chargers, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        read_chargers(tmp_path / "chargers.xml", read_road_network(files["network"]), CRS)


@pytest.mark.parametrize(
    ("network", "says"),
    [
        ("<network/>", "holds no links"),
        ("<network><node id='a' x='1' y='here'/></network>", "the node 'a' has no usable position"),
        ("<network><link id='l' from='a' to='b'/></network>", "the link 'l' has no usable position"),
    ],
)
def test_unusable_networks_are_explained(tmp_path, network, says):
    (tmp_path / "network.xml").write_text(network, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        read_road_network(tmp_path / "network.xml")


def test_numbers_that_are_none_are_no_places_and_no_times(tmp_path):
    broken = PLANS.replace(b'distance="2000.0"', b'distance="2,0"').replace(b'y="6175000" end', b'y="inf" end')
    (tmp_path / "plans.xml").write_bytes(broken)
    (tmp_path / "roads.xml").write_bytes(ROADS)
    read = read_matsim_trips(tmp_path / "plans.xml", CRS, MatsimDay(), read_road_network(tmp_path / "roads.xml"))
    assert read.legs == 2
    assert read.trips["distance_km"].is_finite().all()
    (tmp_path / "events.xml").write_bytes(EVENTS.replace(b"25200.0", b"2520U.0"))
    with pytest.raises(InputError, match="No leg of"):
        read_matsim_trips(tmp_path / "events.xml", CRS, MatsimDay())


def test_pipes_and_damaged_archives_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.xml")
    with pytest.raises(InputError, match="pipe"):
        read_road_network(tmp_path / "pipe.xml")
    whole = gzip.compress(ROADS)
    (tmp_path / "cut.xml.gz").write_bytes(whole[:20] + bytes(20) + whole[40:])
    with pytest.raises(InputError, match="not a complete XML file"):
        read_road_network(tmp_path / "cut.xml.gz")
    (tmp_path / "odd.xml").write_bytes(b'<?xml version="1.0" encoding="utf-99"?><network/>')
    with pytest.raises(InputError, match="not a complete XML file"):
        read_road_network(tmp_path / "odd.xml")


def test_nothing_is_replaced_without_overwrite(files, tmp_path):
    source = MatsimSource(files["plans"], files["network"], files["chargers"], CRS, "car")
    out = tmp_path / "t.parquet"
    (tmp_path / "t.stations.parquet").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"t\.stations\.parquet already exists"):
        write_matsim(out, source, MatsimDay(), overwrite=False)
    assert not out.exists()
    write_matsim(out, source, MatsimDay(), overwrite=True)
    assert pl.read_parquet(tmp_path / "t.stations.parquet").height == 3


def test_lost_demand_of_a_scenario_is_recovered_within_its_interval(files, tmp_path):
    """End to end: files, trips and stations, simulation, and the estimate from its sessions alone."""
    source = MatsimSource(files["plans"], files["network"], files["chargers"], CRS, "car")
    summary, rejected = write_matsim(tmp_path / "t.csv", source, MatsimDay(days=42, time_zone=BERLIN), overwrite=False)
    assert summary["trips"] == 42 * summary["legs_of_the_day"] - rejected.height
    city = build_city(tmp_path / "t.csv", tmp_path / "t.stations.csv", time_zone=BERLIN)
    outcome = simulate(prepare(city), Scenario(queue="first-come", penetration=0.25))
    lost = outcome.arrivals.filter(pl.col("outcome") == "lost")
    assert lost.height > 0.2 * outcome.arrivals.height
    lost_demand = estimate_simulated(outcome.sessions, city.stations, kmeans_regions(city.stations, 1), BERLIN)
    estimate = lost_demand.summary()["lost_kwh"]
    assert estimate["low"] <= lost["wanted_kwh"].sum() <= estimate["high"]
    assert estimate["mean"] == pytest.approx(lost["wanted_kwh"].sum(), rel=0.4)
    assert lost_demand.session_kwh_.mean() == pytest.approx(lost["wanted_kwh"].mean(), rel=0.15)
