"""The gate of an operator's table of stations."""

from __future__ import annotations

import polars as pl
import pytest

from unmet.errors import InputError
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
        (5, "lat", "is above 90"),
        (6, "plugs", "is below 1"),
        (7, "plugs", "is below 1"),
        (8, "station_id", "is empty"),
        (9, "", "has 3 fields where the header has 7"),
        (10, "plugs", "is not a whole number"),
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
