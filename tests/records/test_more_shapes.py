"""Known sessions as nested JSON, with one date and two times, with meter readings, and with a sheet per station."""

from __future__ import annotations

import datetime as dt
import json
from itertools import pairwise

import polars as pl
import pytest
import xlsxwriter

from tests.records.known_sessions import BERLIN, ROWS, Row, is_same, read
from unmet.errors import InputError
from unmet.records.inspection import inspect_files
from unmet.records.sessions import read_sessions

HERE = {"time_zone": "Europe/Berlin"}


def iso(time: dt.datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def lines(header: str, cells, separator: str = ",") -> str:
    return "".join(separator.join(map(str, line)) + "\n" for line in ([header], *map(cells, ROWS)))


@pytest.mark.parametrize(
    "member",
    [
        lambda r: {
            "station": {"id": r.station, "name": "x"},
            "period": {"start": iso(r.start), "end": iso(r.end)},
            "energy": {"value": r.kwh, "unit": "kWh"},
        },
        lambda r: {
            "session": {"startTime": iso(r.start), "endTime": iso(r.end), "energyKwh": r.kwh},
            "location": {"id": r.station, "evse": {"uid": f"E{r.plug}"}},
        },
        lambda r: {
            "transaction": {"start": {"timestamp": iso(r.start)}, "stop": {"timestamp": iso(r.end)}},
            "chargePoint": [{"id": r.station, "connectors": [r.plug]}],
            "user": {"id": "someone"},
            "kwh": [r.kwh],
        },
        lambda r: {  # units that differ from row to row
            "station": r.station,
            "start": iso(r.start),
            "end": iso(r.end),
            "energy": {"value": round(r.kwh * 1000), "unit": "Wh"} if r.plug == 1 else {"value": r.kwh, "unit": "kWh"},
        },
    ],
)
def test_nested_json(tmp_path, member):
    assert is_same(read(tmp_path / "a.json", json.dumps([member(row) for row in ROWS])))
    text = "".join(json.dumps(member(row)) + "\n" for row in ROWS)
    assert is_same(read(tmp_path / "a.jsonl", text))


def test_the_id_of_something_else_is_not_that_of_the_session(tmp_path):
    members = [
        {"user": {"id": "u"}, "station": {"id": r.station}, "start": iso(r.start), "end": iso(r.end), "kwh": r.kwh}
        for r in ROWS
    ]
    records = read(tmp_path / "a.json", json.dumps(members))
    assert records.counts["ids_made_up"] == len(ROWS)
    assert records.sessions["user_id"].unique().to_list() == ["u"]


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("Station;Plug;Date;Start;End;kWh", "%Y-%m-%d"),
        ("Station;Plug;Datum;Beginn;Ende;kWh", "%d.%m.%Y"),
        ("Station;Plug;Date;Start Time;End Time;kWh", "%d/%m/%Y"),
        ("Station;Plug;Fecha;Hora inicio;Hora fin;kWh", "%d/%m/%Y"),
        ("Station;Plug;Start Date;Start Time;End Time;kWh", "%m/%d/%Y"),
    ],
)
def test_one_date_and_two_times_of_day(tmp_path, header, form):
    def cells(row: Row):
        start, end = row.start.astimezone(BERLIN), row.end.astimezone(BERLIN)
        return row.station, row.plug, f"{start:{form}}", f"{start:%H:%M}", f"{end:%H:%M}", row.kwh

    records = read(tmp_path / "a.csv", lines(header, cells, ";"), **HERE)
    assert is_same(records)
    assert any(row.end.astimezone(BERLIN).date() > row.start.astimezone(BERLIN).date() for row in ROWS)
    assert any("have no date" in note for note in records.notes)


