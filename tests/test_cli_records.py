"""`unmet inspect`, `unmet fetch` and the options of `unmet panel` for records, from the command line."""

from __future__ import annotations

import json

import polars as pl
import pytest

from tests.command_line import unmet
from tests.records.test_hard_files import dundee, sessions


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    rows = sessions(400)
    for place, month_first in enumerate((False, True)):
        part = rows[200 * place : 200 * place + 200]
        (folder / f"{place}.csv").write_text(dundee(part, "%m/%d/%Y" if month_first else "%d/%m/%Y"))
    (folder / "broken.txt").write_text(dundee(rows[:30], "%d/%m/%Y").replace(",2.", ",x."))
    (folder / "stations.dat").write_text("Site,X,Y\n" + "".join(f"CP{n},{714000 + n},{97000 + n}\n" for n in range(4)))
    return folder


def test_inspect_shows_parsed_rows_and_a_mapping(files):
    done = unmet("inspect", files / "0.csv", files / "1.csv")
    assert done.returncode == 0, done.stderr
    assert "dundee" in done.stdout
    assert "month first" in done.stdout
    assert "station_id: CP ID" in done.stdout
    summary = json.loads(unmet("inspect", files / "1.csv", "--json").stdout)
    assert summary[0]["kept"] == 200
    assert len(summary[0]["sample"]) == 10


def test_a_folder_of_files_with_mapped_stations_and_a_period(files, tmp_path):
    done = unmet(
        *("panel", files / "?.csv", "--out", tmp_path / "p", "--json", "--regions", 2),
        *("--stations", files / "stations.dat", "--map-stations", "station_id=Site", "--crs", "EPSG:21781"),
        *("--since", "2018-02-01", "--until", "2018-06-01", "--join-restarts", 0),
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["rows_in"] == 400
    assert 0 < summary["rows_kept"] < 400
    assert summary["quality"]["outside_period"] == summary["rows_set_aside"]
    assert any("EPSG:21781" in note for note in summary["record_notes"])
    orders = [line for line in summary["readings"] if "dates are read" in line]
    assert len(orders) == 2  # one file has the day first, the other the month
    assert all(line.endswith("(1 file).") for line in orders)
    page = (tmp_path / "p" / "panel.html").read_text(encoding="utf-8")
    assert all(line in page for line in summary["readings"])
    rejected = pl.read_csv(tmp_path / "p" / "rejected.csv")
    assert rejected.height == summary["rows_set_aside"]
    assert rejected.columns == ["file", "line", "column", "value", "reason"]
    placed = pl.read_parquet(tmp_path / "p" / "stations.parquet")
    assert placed["lat"].is_between(45.9, 46.1).all()


BAD = {
    "map of stations without equals": (["panel", "{0}", "--map-stations", "Site", "--out", "{out}"], "station_id=Site"),
    "a date that is not one": (["panel", "{0}", "--since", "soon", "--out", "{out}"], "2024-01-31"),
    "a missing token": (["fetch", "http://127.0.0.1:9/cdrs", "--out", "{out}"], "UNMET_OCPI_TOKEN"),
    "no such file": (["inspect", "nowhere.csv"], "nowhere.csv"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(case, files, tmp_path, monkeypatch):
    monkeypatch.delenv("UNMET_OCPI_TOKEN", raising=False)
    arguments, says = BAD[case]
    done = unmet(*(argument.format(files / "0.csv", out=tmp_path / "out") for argument in arguments))
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_inspect_suggests_a_mapping_file_where_columns_are_missing(tmp_path):
    (tmp_path / "odd.csv").write_text("Place,Came,Went,kWh\n" + "A,2024-03-04 08:00,2024-03-04 09:00,5.5\n" * 3)
    done = unmet("inspect", tmp_path / "odd.csv")
    assert done.returncode == 0, done.stderr
    assert "--map-file mapping.yaml" in " ".join((done.stdout + done.stderr).split())
