"""Files are shown as they would be read, and a mapping to start from can be used as it is."""

from __future__ import annotations

import pytest
import yaml

from unmet.errors import InputError
from unmet.records.inspection import inspect_files
from unmet.records.mapping import read_mapping
from unmet.records.one_file import Reading
from unmet.records.sessions import read_sessions

DAYS = [f"{n % 28 + 1:02}.03.2024" for n in range(60)]
ROWS = "".join(f"{n},Nord,{day} 08:00,{day} 09:30,{n % 9 + 1},Karte {n}\n" for n, day in enumerate(DAYS))


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "export.csv"
    file.write_text("Nr,Standort,Steckbeginn,Steckende,Menge,Fahrer\n" + ROWS)
    return file


def test_a_file_that_cannot_be_read_as_it_is(path):
    (found,) = inspect_files(path)
    assert found.problem is not None
    assert "--map start=Steckbeginn" in found.problem
    assert found.columns["Standort"] == "Nord"
    values = yaml.safe_load(found.mapping)
    assert (values["start"], values["end"], values["energy_kwh"]) == ("Steckbeginn", "Steckende", "Menge")
    values["station_id"] = "Standort"
    assert read_sessions(path, mapping=values).sessions.height == 60


def test_a_file_that_can(path):
    chosen = {"start": "Steckbeginn", "end": "Steckende", "energy_kwh": "Menge", "station_id": "Standort"}
    (found,) = inspect_files(path, Reading(chosen=chosen))
    assert found.problem is None
    assert (found.rows, found.kept) == (60, 60)
    assert found.sample.height == 10
    assert found.sample["start"][0] == "2024-03-01 08:00:00"
    assert any("day first" in reading for reading in found.readings)
    assert any("without a zone" in note for note in found.notes)
    assert yaml.safe_load(found.mapping)["start"] == "Steckbeginn"
    assert found.to_dict()["sample"][0]["station_id"] == "Nord"


def test_every_preset_shows_its_mapping(tmp_path):
    header = "Charging event,CP ID,Connector,Start Date,Start Time,End Date,End Time,Total kWh"
    (tmp_path / "a.csv").write_text(f"{header}\n1,A,1,13/01/2018,10:00,13/01/2018,12:00,20\n")
    (found,) = inspect_files(tmp_path / "a.csv")
    assert found.format == "dundee"
    values = yaml.safe_load(found.mapping)
    assert values["start"] == ["Start Date", "Start Time"]
    again = read_sessions(tmp_path / "a.csv", format="generic", mapping=values)
    assert again.sessions["energy_kwh"].to_list() == [20]


@pytest.mark.parametrize("time_zone", [None, "Europe/London", "America/New_York"])
def test_the_proposed_mapping_reads_the_file_as_it_was_read(tmp_path, time_zone):
    header = "Charging event,CP ID,Connector,Start Date,Start Time,End Date,End Time,Total kWh"
    days = [f"01/{day:02}/2018" for day in range(1, 31)]  # months first, whatever the format says
    rows = [f"{i},A,1,{day},10:00,{day},12:00,{20_000 + i}" for i, day in enumerate(days)]
    for name, names in (("preset.csv", header), ("own.csv", header.replace("Charging event", "Number"))):
        path = tmp_path / name
        path.write_text("\n".join([names, *rows]) + "\n")
        (found,) = inspect_files(path, Reading(time_zone=time_zone))
        read = read_sessions(path, time_zone=time_zone).sessions
        assert read["start"].dt.month().unique().to_list() == [1]
        assert read_sessions(path, mapping=yaml.safe_load(found.mapping)).sessions.equals(read)


