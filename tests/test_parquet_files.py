"""Parquet files are read as Polars writes them, in parts or whole, and damaged ones do not end the process."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.exceptions import PolarsError
from polars.testing import assert_frame_equal

from tests.fuzzing import CORPUS
from unmet.errors import InputError
from unmet.parquet_files import parquet_rows, parquet_schema, read_parquet

NUMBERS = pl.Series([0, 1, None], dtype=pl.Int64)
EVERY_TYPE = pl.DataFrame(
    {
        "text": ["a", None, "ø"],
        "category": pl.Series(["x", "y", "x"], dtype=pl.Categorical),
        "choice": pl.Series(["x", "y", "x"], dtype=pl.Enum(["x", "y"])),
        "time": NUMBERS.cast(pl.Datetime("ms", "UTC")),
        "local": NUMBERS.cast(pl.Datetime("us", "Europe/Copenhagen")),
        "naive": NUMBERS.cast(pl.Datetime("ns")),
        "span": NUMBERS.cast(pl.Duration("ms")),
        "date": NUMBERS.cast(pl.Int32).cast(pl.Date),
        "flag": [True, None, False],
        "list": [[1], [2, 3], []],
        "struct": [{"a": 1}, {"a": 2}, {"a": None}],
        "array": pl.Series([[1, 2], [3, 4], [5, 6]], dtype=pl.Array(pl.UInt16, 2)),
        "small": pl.Series([1, 2, 3], dtype=pl.UInt8),
        "float": [1.0, float("nan"), None],
        "nothing": [None, None, None],
        "money": pl.Series(["1.5", "2.5", None]).cast(pl.Decimal(10, 2)),
        "dot.ted": [1, 2, 3],
    }
)


@pytest.mark.parametrize("table", [EVERY_TYPE, EVERY_TYPE.clear(), pl.DataFrame()], ids=["rows", "none", "no columns"])
def test_tables_come_back_with_their_types(tmp_path, table):
    table.write_parquet(path := tmp_path / "t.parquet")
    assert_frame_equal(read_parquet(path), table)
    assert parquet_schema(path) == table.schema
    assert parquet_rows(path) == table.height


def test_some_columns_come_back_in_the_order_asked(tmp_path):
    EVERY_TYPE.write_parquet(path := tmp_path / "t.parquet")
    assert_frame_equal(read_parquet(path, columns=["dot.ted", "text"]), EVERY_TYPE.select("dot.ted", "text"))


@settings(max_examples=30, deadline=None)
@given(group=st.integers(1, 60), first=st.integers(0, 70), rows=st.integers(1, 70))
def test_a_part_is_the_slice(tmp_path_factory, group, first, rows):
    table = pl.DataFrame({"i": range(50)})
    table.write_parquet(path := tmp_path_factory.mktemp("part") / "t.parquet", row_group_size=group)
    assert_frame_equal(read_parquet(path, (first, rows)), table.slice(first, rows))


def test_a_page_that_claims_to_hold_quintillions_of_values_is_refused():
    damaged = CORPUS / "panel-regions--01e5739a5f38"  # Polars' own reader ends the process at this file
    with pytest.raises(PolarsError, match="damaged"):
        read_parquet(damaged)


def test_half_a_file_and_none_are_refused(tmp_path):
    EVERY_TYPE.write_parquet(path := tmp_path / "t.parquet")
    path.write_bytes(path.read_bytes()[:-9])
    for read in (read_parquet, parquet_rows, parquet_schema):
        with pytest.raises(PolarsError):
            read(path)
        with pytest.raises(InputError, match="no file"):
            read(tmp_path / "none.parquet")
