"""Names beside sessions name the stations, if there is no table of them."""

from __future__ import annotations

import polars as pl
import pytest

from unmet.records.sessions import read_sessions


def table(names: list[str | None], **columns: list[object]) -> pl.DataFrame:
    rows = len(names)
    return pl.DataFrame(
        {
            "station_id": ["A", "B"] * (rows // 2),
            "start": [f"2024-01-{1 + row:02} 09:00" for row in range(rows)],
            "end": [f"2024-01-{1 + row:02} 10:00" for row in range(rows)],
            "energy_kwh": [5.0] * rows,
            "Site": names,
            **columns,
        }
    )


def names_of(frame: pl.DataFrame, **options: object) -> dict[str, str | None]:
    stations = read_sessions(frame, time_zone="Europe/London", **options).stations
    return dict(stations.select("station_id", "name").iter_rows())


def test_sites_beside_sessions_name_their_stations():
    assert names_of(table(["Ice Arena ", "Car Park"] * 8)) == {"A": "Ice Arena", "B": "Car Park"}
    # A few rows without a name, or with another spelling, do not matter.
    assert names_of(table(["Ice Arena", "Car Park"] * 10 + [None, "Carpark"])) == {"A": "Ice Arena", "B": "Car Park"}


def test_a_column_with_several_names_per_station_names_something_else():
    assert names_of(table(["Post 1", "Post 2", "Post 3", "Post 4"] * 4)) == {"A": None, "B": None}


def test_a_table_of_stations_takes_precedence_and_positions_are_kept():
    given = pl.DataFrame({"station_id": ["A", "B"], "name": ["Arena", None]})
    assert names_of(table(["Ice Arena", "Car Park"] * 8), stations=given) == {"A": "Arena", "B": None}
    placed = table(["Ice Arena", "Car Park"] * 8, lat=[56.46, 56.47] * 8, lon=[-2.97, -2.98] * 8)
    found = read_sessions(placed, time_zone="Europe/London").stations.sort("station_id")
    assert found["name"].to_list() == ["Ice Arena", "Car Park"]
    assert found["lat"].to_list() == pytest.approx([56.46, 56.47])