@pytest.mark.parametrize("form", ["%H:%M", "%I:%M %p", "%H:%M:%S", "1899-12-31 %H:%M:%S"])
def test_ends_without_a_date(tmp_path, form):
    def cells(row: Row):
        start, end = row.start.astimezone(BERLIN), row.end.astimezone(BERLIN)
        return row.station, row.plug, f"{start:%Y-%m-%d %H:%M}", end.strftime(form), row.kwh

    assert is_same(read(tmp_path / "a.csv", lines("Station,Plug,Start,End,kWh", cells), **HERE))


def test_an_end_in_the_hour_that_clocks_repeat(tmp_path):
    text = "Station,Start,End,kWh\nA,2023-10-29 02:50,02:10,3\nA,2023-10-30 23:50,00:10,3\nA,2023-10-31 08:00,08:00,0\n"
    records = read(tmp_path / "a.csv", text, **HERE)
    assert (records.sessions["end"] - records.sessions["start"]).dt.total_minutes().to_list() == [20, 20, 0]


def test_a_duration_tells_stays_over_a_day(tmp_path):
    text = "Station,Date,Start,End,Duration (min),kWh\n"
    text += "".join(f"A,2023-05-{day:02},08:00,09:00,{60 + 1440 * (day % 2)},20\n" for day in range(1, 29, 3))
    records = read(tmp_path / "a.csv", text, **HERE)
    assert set((records.sessions["end"] - records.sessions["start"]).dt.total_hours()) == {1, 25}
    other = text.replace(",60,", ",10,").replace(",1500,", ",10,")  # of charging, not of the stay
    records = read(tmp_path / "b.csv", other, **HERE)
    assert set((records.sessions["end"] - records.sessions["start"]).dt.total_hours()) == {1}


@pytest.mark.parametrize(
    ("first", "last", "scale"),
    [
        ("Meter Start (kWh)", "Meter Stop (kWh)", 1),
        ("meterStart", "meterStop", 1000),
        ("meter_start_wh", "meter_end_wh", 1000),
        ("Zählerstand Beginn (kWh)", "Zählerstand Ende (kWh)", 1),
        ("Start Meter Reading", "End Meter Reading", 1),
    ],
)
def test_meter_readings(tmp_path, first, last, scale):
    counter = {(row.station, row.plug): 1234.5 for row in ROWS}

    def cells(row: Row):
        begun = counter[row.station, row.plug]
        counter[row.station, row.plug] = done = round(begun + row.kwh, 2)
        readings = (round(number * scale, 2 if scale == 1 else None) for number in (begun, done))
        return row.station, row.plug, iso(row.start), iso(row.end), *readings

    path = tmp_path / "a.csv"
    text = lines(f"Station,Plug,Start,End,{first},{last}", cells)
    records = read(path, text)
    assert is_same(records)
    assert any("differences of" in line for line in records.readings_in_short)
    (inspected,) = inspect_files([path])
    assert f"meter_end: {last}" in inspected.mapping
    assert "energy_kwh" not in inspected.mapping


def test_meters_that_run_backwards_and_energies_beside_them(tmp_path):
    text = "Station,Start,End,Meter Start (kWh),Meter Stop (kWh){}\nA,2023-05-01T08:00Z,2023-05-01T09:00Z,100,90{}\n"
    records = read(tmp_path / "a.csv", text.format("", ""))
    assert records.rejected["reason"].to_list() == ["is negative"]
    records = read(tmp_path / "a.csv", text.format(",Energy (kWh)", ",5"))
    assert records.sessions["energy_kwh"].to_list() == [5]


def workbook(path, names: list[str]) -> None:
    book = xlsxwriter.Workbook(path)
    for station, name in enumerate(names):
        page = book.add_worksheet(name)
        page.write_row(0, 0, ["Connector", "Start", "End", "Energy (kWh)"])
        own = [row for row in ROWS if row.station == f"S{station}"]
        for place, row in enumerate(own, start=1):
            page.write_row(place, 0, [row.plug, iso(row.start), iso(row.end), row.kwh])
    book.close()


