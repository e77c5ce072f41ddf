"""`unmet panel` from the command line."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import run
from tests.small_network import STATIONS, records
from unmet.cli import main
from unmet.demand.panel import Panel
from unmet.estimation.lost_demand import LostDemand

NEEDED = {"rows_in", "rows_kept", "rows_set_aside", "sessions", "energy_kwh", "stations", "sites", "regions",
          "hours", "mean_exposure", "lost_kwh", "lost_arrivals", "seen_kwh", "self_check", "waiting", "spill",
          "notes"}  # fmt: skip
PARQUET = ("panel", "sessions", "stations", "sites", "regions", "everyone", "outages", "station_hours",
           "by_region", "weeks", "sensitivity")  # fmt: skip
FILES = {
    *(f"{name}.{form}" for name in PARQUET for form in ("parquet", "csv")),
    *(f"{name}.geojson" for name in ("stations", "sites", "regions", "everyone")),
    "panel.json",
    "summary.json",
    "panel.html",
    ".unmet-run",
}


def summary(*arguments: object) -> dict:
    return json.loads(run("panel", *arguments, "--json"))


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> Path:
    """The same sessions as Parquet, as CSV with other column names, and in a database."""
    folder = tmp_path_factory.mktemp("given")
    sessions = records()[0].with_row_index("session_id").with_columns(pl.col("session_id").cast(pl.String))
    sessions.write_parquet(folder / "sessions.parquet")
    STATIONS.write_csv(folder / "stations.csv")
    sessions.rename({"start": "Plug in", "end": "Plug out", "energy_kwh": "kWh"}).write_csv(folder / "mine.csv")
    with sqlite3.connect(folder / "db.sqlite") as database:
        database.execute("create table charges (id text, place text, plug text, a text, b text, wh real)")
        rows = sessions.select(
            "session_id", "station_id", "plug_id", pl.col("start", "end").cast(pl.String), pl.col("energy_kwh") * 1000
        )
        database.executemany("insert into charges values (?, ?, ?, ?, ?, ?)", rows.rows())
    database.close()
    return folder


@pytest.fixture(scope="module")
def base(given) -> list[object]:
    return ["--stations", given / "stations.csv", "--regions", 2, "--time-zone", "Europe/Copenhagen"]


@pytest.fixture(scope="module")
def made(given, base) -> dict:
    return summary(given / "sessions.parquet", *base, "--out", given / "panel")


def test_one_command_writes_the_panel(given, made):
    assert set(made) >= NEEDED
    assert {path.name for path in (given / "panel").iterdir()} == FILES
    table = pl.read_parquet(given / "panel" / "panel.parquet")
    assert {"unique_id", "ds", "y", "arrivals", "censored", "exposure", "lost_kwh", "lost_draws", "hour", "weekday",
            "holiday"} <= set(table.columns)  # fmt: skip
    assert table.height == made["regions"] * made["hours"]
    assert table["y"].sum() == pytest.approx(made["energy_kwh"], abs=0.01)
    assert table["lost_kwh"].sum() == pytest.approx(made["lost_kwh"]["mean"], rel=1e-3)
    stations = pl.read_parquet(given / "panel" / "stations.parquet")
    assert stations["lost_kwh"].sum() == pytest.approx(made["lost_kwh"]["mean"], rel=1e-3)
    assert (made["stations"], made["sites"]) == (6, 5)
    assert json.loads((given / "panel" / "summary.json").read_text()) == {k: v for k, v in made.items() if k != "out"}


def test_csv_tables_are_the_parquet_tables(given, made):
    for name in ("stations", "sites"):
        parquet = pl.read_parquet(given / "panel" / f"{name}.parquet")
        assert pl.read_csv(given / "panel" / f"{name}.csv", schema=parquet.schema).equals(parquet), name


def test_the_same_records_give_the_same_bytes(given, base, made):
    again = summary(given / "sessions.parquet", *base, "--out", given / "again")
    assert again | {"out": ""} == made | {"out": ""}
    for name in FILES:
        assert (given / "again" / name).read_bytes() == (given / "panel" / name).read_bytes(), name


def test_the_folder_loads_as_a_panel_in_python(given, made):
    panel = Panel.load(given / "panel")
    assert panel.stations.columns[-1] == "energy_kwh"
    assert "lost_kwh" not in panel.table.columns
    estimate = LostDemand().fit(panel).summary()
    assert estimate["lost_kwh"]["mean"] == pytest.approx(made["lost_kwh"]["mean"], abs=1e-3)


def test_a_mapping_gives_the_same_panel_by_option_by_file_and_from_a_database(given, base, made):
    maps = ["--map", "start=Plug in", "--map", "end=Plug out", "--map", "energy_kwh=kWh"]
    mapped = summary(given / "mine.csv", *base, *maps, "--out", given / "b")
    assert (given / "b" / "mapping.yaml").read_text() == "start: Plug in\nend: Plug out\nenergy_kwh: kWh\n"
    by_file = summary(given / "mine.csv", *base, "--map-file", given / "b" / "mapping.yaml", "--out", given / "c")
    columns = {"session_id": "id", "station_id": "place", "plug_id": "plug", "start": "a", "end": "b",
               "energy_kwh": "wh", "energy_factor": "0.001"}  # fmt: skip
    options = [part for name, column in columns.items() for part in ("--map", f"{name}={column}")]
    database = ["--sql", f"sqlite:///{given / 'db.sqlite'}", "--query", "select id, place, plug, a, b, wh from charges"]
    stored = summary(*database, *options, *base, "--out", given / "d")
    for other in (mapped, by_file, stored):
        for name in ("rows_in", "rows_kept", "rows_set_aside", "sessions", "stations", "sites", "regions", "hours"):
            assert other[name] == made[name], name
        assert other["energy_kwh"] == pytest.approx(made["energy_kwh"])
        assert other["lost_kwh"]["mean"] == pytest.approx(made["lost_kwh"]["mean"], rel=1e-6)


def test_the_terminal_shows_a_table_and_the_rejected_rows(given, base, tmp_path, capsys, monkeypatch):
    text = (given / "mine.csv").read_text().splitlines()
    broken = tmp_path / "broken.csv"
    broken.write_text("\n".join([*text, text[-1], "x,a,a0,yesterday,today,1"]))
    maps = ["--map", "start=Plug in", "--map", "end=Plug out", "--map", "energy_kwh=kWh"]
    arguments = ["unmet", "panel", broken, *base, *maps, "--out", tmp_path / "p"]
    monkeypatch.setattr(sys, "argv", [str(argument) for argument in arguments])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        main()
    captured = capsys.readouterr()
    assert not ended.value.code
    assert "Sites that lost the most" in captured.out
    assert "Town hall" in captured.out
    assert "2 rows were set aside" in captured.err
    assert "is the same session as on an earlier line" in captured.err
    rejected = pl.read_parquet(tmp_path / "p" / "rejected.parquet")
    assert rejected.columns == ["file", "line", "column", "value", "reason"]
    assert rejected.height == 2


def test_drivers_who_wait_or_charge_nearby_are_not_lost(given, base, made):
    options = ["--waiting", 0.5, "--spill", "0.2"]
    some = summary(given / "sessions.parquet", *base, *options, "--out", given / "waits")
    assert some["waiting"] == 0.5
    assert 0.05 < some["spill"] < 0.2  # nobody diverts from a site without a neighbour
    lost_share = 1 - some["waiting"] - some["spill"]
    assert some["lost_arrivals"]["mean"] == pytest.approx(lost_share * made["lost_arrivals"]["mean"], rel=0.2)
    page = (given / "waits" / "panel.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "(50 % of those who find a site full)" in page


def test_demand_served_by_competitors_is_kept_apart_from_lost_demand(given, base, made):
    shared = summary(given / "sessions.parquet", *base, "--share", "0.2-0.3", "--out", given / "shared")
    assert shared["lost_kwh"] == made["lost_kwh"]
    whole = shared["seen_kwh"] + shared["lost_kwh"]["mean"]
    assert shared["elsewhere_kwh"] == pytest.approx(whole * (1 / 0.245 - 1), rel=0.15)
    assert made["elsewhere_kwh"] == 0
    assert shared["mean_exposure"] < 0.35 < made["mean_exposure"]
    page, without = (
        (given / name / "panel.html").read_text().replace("\N{NO-BREAK SPACE}", " ") for name in ("shared", "panel")
    )
    assert "20 to 30 % of the market" in page
    assert "is expected to have gone to other operators" in page
    assert "other operators" not in without
    market = json.loads((given / "shared" / "panel.json").read_text())["market"]
    assert market == {"operator": None, "share": [0.2, 0.3]}


BAD = {
    "no records": ([], "give files"),
    "no such file": (["nowhere.csv"], "nowhere.csv"),
    "unknown format": (["{sessions}", "--format", "telex"], "telex"),
    "map without equals": (["{sessions}", "--map", "start"], "start=ConnectionStart"),
    "map of an unknown name": (["{sessions}", "--map", "speed=x"], "speed"),
    "map to a missing column": (["{mine}", "--map", "start=Beginn"], "Beginn"),
    "query without a database": (["--query", "select 1"], "go together"),
    "missing database": (["--sql", "sqlite:////nowhere/db", "--query", "select 1"], "nowhere"),
    "regions that make no sense": (["{sessions}", "--regions", "some"], "makes no sense"),
    "booking that makes no sense": (["{sessions}", "--booking", "later"], "arrival or delivery"),
    "share over one": (["{sessions}", "--share", "3"], "up to 1"),
    "share the wrong way round": (["{sessions}", "--share", "0.3-0.2"], "as 0.25 or 0.2-0.3"),
    "unknown zone": (["{sessions}", "--time-zone", "Mars/North"], "no time zone"),
    "unknown country": (["{sessions}", "--country", "XX"], "The holidays"),
    "unknown operator": (["{sessions}", "--operator", "Nobody"], "operator"),
    "outages without a column": (["{sessions}", "--outages", "{mine}"], "no column"),
    "waiting that is not a share": (["{sessions}", "--waiting", "some"], "give auto, or a share from 0 to 1"),
    "spill over one": (["{sessions}", "--spill", "1.2"], "give auto, or a share from 0 to 1"),
    "unknown energy": (["{sessions}", "--energy", "all"], "choose one of seen, to-80"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(case, given, refusal):
    arguments, says = BAD[case]
    names = {"sessions": given / "sessions.parquet", "mine": given / "mine.csv"}
    assert says in refusal("panel", *(argument.format(**names) for argument in arguments))


@pytest.mark.parametrize("name", ["acn_caltech_2021-05.json.gz", "boulder_2018_2020.csv.gz"])
def test_real_files_load_with_one_command(name, shared_data, tmp_path):
    found = summary(shared_data / "sessions" / name, "--out", tmp_path / "p")
    assert found["rows_in"] == found["rows_kept"] + found["rows_set_aside"]
    assert found["sessions"] == found["rows_kept"] - found["quality"].get("restarts_joined", 0) > 1000
    assert 0 <= found["lost_kwh"]["low"] <= found["lost_kwh"]["mean"] <= found["lost_kwh"]["high"]
