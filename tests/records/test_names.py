"""Columns are found under their usual names in several languages."""

from __future__ import annotations

import polars as pl
import pytest

from unmet.records.formats.generic import guess_mapping, plain_name
from unmet.records.sessions import read_sessions

DATE, TIME, BOTH = "01.03.2023", "04:13", "01.03.2023 04:13"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("Ladevorgang-Nr.;Standort;Ladepunkt;Beginn;Ende;Verbrauch (kWh);Kundenkarte", "Beginn|Ende|Verbrauch (kWh)"),
        ("Vorgang;Ladesäule;Stecker;Startzeit;Endzeit;Energiemenge;Ladekarten-Nr.", "Startzeit|Endzeit|Energiemenge"),
        ("Session;Station;Plug;from;to;kWh;User", "from|to|kWh"),
        (
            "Transaction;Station;Prise;Date de début;Date de fin;Énergie (kWh);Badge",
            "Date de début|Date de fin|Énergie (kWh)",
        ),
        (
            "Transazione;Colonnina;Presa;Data inizio;Data fine;Energia erogata;Tessera",
            "Data inizio|Data fine|Energia erogata",
        ),
        (
            "Vorgang / Session;Standort / Lieu;Ladepunkt;Beginn / Début;Ende / Fin;Energie [kWh] / Énergie;Badge",
            "Beginn / Début|Ende / Fin|Energie [kWh] / Énergie",
        ),
        ("Transacción;Estación;Toma;Fecha inicio;Fecha fin;Consumo kWh;Tarjeta", "Fecha inicio|Fecha fin|Consumo kWh"),
    ],
)
def test_names_in_several_languages(names, found):
    columns = names.split(";")
    values = ["1", "A", "2", BOTH, BOTH, "5,5", "K1"]
    mapping = guess_mapping(pl.DataFrame([values], schema=columns, orient="row"))
    assert "|".join([str(mapping.start), str(mapping.end), mapping.energy_kwh]) == found
    assert (mapping.station_id, mapping.plug_id) == (columns[1], columns[2])
    if "Nr." not in columns[-1]:
        assert mapping.user_id == columns[-1]
    assert mapping.session_id == columns[0]


@pytest.mark.parametrize("heading", ["Start/Stop", "Station / Plug", "EUR/kWh", "Energy price [EUR/kWh]", "km/h"])
def test_a_heading_with_a_slash_is_no_column_in_two_languages(heading):
    mapping = guess_mapping(pl.DataFrame({heading: ["1"]}))
    assert heading not in mapping.model_dump().values()


@pytest.mark.parametrize(
    "names",
    [
        "Startdatum,Startuhrzeit,Enddatum,Enduhrzeit",
        "Date début,Heure début,Date fin,Heure fin",
        "Data inizio,Ora inizio,Data fine,Ora fine",
        "Fecha inicio,Hora inicio,Fecha fin,Hora fin",
        "Start Time,Start Date,End Time,End Date",
    ],
)
def test_dates_and_times_of_day_in_two_columns(names):
    columns = names.split(",")
    cells = [TIME, DATE] * 2 if columns[0] == "Start Time" else [DATE, TIME] * 2
    mapping = guess_mapping(pl.DataFrame([cells], schema=columns, orient="row"))
    order = -1 if columns[0] == "Start Time" else 1
    assert mapping.start == tuple(columns[:2][::order])
    assert mapping.end == tuple(columns[2:][::order])


def test_names_without_accents_and_marks():
    assert plain_name("Ladesäulen-ID (Straße)") == "ladesaulenidstrasse"


def test_a_column_that_may_name_drivers_is_asked_for():
    rows = [
        (str(n), "A", f"2024-01-{n + 1:02}T08:00Z", f"2024-01-{n + 1:02}T09:00Z", 5.0, f"K{n % 3}") for n in range(9)
    ]
    names = ["session_id", "station_id", "start", "end", "energy_kwh", "Ladekarten-Kennung"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    assert any("--map user_id=Ladekarten-Kennung" in note for note in read_sessions(table).notes)
    chosen = read_sessions(table, mapping={"user_id": "Ladekarten-Kennung"})
    assert chosen.sessions["user_id"].null_count() == 0
    assert not any("user_id" in note for note in chosen.notes)
