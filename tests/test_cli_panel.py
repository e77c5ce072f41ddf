"""`unmet panel` as a person or a script meets it."""

from __future__ import annotations

import json
import sqlite3

import polars as pl
import pytest

from tests.simulation.cities import small_city
from tests.test_cli import unmet
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate

NEEDED = {"rows_in", "rows_kept", "rows_set_aside", "sessions", "energy_kwh", "stations", "plugs", "regions", "hours",
          "mean_exposure"}  # fmt: skip
TABLES = {
    *(f"{name}.parquet" for name in ("panel", "stations", "station_hours", "regions")),
    "panel.json",
    "summary.json",
    "panel.html",
    ".unmet-run",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    outcome = simulate(prepare(small_city(2, 60, 20, 6, 2)), Scenario(penetration=1))
    outcome.sessions.write_parquet(folder / "sessions.parquet")
    outcome.stations.write_csv(folder / "stations.csv")
    outcome.sessions.rename({"start": "Plug in", "end": "Plug out", "energy_kwh": "kWh"}).write_csv(folder / "mine.csv")
    with sqlite3.connect(folder / "db.sqlite") as database:
        database.execute("create table charges (id text, place text, a text, b text, wh real)")
        rows = outcome.sessions.select(
            "session_id", "station_id", pl.col("start", "end").cast(pl.String), pl.col("energy_kwh") * 1000
        )
        database.executemany("insert into charges values (?, ?, ?, ?, ?)", rows.rows())
    database.close()
    return folder


def summary(*arguments: object):
    done = unmet("panel", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_one_command_writes_the_panel(run, tmp_path):
    said = summary(
        run / "sessions.parquet", "--stations", run / "stations.csv", "--out", tmp_path / "p", "--regions", 3
    )
    assert set(said) >= NEEDED
    assert {p.name for p in (tmp_path / "p").iterdir()} == TABLES
    panel = pl.read_parquet(tmp_path / "p" / "panel.parquet")
    assert panel.columns == ["unique_id", "ds", "y", "arrivals", "censored", "exposure", "turnout", "exposure_spread",
                             "lost_spread", "session_kwh", "hour", "weekday", "holiday"]  # fmt: skip
    assert panel.height == said["regions"] * said["hours"]
    assert panel["y"].sum() == pytest.approx(said["energy_kwh"], abs=0.01)
    assert len(said["most_saturated"]) == 6
    again = summary(
        run / "sessions.parquet", "--stations", run / "stations.csv", "--out", tmp_path / "q", "--regions", 3
    )
    assert again | {"out": ""} == said | {"out": ""}
    for name in TABLES:
        assert (tmp_path / "p" / name).read_bytes() == (tmp_path / "q" / name).read_bytes(), name


def test_mapping_by_option_by_file_and_from_a_database_give_the_same(run, tmp_path):
    base = ["--stations", run / "stations.csv", "--regions", 2]
    plain = summary(run / "sessions.parquet", *base, "--out", tmp_path / "a")
    maps = ["--map", "start=Plug in", "--map", "end=Plug out", "--map", "energy_kwh=kWh"]
    mapped = summary(run / "mine.csv", *base, *maps, "--out", tmp_path / "b")
    assert (tmp_path / "b" / "mapping.yaml").read_text() == "start: Plug in\nend: Plug out\nenergy_kwh: kWh\n"
    by_file = summary(run / "mine.csv", *base, "--map-file", tmp_path / "b" / "mapping.yaml", "--out", tmp_path / "c")
    query = "select id, place, a, b, wh from charges"
    columns = {
        "session_id": "id",
        "station_id": "place",
        "start": "a",
        "end": "b",
        "energy_kwh": "wh",
        "energy_factor": "0.001",
    }
    options = [part for name, column in columns.items() for part in ("--map", f"{name}={column}")]
    stored = summary(
        "--sql", f"sqlite:///{run / 'db.sqlite'}", "--query", query, *options, *base, "--out", tmp_path / "d"
    )
    for other in (mapped, by_file, stored):
        for name in NEEDED - {"mean_exposure", "energy_kwh"}:
            assert other[name] == plain[name], name
        assert other["energy_kwh"] == pytest.approx(plain["energy_kwh"])
        assert other["mean_exposure"] == pytest.approx(plain["mean_exposure"], abs=1e-6)


def test_people_get_a_table_and_what_was_set_aside(run, tmp_path):
    broken = tmp_path / "broken.csv"
    text = (run / "mine.csv").read_text().splitlines()
    broken.write_text("\n".join([*text, text[-1], "x,s0,yesterday,today,1,,"]))
    done = unmet(
        "panel",
        broken,
        "--map",
        "start=Plug in",
        "--map",
        "end=Plug out",
        "--map",
        "energy_kwh=kWh",
        "--out",
        tmp_path / "p",
    )
    assert done.returncode == 0, done.stderr
    assert "Most saturated stations" in done.stdout
    assert "2 rows were set aside" in done.stderr
    assert "is the same session as on an earlier line" in done.stderr
    rejected = pl.read_parquet(tmp_path / "p" / "rejected.parquet")
    assert rejected.columns == ["file", "line", "column", "value", "reason"]
    assert rejected.height == 2


BAD = {
    "no records": ([], "give files"),
    "no such file": (["nowhere.csv"], "nowhere.csv"),
    "unknown format": (["{sessions}", "--format", "telex"], "telex"),
    "map without equals": (["{sessions}", "--map", "start"], "start=ConnectionStart"),
    "map of nothing": (["{sessions}", "--map", "speed=x"], "speed"),
    "map to a column that is not there": (["{mine}", "--map", "start=Beginn"], "Beginn"),
    "query without a database": (["--query", "select 1"], "go together"),
    "database that is not there": (["--sql", "sqlite:////nowhere/db", "--query", "select 1"], "nowhere"),
    "regions that make no sense": (["{sessions}", "--regions", "some"], "makes no sense"),
    "booking that makes no sense": (["{sessions}", "--booking", "later"], "arrival or delivery"),
    "share over one": (["{sessions}", "--share", "3"], "up to 1"),
    "unknown zone": (["{sessions}", "--time-zone", "Mars/North"], "no time zone"),
    "unknown country": (["{sessions}", "--country", "XX"], "No holidays"),
    "unknown operator": (["{sessions}", "--operator", "Nobody"], "operator"),
    "outages without a column": (["{sessions}", "--outages", "{mine}"], "no column"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(case, run, tmp_path):
    arguments, says = BAD[case]
    names = {"sessions": run / "sessions.parquet", "mine": run / "mine.csv"}
    done = unmet("panel", *(a.format(**names) for a in arguments), "--out", tmp_path / "p")
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_every_real_file_loads_by_one_command(shared_data, tmp_path):
    for path in sorted((shared_data / "sessions").iterdir()):
        said = summary(path, "--out", tmp_path / path.name)
        assert said["rows_in"] == said["rows_kept"] + said["rows_set_aside"]
        assert said["sessions"] == said["rows_kept"] - said["quality"].get("restarts_joined", 0) > 1000