def test_a_mapping_file_may_say_the_default(tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text("time_zone: UTC\n")
    assert read_mapping(path).entries() == {"time_zone": "UTC"}
    assert read_mapping(path).to_yaml() == "time_zone: UTC\n"
    header = "Charging event,CP ID,Connector,Start Date,Start Time,End Date,End Time,Total kWh"
    (tmp_path / "a.csv").write_text(f"{header}\n1,A,1,13/07/2018,10:00,13/07/2018,12:00,20\n")
    records = read_sessions(tmp_path / "a.csv", mapping=read_mapping(path))
    assert records.sessions["start"].dt.hour().to_list() == [10]  # not 9, as in London


def test_a_table_of_stations_is_recognised(tmp_path):
    (tmp_path / "s.csv").write_text("station_id,lat,lon\nA,55.7,12.6\n")
    (found,) = inspect_files(tmp_path / "s.csv")
    assert "--stations" in found.notes[0]


def test_a_table_of_stations_is_shown_as_one(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("Säulen-ID;Breite;Länge;Anzahl LP;Leistung\nB1;52,52;13,41;2;22 kW\nB2;52,50;13,33;x;22 kW\n")
    (found,) = inspect_files(path)
    assert found.format == "stations"
    assert "station_id=Säulen-ID" in (found.problem or "")
    mapping = {"station_id": "Säulen-ID", "lat": "Breite", "lon": "Länge", "plugs": "Anzahl LP"}
    (found,) = inspect_files(path, station_mapping=mapping)
    assert found.problem is None
    assert (found.rows, found.stations) == (2, 2)
    assert found.sample.row(0) == ("B1", 52.52, 13.41, 2)
    assert "--map-stations power_kw=Leistung" in found.mapping
    assert found.reasons == ["1 row: plugs is not a whole number: the station is kept without it"]
    with pytest.raises(InputError, match=r"s\.csv looks like a table of stations: give it with --stations"):
        read_sessions(path)


def test_reasons_are_in_words_and_a_header_alone_is_said(tmp_path):
    header = "session_id,station_id,start,end,energy_kwh\n"
    (tmp_path / "a.csv").write_text(header + "1,A,2024-01-01T08:00Z,2024-01-01T08:01Z,900\n")
    (tmp_path / "b.csv").write_text(header)
    found, empty = inspect_files([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert found.reasons == ["1 row set aside: energy_kwh needs more than 500 kW over the time plugged in"]
    assert (empty.problem or "").endswith("b.csv has a header and no rows.")
    assert any("b.csv: has a header and no rows." in note for note in read_sessions([tmp_path / "b.csv"]).notes)


def test_the_proposed_mapping_has_the_unit_and_the_order_of_dates(tmp_path):
    header = "ChargeLogId,ChargingStationId,UserId,BeginDate,BeginHour,EndDate,EndHour,PowerConsumption,Plug"
    rows = [f"{n},7,1,01/{n:02}/2017,08:00:00,01/{n:02}/2017,09:00:00,{5000 + n},1" for n in range(1, 31)]
    (tmp_path / "l.csv").write_text("\n".join([header, *rows]) + "\n")
    (found,) = inspect_files(tmp_path / "l.csv")
    values = yaml.safe_load(found.mapping)
    assert (values["energy_factor"], values["day_first"], values["time_zone"]) == (0.001, False, "Europe/Zurich")
    read = read_sessions(tmp_path / "l.csv").sessions
    assert read_sessions(tmp_path / "l.csv", format="generic", mapping=values).sessions.equals(read)


def test_dates_and_times_of_day_in_two_columns_are_suggested_together(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("Säule;Tag an;Zeit an;Tag ab;Zeit ab;kWh\n" + "A;01.03.2023;04:13;01.03.2023;04:52;25,8\n" * 3)
    (found,) = inspect_files(path)
    assert yaml.safe_load(found.mapping)["start"] == ["Tag an", "Zeit an"]
    values = {"start": "Tag an", "end": "Tag ab", "station_id": "Säule", "energy_kwh": "kWh"}
    assert "without a time of day" in read_sessions(path, mapping=values).rejected["reason"][0]


def test_positions_are_shown_as_they_will_be_used(tmp_path):
    sessions, stations = tmp_path / "a.csv", tmp_path / "s.csv"
    sessions.write_text("station,start,end,kwh\nA,2023-05-01T08:00:00+02:00,2023-05-01T09:00:00+02:00,7\n")
    stations.write_text("station_id,lat,lon\nA,13.40,52.52\nB,52.51,13.38\n")
    one, table = inspect_files([sessions], Reading(time_zone="Europe/Berlin"), stations)
    assert one.time_zone == "Europe/Berlin"
    assert table.sample["lat"].to_list() == [52.52, 52.51]
    assert any("swapped" in note for note in table.notes)
    beside = "station,start,end,kwh,latitude,longitude\n"
    beside += "".join(
        f"S{n},2023-05-01T08:00Z,2023-05-01T09:00Z,7,{lat},{lon}\n"
        for n, (lat, lon) in enumerate([(52.5, 13.4), (52.6, 13.4), (52.4, 13.3), (52.5, 13.5), (13.4, 52.5)])
    )
    sessions.write_text(beside)
    (one,) = inspect_files([sessions])
    assert any("latitude and longitude of 1 of 5 stations (such as S4) were swapped" in note for note in one.notes)
    assert any("by the positions of the stations" in note for note in one.notes)
