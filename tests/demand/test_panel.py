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
from unmet.demand.panel import build_panel
from unmet.demand.regions import group_stations
from unmet.demand.simulated import simulated_panel
from unmet.errors import InputError
from unmet.records.sessions import read_records
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate


@settings(max_examples=40)
@given(cities, st.integers(0, 500), st.sampled_from(["first-come", "three-hour", "gas-station"]))
def test_a_run_read_back_gives_the_panel_made_directly(tmp_path_factory, city, seed, queue):
    outcome = simulate(prepare(city), Scenario(queue=queue, penetration=1, seed=seed))
    if outcome.sessions.is_empty():
        return
    folder = tmp_path_factory.mktemp("run")
    outcome.sessions.write_parquet(folder / "sessions.parquet")
    outcome.stations.write_parquet(folder / "stations.parquet")
    read = read_records([folder / "sessions.parquet"], stations=folder / "stations.parquet")
    assert read.formats == {str(folder / "sessions.parquet"): "unmet"}
    # Cars may come to a plug at the same moment and take nothing: to a reader that is one session.
    told_once = outcome.sessions.unique(["station_id", "plug_id", "start", "end", "energy_kwh"]).height
    assert read.counts["rows_kept"] == told_once
    assume(read.counts["rows_set_aside"] == 0)
    direct = build_panel(outcome.sessions, outcome.stations, regions="3")
    back = build_panel(read.sessions, read.stations, regions="3")
    assert back.table.equals(direct.table)
    assert back.station_hours().equals(direct.station_hours())


def test_the_truth_of_a_simulation_is_at_least_what_its_records_show():
    from tests.simulation.cities import small_city

    outcome = simulate(prepare(small_city(3, 40, 20, 5, 1)), Scenario(penetration=1))
    panel = build_panel(outcome.sessions, outcome.stations, regions="2")
    truth = simulated_panel(outcome.arrivals, panel.regions, panel.period)
    both = panel.table.join(truth.select("unique_id", "ds", "y_true"), on=["unique_id", "ds"], how="left")
    assert both["y_true"].null_count() == 0
    assert (both["y_true"] >= both["y"] - 1e-9).all()
    assert both["y_true"].sum() == pytest.approx(outcome.arrivals["wanted_kwh"].sum())


def test_one_station_worked_out_by_hand():
    # One plug: taken 01:00-01:30 and 02:00-04:00.
    panel = build_panel(sessions(("a", 1, 1.5, 5), ("a", 2, 4, 20)), stations("a"), time_zone="Europe/Copenhagen")
    table = panel.table
    assert table.height == 24
    assert table["exposure"].head(6).to_list() == [1, 0.5, 0, 0, 1, 1]
    assert table["y"].head(4).to_list() == [0, 5, 20, 0]
    assert table["arrivals"].head(4).to_list() == [0, 1, 1, 0]
    assert table["hour"].head(2).to_list() == [2, 3]
    assert table["weekday"].unique().to_list() == [1, 2]  # the last two hours are Tuesday in Copenhagen
    assert panel.stations["full_share"].item() == pytest.approx(2.5 / 24)
    hours = panel.station_hours()
    assert hours.select("arrivals", "energy_kwh", "exposure").rows() == [(1, 5.0, 0.5), (1, 20.0, 0.0), (0, 0.0, 0.0)]


