from __future__ import annotations

import gzip

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.errors import InputError
from unmet.tables import Column, RowRule, Table, as_frame, check_table, parse_time

THINGS = Table(
    "things",
    (
        Column("name", "text", "", "its name", aliases=("label",)),
        Column("size_km", "number", "km", "its size", minimum=0, maximum=100),
        Column("parts", "integer", "", "its parts", default=2, minimum=1),
        Column("seen", "time", "UTC", "when", required=False),
    ),
)

cells = st.one_of(st.text(max_size=8), st.integers().map(str), st.floats().map(str), st.just(""), st.none())


@given(st.lists(st.tuples(cells, cells, cells, cells), max_size=30))
def test_every_row_is_kept_or_rejected(rows):
    frame = pl.DataFrame(rows, schema=dict.fromkeys(["name", "size_km", "parts", "seen"], pl.String), orient="row")
    checked = check_table(frame, THINGS)
    assert checked.rows_in == len(rows) == checked.kept.height + checked.rejected.height
    assert checked.kept["size_km"].is_between(0, 100).all()
    assert (checked.kept["parts"] >= 1).all()
    assert checked.kept["name"].is_not_null().all()
    assert checked.rejected["reason"].is_not_null().all()
    assert checked.rejected["line"].is_unique().all()


def test_the_reason_for_every_kind_of_bad_value_is_given():
    checked = check_table(
        {
            "name": ["a", "", None, "d", "e", "f", "g", "h", "i"],
            "size_km": ["1", "1", "1", "x", "-1", "101", "nan", "inf", "1"],
            "parts": ["1", "1", "1", "1", "1", "1", "1", "1", "1.5"],
        },
        THINGS,
    )
    assert checked.kept["name"].to_list() == ["a"]
    assert checked.rejected.rows() == [
        (2, "name", "", "is empty"),
        (3, "name", None, "is empty"),
        (4, "size_km", "x", "is not a number"),
        (5, "size_km", "-1", "is below 0"),
        (6, "size_km", "101", "is above 100"),
        (7, "size_km", "nan", "is not a number"),
        (8, "size_km", "inf", "is not a number"),
        (9, "parts", "1.5", "is not a whole number"),
    ]


def test_empty_cells_take_the_default_and_are_counted():
    checked = check_table({"name": ["a", "b", "c"], "size_km": [1, 2, 3], "parts": ["", None, "7"]}, THINGS)
    assert checked.kept["parts"].to_list() == [2, 2, 7]
    assert checked.filled == {"parts": 2}
    assert check_table({"name": ["a"], "size_km": [1]}, THINGS).filled == {"parts": 1}


def test_rules_apply_in_turn_to_the_remaining_rows():
    rule = RowRule("name", pl.col("name").is_first_distinct(), "is a duplicate")
    checked = check_table({"label": ["a", "a", "b"], "size_km": [1, 2, 3]}, THINGS, (rule,))
    assert checked.kept["name"].to_list() == ["a", "b"]
    assert checked.rejected.rows() == [(2, "name", "a", "is a duplicate")]


def test_pandas_polars_pyarrow_and_files_give_the_same_table(tmp_path):
    data = {"name": ["a", "b"], "size_km": [1.5, 200.0], "parts": [1, 2]}
    frame = pl.DataFrame(data)
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "t.csv").read_bytes())
    (tmp_path / "semi.csv").write_text((tmp_path / "t.csv").read_text().replace(",", ";"))
    with gzip.open(tmp_path / "t.csv.gz", "wb") as file:
        file.write((tmp_path / "t.csv").read_bytes())
    sources = [frame, frame.lazy(), pd.DataFrame(data), pa.table(data)]
    sources += [tmp_path / name for name in ("t.csv", "t.parquet", "bom.csv", "semi.csv", "t.csv.gz")]
    for source in sources:
        checked = check_table(source, THINGS)
        assert checked.kept.rows() == [("a", 1.5, 1)]
        assert checked.rejected.height == 1


