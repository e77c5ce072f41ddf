"""Rules by which rows become sessions, or are set aside with the reason."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.errors import InputError
from unmet.records.mapping import Mapping
from unmet.records.sessions import SESSIONS, Records, read_sessions

NOW = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
HEADER = "session_id,station_id,start,end,energy_kwh,plug_id,vehicle_id"
GOOD = "1,A,2018-01-02 10:00:00,2018-01-02 12:00:00,20,1,car"


def read(*rows: str, header: str = HEADER, **options: Any) -> Records:
    frame = pl.read_csv("\n".join((header, *rows)).encode(), infer_schema=False)
    records = read_sessions([frame], now=NOW, **{"join_minutes": 0} | options)
    assert records.counts["rows_in"] == len(rows) == records.sessions.height + records.rejected.height
    assert records.counts["rows_kept"] == records.sessions.height
    assert records.counts["rows_set_aside"] == records.rejected.height
    assert dict(records.sessions.schema) == SESSIONS
    return records


@pytest.mark.parametrize(
    ("row", "count", "column", "value", "reason"),
    [
        ("1,,2018-01-02 10:00:00,2018-01-02 12:00:00,20,1,", "station_missing", "station_id", None, "is empty"),
        ("1,A,,2018-01-02 12:00:00,20,1,", "start_missing", "start", None, "is empty"),
        ("1,A,soon,2018-01-02 12:00:00,20,1,", "start_unreadable", "start", "soon", "is not a date and time"),
        ("1,A,2018-01-02 10:00:00,,,1,", "open_sessions", "end", None, "still open"),
        ("1,A,2018-01-02 10:00:00, ,20,1,", "open_sessions", "end", None, "still open"),
        ("1,A,2018-01-02 10:00:00,?,20,1,", "end_unreadable", "end", "?", "is not a date and time"),
        (
            "1,A,2018-01-02 10:00:00,2018-01-02 09:59:59,2,1,",
            "end_before_start",
            "end",
            "2018-01-02 09:59:59",
            "before",
        ),
        ("1,A,2018-01-02 10:00:00,2018-02-02 10:00:01,2,1,", "too_long", "end", "2018-02-02 10:00:01", "31 days"),
        (
            "1,A,2020-01-02 10:00:00,2020-01-02 11:00:00,2,1,",
            "start_in_future",
            "start",
            "2020-01-02 10:00:00",
            "future",
        ),
        (
            f"1,{'A' * 1001},2018-01-02 10:00:00,2018-01-02 12:00:00,2,1,",
            "station_too_long",
            "station_id",
            "A" * 200,
            "1000 bytes",
        ),
        ("1,A,1999-12-31 10:00:00,1999-12-31 11:00:00,2,1,", "start_too_early", "start", "1999-12-31 10:00:00", "2000"),
        ("1,A,2018-01-02 10:00:00,2018-01-02 12:00:00,,1,", "energy_missing", "energy_kwh", None, "is empty"),
        (
            "1,A,2018-01-02 10:00:00,2018-01-02 12:00:00,NaN,1,",
            "energy_unreadable",
            "energy_kwh",
            "NaN",
            "not a number",
        ),
        (
            "1,A,2018-01-02 10:00:00,2018-01-02 12:00:00,inf,1,",
            "energy_unreadable",
            "energy_kwh",
            "inf",
            "not a number",
        ),
        ("1,A,2018-01-02 10:00:00,2018-01-02 12:00:00,x,1,", "energy_unreadable", "energy_kwh", "x", "not a number"),
        ("1,A,2018-01-02 10:00:00,2018-01-02 12:00:00,-0.1,1,", "energy_negative", "energy_kwh", "-0.1", "negative"),
        ("1,A,2018-01-02 10:00:00,2018-01-06 12:00:00,1000.1,1,", "energy_absurd", "energy_kwh", "1000.1", "1000 kWh"),
        ("1,A,2018-01-02 10:00:00,2018-01-02 10:01:00,9,1,", "power_absurd", "energy_kwh", "9", "500 kW"),
        ("1,A,2018-01-02 10:00:00,2018-01-02 10:00:00,1.1,1,", "power_absurd", "energy_kwh", "1.1", "500 kW"),
    ],
)
def test_a_row_that_cannot_be_used_is_set_aside_with_the_reason(row, count, column, value, reason):
    records = read("0,B,2018-01-02 10:00:00,2018-01-02 12:00:00,20,1,", row)
    assert records.sessions["session_id"].to_list() == ["0"]
    (rejected,) = records.rejected.rows(named=True)
    assert (rejected["line"], rejected["column"], rejected["value"]) == (2, column, value)
    assert reason in rejected["reason"]
    assert records.counts[count] == 1


@pytest.mark.parametrize(
    "row",
    [
        "1,A,2018-01-02 10:00:00,2018-01-02 12:00:00,0,1,",  # it occupies a plug
        "1,A,2018-01-02 10:00:00,2018-01-02 10:00:00,1,1,",  # times are often to the minute
        "1,A,2018-01-02 10:00:00,2018-02-02 10:00:00,2,1,",
        "1,A,2020-01-01 23:00:00,2020-01-02 10:00:00,2,1,",  # a day ahead: another zone
        "1,A,2018-01-02 10:00:00,2018-01-02 12:00:00,1000,1,",
        '1,A,2018-01-02 10:00:00,2018-01-02 12:00:00,"20,5",1,',
        "1,A,2018-01-02 10:00:00,2018-01-02 12:00:00,20 kWh,1,",
    ],
)
def test_odd_but_possible_rows_are_kept(row):
    assert read(row).sessions.height == 1


def test_energies_in_many_ways():
    energies = ["20.5", '"20,5"', '"1.020,5"', '"0,020.5"', "20.5 kWh", "2.05e1", " 20.5 "]
    rows = [f"{i},A{i},2018-01-02 10:00:00,2018-01-06 12:00:00,{e},1," for i, e in enumerate(energies)]
    records = read(*rows)
    assert records.sessions["energy_kwh"].to_list() == pytest.approx(
        [20.5, 20.5, 1020.5, 20.5, 20.5, 20.5, 20.5][:2] + [20.5] * 4
    )
    assert records.counts["energy_absurd"] == 1
    assert any("decimal" in note for note in records.notes)


def test_a_session_told_twice_counts_once_and_names_the_first():
    other_end = GOOD.replace("12:00:00,20", "13:00:00,25")
    other_id = GOOD.replace("1,A", "2,A", 1)
    records = read(GOOD, GOOD, other_end, other_id)
    assert records.sessions["session_id"].to_list() == ["1"]
    assert records.rejected["reason"].to_list() == ["is the same session as on line 1 of table 1"] * 3
    assert records.counts["duplicates"] == 3
    assert records.counts["duplicates_that_differ"] == 1


def test_an_id_used_at_another_station_or_time_is_two_sessions():
    records = read(GOOD, GOOD.replace(",A,", ",B,"), GOOD.replace("10:00:00", "11:00:00"))
    assert records.sessions.height == 3
    assert records.counts["ids_used_twice"] == 2
    assert records.counts["duplicates"] == 0


def test_without_a_plug_cars_may_come_at_the_same_minute():
    first = "1,A,2018-01-02 10:00:00,2018-01-02 10:05:00,0,,"
    assert read(first, first.replace("1,A", "2,A", 1)).sessions.height == 2  # both without energy
    charging = first.replace(",0,", ",3.21,")
    assert read(charging, charging.replace("1,A", "2,A", 1)).sessions.height == 1
    assert read(charging + "car", charging.replace("1,A", "2,A", 1) + "other car").sessions.height == 2
    header = "station_id,start,end,energy_kwh"
    assert read(*["A,2018-01-02 10:00:00,2018-01-02 10:05:00,0"] * 2, header=header).sessions.height == 1


def test_duplicates_are_found_across_files(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(f"{HEADER}\n{GOOD}\n")
    records = read_sessions([tmp_path / "b.csv", tmp_path / "a.csv"], now=NOW)
    assert records.sessions.height == 1
    assert records.rejected["file"].to_list() == [str(tmp_path / "a.csv")]
    assert records.rejected["reason"][0].endswith(f"line 2 of {tmp_path / 'b.csv'}")


def test_a_plug_holds_one_car_at_a_time():
    records = read(
        "1,A,2018-01-02 10:00:00,2018-01-02 14:00:00,20,1,",
        "2,A,2018-01-02 12:00:00,2018-01-02 13:00:00,20,1,",
        "3,A,2018-01-02 12:30:00,2018-01-02 13:00:00,20,2,",
        "4,B,2018-01-02 12:00:00,2018-01-02 13:00:00,20,1,",
        "5,B,2018-01-02 12:00:00,2018-01-02 12:30:00,2,1,",
    )
    hours = records.sessions.select("session_id", ((pl.col("end") - pl.col("start")).dt.total_minutes())).rows()
    assert dict(hours) == {"1": 240, "2": 0, "3": 30, "4": 60, "5": 0}
    assert records.counts["ends_cut_short"] == 2
    assert records.sessions["energy_kwh"].sum() == 82


def test_stations_not_in_the_table_are_set_aside():
    stations = pl.DataFrame({"station_id": ["A", "C"], "lat": [1.0, 2.0]})
    records = read(GOOD, GOOD.replace(",A,", ",B,"), stations=stations)
    assert records.sessions["station_id"].to_list() == ["A"]
    assert records.stations["station_id"].to_list() == ["A", "C"]
    assert records.counts["stations_unknown"] == 1
    assert "table of stations" in records.rejected["reason"][0]
    assert read(GOOD).stations.rows() == [("A", None, None, None, None, None, None)]


def test_ids_are_made_up_where_there_are_none(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("station_id,start,end,energy_kwh\nA,2018-01-02 10:00,2018-01-02 11:00,3\n")
    assert read_sessions(path).sessions["session_id"].to_list() == ["x.csv:2"]
    records = read(GOOD.replace("1,A", ",A", 1), GOOD.replace("1,A", "7,B", 1))
    assert records.sessions["session_id"].to_list() == ["table 1:1", "7"]
    assert records.counts["ids_made_up"] == 1


def test_the_end_of_charging_lies_within_the_session():
    header = HEADER.replace("vehicle_id", "charged")
    records = read(
        "1,A,2018-01-02 10:00:00,2018-01-02 12:00:00,20,1,2018-01-02 11:00:00",
        "2,A,2018-01-03 10:00:00,2018-01-03 12:00:00,20,1,2018-01-03 13:00:00",
        "3,A,2018-01-04 10:00:00,2018-01-04 12:00:00,20,1,2018-01-01 13:00:00",
        "4,A,2018-01-05 10:00:00,2018-01-05 12:00:00,20,1,never",
        header=header,
    )
    assert records.sessions["charged"].dt.strftime("%d %H").to_list() == ["02 11", "03 12", None, None]


def test_the_end_is_the_later_of_two_hours_where_the_earlier_would_be_before_the_start():
    records = read(
        "1,A,2018-10-28 01:50:00,2018-10-28 01:10:00,1,1,",
        "2,B,2018-10-28 01:10:00,2018-10-28 01:50:00,1,1,",
        mapping={"time_zone": "Europe/London"},
    )
    start, end = records.sessions["start"].dt.strftime("%H:%M"), records.sessions["end"].dt.strftime("%H:%M")
    assert list(zip(start, end, strict=True)) == [("00:10", "00:50"), ("00:50", "01:10")]


def test_a_mapping_overrides_names_units_and_zones(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("when,until,used,place\n02/01/2018 10:00,02/01/2018 11:00,3000,A\n")
    chosen = {"start": "when", "end": "until", "energy_kwh": "used", "station_id": "place", "energy_factor": 0.001}
    for mapping in (chosen, Mapping(**chosen)):
        records = read_sessions(path, mapping=mapping)
        assert records.sessions["energy_kwh"].to_list() == [3.0]
        assert any("day_first" in note for note in records.notes)
    records = read_sessions(path, mapping={**chosen, "station": "Z", "time_zone": "Asia/Tokyo", "day_first": False})
    assert records.sessions["station_id"].to_list() == ["Z"]
    assert records.sessions["start"][0] == dt.datetime(2018, 2, 1, 1, tzinfo=dt.UTC)
    with pytest.raises(InputError, match=r"no column 'plug'.*--map plug_id=COLUMN"):
        read_sessions(path, mapping={**chosen, "plug_id": "plug"})
    with pytest.raises(InputError, match="'colour'"):
        read_sessions(path, mapping={"colour": "red"})
    with pytest.raises(InputError, match="no time zone 'Mars'"):
        read_sessions(path, mapping={**chosen, "time_zone": "Mars"})


def test_columns_are_found_by_their_names(tmp_path):
    header = "Charger ID;Plug In Time;Plug Out Time;Energy (Wh);Port;Transaction ID;User"
    (tmp_path / "x.csv").write_text(f"{header}\nA;2018-01-02T10:00:00Z;2018-01-02T12:00:00Z;20500;2;77;me\n")
    records = read_sessions(tmp_path / "x.csv")
    assert records.sessions.select("session_id", "station_id", "energy_kwh", "plug_id", "user_id").row(0) == (
        *("77", "A", 20.5, "2", "me"),
    )
    assert any("0.001" in note for note in records.notes)
    header = "Start Date,Start Time,End Date,End Time,kWh,Station Name"
    (tmp_path / "y.csv").write_text(f"{header}\n1/31/2018,1:00 PM,1/31/2018,2:30 PM,7.5,B\n")
    records = read_sessions(tmp_path / "y.csv", format="generic")
    assert records.sessions["start"][0] == dt.datetime(2018, 1, 31, 13, tzinfo=dt.UTC)
    text = (tmp_path / "y.csv").read_text().replace("Start", "S").replace("End", "E")
    (tmp_path / "z.csv").write_text(text)
    again = read_sessions(tmp_path / "z.csv", mapping={"start": "S Date+S Time", "end": "E Date + E Time"})
    assert again.sessions["start"].equals(records.sessions["start"])


def test_frames_of_other_libraries_are_read(tmp_path):
    frame = pd.DataFrame(
        {
            "station": [1.0, 2.0],
            "start": pd.to_datetime(["2018-01-02 10:00", "2018-01-02 09:00"]),
            "end": pd.to_datetime(["2018-01-02 11:00", None]),
            "energy": [3, 4],
        }
    )
    records = read_sessions(frame, now=NOW)
    assert records.sessions["station_id"].to_list() == ["1"]
    assert records.counts["open_sessions"] == 1
    path = tmp_path / "x.parquet"
    pl.from_pandas(frame).write_parquet(path)
    assert read_sessions([path], now=NOW).sessions["energy_kwh"].to_list() == [3.0]


def test_our_own_sessions_come_back_as_they_were(tmp_path):
    sessions = read(GOOD, GOOD.replace(",A,", ",B,").replace("1,", "2,", 1)).sessions
    sessions.write_parquet(tmp_path / "sessions.parquet")
    again = read_sessions([tmp_path / "sessions.parquet"], now=NOW)
    assert again.formats == {str(tmp_path / "sessions.parquet"): "unmet"}
    assert again.sessions.equals(sessions)


def test_order_is_by_start_station_and_id():
    rows = [f"{i},{s},2018-01-0{d} 10:00:00,2018-01-0{d} 10:05:00,0,," for i in "31" for s in "BA" for d in (2, 1)]
    sessions = read(*rows).sessions
    assert sessions.equals(sessions.sort("start", "station_id", "session_id"))


def test_energies_that_only_watt_hours_explain_are_read_so():
    rows = [f"{i}{GOOD[1:]}".replace(",20,", f",{20000 + i},") for i in range(3)]
    records = read(*rows)
    assert records.sessions["energy_kwh"].sum() == pytest.approx(60.003)
    assert any("Wh" in note and "energy_factor=1" in note for note in records.notes)
    said = read(*rows, mapping={"energy_factor": 1})
    assert said.counts["energy_absurd"] == 3
    assert any("check energy_factor" in note for note in said.notes)


cells = st.one_of(
    st.none(),
    st.text(max_size=8),
    st.sampled_from(
        ["A", "B", "1", "2018-01-02 10:00:00", "2018-01-02 11:00:00", "03/04/2018 10:00", "20", "-1", "nan"]
    ),
    st.floats().map(str),
    st.integers().map(str),
)


@given(st.lists(st.tuples(*[cells] * 7), max_size=40), st.sampled_from([None, ["A", "1"]]))
def test_rows_in_are_rows_kept_plus_rows_set_aside(rows, known):
    frame = pl.DataFrame(rows, schema=dict.fromkeys(HEADER.split(","), pl.String), orient="row")
    stations = None if known is None else pl.DataFrame({"station_id": known})
    records = read_sessions([frame], mapping={"time_zone": "Europe/London"}, stations=stations, now=NOW)
    check_laws(records, len(rows))


moments = st.sampled_from([f"2018-01-02 1{hour}:{minute}0:00" for hour in range(3) for minute in (0, 3)])
plausible = st.tuples(
    st.sampled_from("123"),
    st.sampled_from("AB"),
    moments,
    moments,
    st.sampled_from(["0", "2", "5"]),
    st.sampled_from("12"),
)


@given(st.lists(plausible, max_size=40), st.booleans(), st.booleans())
def test_plausible_rows_keep_the_laws_too(rows, with_ids, with_plugs):
    frame = pl.DataFrame(rows, schema=dict.fromkeys(HEADER.split(",")[:6], pl.String), orient="row")
    frame = frame.drop(([] if with_ids else ["session_id"]) + ([] if with_plugs else ["plug_id"]))
    records = read_sessions([frame.head(15), frame.tail(max(len(rows) - 15, 0))], now=NOW)
    check_laws(records, len(rows))
    sessions = records.sessions
    if with_ids:
        assert not sessions.select("session_id", "station_id", "start").is_duplicated().any()
    if with_plugs:
        following = pl.col("start").shift(-1).over("station_id", "plug_id", order_by=["start", "end"])
        sessions = sessions.filter(pl.col("end") > pl.col("start"))  # those within another one take no time
        assert (sessions.select((pl.col("end") <= following).fill_null(value=True)))["end"].all()


def check_laws(records: Records, rows: int) -> None:
    sessions = records.sessions
    assert records.counts["rows_in"] == rows == records.counts["rows_kept"] + records.rejected.height
    assert records.counts["rows_kept"] == sessions.height + records.counts["restarts_joined"]
    assert sum(records.counts[key] for key in records.counts if key in ASIDE) == records.rejected.height
    assert (sessions["end"] >= sessions["start"]).all()
    assert sessions["energy_kwh"].is_between(0, 1000).all()
    assert sessions["station_id"].is_not_null().all()
    assert sessions["session_id"].is_not_null().all()
    assert records.rejected.select("file", "line").is_unique().all()
    assert sessions["station_id"].is_in(records.stations["station_id"].implode()).all()


ASIDE = {
    *(
        "shapeless",
        "duplicates",
        "station_missing",
        "station_too_long",
        "start_missing",
        "start_unreadable",
        "open_sessions",
    ),
    *("end_unreadable", "end_before_start", "too_long", "start_in_future", "start_too_early", "start_far_away"),
    "energy_missing",
    *("outside_period", "energy_unreadable", "energy_negative", "energy_absurd", "power_absurd", "stations_unknown"),
}


def test_no_files_and_no_such_format_are_said():
    with pytest.raises(InputError, match="no files"):
        read_sessions([])
    with pytest.raises(InputError, match=r"no format 'excel'.*dundee"):
        read_sessions([Path(__file__)], format="excel")
