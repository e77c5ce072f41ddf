"""No zone is chosen whose clocks cannot show the times of a file."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from unmet.records.sessions import read_records
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
    local = read_records(path, time_zone="Europe/Copenhagen")
    assert local.sessions["start"][0] == dt.datetime(2018, 7, 2, 8, tzinfo=dt.UTC)
    assert local.time_zone == "Europe/Copenhagen"
    plain = read_records(path)
    assert plain.sessions["start"][0] == dt.datetime(2018, 7, 2, 10, tzinfo=dt.UTC)
    assert any("--map time_zone=" in note for note in plain.notes)
    mapped = read_records(path, mapping={"time_zone": "UTC"}, time_zone="Europe/Copenhagen")
    assert mapped.sessions["start"][0] == dt.datetime(2018, 7, 2, 10, tzinfo=dt.UTC)
    path.write_text(path.read_text().replace(":00,", ":00Z,"))
    offset = read_records(path, time_zone="Europe/Copenhagen")
    assert offset.sessions["start"][0] == dt.datetime(2018, 7, 2, 10, tzinfo=dt.UTC)
