"""Times that no calendar has are read as text or set aside; Polars' own printing of them panics."""

from __future__ import annotations

import polars as pl
import pytest

from tests.small_network import STATIONS, records
from unmet.errors import InputError
from unmet.records.odd_times import printable_times
from unmet.records.sessions import read_sessions
from unmet.records.stations import check_stations

ODD = [2**62, -(2**62)]
KINDS = [pl.Datetime("ms"), pl.Datetime("us", "UTC"), pl.Datetime("ns"), pl.Date()]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_any_number_can_be_printed(kind):
    largest = 2**31 - 1 if kind == pl.Date else 2**63 - 1
    cells = pl.Series([0, largest, -largest, None]).cast(pl.Int32 if kind == pl.Date else pl.Int64).cast(kind)
    text = printable_times(cells).cast(pl.String).to_list()
    assert text[0].startswith("1970-01-01")
    assert text[3] is None
    assert all(text[1:3])


def test_ordinary_times_stay_times():
    cells = pl.Series([0, None, 10**12]).cast(pl.Datetime("ms"))
    assert printable_times(cells).dtype == pl.Datetime("ms")


@pytest.mark.parametrize("column", ["session_id", "station_id", "start", "end", "plug_id", "user_id"])
@pytest.mark.parametrize("kind", [pl.Datetime("ms"), pl.Date()], ids=str)
def test_sessions_with_such_times_in_any_column(column, kind):
    rows = records(7)[0]
    numbers = pl.Series(
        [ODD[0] % 2**31, -5, *([0] * (rows.height - 2))] if kind == pl.Date else ODD + [0] * (rows.height - 2)
    )
    odd = rows.with_columns(numbers.cast(pl.Int32 if kind == pl.Date else pl.Int64).cast(kind).alias(column))
    try:
        read = read_sessions(odd)
    except InputError:
        return
    assert read.counts["rows_in"] == rows.height


def test_stations_with_such_ids():
    odd = STATIONS.with_columns(
        pl.Series([*ODD, *range(STATIONS.height - 2)]).cast(pl.Datetime("ms")).alias("station_id")
    )
    assert check_stations(odd).kept["station_id"].to_list()[:2] == [str(number) for number in ODD]
