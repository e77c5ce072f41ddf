"""No NaN and no infinity leaves a command."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from unmet.finite import NotFiniteError, check_finite
from unmet.runs import run_folder, write_json
from unmet.views.terminal import print_summary

NAN, INFINITE = float("nan"), float("inf")
TABLES = {
    "a float": pl.DataFrame({"a": [1, 2], "b": [1.0, NAN]}),
    "infinity": pl.DataFrame({"b": [-INFINITE]}),
    "32 bits": pl.DataFrame({"b": [NAN]}, schema={"b": pl.Float32}),
    "an array": pl.DataFrame({"b": [[1.0, NAN]]}, schema={"b": pl.Array(pl.Float32, 2)}),
    "a list": pl.DataFrame({"b": [[1.0], [], [INFINITE]]}),
}


def write_run(table: pl.DataFrame, out: Path) -> None:
    with run_folder(out) as folder:
        (folder / "inner").mkdir()
        table.write_parquet(folder / "inner" / "table.parquet")


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_with_what_is_no_number_leaves_nothing_behind(kind, tmp_path):
    with pytest.raises(NotFiniteError, match=r"table\.parquet has numbers in b"):
        write_run(TABLES[kind], tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ['{"a": NaN}', "[1, Infinity]", '{"a": {"b": -Infinity}}'])
def test_a_document_with_what_is_no_number(text, tmp_path):
    (tmp_path / "summary.json").write_text(text)
    with pytest.raises(NotFiniteError, match=r"summary\.json"):
        check_finite(tmp_path)


def test_numbers_nulls_and_texts_may_leave(tmp_path):
    frame = pl.DataFrame({"a": [1.0, None], "b": ["NaN", "inf"], "c": [[1.0, None], None], "d": [None, None]})
    with run_folder(tmp_path / "out") as folder:
        frame.write_parquet(folder / "table.parquet")
        write_json(folder / "summary.json", {"a": None, "b": "NaN"})
    assert (tmp_path / "out" / "table.parquet").is_file()


def test_json_is_refused_where_it_is_written(tmp_path, capsys):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"a": NAN})
    with pytest.raises(ValueError, match="JSON"):
        print_summary("", {"a": INFINITE}, as_json=True)
    assert not capsys.readouterr().out