def test_every_line_is_a_row_with_its_own_number(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('name,size_km\na,1\nb,2,3\n\n"c ""x""",4\nd\ne,-1\n"Joe,5\nf,6\n')
    checked = check_table(path, THINGS)
    assert checked.kept["name"].to_list() == ["a", 'c "x"', "f"]
    assert checked.rejected.select("line", "reason").rows() == [
        (3, "has 3 fields where the header has 2"),
        (6, "has 1 fields where the header has 2"),
        (7, "is below 0"),
        (8, "has 1 fields where the header has 2"),
    ]


@given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="\x00"), max_size=12), max_size=15))
def test_no_line_of_a_csv_is_lost(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    text = "name,size_km\n" + "\n".join(lines)
    path.write_bytes(text.encode())
    checked = check_table(path, THINGS)
    rows = [line for line in text.encode().split(b"\n")[1:] if line.strip()]
    assert checked.rows_in == len(rows)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\x00\x01\x02\x03" * 50, "binary"),
        (b"PAR1 but not really", "neither a CSV"),
        (b"\x1f\x8b\x08\x00truncated", "whole"),
        (b"name;other\na;b\n", "has no column size_km"),
        (b"\xff\xfe\xfa,\xf0\x28\n\xff,1\n", "UTF-8"),
    ],
)
def test_an_unreadable_file_gives_one_sentence_with_a_remedy(tmp_path, content, says):
    path = tmp_path / "things.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        check_table(path, THINGS)


def test_a_missing_file_and_an_object_that_is_not_a_table_are_refused(tmp_path):
    with pytest.raises(InputError, match="no file"):
        check_table(tmp_path / "nowhere.csv", THINGS)
    with pytest.raises(InputError, match="not a table"):
        as_frame(42)


@pytest.mark.parametrize(
    "text",
    ["2019-09-01T07:00:00Z", "2019-09-01 07:00:00", "2019-09-01 07:00", "2019-09-01T09:00+02:00", "1567321200",
     "1567321200000", "2019-09-01T07:00:00.000+0000"],
)  # fmt: skip
def test_times_are_read_in_many_formats(text):
    parsed = pl.select(parse_time(pl.lit(text), pl.String())).item()
    assert parsed.isoformat() == "2019-09-01T07:00:00+00:00"


def test_text_that_is_not_a_time_becomes_null():
    for text in ("yesterday", "2019-13-01 00:00", "", "2019-09-01", "20190901"):
        assert pl.select(parse_time(pl.lit(text), pl.String())).item() is None


def test_booleans_are_refused_and_categories_are_read():
    with pytest.raises(InputError, match="Boolean"):
        check_table(pl.DataFrame({"name": ["a"], "size_km": [True]}), THINGS)
    category = pl.DataFrame(
        {"name": ["a"], "size_km": ["1"], "__line__": [7]}, schema_overrides={"size_km": pl.Categorical}
    )
    assert check_table(category, THINGS).kept["size_km"].to_list() == [1]


def test_datetimes_are_converted_to_utc():
    naive = pl.Series([pd.Timestamp("2019-09-01 07:00")])
    danish = naive.dt.offset_by("2h").dt.replace_time_zone("Europe/Copenhagen")
    for series in (naive, danish):
        assert (
            str(series.to_frame("t").select(parse_time(pl.col("t"), series.dtype)).item())
            == "2019-09-01 07:00:00+00:00"
        )


def test_columns_are_documented_from_their_declaration():
    text = THINGS.to_markdown()
    assert "| `parts` |  | its parts; 2 where empty |" in text
    assert "also read as `label`" in text


def test_times_far_out_of_range_are_rejected():
    far = pl.Series([0, 2**60, None]).cast(pl.Datetime("ms"))
    checked = check_table({"name": ["a", "b", "c"], "size_km": [1, 1, 1], "seen": far}, THINGS)
    assert checked.kept["name"].to_list() == ["a", "c"]
    assert checked.rejected.select("column", "reason").rows() == [
        ("seen", "is not a time such as 2019-09-01T07:30:00Z")
    ]
    dates = check_table({"name": ["a"], "size_km": [1], "seen": pl.Series(["2019-09-01"]).str.to_date()}, THINGS)
    assert str(dates.kept["seen"][0]) == "2019-09-01 00:00:00+00:00"
