"""The panel of an operator's sessions."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.demand.records import MONDAY, sessions, stations, visits
from tests.simulation.cities import cities
from unmet.demand.booking import Booking
from unmet.demand.calendar import hour_of_week, hours_between, with_calendar
from unmet.demand.market import Market
from unmet.demand.panel import Panel
from unmet.demand.regions import group_stations
from unmet.errors import InputError
from unmet.records.sessions import read_sessions
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate


@settings(max_examples=40)
@given(cities, st.integers(0, 500), st.sampled_from(["first-come", "three-hour", "gas-station"]))
def test_a_stored_run_gives_the_same_panel_as_the_run_in_memory(tmp_path_factory, city, seed, queue):
    outcome = simulate(prepare(city), Scenario(queue=queue, penetration=1, seed=seed))
    if outcome.sessions.is_empty():
        return
    folder = tmp_path_factory.mktemp("run")
    outcome.sessions.write_parquet(folder / "sessions.parquet")
    outcome.stations.write_parquet(folder / "stations.parquet")
    read = read_sessions([folder / "sessions.parquet"], stations=folder / "stations.parquet")
    assert read.formats == {str(folder / "sessions.parquet"): "unmet"}
    # Several cars may plug in at the same moment and charge nothing: a reader sees one session.
    distinct = outcome.sessions.unique(["station_id", "plug_id", "start", "end", "energy_kwh"]).height
    assert read.counts["rows_kept"] == distinct
    assume(read.counts["rows_set_aside"] == 0)
    direct = Panel(outcome.sessions, outcome.stations, regions="3")
    back = Panel(read.sessions, read.stations, regions="3")
    assert back.table.equals(direct.table)
    shared = ["station_id", "capacity", "capacity_from", "capacity_sure", "site_id", "unique_id", "sessions"]
    assert back.stations.select(shared).equals(direct.stations.select(shared))


def test_true_demand_of_a_simulation_is_at_least_the_observed_demand():
    from tests.simulation.cities import small_city
    from unmet.demand.simulated import simulated_panel

    outcome = simulate(prepare(small_city(3, 40, 20, 5, 1)), Scenario(penetration=1))
    panel = Panel(outcome.sessions, outcome.stations, regions="2")
    truth = simulated_panel(outcome.arrivals, panel.regions, panel.period)
    both = panel.table.join(truth.select("unique_id", "ds", "y_true"), on=["unique_id", "ds"], how="left")
    assert both["y_true"].null_count() == 0
    assert (both["y_true"] >= both["y"] - 1e-9).all()
    assert both["y_true"].sum() == pytest.approx(outcome.arrivals["wanted_kwh"].sum())


def test_one_station_worked_out_by_hand():
    panel = Panel(sessions(("a", 1, 1.5, 5), ("a", 2, 4, 20)), stations("a"), time_zone="Europe/Copenhagen")
    table = panel.table
    assert table.columns == ["unique_id", "ds", "y", "arrivals", "hour", "weekday", "holiday"]
    assert table.height == 24
    assert table["y"].head(4).to_list() == [0, 5, 20, 0]
    assert table["arrivals"].head(4).to_list() == [0, 1, 1, 0]
    assert table["hour"].head(2).to_list() == [2, 3]
    assert table["weekday"].unique().to_list() == [1, 2]  # the last two hours are Tuesday in Copenhagen
    assert panel.stations.select("sessions", "energy_kwh", "site_id").row(0) == (2, 25.0, "a")


@pytest.mark.parametrize("booking", ["arrival", Booking.ARRIVAL])
def test_booking_is_given_as_text_or_enum(booking):
    rows = sessions(("a", 1, 5, 8))
    assert Panel(rows, stations("a"), booking=booking).table["y"].head(6).to_list() == [0, 8, 0, 0, 0, 0]
    delivered = Panel(rows, stations("a"), booking="delivery").table
    assert delivered["y"].head(6).to_list() == [0, 2, 2, 2, 2, 0]
    with pytest.raises(InputError, match="no booking 'departure': give arrival or delivery"):
        Panel(rows, stations("a"), booking="departure")


def test_delivery_ends_when_the_car_is_charged():
    stay = sessions(("a", 1, 5, 8)).with_columns(
        charged=pl.lit(MONDAY + dt.timedelta(hours=3)).cast(pl.Datetime("ms", "UTC"))
    )
    assert Panel(stay, stations("a"), booking="delivery").table["y"].head(6).to_list() == [0, 4, 4, 0, 0, 0]
    assert Panel(stay, stations("a")).table["y"].head(3).to_list() == [0, 8, 0]


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["1", "2", "station", "auto"]), st.sampled_from(list(Booking)))
def test_the_table_sums_to_the_energy_and_number_of_the_sessions(seed, regions, booking):
    names = "abc"
    rows = [row for name in names for row in visits(name, 0.3, 2, 0, 5, seed=seed).rows]
    assume(rows)
    table = sessions(*rows)
    panel = Panel(table, stations(*names, plugs=[2] * 3), regions=regions, booking=booking)
    first, last = table["start"].min(), table["start"].max()
    assert panel.period == (
        first.replace(hour=0, minute=0, second=0, microsecond=0),
        last.replace(hour=0, minute=0, second=0, microsecond=0) + dt.timedelta(days=1),
    )
    assert panel.table.height == panel.hours * panel.regions.centres.height
    assert panel.table["arrivals"].sum() == table.height == panel.stations["sessions"].sum()
    assert panel.stations["energy_kwh"].sum() == pytest.approx(table["energy_kwh"].sum())
    if booking is Booking.ARRIVAL:
        assert panel.table["y"].sum() == pytest.approx(table["energy_kwh"].sum())
    else:  # energy delivered after the last hour is not in the panel
        assert panel.table["y"].sum() <= table["energy_kwh"].sum() + 1e-9


def test_a_panel_has_a_short_repr():
    panel = Panel(sessions(("a", 1, 2, 5), ("b", 30, 31, 5)), stations("a", "b"), regions="1")
    assert repr(panel) == "Panel(2 sessions, 2 stations at 2 sites, 1 regions, 2019-09-02 to 2019-09-03, UTC)"
    assert panel.hours == 48


def test_given_outages_are_kept_except_those_of_other_stations():
    outage = sessions(("a", 6, 8, 0), ("z", 1, 2, 0)).select("station_id", "start", "end")
    panel = Panel(sessions(("a", 1, 2, 5)), stations("a"), outages=outage)
    assert panel.outages.columns == ["station_id", "plug_id", "start", "end"]
    assert panel.outages["station_id"].to_list() == ["a"]


def test_only_the_operators_own_sessions_and_stations_count():
    everybody = stations("a", "b", "c", "d", plugs=[1, 3, 4, None], operator=["Mine", "Theirs", "Theirs", "Mine"])
    everybody = everybody.with_columns(pl.Series("lat", [55.0, 55.001, 57.0, 57.001]))
    rows = [("a", 1, 2, 5), ("d", 1, 2, 5), ("b", 3, 4, 50)]
    panel = Panel(sessions(*rows), everybody, regions="2", market=Market(operator="Mine"))
    assert panel.table["y"].sum() == 10
    assert panel.stations["station_id"].to_list() == ["a", "d"]
    assert sorted(panel.everyone.select("station_id", "plugs").rows()) == [("a", 1), ("b", 3), ("c", 4), ("d", 1)]
    assert panel.regions.centres["stations"].to_list() == [2, 2]
    with pytest.raises(InputError, match="Mine, Theirs"):
        Panel(sessions(*rows), everybody, market=Market(operator="Nobody"))
    with pytest.raises(InputError, match="not both"):
        Market("Mine", 0.5)
    with pytest.raises(InputError, match="up to 1"):
        Market(share=0)


def test_the_regions_of_another_panel_can_be_reused():
    known = stations("a", "b", "c")
    rows = sessions(("a", 1, 2, 5), ("c", 1, 2, 5))
    one = Panel(rows, known, regions="2")
    other = Panel(rows.head(1), known, regions=one.regions)
    assert other.regions is one.regions
    assert other.stations["unique_id"].equals(one.stations["unique_id"])


def test_regions_by_number_by_station_by_areas_and_by_silhouette(tmp_path):
    rng = np.random.default_rng(1)
    centre = np.repeat([[55.0, 12.0], [55.5, 12.5], [56.0, 12.0]], 10, axis=0) + 0.01 * rng.standard_normal((30, 2))
    table = stations(*[f"s{i}" for i in range(30)]).with_columns(
        pl.Series("lat", centre[:, 0]), pl.Series("lon", centre[:, 1])
    )
    assert group_stations(table, "4")[0].centres.height == 4
    assert group_stations(table, "station")[0].centres.height == 30
    assert group_stations(table, "auto")[0].centres["stations"].to_list() == [10, 10, 10]
    square = [[11.5, 54.5], [12.3, 54.5], [12.3, 55.3], [11.5, 55.3], [11.5, 54.5]]
    hole = [[11.99, 54.99], [12.01, 54.99], [12.01, 55.01], [11.99, 55.01], [11.99, 54.99]]
    north = [[[11.5, 55.8], [13.0, 55.8], [13.0, 56.5], [11.5, 56.5], [11.5, 55.8]]]
    areas = {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"name": "South"},
                "geometry": {"type": "Polygon", "coordinates": [square, hole]},
            },
            {"type": "Feature", "properties": {}, "geometry": {"type": "MultiPolygon", "coordinates": [north]}},
        ],
    }
    path = tmp_path / "areas.geojson"
    path.write_text(json.dumps(areas))
    grouped, note = group_stations(table, str(path))
    sizes = dict(grouped.centres.select("unique_id", "stations").iter_rows())
    inside_hole = ((abs(centre[:10, 0] - 55) < 0.01) & (abs(centre[:10, 1] - 12) < 0.01)).sum()
    assert sizes == {"South": 10 - inside_hole, "area1": 10, "outside": 10 + inside_hole}
    assert "outside all of them" in note
    path.write_text("{}")
    with pytest.raises(InputError, match="GeoJSON"):
        group_stations(table, str(path))
    with pytest.raises(InputError, match="makes no sense"):
        group_stations(table, "many")
    unplaced, note = group_stations(table.with_columns(lat=pl.lit(None, pl.Float64)), "10")
    assert unplaced.centres.height == 30
    assert "not all have a position" in note


def test_hours_follow_local_time_and_holidays():
    hours = hours_between(dt.datetime(2019, 10, 26, tzinfo=dt.UTC), dt.datetime(2019, 10, 28, tzinfo=dt.UTC))
    week = hour_of_week(hours, "Europe/Copenhagen").to_list()
    assert week[0] == 5 * 24 + 2  # Saturday 02:00 in summer time
    assert week.count(6 * 24 + 2) == 2  # the hour that happens twice
    christmas = pl.DataFrame(
        {"ds": hours_between(dt.datetime(2019, 12, 24, tzinfo=dt.UTC), dt.datetime(2019, 12, 28, tzinfo=dt.UTC))}
    )
    free = with_calendar(christmas, "Europe/Copenhagen", "DK").filter("holiday")
    assert set(free["ds"].dt.convert_time_zone("Europe/Copenhagen").dt.date().dt.day()) == {25, 26}
    assert not with_calendar(christmas, "UTC").select(pl.col("holiday").any()).item()
    with pytest.raises(InputError, match="Atlantis"):
        with_calendar(christmas, "UTC", "Atlantis")


def test_a_panel_needs_sessions_and_a_valid_time_zone():
    with pytest.raises(InputError, match="no sessions to build a panel from"):
        Panel(sessions(("a", 1, 2, 3)).clear(), stations("a"))
    with pytest.raises(InputError, match="time zone"):
        Panel(sessions(("a", 1, 2, 3)), stations("a"), time_zone="Mars/North")
