"""Validation: invalid rows are refused in one sentence, and any data frame library gives the same panel."""

from __future__ import annotations

import datetime as dt
import math

import polars as pl
import pytest

from tests.demand.records import MONDAY, sessions, stations
from unmet.demand.gate import checked_sessions, checked_stations
from unmet.demand.panel import Panel
from unmet.errors import InputError

GOOD = sessions(("a", 1, 2, 5.0), ("b", 3, 4.5, 7.5))
PLACES = stations("a", "b")


def with_value(column, value):
    return GOOD.with_columns(
        pl.when(pl.col("station_id") == "b").then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
    )


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("end", MONDAY, "ends before it starts"),
        ("energy_kwh", -1e9, "has no valid energy"),
        ("energy_kwh", -0.01, "has no valid energy"),
        ("energy_kwh", math.nan, "has no valid energy"),
        ("energy_kwh", math.inf, "has no valid energy"),
        ("energy_kwh", None, "has no valid energy"),
        ("energy_kwh", 7500.0, "is it in Wh"),
        ("start", None, "is incomplete"),
        ("end", None, "is incomplete"),
        ("station_id", None, "is incomplete"),
    ],
)
def test_an_invalid_session_is_refused_with_its_row(column, value, why):
    with pytest.raises(InputError, match=f"Row 1 of the sessions .*{why}.*and 0 more"):
        Panel(with_value(column, value), PLACES)


def test_all_invalid_sessions_are_counted():
    with pytest.raises(InputError, match=r"Row 0 .* and 1 more"):
        checked_sessions(GOOD.with_columns(end=pl.col("start").dt.offset_by("-1h")))


def test_unusual_sessions_are_accepted():
    odd = sessions(("a", 1, 1, 0.0), ("a", 2, 200, 5000.0))
    assert checked_sessions(odd).height == 2


def test_times_as_text_are_refused():
    text = GOOD.with_columns(pl.col("start").dt.to_string("iso"))
    with pytest.raises(InputError, match="Column start of the sessions holds String: give times, not text"):
        Panel(text, PLACES)


def test_a_missing_column_is_named():
    with pytest.raises(InputError, match="sessions have no column energy_kwh"):
        Panel(GOOD.drop("energy_kwh"), PLACES)
    with pytest.raises(InputError, match="stations have no column station_id"):
        Panel(GOOD, PLACES.rename({"station_id": "id"}))
    with pytest.raises(InputError, match="is not a table"):
        Panel([1, 2, 3], PLACES)


@pytest.mark.parametrize("kind", ["pandas", "arrow", "lazy", "microseconds", "no zone", "other zone"])
def test_any_frame_gives_the_same_panel(kind):
    given = {
        "pandas": lambda t: t.to_pandas(),
        "arrow": lambda t: t.to_arrow(),
        "lazy": lambda t: t.lazy(),
        "microseconds": lambda t: t.with_columns(pl.col(pl.Datetime).dt.cast_time_unit("us")),
        "no zone": lambda t: t.with_columns(pl.col(pl.Datetime("ms", "UTC")).dt.replace_time_zone(None)),
        "other zone": lambda t: t.with_columns(pl.col(pl.Datetime("ms", "UTC")).dt.convert_time_zone("Asia/Tokyo")),
    }[kind]
    plain, other = Panel(GOOD, PLACES), Panel(given(GOOD), given(PLACES))
    assert other.table.equals(plain.table)
    assert other.stations.equals(plain.stations)
    assert other.sessions.equals(plain.sessions)


def test_integers_and_other_types_are_cast():
    checked = checked_sessions(GOOD.with_columns(pl.col("energy_kwh").cast(pl.Int64), station_id=pl.Series([1, 2])))
    assert checked.schema["energy_kwh"] == pl.Float64()
    assert checked["station_id"].to_list() == ["1", "2"]
    assert checked_sessions(GOOD.with_columns(plug_id=pl.Series([1, 2])))["plug_id"].to_list() == ["1", "2"]


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"station_id": ["a", "a"]}, "listed twice"),
        ({"station_id": ["a", None]}, "missing or listed twice"),
        ({"plugs": [1, -1]}, "fewer than 0 plugs"),
        ({"plugs": ["one", "two"]}, "not a number"),
        ({"lat": [55.0, 91.0]}, "beyond 90 degrees"),
        ({"lon": [12.0, -181.0]}, "180 of longitude"),
    ],
)
def test_invalid_stations_are_refused(columns, why):
    with pytest.raises(InputError, match=why):
        checked_stations(PLACES.with_columns(pl.Series(name, values) for name, values in columns.items()))


def test_missing_columns_of_stations_are_added():
    checked = checked_stations(pl.DataFrame({"station_id": ["a"], "colour": ["green"]}))
    assert checked.columns == ["station_id", "lat", "lon", "power_kw", "plugs", "operator", "name", "colour"]
    assert checked.row(0) == ("a", None, None, None, None, None, None, "green")


def test_a_session_at_an_unlisted_station_is_left_out():
    panel = Panel(GOOD, stations("a"))
    assert panel.sessions["station_id"].to_list() == ["a"]
    assert panel.period[0] == MONDAY
    with pytest.raises(InputError, match="no sessions to build a panel from"):
        Panel(GOOD, stations("c"))
    assert dt.timedelta(hours=panel.hours) == panel.period[1] - panel.period[0]
