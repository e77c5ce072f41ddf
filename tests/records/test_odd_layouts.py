"""The same sessions written in unusual ways: read correctly without a mapping."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.records.known_sessions import BERLIN, ROWS, is_same, read, table
from unmet.errors import InputError
from unmet.records.sessions import read_sessions


@pytest.mark.parametrize(
    "form",
    [
        "%Y-%d-%m %H:%M",  # year, day, month
        "%y-%m-%d %H:%M",  # years of two digits first
        "%Y%m%d%H%M",
        "%Y%m%d%H%M%S",
        "%Y%m%d %H%M",
        "%d.%m.%Y %H:%M Uhr",
        "%d.%m.%Y %H.%M",
        "%d/%m/%y %H:%M",
        "%m/%d/%y %I:%M %p",
        "%Y/%m/%d %I:%M %p",
    ],
)
def test_forms_of_dates(tmp_path, form):
    records = read(tmp_path / "a.csv", table(lambda t: t.astimezone(BERLIN).strftime(form)), time_zone="Europe/Berlin")
    assert is_same(records)


def test_serial_dates_with_commas(tmp_path):
    def serial(time: dt.datetime) -> str:
        days = (time.replace(tzinfo=None) - dt.datetime(1899, 12, 30)).total_seconds() / 86_400
        return f"{days:.8f}".replace(".", ",")

    assert is_same(read(tmp_path / "a.csv", table(serial, ";")))


def test_a_lone_slip_in_a_date_does_not_turn_the_others(tmp_path):
    text = table(lambda t: f"{t:%Y-%m-%d %H:%M}").replace("2023-03-13", "2023-13-03", 1)
    records = read(tmp_path / "a.csv", text)
    assert records.rejected["value"].to_list() == [text.splitlines()[records.rejected["line"][0] - 1].split(",")[2]]


@pytest.mark.parametrize("above", ["Charging report\nMade 2023-06-01\n\n", "sep=,\n", "\n\n", "Report\n"])
def test_lines_above_the_header(tmp_path, above):
    text = above + table(lambda t: f"{t:%Y-%m-%dT%H:%MZ}")
    records = read(tmp_path / "a.csv", text + "Total,,,,1234\n")
    assert is_same(records)
    assert records.rejected["line"].to_list() == [text.count("\n") + 1]


def test_a_broken_row_below_a_title_keeps_its_line(tmp_path):
    text = "Charging report\n" + table(lambda t: f"{t:%Y-%m-%dT%H:%MZ}") + "S1,1,too,few\n"
    records = read(tmp_path / "a.csv", text)
    assert is_same(records)
    assert records.rejected["line"].to_list() == [text.count("\n")]


def test_german_names_and_durations(tmp_path):
    lines = ["Ladesäule;Ladepunkt;Beginn;Dauer (min);Energie (kWh)"]
    for row in ROWS:
        minutes = (row.end - row.start) // dt.timedelta(minutes=1)
        start = row.start.astimezone(BERLIN)
        lines.append(f"{row.station};{row.plug};{start:%d.%m.%Y %H:%M};{minutes};{str(row.kwh).replace('.', ',')}")
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n", encoding="latin-1")
    assert is_same(read_sessions(path, join_minutes=0, time_zone="Europe/Berlin"))
    path.write_text("\n".join(lines).replace(" (min)", "") + "\n", encoding="utf-16")
    with pytest.raises(InputError, match="duration_unit"):
        read_sessions(path)
    chosen = {"duration_unit": "min"}
    assert is_same(read_sessions(path, mapping=chosen, join_minutes=0, time_zone="Europe/Berlin"))


@pytest.mark.parametrize(
    "written",
    [
        lambda row: f'"{round(row.kwh * 1000):,}"',  # thousands grouped by commas
        lambda row: round(row.kwh * 1000),
        lambda row: f"{row.kwh} kWh",
        lambda row: f"{round(row.kwh * 1000)} Wh" if row.plug == 1 else f"{row.kwh} kWh",
        lambda row: round(row.kwh * 1000) if row.station == "S1" else row.kwh,  # Wh at one charger
        lambda row: round(row.kwh * 1000) if (row.station, row.plug) == ("S2", 1) else row.kwh,
        lambda row: row.kwh if row.station == "S0" else round(row.kwh * 1000),
    ],
)
def test_forms_of_energies(tmp_path, written):
    lines = ["Station,Plug,Start,End,Energy"]
    times = "%Y-%m-%dT%H:%M:00Z"
    lines += [f"{r.station},{r.plug},{r.start:{times}},{r.end:{times}},{written(r)}" for r in ROWS]
    assert is_same(read(tmp_path / "a.csv", "\n".join(lines) + "\n"))


def test_a_file_without_rows_assumes_nothing(tmp_path):
    records = read(tmp_path / "a.csv", table(str).splitlines()[0] + "\n")
    assert records.sessions.is_empty()
    assert [note.partition(": ")[2] for note in records.notes] == ["has a header and no rows."]


def test_readings_are_told_once_for_all_files(tmp_path):
    lines = table(lambda t: f"{t:%d/%m/%Y %H:%M}").splitlines()
    for number in range(30):
        part = "\n".join([lines[0], *lines[1 + number * 8 : 9 + number * 8]])
        (tmp_path / f"{number:02}.csv").write_text(part + "\n")
    records = read_sessions(tmp_path, join_minutes=0)
    assert is_same(records)
    assert len(records.readings) == 30
    assert records.readings_in_short[0].startswith("480 dates are read day first; in ")
    assert len(records.readings_in_short) == 3
