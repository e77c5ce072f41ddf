"""Times as operators write them."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.errors import InputError
from unmet.records.time_cells import join_cells
from unmet.records.times import read_times, to_utc
from unmet.zones import checked_zone


def read(text: list[str | None], zone: str = "UTC", day_first: bool | None = None, zones: list[str] | None = None):
    (clock,), _, _ = read_times([pl.Series(text, dtype=pl.String)], day_first)
    millis = to_utc(clock, zone, None if zones is None else pl.Series(zones))
    return millis.cast(pl.Datetime("ms", "UTC")).to_list()


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2018-01-02 00:49:00", utc(2018, 1, 2, 0, 49)),
        ("2018-01-02T00:49:00", utc(2018, 1, 2, 0, 49)),
        ("2018-01-02T00:49", utc(2018, 1, 2, 0, 49)),
        ("2018-01-02 00:49:07.250", utc(2018, 1, 2, 0, 49, 7, 250_000)),
        ("2018-01-02T00:49:00Z", utc(2018, 1, 2, 0, 49)),
        ("2018-01-02T00:49:00.123456Z", utc(2018, 1, 2, 0, 49, 0, 123_000)),
        ("2018-01-02 00:49:00-07:00", utc(2018, 1, 2, 7, 49)),
        ("2018-01-02T00:49:00+0100", utc(2018, 1, 1, 23, 49)),
        ("2018-01-02 00:49+01:00", utc(2018, 1, 1, 23, 49)),
        ("2018-01-02 00:49:00 UTC", utc(2018, 1, 2, 0, 49)),
        ("2018-01-02 00:49:00 MST", utc(2018, 1, 2, 7, 49)),
        ("  2018-01-02 00:49:00 ", utc(2018, 1, 2, 0, 49)),
        ("2018/01/02 00:49:00", utc(2018, 1, 2, 0, 49)),
        ("2018/1/2 0:49", utc(2018, 1, 2, 0, 49)),
        ("2018.01.02 00:49", utc(2018, 1, 2, 0, 49)),
        ("20180102T004900Z", utc(2018, 1, 2, 0, 49)),
        ("31/01/2018 09:05", utc(2018, 1, 31, 9, 5)),
        ("31.01.2018 09:05:30", utc(2018, 1, 31, 9, 5, 30)),
        ("31-01-18 9:05", utc(2018, 1, 31, 9, 5)),
        ("01/31/2018 09:05 PM", utc(2018, 1, 31, 21, 5)),
        ("1/31/18 9:05:10 am", utc(2018, 1, 31, 9, 5, 10)),
        ("1/31/2018 12:00 a.m.", utc(2018, 1, 31, 0, 0)),
        ("31/01/2018, 09:05", utc(2018, 1, 31, 9, 5)),
        ("Sat, 01 May 2021 20:42:47 GMT", utc(2021, 5, 1, 20, 42, 47)),
        ("1 May 2021 20:42", utc(2021, 5, 1, 20, 42)),
        ("01-May-2021 20:42:47", utc(2021, 5, 1, 20, 42, 47)),
        ("May 1, 2021 8:42 PM", utc(2021, 5, 1, 20, 42)),
        ("1619901767", utc(2021, 5, 1, 20, 42, 47)),
        ("1619901767000", utc(2021, 5, 1, 20, 42, 47)),
        ("2018-01-02", None),  # a day without a time
        ("12:30", None),
        ("2018-13-02 00:49:00", None),
        ("2018-01-02 25:49:00", None),
        ("yesterday", None),
        ("x" * 10_000, None),
        ("", None),
        (None, None),
    ],
)
def test_ways_to_write_a_time(text, expected):
    assert read([text]) == [expected]


def test_one_column_may_hold_many_ways():
    assert read(["2018-01-02 00:49:00", None, "02.01.2018 00:49", "1514854140", "no", "2018-01-02T01:49:00+01:00"]) == [
        *(utc(2018, 1, 2, 0, 49), None, utc(2018, 1, 2, 0, 49)),
        *(utc(2018, 1, 2, 0, 49), None, utc(2018, 1, 2, 0, 49)),
    ]


def test_day_or_month_first_is_found_out_from_the_whole_file():
    ambiguous = pl.Series(["03/04/2018 10:00"])
    for other, month in (("25/04/2018 10:00", 4), ("04/25/2018 10:00", 3)):
        (first, _), _, notes = read_times([ambiguous, pl.Series([other])])
        assert to_utc(first, "UTC").cast(pl.Datetime("ms"))[0].month == month
        assert notes == []
    (clock,), _, notes = read_times([ambiguous])
    assert to_utc(clock, "UTC").cast(pl.Datetime("ms"))[0].month == 4
    assert "day_first" in notes[0]
    (clock,), _, notes = read_times([ambiguous], day_first=False)
    assert to_utc(clock, "UTC").cast(pl.Datetime("ms"))[0].month == 3
    assert notes == []
    _, _, notes = read_times([pl.Series(["13/01/2018 10:00", "14/01/2018 10:00", "01/13/2018 10:00"])])
    assert "day first" in notes[0]


def test_the_hour_that_happens_twice_is_the_earlier_one_and_the_missing_one_an_hour_later():
    london = ["28/10/2018 01:30", "25/03/2018 01:30", "25/03/2018 00:30", "01/07/2018 12:00"]
    assert read(london, "Europe/London") == [
        utc(2018, 10, 28, 0, 30),
        utc(2018, 3, 25, 1, 30),  # 02:30 in summer time
        utc(2018, 3, 25, 0, 30),
        utc(2018, 7, 1, 11, 0),
    ]
    (clock,), _, _ = read_times([pl.Series(london[:1])])
    assert to_utc(clock, "Europe/London", later=True).cast(pl.Datetime("ms", "UTC"))[0] == utc(2018, 10, 28, 1, 30)


def test_zones_by_row_may_be_abbreviations_offsets_and_names():
    text = ["2018-07-02 12:00:00"] * 7
    zones = ["MST", "MDT", "+02:00", "Europe/London", "", "cest", "Mars/Phobos"]
    assert read(text, "America/Denver", zones=zones) == [
        *(utc(2018, 7, 2, 19), utc(2018, 7, 2, 18), utc(2018, 7, 2, 10), utc(2018, 7, 2, 11)),
        *(utc(2018, 7, 2, 18), utc(2018, 7, 2, 10), None),
    ]


def test_cells_need_not_be_text():
    naive, aware = dt.datetime(2018, 7, 2, 12), utc(2018, 7, 2, 12)
    for cells, expected in (
        (pl.Series([naive]), utc(2018, 7, 2, 11)),
        (pl.Series([aware]), aware),
        (pl.Series([naive], dtype=pl.Datetime("ns")), utc(2018, 7, 2, 11)),
        (pl.Series([1530532800]), aware),
        (pl.Series([1530532800.0e9]), aware),
        (pl.Series([naive.date()]), None),
        (pl.Series([float("nan")]), None),
        (pl.Series([True]), None),
        (pl.Series([2**62], dtype=pl.Int64).cast(pl.Datetime("ms")), None),
    ):
        (clock,), _, _ = read_times([cells])
        assert to_utc(clock, "Europe/London").cast(pl.Datetime("ms", "UTC")).to_list() == [expected]


def test_date_and_time_in_two_columns():
    frame = pl.DataFrame(
        {"d": ["31/01/2018", "31/01/2018 00:00:00", None, " "], "t": ["09:05", "09:05:10", "1:00", "1:00"]}
    )
    assert read(join_cells(frame, ("d", "t")).to_list()) == [
        utc(2018, 1, 31, 9, 5),
        utc(2018, 1, 31, 9, 5, 10),
        None,
        None,
    ]


def test_a_zone_that_does_not_exist_is_named():
    with pytest.raises(InputError, match=r"'Mars/Phobos'.*Europe/Copenhagen"):
        checked_zone("Mars/Phobos")


@given(
    st.lists(st.datetimes(dt.datetime(2001, 1, 1), dt.datetime(2037, 1, 1)), min_size=1, max_size=20),
    st.sampled_from(
        ["%Y-%m-%d %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%d.%m.%y %H:%M:%S", "%d %b %Y %I:%M:%S %p", "%Y/%m/%dT%H:%M:%S"]
    ),
)
def test_what_is_written_is_read(times, form):
    times = [time.replace(microsecond=0) for time in times]
    assert read([time.strftime(form) for time in times], day_first=True) == [
        time.replace(tzinfo=dt.UTC) for time in times
    ]


@given(st.datetimes(dt.datetime(2001, 1, 1), dt.datetime(2030, 1, 1)), st.sampled_from(["Europe/London", "US/Pacific"]))
def test_local_times_are_those_of_the_standard_library(time, zone):
    time = time.replace(microsecond=0)
    aware = time.replace(tzinfo=ZoneInfo(zone))
    exists = aware.astimezone(dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None) == time
    expected = aware if exists else (time + dt.timedelta(hours=1)).replace(tzinfo=ZoneInfo(zone))
    assert read([time.isoformat()], zone) == [expected.astimezone(dt.UTC)]


@given(st.lists(st.one_of(st.none(), st.text(max_size=30), st.text("0123456789/-:. TZAPM+", max_size=25))))
def test_any_text_is_read_or_not_but_never_fails(text):
    assert len(read(text, "Europe/London")) == len(text)


def test_days_and_parts_of_days_as_spreadsheets_count_them():
    assert read(["43101.375"]) == [utc(2018, 1, 1, 9)]
    assert read(["43101 0.375", "43101 0"]) == [utc(2018, 1, 1, 9), utc(2018, 1, 1)]
    (clock,), _, _ = read_times([pl.Series([43101.375, 1e9])])
    assert to_utc(clock, "Europe/Paris").cast(pl.Datetime("ms", "UTC")).to_list() == [
        utc(2018, 1, 1, 8),
        dt.datetime(2001, 9, 9, 1, 46, 40, tzinfo=dt.UTC),
    ]


def test_dates_in_parts():
    frame = pl.DataFrame({"d": ["1", "13"], "m": ["2", "2"], "y": ["2018", "2018"], "h": ["9", "10"], "n": ["5", "6"]})
    assert join_cells(frame, ["d", "m", "y", "h", "n"]).to_list() == ["01/02/2018 09:05", "13/02/2018 10:06"]
    assert join_cells(frame, ["y", "m", "d", "h", "n"]).to_list() == ["2018-02-01 09:05", "2018-02-13 10:06"]