def test_a_sheet_for_each_station(tmp_path):
    path = tmp_path / "a.xlsx"
    workbook(path, ["S0", "S1", "S2"])
    records = read_sessions(path, join_minutes=0)
    assert is_same(records)
    assert any("'S0', is taken as the station" in note for note in records.notes)
    assert all("station: S" in one.mapping for one in inspect_files([path]))
    named = read_sessions(path, mapping={"station": "One"}, join_minutes=0)
    assert named.stations["station_id"].to_list() == ["One"]


@pytest.mark.parametrize(
    "names", [["Januar", "Février 2023", "March"], ["Sheet1", "Tabelle2", "2023"], ["Q1", "Q2", "H2"]]
)
def test_sheets_of_months_are_no_stations(tmp_path, names):
    workbook(tmp_path / "a.xlsx", names)
    with pytest.raises(InputError, match="station=NAME"):
        read_sessions(tmp_path / "a.xlsx")


def test_a_sheet_of_stations_is_noted(tmp_path):
    workbook(tmp_path / "a.xlsx", ["S0", "S1"])
    path = tmp_path / "b.xlsx"
    book = xlsxwriter.Workbook(path)
    page = book.add_worksheet("Sessions")
    page.write_row(0, 0, ["Station", "Start", "End", "kWh"])
    page.write_row(1, 0, ["A", iso(ROWS[0].start), iso(ROWS[0].end), 5])
    other = book.add_worksheet("Places")
    other.write_row(0, 0, ["Station ID", "Latitude", "Longitude", "Plugs"])
    other.write_row(1, 0, ["A", 52.5, 13.4, 2])
    book.close()
    records = read_sessions(path)
    assert any("[Places]: is read as a table of stations" in note for note in records.notes)
    assert records.stations["plugs"].to_list() == [2]


MONTHS = {
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "nl": "jan feb mrt apr mei jun jul aug sep okt nov dec",
}
FORMS = {
    "de": "{day}. {month} {time:%Y %H:%M}",
    "fr": "{day} {month} {time:%Y} à {time:%Hh%M}",
    "it": "{day} {month} {time:%Y %H:%M}",
    "es": "{day} de {month} de {time:%Y, %H:%M}",
    "nl": "{day:02}-{month}-{time:%Y %H:%M}",
}


@pytest.mark.parametrize("language", MONTHS)
def test_names_of_months(tmp_path, language):
    def written(time: dt.datetime) -> str:
        local = time.astimezone(BERLIN)
        return FORMS[language].format(day=local.day, month=MONTHS[language].split()[local.month - 1], time=local)

    def cells(row: Row):
        return row.station, row.plug, written(row.start), written(row.end), row.kwh

    assert is_same(read(tmp_path / "a.csv", lines("Station;Plug;Start;End;kWh", cells, ";"), **HERE))


def test_every_month_of_every_language(tmp_path):
    for language, names in MONTHS.items():
        days = [dt.datetime(2023, month, 3, 14, 5) for month in range(1, 13)]
        texts = [
            FORMS[language].format(day=3, month=name, time=day) for name, day in zip(names.split(), days, strict=True)
        ]
        frame = pl.DataFrame({"station": "A", "start": texts, "duration (min)": 60, "kwh": 7.0})
        assert read_sessions(frame).sessions["start"].dt.replace_time_zone(None).to_list() == days


def test_headings_that_name_a_zone(tmp_path):
    def cells(row: Row):
        start, end = row.start.astimezone(BERLIN), row.end.astimezone(BERLIN)
        return row.station, row.plug, f"{start:%Y-%m-%d %H:%M}", f"{end:%Y-%m-%d %H:%M}", row.kwh

    text = lines("Station,Plug,Start (Europe/Berlin),End (Europe/Berlin),kWh", cells)
    records = read(tmp_path / "a.csv", text)
    assert is_same(records)
    assert records.time_zone == "Europe/Berlin"
    assert any("read as Europe/Berlin, as its name says" in line for line in records.readings_in_short)
    assert not any("--time-zone" in note for note in records.notes)
    # Three times that clocks in Berlin never showed contradict the heading.
    skipped = "".join(f"S9,1,2023-03-26 02:{minute},2023-03-26 05:00,1\n" for minute in (10, 20, 30))
    contradicted = read(tmp_path / "b.csv", text + skipped)
    assert any("taken to be in UTC" in note for note in contradicted.notes)