def test_what_was_lost_is_told_by_region_by_station_and_by_hour():
    rows = [row for name in "abc" for row in visits(name, 1.0, 1, 0, 14, seed=2).rows]
    panel = build_panel(sessions(*rows), stations("a", "b", "c", "d"), regions="2", country="DK")
    said = ["exposure", "turnout", "exposure_spread", "lost_spread", "session_kwh"]
    calendar = ["hour", "weekday", "holiday"]
    assert panel.table.columns == ["unique_id", "ds", "y", "arrivals", "censored", *said, *calendar]
    assert panel.table.select(pl.all_horizontal(pl.col(said).is_finite().all())).item()
    assert (panel.table["exposure_spread"] == 0).all()
    assert panel.table["lost_spread"].is_between(0, 1, closed="right").all()
    hours = panel.station_hours()
    assert hours.columns[:5] == ["station_id", "ds", "arrivals", "energy_kwh", "exposure"]
    by_station = hours.group_by("station_id").agg(pl.col("lost_arrivals", "lost_kwh").sum())
    told = panel.stations.join(by_station, on="station_id", how="left").fill_null(0)
    for name in ("lost_arrivals", "lost_kwh"):
        assert told[name].to_numpy() == pytest.approx(told[f"{name}_right"].to_numpy())
    assert told["lost_kwh"].sum() == pytest.approx(10 * told["lost_arrivals"].sum())  # all take 10 kWh
    assert panel.table["session_kwh"].to_numpy() == pytest.approx(10)
    assert told.filter(pl.col("station_id") == "d").select("sessions", "lost_arrivals").row(0) == (0, 0)


def test_idle_time_counts_as_occupied_and_delivery_ends_when_charged():
    stay = sessions(("a", 1, 5, 8)).with_columns(
        charged=pl.lit(MONDAY + dt.timedelta(hours=3)).cast(pl.Datetime("ms", "UTC"))
    )
    by_delivery = build_panel(stay, stations("a"), booking=Booking.DELIVERY).table
    assert by_delivery["exposure"].head(6).to_list() == [1, 0, 0, 0, 0, 1]
    assert by_delivery["y"].head(6).to_list() == [0, 4, 4, 0, 0, 0]
    assert build_panel(stay, stations("a")).table["y"].head(3).to_list() == [0, 8, 0]


def test_plugs_out_of_order_lower_capacity():
    outage = sessions(("a", 6, 8, 0)).select("station_id", "start", "end")
    one = build_panel(sessions(("a", 1, 2, 5)), stations("a"), outages=outage).table
    assert one["exposure"][6] == one["exposure"][7] == 0
    two = build_panel(sessions(("a", 1, 2, 5), ("a", 6.5, 7, 5)), stations("a", plugs=[2]), outages=outage).table
    assert two["exposure"][6] == 0.5
    assert two["exposure"][7] == 1
    assert two["exposure"][1] == 1


def test_a_broken_plug_with_a_car_on_it_is_one_plug():
    outage = sessions(("a", 1, 2, 0)).select("station_id", "start", "end").with_columns(plug_id=pl.lit("1"))
    both = sessions(("a", 1, 2, 5), ("a", 5, 6, 5), plug_id=["1", "2"])
    table = build_panel(both, stations("a", plugs=[2]), outages=outage).table
    assert table["exposure"].head(3).to_list() == [1, 1, 1]


def test_a_station_that_is_always_full_gives_a_bounded_guess_and_a_word():
    rows = [("a", h, h + 1, 5) for h in range(24 * 14)]
    panel = build_panel(sessions(*rows), stations("a"))
    assert panel.exposure.lost.sum() < 25 * len(rows)
    assert any("only a guess" in note for note in panel.notes)


def test_a_station_silent_for_a_month_is_told_of():
    panel = build_panel(sessions(("a", 1, 2, 5), ("a", 24 * 40, 24 * 40 + 1, 5)), stations("a"))
    assert any("30 days or more" in note for note in panel.notes)


def test_plugs_come_from_the_table_the_connectors_or_the_most_cars_at_once():
    rows = [
        ("table", 0, 9, 1),
        ("wires", 0, 1, 1),
        ("wires", 2, 3, 1),
        ("seen", 0, 2, 1),
        ("seen", 1, 3, 1),
        ("more", 0, 2, 1),
        ("more", 1, 2, 1),
    ]
    plug = [None, "1", "2", None, None, None, None]
    known = stations("table", "wires", "seen", "more", "empty", plugs=[3, None, None, 1, None])
    found = build_panel(sessions(*rows, plug_id=plug), known).stations
    assert found.select("station_id", "plugs", "plugs_from", "plugs_sure").rows() == [
        ("table", 3, "table of stations", True),
        ("wires", 2, "connectors", True),
        ("seen", 2, "most cars at once", False),
        ("more", 2, "most cars at once", False),
        ("empty", 1, "not known", False),
    ]


