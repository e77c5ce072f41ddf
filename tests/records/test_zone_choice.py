"""No zone is chosen whose clocks cannot show the times of a file."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from unmet.records.sessions import read_sessions
from unmet.records.times import missing_times, read_times
from unmet.records.zone_choice import choose_zone

SPRING = [f"2018-03-25 01:{minute:02}:00" for minute in range(0, 60, 10)]  # clocks went from 1 to 2 in London


def clocks(texts: list[str]):
    return read_times([pl.Series(texts)])[0]


def test_times_in_an_hour_that_does_not_exist_are_not_local():
    zone, note = choose_zone(clocks(SPRING), "Europe/London", is_settled=False)
    assert zone == "UTC"
    assert "--map time_zone=Europe/London" in (note or "")


def test_the_user_is_believed_and_told():
    zone, note = choose_zone(clocks(SPRING), "Europe/London", is_settled=True)
    assert zone == "Europe/London"
    assert "time_zone=UTC" in (note or "")


def test_one_odd_clock_does_not_move_all_others():
    zone, note = choose_zone(clocks([SPRING[0], "2018-04-01 10:00:00"]), "Europe/London", is_settled=False)
    assert zone == "Europe/London"
    assert note is not None


@given(st.lists(st.datetimes(dt.datetime(2018, 3, 24), dt.datetime(2018, 3, 27)), min_size=1, max_size=30))
def test_no_zone_is_chosen_that_three_times_contradict(times):
    read = clocks([f"{time:%Y-%m-%d %H:%M:%S}" for time in times])
    zone, _ = choose_zone(read, "Europe/London", is_settled=False)
    assert missing_times(read[0], zone) < 3
    missing = sum(
        t.replace(tzinfo=ZoneInfo("Europe/London"))
        .astimezone(dt.UTC)
        .astimezone(ZoneInfo("Europe/London"))
        .replace(tzinfo=None)
        != t
        for t in times
    )
    assert missing_times(read[0], "Europe/London") == missing


def test_own_column_names_take_the_time_zone_that_is_given(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("session_id,station_id,start,end,energy_kwh\n1,A,2018-07-02 10:00:00,2018-07-02 12:00:00,20\n")
    local = read_sessions(path, time_zone="Europe/Copenhagen")
    assert local.sessions["start"][0] == dt.datetime(2018, 7, 2, 8, tzinfo=dt.UTC)
    assert local.time_zone == "Europe/Copenhagen"
    plain = read_sessions(path)
    assert plain.sessions["start"][0] == dt.datetime(2018, 7, 2, 10, tzinfo=dt.UTC)
    assert any("--time-zone" in note for note in plain.notes)
    mapped = read_sessions(path, mapping={"time_zone": "UTC"}, time_zone="Europe/Copenhagen")
    assert mapped.sessions["start"][0] == dt.datetime(2018, 7, 2, 10, tzinfo=dt.UTC)
    path.write_text(path.read_text().replace(":00,", ":00Z,"))
    offset = read_sessions(path, time_zone="Europe/Copenhagen")
    assert offset.sessions["start"][0] == dt.datetime(2018, 7, 2, 10, tzinfo=dt.UTC)


def test_zones_in_a_column_that_is_not_used_are_named(tmp_path):
    header = (
        "ObjectId,Station_Name,Address,Start_Date___Time,Start_Time_Zone,End_Date___Time,End_Time_Zone,Energy__kWh_"
    )
    path = tmp_path / "b.csv"
    path.write_text(f"{header}\n1,S,A,2020-07-02 16:00:00,MDT,2020-07-02 17:00:00,MDT,5\n")
    records = read_sessions(path)
    assert records.formats[str(path)] == "boulder"
    assert any("'Start_Time_Zone' and 'End_Time_Zone' (MDT) are not used" in note for note in records.notes)
    used = read_sessions(path, mapping={"zone": "Start_Time_Zone", "end_zone": "End_Time_Zone"})
    assert used.sessions["start"].dt.hour().to_list() == [22]
    assert not any("not used" in note for note in used.notes)
    assert any("column 'Start_Time_Zone' gives" in line for line in used.readings_in_short)


def test_one_time_is_not_several(tmp_path):
    path = tmp_path / "o.csv"
    path.write_text("session_id,station_id,start,end,energy_kwh\n1,A,2023-03-26 02:30:00,2023-03-26 04:00:00,20\n")
    notes = read_sessions(path, time_zone="Europe/Berlin").notes
    assert any("1 time is in the hour" in note for note in notes)
    assert any("There is only 1 session," in note for note in notes)
