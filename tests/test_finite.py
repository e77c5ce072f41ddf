"""Commands write NaN and infinity as null."""

from __future__ import annotations

import json

import polars as pl

from unmet.runs import run_folder, write_json
from unmet.views.terminal import print_summary

NAN, INFINITE = float("nan"), float("inf")


def test_nan_and_infinity_become_null_in_tables(tmp_path):
    frame = pl.DataFrame({"a": [1.0, NAN, -INFINITE, None], "b": ["NaN", "inf", "", None], "c": [1, 2, 3, 4]})
    with run_folder(tmp_path / "out") as folder:
        (folder / "inner").mkdir()
        frame.write_parquet(folder / "inner" / "table.parquet")
    stored = pl.read_parquet(tmp_path / "out" / "inner" / "table.parquet")
    assert stored["a"].to_list() == [1.0, None, None, None]
    assert stored.drop("a").equals(frame.drop("a"))


def test_nan_and_infinity_become_null_in_json(tmp_path, capsys):
    write_json(tmp_path / "x.json", {"a": NAN, "b": [1.5, INFINITE], "c": "NaN"})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": None, "b": [1.5, None], "c": "NaN"}
    print_summary("", {"a": -INFINITE}, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"a": None}
