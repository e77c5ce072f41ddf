"""Positions are brought to degrees, turned where they are swapped, and named where they cannot be right."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from pyproj import Transformer

from unmet.errors import InputError
from unmet.records.positions_check import mend_positions, zone_place
from unmet.records.stations import check_stations

TOWNS = {
    "EPSG:2056": (46.0, 8.95),
    "EPSG:21781": (46.0, 8.95),
    "EPSG:27700": (56.46, -2.97),
    "EPSG:2154": (48.86, 2.35),
    "EPSG:25832": (55.68, 12.57),
    "EPSG:31467": (48.78, 9.18),
    "EPSG:31468": (48.14, 11.58),
}


def town(lat: float, lon: float, stations: int = 30) -> pl.DataFrame:
    random = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "station_id": [f"S{n}" for n in range(stations)],
            "lat": lat + random.normal(0, 0.02, stations),
            "lon": lon + random.normal(0, 0.02, stations),
        }
    )


GRIDS = [
    *((crs, names) for crs in TOWNS for names in (("X", "Y"), ("Easting", "Northing"))),
    *((crs, ("Rechtswert", "Hochwert")) for crs in ("EPSG:25832", "EPSG:31467", "EPSG:31468")),
    *((crs, ("Y", "X")) for crs in ("EPSG:2056", "EPSG:21781")),  # only Swiss maps call the easting Y
]


@pytest.mark.parametrize(("crs", "names"), GRIDS)
def test_metres_of_a_grid_become_degrees(crs, names):
    truth = town(*TOWNS[crs])
    east, north = Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(truth["lon"], truth["lat"])
    table = pl.DataFrame({"station_id": truth["station_id"], names[0]: east, names[1]: north})
    checked = check_stations(table, crs)
    assert np.allclose(checked.kept["lat"], truth["lat"], atol=1e-5)
    assert np.allclose(checked.kept["lon"], truth["lon"], atol=1e-5)
    try:
        found = check_stations(table)
    except InputError as error:
        assert crs in str(error)  # noqa: PT017
        assert "--crs" in str(error)  # noqa: PT017
    else:
        assert np.allclose(found.kept["lat"], truth["lat"], atol=1e-3)
        assert crs in found.notes[0]


def test_a_grid_that_does_not_fit_or_exist_is_refused():
    table = pl.DataFrame({"station_id": ["A"], "X": [715_000.0], "Y": [95_000.0]})
    with pytest.raises(InputError, match=r"EPSG:2056"):
        check_stations(table, "EPSG:9999999")
    with pytest.raises(InputError, match=r"no position lies where EPSG:2193 is used"):
        check_stations(table, "EPSG:2193")
    with pytest.raises(InputError, match="no columns of positions"):
        check_stations(table.drop("X"), "EPSG:2056")


def test_degrees_stay_and_empty_positions_too():
    truth = town(55.7, 12.6).with_columns(pl.when(pl.col("station_id") != "S3").then("lat").alias("lat"))
    checked = check_stations(truth)
    assert checked.kept.select(truth.columns).equals(truth)
    assert checked.notes == ()


def test_every_third_position_swapped_is_turned():
    truth = town(55.7, 12.6)
    third = pl.int_range(30) % 3 == 0
    mixed = truth.with_columns(
        lat=pl.when(third).then("lon").otherwise("lat"), lon=pl.when(third).then("lat").otherwise("lon")
    )
    mended, notes = mend_positions(mixed, "UTC", "stations.csv")
    assert mended.equals(truth)
    assert "10 of 30 stations" in notes[0]


@pytest.mark.parametrize(
    ("place", "zone"), [((55.7, 12.6), "Europe/Copenhagen"), ((46.0, 8.95), "Europe/Zurich"), ((34.1, -118.0), "UTC")]
)
def test_all_positions_swapped_are_turned_by_the_time_zone(place, zone):
    truth = town(*place)
    swapped = truth.select("station_id", pl.col("lon").alias("lat"), pl.col("lat").alias("lon"))
    mended, notes = mend_positions(swapped, zone, "stations.csv")
    assert mended.equals(truth if zone != "UTC" else swapped)
    assert len(notes) == 1
    assert ("swapped, they would lie" in notes[0]) == (zone == "UTC")
    unchanged, notes = mend_positions(truth, zone, "stations.csv")
    assert unchanged.equals(truth)
    assert notes == []


def test_a_station_far_from_all_others_is_named():
    table = town(55.7, 12.6).with_columns(
        lat=pl.when(pl.col("station_id") == "S7").then(0.0).otherwise("lat"),
        lon=pl.when(pl.col("station_id") == "S7").then(0.0).otherwise("lon"),
    )
    mended, notes = mend_positions(table, "UTC", "stations.csv")
    assert mended.equals(table)
    assert "S7" in notes[0]


def test_places_of_zones():
    assert zone_place("Europe/Copenhagen") == pytest.approx((55.67, 12.58), abs=0.01)
    assert zone_place("America/Los_Angeles") == pytest.approx((34.05, -118.24), abs=0.01)
    assert zone_place("UTC") is None


def test_columns_of_stations_can_be_mapped():
    table = pl.DataFrame({"Site": ["A"], "Box": ["1"], "Anzahl": [2], "name": ["x"], "id": ["wrong"]})
    checked = check_stations(table, mapping={"station_id": "Site+Box", "plugs": "Anzahl"})
    assert checked.kept.select("station_id", "plugs", "name").row(0) == ("A/1", 2, "x")
    with pytest.raises(InputError, match=r"no column 'Ort'.*--map-stations name=COLUMN"):
        check_stations(table, mapping={"name": "Ort"})
    with pytest.raises(InputError, match="makes no sense: stations have station_id"):
        check_stations(table, mapping={"speed": "Site"})
    with pytest.raises(InputError, match=r"--map-stations station_id=COLUMN"):
        check_stations(table.select("Anzahl"))


def swapped_at(truth: pl.DataFrame, ids: list[str]) -> pl.DataFrame:
    here = pl.col("station_id").is_in(ids)
    return truth.with_columns(
        lat=pl.when(here).then("lon").otherwise("lat"), lon=pl.when(here).then("lat").otherwise("lon")
    )


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC"])
@pytest.mark.parametrize(("stations", "wrong"), [(3, 1), (3, 2), (10, 2), (10, 5), (10, 7), (10, 9)])
def test_a_correct_position_is_never_turned_however_many_others_are_swapped(stations, wrong, zone):
    truth = town(52.5, 13.4, stations)
    mended, notes = mend_positions(swapped_at(truth, [f"S{n}" for n in range(wrong)]), zone, "stations.csv")
    assert mended.equals(truth)
    assert [f"{wrong} of {stations} stations" in note for note in notes] == [True]


def test_where_only_the_larger_group_tells_the_user_is_asked():
    truth = town(56.46, -2.97, 10)  # neither it nor its mirror is near a city that a zone is named after
    mended, notes = mend_positions(swapped_at(truth, ["S1", "S2"]), "UTC", "stations.csv")
    assert mended.equals(truth)
    assert "If the others are the swapped ones, give --time-zone" in notes[0]
    half = swapped_at(truth, [f"S{n}" for n in range(5)])
    kept, notes = mend_positions(half, "UTC", "stations.csv")
    assert kept.equals(half)
    assert "swapped, they would lie" in notes[0]


def test_one_of_three_stations_far_from_the_others_is_named():
    table = pl.DataFrame({"station_id": ["A", "B", "C"], "lat": [52.5, 52.52, 40.7], "lon": [13.4, 13.41, -74.0]})
    for zone in ("UTC", "Europe/Berlin"):
        kept, notes = mend_positions(table, zone, "stations.csv")
        assert kept.equals(table)
        assert "C, is 6,3" in notes[0]


def test_latitudes_beyond_90_degrees_are_turned_row_by_row():
    table = pl.DataFrame(
        {"station_id": list("ABCDE"), "lat": [139.7, 35.6, 139.6, 139.8, 99.0], "lon": [35.7, 139.7, 35.6, 35.5, 200.0]}
    )
    checked = check_stations(table)
    assert checked.kept.drop_nulls("lat")["lat"].to_list() == [35.7, 35.6, 35.6, 35.5]
    assert checked.kept["station_id"].to_list() == list("ABCDE")  # E has no position
    assert "3 of 5 rows" in checked.notes[0]
    few = check_stations(table.filter(pl.col("station_id").is_in(["A", "B", "E"])))
    assert few.kept.drop_nulls("lat")["lat"].to_list() == [35.7, 35.6]
