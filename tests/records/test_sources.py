"""Many files are read as one: folders, patterns, workbooks, and a period of them."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys

import polars as pl
import pytest
import xlsxwriter

from unmet.errors import InputError
from unmet.records.sessions import read_sessions
from unmet.records.sources import find_sources
from unmet.records.times import read_moment

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
HEADER = "session_id,station_id,start,end,energy_kwh\n"


def write_days(folder, days: int) -> None:
    folder.mkdir(exist_ok=True)
    for day in range(days):
        date = dt.date(2024, 1, 1) + dt.timedelta(days=day)
        rows = [f"{day}-{n},S{n},{date}T{8 + n:02}:00:00Z,{date}T{9 + n:02}:00:00Z,7\n" for n in range(5)]
        (folder / f"{date}.csv").write_text(HEADER + "".join(rows))


def test_a_folder_a_pattern_and_a_list_are_the_same(tmp_path):
    write_days(tmp_path / "days", 30)
    (tmp_path / "days" / ".hidden.csv").write_text("x")
    (tmp_path / "days" / "readme.md").write_text("x")
    shown = []
    folder = read_sessions(tmp_path / "days", now=NOW, progress=lambda done, total: shown.append((done, total)))
    assert shown[-1] == (30, 30)
    pattern = read_sessions(str(tmp_path / "days" / "*.csv"), now=NOW)
    listed = read_sessions(sorted((tmp_path / "days").glob("2024*.csv")), now=NOW)
    assert folder.sessions.height == 150
    assert folder.sessions.equals(pattern.sessions)
    assert folder.sessions.equals(listed.sessions)
    assert list(folder.formats) == sorted(folder.formats)


def test_what_holds_for_many_files_is_said_once(tmp_path):
    write_days(tmp_path / "days", 10)
    for file in (tmp_path / "days").iterdir():
        file.write_text(file.read_text().replace("Z,", ","))
    notes = [note for note in read_sessions(tmp_path / "days", now=NOW).notes if "without a zone" in note]
    assert len(notes) == 1
    assert "and 9 other files" in notes[0]


def test_one_bad_file_of_many_is_named(tmp_path):
    write_days(tmp_path / "days", 10)
    (tmp_path / "days" / "2024-01-05.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"2024-01-05\.csv has no columns"):
        read_sessions(tmp_path / "days", now=NOW)


def test_nothing_to_read_is_said(tmp_path):
    with pytest.raises(InputError, match="holds no table"):
        find_sources(tmp_path)
    with pytest.raises(InputError, match="check the pattern"):
        find_sources(tmp_path / "*.csv")


def test_a_period(tmp_path):
    write_days(tmp_path / "days", 30)
    since, until = (read_moment("--since", text, None) for text in ("2024-01-11", "2024-01-21"))
    records = read_sessions(tmp_path / "days", now=NOW, since=since, until=until)
    assert records.sessions.height == 50
    assert records.counts["outside_period"] == 100
    assert records.sessions["start"].min() >= since
    assert records.sessions["start"].max() < until
    assert records.counts["rows_in"] == 150


def test_moments_are_days_or_times_of_a_zone():
    assert read_moment("--since", None, None) is None
    assert read_moment("--since", "2024-07-01", "Europe/Copenhagen") == dt.datetime(2024, 6, 30, 22, tzinfo=dt.UTC)
    assert read_moment("--since", "2024-07-01T08:00", None) == dt.datetime(2024, 7, 1, 8, tzinfo=dt.UTC)
    assert read_moment("--since", "2024-07-01T08:00:00+02:00", None) == dt.datetime(2024, 7, 1, 6, tzinfo=dt.UTC)
    with pytest.raises(InputError, match=r"--until 'tomorrow' is not a day"):
        read_moment("--until", "tomorrow", None)


def workbook(path, **sheets: list[list]) -> None:
    book = xlsxwriter.Workbook(path)
    for name, rows in sheets.items():
        page = book.add_worksheet(name)
        for place, row in enumerate(rows):
            page.write_row(place, 0, row)
    book.close()


def test_sheets_of_a_workbook_are_files_of_their_own(tmp_path):
    header = ["session_id", "station_id", "start", "end", "energy_kwh"]
    january = [header, ["1", "A", "2024-01-02T08:00:00Z", "2024-01-02T09:00:00Z", 7]]
    february = [header, ["2", "A", "2024-02-02T08:00:00Z", "2024-02-02T09:00:00Z", 7], ["3", "A", "?", "?", 7]]
    workbook(tmp_path / "a.xlsx", Jan=january, Feb=february, Empty=[])
    records = read_sessions(tmp_path / "a.xlsx", now=NOW)
    assert records.sessions["session_id"].to_list() == ["1", "2"]
    assert list(records.formats) == [f"{tmp_path}/a.xlsx [Jan]", f"{tmp_path}/a.xlsx [Feb]"]
    assert records.rejected.select("file", "line").rows() == [(f"{tmp_path}/a.xlsx [Feb]", 3)]


def test_other_sheets_are_left_out_and_named(tmp_path):
    header = ["session_id", "station_id", "start", "end", "energy_kwh"]
    sessions = [header, ["1", "A", "2024-01-02T08:00:00Z", "2024-01-02T09:00:00Z", 7]]
    places = [["station_id", "lat", "lon", "plugs"], ["A", 55.7, 12.6, 2]]
    workbook(tmp_path / "a.xlsx", Notes=[["Made by the back office"]], Sessions=sessions, Stations=places)
    records = read_sessions(tmp_path / "a.xlsx", now=NOW)
    assert records.sessions.height == 1
    assert any("[Notes]" in note and "left out" in note for note in records.notes)
    assert records.stations.select("station_id", "plugs").rows() == [("A", 2)]
    workbook(tmp_path / "b.xlsx", Notes=[["x"]], More=[["y"]])
    with pytest.raises(InputError, match=r"b\.xlsx \[Notes\] has no columns"):
        read_sessions(tmp_path / "b.xlsx", now=NOW)


def test_a_workbook_as_a_table_of_stations(tmp_path):
    workbook(tmp_path / "s.xlsx", Stations=[["Site", "Ports"], ["A", 2]])
    header = ["session_id", "station_id", "start", "end", "energy_kwh"]
    sessions = pl.DataFrame(
        [["1", "A", "2024-01-02T08:00:00Z", "2024-01-02T09:00:00Z", "7"]], schema=header, orient="row"
    )
    records = read_sessions(sessions, stations=tmp_path / "s.xlsx", station_mapping={"station_id": "Site"}, now=NOW)
    assert records.stations.select("station_id", "plugs").rows() == [("A", 2)]


def test_formats_are_found_once_by_many_threads(tmp_path):
    write_days(tmp_path / "days", 12)
    code = f"import unmet; print(len(unmet.read_sessions({str(tmp_path / 'days')!r}).formats))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "12", done.stderr


def test_rows_of_many_small_files_keep_their_file_and_line(tmp_path):
    write_days(tmp_path / "days", 40)
    bad = tmp_path / "days" / "2024-01-20.csv"
    bad.write_text(bad.read_text().replace("19-3,S3,2024", "19-3,S3,soon") + "one field\n")
    twice = tmp_path / "days" / "2024-01-25.csv"
    twice.write_text(twice.read_text() + twice.read_text().splitlines()[1] + "\n")
    together = read_sessions(tmp_path / "days", now=NOW)
    rows = together.rejected.sort("file", "line")
    assert rows.select("file", "line").rows() == [(str(bad), 5), (str(bad), 7), (str(twice), 7)]
    assert f"line 2 of {twice}" in rows["reason"][2]
    assert together.sessions.height == 199
    apart = pl.concat(read_sessions(file, now=NOW).sessions for file in sorted((tmp_path / "days").iterdir()))
    assert together.sessions.equals(apart.sort("start", "station_id", "session_id"))
