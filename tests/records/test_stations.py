"""The gate of an operator's table of stations."""

from __future__ import annotations

import polars as pl
import pytest

from unmet.errors import InputError
from unmet.records.sessions import read_sessions
from unmet.records.stations import STATIONS, check_stations


def test_only_the_id_is_needed():
    checked = check_stations(pl.DataFrame({"Station": ["A", "B"]}))
    assert checked.kept.columns == [column.name for column in STATIONS.columns]
    assert checked.kept.row(0) == ("A", None, None, None, None, None, None)


def test_empty_cells_stay_empty_and_impossible_ones_are_set_aside(tmp_path):
    path = tmp_path / "stations.csv"
    path.write_text(
        "CP ID;Latitude;Longitude;max_kw;capacity;Location;Address\n"
        "A;55.5;12.5;22;2;Caf\xe9;Street 1\n"
        "B;;;;;;\n"
        "A;1;1;1;1;;\n"
        "C;95;12;22;2;;\n"
        "D;55;12;22;0;;\n"
        "E;55;12;22;-1;;\n"
        ";55;12;22;1;;\n"
        "F;55;12\n"
        "G;55;12;22;1.5;;\n",
        encoding="latin-1",
    )
    checked = check_stations(path)
    assert checked.kept.rows() == [
        ("A", 55.5, 12.5, 22.0, 2, None, "Café"),
        ("B", None, None, None, None, None, None),
        # Stations all the same, of which a cell cannot be used: it is listed below, and the others stay.
        ("C", None, None, 22.0, 2, None, None),
        *((name, 55.0, 12.0, 22.0, None, None, None) for name in "DEG"),
    ]
    assert checked.rejected.select("line", "column", "reason").rows() == [
        (4, "station_id", "is the id of an earlier station"),
        (5, "lat", "is above 90: the station is kept without it"),
        (6, "plugs", "is below 1: the station is kept without it"),
        (7, "plugs", "is below 1: the station is kept without it"),
        (8, "station_id", "is empty"),
        (9, "", "has 3 fields where the header has 7"),
        (10, "plugs", "is not a whole number: the station is kept without it"),
    ]
    assert checked.rejected.height == 7  # and two rows are whole: nine came in


def test_decimal_commas_in_positions(tmp_path):
    path = tmp_path / "stations.csv"
    path.write_text("Station;Lat;Lon;Plugs\nA;55,5;-2,25;2\n")
    assert check_stations(path).kept.row(0)[:5] == ("A", 55.5, -2.25, None, 2)


def test_latitudes_beyond_90_degrees_are_longitudes(tmp_path):
    path = tmp_path / "stations.csv"
    path.write_text("Station,Lat,Lon\nA,-105.2,40.0\nB,-105.3,40.1\n")
    checked = check_stations(path)
    assert checked.kept.select("lat", "lon").rows() == [(40.0, -105.2), (40.1, -105.3)]
    assert "swapped" in checked.notes[0]


def test_a_table_without_ids_is_named(tmp_path):
    path = tmp_path / "stations.csv"
    path.write_text("lat,lon\n1,2\n")
    with pytest.raises(InputError, match=r"stations\.csv has no column station_id.*lat, lon"):
        check_stations(path)
    with pytest.raises(InputError, match="no file"):
        check_stations(tmp_path / "gone.csv")


ODD = "Säulen-ID;Bezeichnung;Breite;Länge;Anzahl LP;Leistung;Farbe\n"
ODD += "B1;Alex;52,52;13,41;2;22 kW;rot\nB2;Zoo;52,50;13,33;2;7400 W;rot\n"


def test_columns_under_other_names_are_guessed_and_those_not_used_are_listed(tmp_path):
    path = tmp_path / "stations.csv"
    path.write_text(ODD)
    with pytest.raises(InputError, match=r"--map-stations station_id=Säulen-ID --map-stations lat=Breite"):
        check_stations(path)
    checked = check_stations(path, mapping={"station_id": "Säulen-ID"})
    (note,) = checked.notes
    assert "not used: Bezeichnung, Breite, Länge, Anzahl LP, Leistung, Farbe" in note
    for hint in ("lat=Breite", "lon=Länge", '"plugs=Anzahl LP"', "power_kw=Leistung", "name=Bezeichnung"):
        assert f"--map-stations {hint}" in note
    mapping = {"station_id": "Säulen-ID", "lat": "Breite", "lon": "Länge", "plugs": "Anzahl LP", "power_kw": "Leistung"}
    checked = check_stations(path, mapping=mapping)
    assert checked.notes == ()
    assert checked.rejected.is_empty()
    assert checked.kept.select("lat", "lon", "power_kw", "plugs").row(1) == (52.5, 13.33, 7.4, 2)


@pytest.mark.parametrize(
    "header",
    ["Borne,Latitud,Longitud,Prises,Puissance", "Colonnina,lat,lon,Prese,Potenza", "Pole,Lat,Lng,Sockets nr,kW"],
)
def test_columns_in_other_languages(header):
    names = header.split(",")
    table = pl.DataFrame([("A", 45.1, 9.1, 2, "22 kW"), ("B", 45.2, 9.2, 1, "11 kW")], schema=names, orient="row")
    with pytest.raises(InputError, match=f"--map-stations station_id={names[0]}"):
        check_stations(table)
    (note,) = check_stations(table, mapping={"station_id": names[0]}).notes
    assert "plugs=" in note


@pytest.mark.parametrize("header", ["Charger ID", "Ladestation", "Ladesäule", "Charging Station ID"])
def test_usual_names_of_ids_need_no_mapping(header):
    table = pl.DataFrame({header: ["A", "B"], "Rechtswert": ["9,1", "9,2"], "Hochwert": ["45,1", "45,2"]})
    checked = check_stations(table)
    assert checked.kept.select("station_id", "lat", "lon").rows() == [("A", 45.1, 9.1), ("B", 45.2, 9.2)]


def test_an_id_comes_before_a_column_that_may_name_a_type():
    table = pl.DataFrame({"Charger": ["AC", "DC"], "ID": ["A", "B"]})
    assert check_stations(table).kept["station_id"].to_list() == ["A", "B"]


def test_a_value_that_cannot_be_used_does_not_cost_the_station(tmp_path):
    (tmp_path / "s.csv").write_text("station_id,start,end,energy_kwh\nA,2024-01-01T08:00Z,2024-01-01T09:00Z,5\n")
    (tmp_path / "t.csv").write_text("station_id,power_kw\nA,fast\n,22\n")
    records = read_sessions(tmp_path / "s.csv", stations=tmp_path / "t.csv")
    assert (records.counts["stations_set_aside"], records.counts["station_values_unused"]) == (1, 1)
    assert "the station is kept without it" in records.rejected_stations["reason"][0]
