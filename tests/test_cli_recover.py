"""`unmet recover` from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import run, write_records
from tests.small_network import STATIONS, records
from unmet.cli import main
from unmet.demand.panel import Panel
from unmet.estimation.lost_demand import LostDemand
from unmet.views.lost_report import LostReport
from unmet.views.recovery import print_recovery, write_recovery

DRAWS = ("--draws", 60)
WITH_CSV = ("stations", "sites", "weeks", "regions", "sensitivity")
FILES = {
    *(f"{name}.{form}" for name in WITH_CSV for form in ("parquet", "csv")),
    "hours.parquet",
    "lost_draws.parquet",
    "panel",
    "hours.csv",
    "stations.geojson",
    "sites.geojson",
    "summary.json",
    "recovery.html",
    ".unmet-run",
}
REQUIRED = ("lost_kwh", "lost_arrivals", "seen_kwh", "self_check", "waiting", "spill", "sites", "stations", "notes")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """An empty folder for the runs of these tests."""
    return tmp_path_factory.mktemp("recover")


@pytest.fixture(scope="module")
def arguments(folder) -> tuple[object, ...]:
    """The arguments that name the records; their panel is in `panel`."""
    named = write_records(folder)
    run("panel", *named, "--out", folder / "panel")
    return named


@pytest.fixture(scope="module")
def summary(folder, arguments) -> dict:
    return json.loads(run("recover", *arguments, "--out", folder / "out", *DRAWS, "--json"))


def test_json_has_the_fields_that_scripts_need(folder, summary):
    assert set(REQUIRED) <= set(summary)
    for name in ("lost_kwh", "lost_arrivals"):
        assert set(summary[name]) == {"mean", "low", "high"}
        assert 0 < summary[name]["low"] < summary[name]["mean"] < summary[name]["high"]
    assert set(summary["self_check"]) == {"ratio", "low", "high"}
    assert (summary["sites"], summary["stations"], summary["regions"]) == (5, 6, 2)
    assert summary["notes"]
    assert all(isinstance(note, str) for note in summary["notes"])
    assert summary["records"]["rows_in"] == records()[0].height
    assert {path.name for path in (folder / "out").iterdir()} == FILES
    assert json.loads((folder / "out" / "summary.json").read_text()) == {k: v for k, v in summary.items() if k != "out"}


def test_the_estimate_is_near_the_truth(summary):
    lost = records()[1]
    assert summary["lost_arrivals"]["mean"] == pytest.approx(lost.height, rel=0.25)
    assert summary["lost_kwh"]["mean"] == pytest.approx(lost["energy_kwh"].sum(), rel=0.25)


def test_tables_add_up_to_the_summary(folder, summary):
    read = {name: pl.read_parquet(folder / "out" / f"{name}.parquet") for name in (*WITH_CSV, "hours")}
    every = read["weeks"].filter(pl.col("unique_id") == "all")
    alone = read["weeks"].filter(pl.col("unique_id") != "all")
    for name, seen in (("kwh", "seen_kwh"), ("arrivals", "seen_arrivals")):
        for table in (read["stations"], read["sites"], read["regions"], read["hours"], every, alone):
            assert table[f"lost_{name}"].sum() == pytest.approx(summary[f"lost_{name}"]["mean"], rel=1e-4)
            assert table["observed_kwh" if name == "kwh" else "arrivals"].sum() == pytest.approx(
                summary[seen], rel=1e-6
            )
            assert (table[f"lost_{name}_low"] <= table[f"lost_{name}_high"]).all()
    assert read["sensitivity"]["lost_kwh"][0] == pytest.approx(summary["lost_kwh"]["mean"], rel=1e-6)
    assert read["hours"].height == summary["hours"] * summary["regions"]


def test_csv_tables_are_the_parquet_tables(folder, summary):
    for name in WITH_CSV:
        parquet = pl.read_parquet(folder / "out" / f"{name}.parquet")
        assert pl.read_csv(folder / "out" / f"{name}.csv", schema=parquet.schema).equals(parquet), name
        if name != "sensitivity":
            assert {"lost_kwh", "lost_kwh_low", "lost_kwh_high"} <= set(parquet.columns)


def test_records_and_their_panel_give_the_same_estimate(folder, summary):
    again = json.loads(run("recover", folder / "panel", "--out", folder / "from_panel", *DRAWS, "--json"))
    assert again["records"] is None
    differing = ("out", "records")
    assert {k: v for k, v in again.items() if k not in differing} == {
        k: v for k, v in summary.items() if k not in differing
    }
    for name in (*WITH_CSV, "hours"):
        one, other = (pl.read_parquet(folder / out / f"{name}.parquet") for out in ("out", "from_panel"))
        assert one.equals(other), name


def test_a_model_is_fitted_to_the_run_and_to_its_panel_alike(folder, summary, tmp_path):
    for source, name in ((folder / "out", "run"), (folder / "out" / "panel", "panel")):
        run("fit", source, "--backbone", "climatology", "--out", tmp_path / name)
    model = "model/model.json"
    assert (tmp_path / "run" / model).read_bytes() == (tmp_path / "panel" / model).read_bytes()
    assert json.loads((tmp_path / "run" / model).read_text())["options"]["time_zone"] == "Europe/Copenhagen"


def test_sites_are_ranked_by_lost_energy_not_by_time_full(folder, summary):
    lost = [row["lost_kwh"] for row in summary["most_lost"]]
    assert lost == sorted(lost, reverse=True)
    assert summary["most_lost"][0]["name"] == "Town hall"
    sites = pl.read_parquet(folder / "out" / "sites.parquet")
    assert sites.sort("lost_kwh", descending=True)["site_id"].to_list() != (
        sites.sort("full_share", descending=True)["site_id"].to_list()
    )


def test_the_terminal_shows_the_answer_the_sites_and_other_assumptions(folder, summary):
    out = run("recover", folder / "panel", "--out", folder / "terminal", *DRAWS)
    for text in ("Lost demand, 1,008 hours at 5 sites", "Sites that lost the most", "Town hall",
                 "Under other assumptions", "nobody waits", "self-check", "recovery.html"):  # fmt: skip
        assert text in out


def test_the_same_seed_gives_the_same_bytes(folder, arguments, summary):
    base = ("recover", *arguments, *DRAWS)
    for name, seed in (("again", 1), ("other", 2)):
        run(*base, "--out", folder / name, "--seed", seed)
    files = [path.relative_to(folder / "out") for path in (folder / "out").rglob("*") if path.is_file()]
    assert {str(path.parts[0]) for path in files} == FILES
    for name in files:
        assert (folder / "again" / name).read_bytes() == (folder / "out" / name).read_bytes(), name
    for name in ("stations.parquet", "weeks.csv", "summary.json", "recovery.html"):
        assert (folder / "other" / name).read_bytes() != (folder / "out" / name).read_bytes(), name


def test_a_wider_interval_contains_the_narrower(folder, summary):
    narrow = json.loads(
        run("recover", folder / "panel", "--out", folder / "narrow", *DRAWS, "--interval", 0.5, "--json")
    )
    assert summary["lost_kwh"]["low"] < narrow["lost_kwh"]["low"] < narrow["lost_kwh"]["mean"]
    assert narrow["lost_kwh"]["high"] < summary["lost_kwh"]["high"]
    assert narrow["lost_kwh"]["mean"] == summary["lost_kwh"]["mean"]


def test_bad_input_is_one_sentence_and_nothing_is_written(folder, arguments, refusal, tmp_path):
    sessions, panel = folder / "sessions.csv", folder / "panel"
    simulated, partly, empty = (tmp_path / name for name in ("simulated", "partly", "empty"))
    for path in (simulated, partly, empty):
        path.mkdir()
    for name in ("sessions", "arrivals", "panel"):
        records(7)[0].write_parquet(simulated / f"{name}.parquet")
    (partly / "panel.parquet").write_bytes((panel / "panel.parquet").read_bytes())
    for bad, says in (
        ((), "give files"),
        ((tmp_path / "nothing.csv",), "nothing.csv"),
        ((empty,), str(empty)),
        ((partly,), "holds no full panel"),
        ((simulated,), f"--stations {simulated / 'stations.parquet'}"),
        ((panel, sessions), "give one panel"),
        ((panel, "--stations", folder / "stations.csv"), "is a panel"),
        ((panel, "--regions", 3), "is a panel"),
        ((panel, "--interval", 90), "between 0 and 1"),
        ((panel, "--draws", 3), "at least 20"),
        ((panel, "--waiting", "some"), "give auto, or a share from 0 to 1"),
        ((sessions, "--spill", 1.2), "give auto, or a share from 0 to 1"),
        ((sessions, "--energy", "all"), "choose one of seen, to-80"),
    ):
        assert says in refusal("recover", *bad), bad


def test_a_damaged_panel_is_refused(folder, arguments, refusal, tmp_path):
    for path in (folder / "panel").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "sessions.parquet").write_bytes(b"PAR1 and no more")
    assert "is damaged" in refusal("recover", tmp_path)


def test_an_existing_folder_is_replaced_only_when_asked(folder, summary, capsys, monkeypatch):
    command = ["unmet", "recover", str(folder / "panel"), "--out", str(folder / "out"), *map(str, DRAWS)]
    before = (folder / "out" / "summary.json").read_bytes()
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "--overwrite" in capsys.readouterr().err
    assert (folder / "out" / "summary.json").read_bytes() == before


def test_a_network_that_was_never_full_lost_nothing(tmp_path, capsys):
    quiet = records(28, busy=0.02)[0].filter(pl.col("station_id") == "c")
    panel = Panel(quiet, STATIONS.filter(pl.col("station_id") == "c"))
    report = LostReport.of(LostDemand(draws=20).fit(panel))
    summary = write_recovery(report, None, None, tmp_path)
    assert summary["lost_kwh"]["high"] == 0
    assert summary["self_check"] is None
    page = (tmp_path / "recovery.html").read_text()
    assert "<h1>No charging demand was lost" in page
    assert 'id="site-map"' not in page
    print_recovery(report, summary, tmp_path, as_json=False)
    assert "not possible" in capsys.readouterr().out
    print_recovery(report, summary, tmp_path, as_json=True)
    text = capsys.readouterr().out
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_dundee_in_one_command(shared_data, tmp_path):
    files = sorted((shared_data / "sessions").glob("dundee*"))
    stations = shared_data / "stations" / "dundee_locations.csv"
    out = json.loads(run("recover", *files, "--stations", stations, "--out", tmp_path / "out", "--json"))
    assert out["sites"] < out["stations"] == 97
    assert 0 < out["lost_kwh"]["low"] < out["lost_kwh"]["mean"] < out["lost_kwh"]["high"] < out["seen_kwh"]
    assert len(out["most_lost"]) == 5