def test_inferred_plugs_are_sure_if_reached_often():
    rows = [("a", 2 * i + s, 2 * i + 1.5 + s, 1) for i in range(30) for s in (0, 0.5)]
    found = build_panel(sessions(*rows), stations("a", plugs=[None])).stations
    assert found["plugs"].item() == 2
    assert found["plugs_sure"].item()


def test_market_share_is_a_factor_of_exposure():
    rows = [("a", h, h + 0.5, 5) for h in range(20)]
    whole, half = (
        build_panel(sessions(*rows), stations("a", plugs=[2]), market=Market(share=s)).table for s in (1.0, 0.5)
    )
    assert np.allclose(half["exposure"], 0.5 * whole["exposure"])
    assert half["censored"].sum() > whole["censored"].sum()


def test_operator_sees_its_share_of_plugs_in_each_region():
    everybody = stations("a", "b", "c", "d", plugs=[1, 3, 4, None], operator=["Mine", "Theirs", "Theirs", "Mine"])
    everybody = everybody.with_columns(pl.Series("lat", [55.0, 55.001, 57.0, 57.001]))
    rows = [("a", 1, 2, 5), ("d", 1, 2, 5), ("b", 3, 4, 50)]
    panel = build_panel(sessions(*rows), everybody, regions="2", market=Market(operator="Mine"))
    exposure = dict(panel.table.filter(pl.col("ds") == MONDAY).select("unique_id", "exposure").iter_rows())
    assert exposure == {"r0": pytest.approx(0.25), "r1": pytest.approx(0.2)}
    assert panel.table["y"].sum() == 10
    apart = everybody.with_columns(pl.Series("operator", ["Mine", "Mine", "Theirs", "Theirs"]))
    alone = build_panel(sessions(*rows), apart, regions="2", market=Market(operator="Mine")).table
    nowhere = alone.filter(pl.col("exposure") == 0)
    assert nowhere.height == 24  # a region without own plugs: nothing is seen there, and all of it is censored
    assert nowhere["censored"].all()
    with pytest.raises(InputError, match="Mine, Theirs"):
        build_panel(sessions(*rows), everybody, market=Market(operator="Nobody"))
    with pytest.raises(InputError, match="not both"):
        Market("Mine", 0.5)
    with pytest.raises(InputError, match="up to 1"):
        Market(share=0)


def test_regions_by_number_by_themselves_by_areas_and_by_fit(tmp_path):
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
    grouped, said = group_stations(table, str(path))
    sizes = dict(grouped.centres.select("unique_id", "stations").iter_rows())
    inside_hole = ((abs(centre[:10, 0] - 55) < 0.01) & (abs(centre[:10, 1] - 12) < 0.01)).sum()
    assert sizes == {"South": 10 - inside_hole, "area1": 10, "outside": 10 + inside_hole}
    assert "outside all of them" in said
    path.write_text("{}")
    with pytest.raises(InputError, match="GeoJSON"):
        group_stations(table, str(path))
    with pytest.raises(InputError, match="makes no sense"):
        group_stations(table, "many")
    unplaced, said = group_stations(table.with_columns(lat=pl.lit(None, pl.Float64)), "10")
    assert unplaced.centres.height == 30
    assert "not all have a position" in said


def test_hours_follow_local_clocks_and_holidays():
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


def test_nothing_to_make_a_panel_of():
    with pytest.raises(InputError, match="not one session"):
        build_panel(sessions(("a", 1, 2, 3)).clear(), stations("a"))
    with pytest.raises(InputError, match="time zone"):
        build_panel(sessions(("a", 1, 2, 3)), stations("a"), time_zone="Mars/North")
