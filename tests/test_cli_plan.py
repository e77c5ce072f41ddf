"""`unmet plan` from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import run, write_records

TABLES = {f"{name}.{kind}" for name in ("plan", "gain", "sensitivity") for kind in ("parquet", "csv", "xlsx")}
FILES = {*TABLES, "plan.geojson", "plan.html", "summary.json", ".unmet-run"}
DRAWS = ("--draws", 40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Records, their panel, and the run that `unmet recover` writes for them."""
    folder = tmp_path_factory.mktemp("plan")
    arguments = write_records(folder)
    run("panel", *arguments, "--out", folder / "panel")
    run("recover", *arguments, "--out", folder / "run", *DRAWS)
    return folder


@pytest.fixture(scope="module")
def summary(folder) -> dict:
    return json.loads(run("plan", folder / "run", "--plugs", 4, "--out", folder / "out", "--json"))


def test_plan_reads_a_recovered_run(folder, summary):
    assert {path.name for path in (folder / "out").iterdir()} == FILES
    assert summary["plugs"] == 4
    assert summary["answer"].startswith("4 plugs at ")
    assert summary["recovered_share"]["low"] < summary["recovered_share"]["mean"] < summary["recovered_share"]["high"]
    table = pl.read_parquet(folder / "out" / "plan.parquet")
    assert table["plugs_added"].sum() == 4
    assert pl.read_csv(folder / "out" / "plan.csv").height == table.height
    assert pl.read_excel(folder / "out" / "plan.xlsx")["site_id"].to_list() == table["site_id"].to_list()
    points = json.loads((folder / "out" / "plan.geojson").read_text())["features"]
    assert {point["properties"]["site_id"] for point in points} == set(table["site_id"])
    assert points[0]["geometry"]["coordinates"][1] == pytest.approx(55.6, abs=0.2)


def test_panel_and_records_give_the_same_plan(folder, summary):
    from_panel = json.loads(
        run("plan", folder / "panel", "--plugs", 4, *DRAWS, "--out", folder / "from_panel", "--json")
    )
    from_records = json.loads(
        run("plan", folder / "sessions.csv", "--stations", folder / "stations.csv", "--regions", 2, "--time-zone",
            "Europe/Copenhagen", "--plugs", 4, *DRAWS, "--out", folder / "from_records", "--json")
    )  # fmt: skip
    tables = [
        pl.read_parquet(folder / name / "plan.parquet").drop("erlang_drivers", "erlang_drivers_after")
        for name in ("out", "from_panel", "from_records")
    ]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert from_panel["gain_kwh_per_week"] == summary["gain_kwh_per_week"] == from_records["gain_kwh_per_week"]


def test_the_terminal_shows_the_plan_as_a_table(folder):
    out = run("plan", folder / "run", "--budget", 60000, "--plug-cost", 4000, "--site-cost", 9000, "--price", 0.4,
              "--growth", 0.1, "--horizon", 2, "--out", folder / "people")  # fmt: skip
    assert "recover" in out
    assert "payback" in out
    assert "Year by year" in out
    page = (folder / "people" / "plan.html").read_text()
    for heading in ("What more plugs would recover", "Where they go", "Site by site", "Year by year",
                    "What it is worth", "How sure the choice is", "Before you decide"):  # fmt: skip
        assert heading in page
    assert "Station &lt;West&gt;" in page or "Station <West>" not in page


def test_costs_and_candidates_are_read_from_files(folder):
    (folder / "costs.csv").write_text(
        "site_id,power_kw,plug_cost,site_cost,max_plugs,grid_kw\n,,3000,5000,,\na,,2000,,1,\ncorner,11,900,,2,30\n"
    )
    (folder / "places.csv").write_text("name,lat,lon,power_kw\ncorner,55.601,12.501,11\n")
    out = json.loads(
        run("plan", folder / "run", "--budget", 30000, "--costs", folder / "costs.csv", "--candidates",
            folder / "places.csv", "--out", folder / "priced", "--json")
    )  # fmt: skip
    table = pl.read_parquet(folder / "priced" / "plan.parquet")
    added = dict(table.select("site_id", "plugs_added").iter_rows())
    cost = sum({"a": 2000 * k, "corner": 900 * k}.get(site, 3000 * k + 5000) for site, k in added.items() if k)
    assert out["cost"] == cost <= 30000
    assert added["a"] <= 1
    assert added["corner"] <= 2
    assert table["is_new"].sum() == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "one of --plugs, --budget and --serve"),
        (("--budget", -5, "--plug-cost", 1), "above 0"),
        (("--budget", 500), "needs costs"),
        (("--plugs", 3, "--closed", "nowhere"), "'nowhere'"),
        (("--plugs", 3, "--competitor", "here"), "56.46,-2.97"),
        (("--plugs", 3, "--candidates", "missing.csv"), "missing.csv"),
        (("--plugs", 3, "--costs", "missing.csv"), "missing.csv"),
        (("--plugs", 3, "--interval", 2), "between 0 and 1"),
        (("--plugs", 3, "--waiting", "0.3"), "already estimated"),
    ],
)
def test_bad_options_give_one_sentence(folder, refusal, options, sentence):
    assert sentence in refusal("plan", folder / "run", *options)


def test_a_folder_that_is_not_a_run_is_refused(refusal, tmp_path):
    assert "nowhere" in refusal("plan", tmp_path / "nowhere", "--plugs", 3)
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "lost_draws.parquet").write_bytes(b"PAR1 nothing")
    assert "no panel" in refusal("plan", damaged, "--plugs", 3)


def test_damaged_draws_are_refused(folder, refusal, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder / "run", copy)
    (copy / "lost_draws.parquet").write_bytes(b"PAR1 nothing")
    assert "run `unmet recover` again" in refusal("plan", copy, "--plugs", 3)
    pl.DataFrame({"site_id": ["z"]}).write_parquet(copy / "lost_draws.parquet")
    assert "has no column" in refusal("plan", copy, "--plugs", 3)


def test_the_answer_says_if_a_share_cannot_be_served(folder):
    out = json.loads(
        run("plan", folder / "run", "--serve", 0.9999, "--max-per-site", 1, "--out", folder / "reach", "--json")
    )
    assert not out["reached"]
    assert "cannot be served" in out["answer"]
    assert out["served_share"] < out["served_share_after"] < 0.9999
