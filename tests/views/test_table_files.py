"""Tables of runs for people: CSV, Excel and GeoJSON."""

from __future__ import annotations

import datetime as dt
import json
from zipfile import ZipFile

import polars as pl
import pytest

from unmet.errors import InputError
from unmet.views.figures.map_layers import far_away, read_layers, region_outlines
from unmet.views.table_files import parse_formats, workbook, write_table_files

SITES = pl.DataFrame(
    {
        "site_id": ["a", "b", "c"],
        "name": ["=1+1", "Dépôt", None],
        "lat": [55.6, None, 55.7],
        "lon": [12.5, 12.6, 12.7],
        "kwh": [1.5, float("nan"), 2.0],
        "seen": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)] * 3,
        "draws": [[1.0], [2.0], [3.0]],
    }
)


def test_formats_are_parsed():
    assert parse_formats(None) is None
    assert parse_formats("csv, XLSX") == {"csv", "xlsx"}
    for wrong in ("pdf", "", "csv,doc"):
        with pytest.raises(InputError, match="csv, parquet, xlsx"):
            parse_formats(wrong)


def test_every_table_is_written_in_every_format(tmp_path):
    SITES.write_parquet(tmp_path / "sites.parquet")
    assert write_table_files(tmp_path, parse_formats("csv,xlsx")) == []
    flat = pl.read_csv(tmp_path / "sites.csv")
    assert flat["name"].to_list() == ["'=1+1", "Dépôt", None]  # no formula in a spreadsheet
    assert "draws" not in flat.columns
    sheet = pl.read_excel(tmp_path / "sites.xlsx")
    assert sheet["name"].to_list() == ["=1+1", "Dépôt", None]
    assert b"<f>" not in ZipFile(tmp_path / "sites.xlsx").read("xl/worksheets/sheet1.xml")  # text stays text
    points = json.loads((tmp_path / "sites.geojson").read_text())["features"]
    assert [point["geometry"]["coordinates"] for point in points] == [[12.5, 55.6], [12.7, 55.7]]
    assert points[0]["properties"]["site_id"] == "a"


def test_outlines_contain_all_stations_of_their_region():
    from shapely.geometry import Point, Polygon

    stations = pl.DataFrame(
        {
            "unique_id": ["x"] * 3 + ["y"] * 2,
            "lat": [55.6, 55.61, 55.6, 55.8, 55.81],
            "lon": [12.5, 12.5, 12.52, 12.9, 12.9],
        }
    )
    for name, line in region_outlines(stations):
        inside = stations.filter(pl.col("unique_id") == name)
        assert all(Polygon(line).contains(Point(lon, lat)) for lat, lon in inside.select("lat", "lon").iter_rows())
    assert region_outlines(stations.with_columns(unique_id=pl.int_range(5).cast(pl.String))) == ()


def test_swapped_positions_are_far_away():
    import numpy as np

    east, north = np.array([0.0, 1.0, 2.0, 1.0, 4500.0]), np.array([0.0, 1.0, 0.0, 2.0, -4000.0])
    assert far_away(east, north).tolist() == [False] * 4 + [True]
    assert not far_away(east[:4], north[:4]).any()


def test_base_maps_are_lines_in_degrees(tmp_path):
    line = {"type": "LineString", "coordinates": [[12.5, 55.6], [12.6, 55.7]]}
    area = {"type": "Polygon", "coordinates": [[[12, 55], [13, 55], [13, 56], [12, 55]]]}
    document = {
        "type": "FeatureCollection",
        "features": [{"type": "Feature", "geometry": g, "properties": {}} for g in (line, area)],
    }
    (tmp_path / "coast.geojson").write_text(json.dumps(document))
    assert [len(part) for part in read_layers(tmp_path / "coast.geojson").lines] == [2, 4]
    line["coordinates"] = [[720000, 6170000], [720100, 6170100]]
    (tmp_path / "metres.geojson").write_text(json.dumps(line))
    (tmp_path / "broken.geojson").write_text("{")
    for name in ("metres", "broken"):
        with pytest.raises(InputError, match="is not a GeoJSON file of lines"):
            read_layers(tmp_path / f"{name}.geojson")
    with pytest.raises(InputError, match="Cannot read the map"):
        read_layers(tmp_path / "nowhere.geojson")


def test_a_workbook_holds_no_time(tmp_path, monkeypatch):
    """The same table gives the same bytes at any time, and text that looks like a formula stays text."""
    import time
    import zipfile

    for name in ("one", "two"):
        with workbook(tmp_path / name) as book:
            pl.DataFrame({"id": ["=1+1"], "kwh": [2.0]}).write_excel(book)
        monkeypatch.setattr(time, "time", lambda: 1e9)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with zipfile.ZipFile(tmp_path / "one") as packed:
        assert b"2000-01-01T00:00:00Z" in packed.read("docProps/core.xml")
        assert b"<f>" not in packed.read("xl/worksheets/sheet1.xml")