def test_french_headings(tmp_path):
    header = "Borne;Point de charge;Début de la charge;Fin de la charge;Énergie délivrée (kWh)"

    def cells(row: Row):
        start, end = row.start.astimezone(BERLIN), row.end.astimezone(BERLIN)
        return row.station, row.plug, f"{start:%d/%m/%Y %H:%M}", f"{end:%d/%m/%Y %H:%M}", str(row.kwh).replace(".", ",")

    assert is_same(read(tmp_path / "a.csv", lines(header, cells, ";"), **HERE))


def test_the_counter_of_each_plug_only_rises():
    """The premise of the meter tests: sessions of a plug follow one another."""
    for plug in {(row.station, row.plug) for row in ROWS}:
        own = [row for row in ROWS if (row.station, row.plug) == plug]
        assert all(one.end <= other.start for one, other in pairwise(own))


def test_structs_in_a_frame_are_columns(tmp_path):
    frame = pl.DataFrame(
        {
            "station": [{"id": row.station} for row in ROWS],
            "period": [[{"start": iso(row.start), "end": iso(row.end)}] for row in ROWS],
            "kwh": [row.kwh for row in ROWS],
        }
    )
    assert is_same(read_sessions(frame, join_minutes=0))
    frame.write_parquet(tmp_path / "a.parquet")
    assert is_same(read_sessions(tmp_path / "a.parquet", join_minutes=0))


def member(row: Row, **more: object) -> dict[str, object]:
    return {"station": row.station, "start": iso(row.start), "end": iso(row.end)} | more


def test_a_unit_beside_a_value_is_heeded_whatever_else_is_there(tmp_path):
    members = [member(row, energy={"value": 90, "unit": "Wh", "source": "meter"}) for row in ROWS]
    assert set(read(tmp_path / "a.json", json.dumps(members)).sessions["energy_kwh"]) == {0.09}


def test_of_two_objects_with_a_start_none_is_guessed(tmp_path):
    def two(row: Row, name: str):
        times = {"start": iso(row.start), "end": iso(row.end)}
        return {
            "station": row.station,
            "kwh": row.kwh,
            "booking": {"start": "2023-01-01T00:00Z", "end": ""},
            name: times,
        }

    with pytest.raises(InputError, match="start"):
        read(tmp_path / "a.json", json.dumps([two(row, "visit") for row in ROWS]))
    records = read(tmp_path / "a.json", json.dumps([two(row, "session") for row in ROWS]))
    assert is_same(records)
    assert any("start from 'session.start'" in note for note in records.notes)


def test_start_without_a_date_is_said(tmp_path):
    text = "Station,Booking Date,Visit Date,Start,End,kWh\nA,2023-01-01,2023-05-01,08:00,09:00,5\n"
    records = read(tmp_path / "a.csv", text, **HERE)  # which of the two dates is meant is open
    assert records.counts["start_without_date"] == 1
    assert not any("have no date" in note for note in records.notes)


def test_grouped_meter_readings(tmp_path):
    text = "Station;Start;End;meter_start_wh;meter_end_wh\nA;2023-05-01T08:00Z;2023-05-01T09:00Z;1.108.000;1.115.500\n"
    assert read(tmp_path / "a.csv", text).sessions["energy_kwh"].to_list() == [7.5]
    odd = read(tmp_path / "a.csv", text.replace("1.108.000", "n/a"))
    assert odd.counts["energy_unreadable"] == 1
