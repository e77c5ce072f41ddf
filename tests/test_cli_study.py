"""`unmet study` from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.simulation.cities import small_city
from tests.views.browser import drawn, section
from unmet import clusters
from unmet.cli import main
from unmet.models.likelihoods import LIKELIHOODS
from unmet.models.likelihoods.quantile import Quantile
from unmet.study import execute as executing
from unmet.views.figures import APPLICATION_FIGURES

FIELDS = {"queue", "penetration", "model", "backbone", "runs", "tilted_loss", "tilted_loss_std", "icp", "mil",
          "bias_percent", "gap_closed", "seconds"}  # fmt: skip
QUICK = ["--backbones", "seasonal", "--epochs", "2", "--runs", "2", "--workers", "1"]
MODELS = ["quantile", "censored-quantile", "oracle"]


@pytest.fixture(scope="module")
def city(tmp_path_factory) -> list[str]:
    """The options for a small city."""
    folder = tmp_path_factory.mktemp("city")
    small = small_city(1, 60, 120, 12, 2)
    small.trips.write_csv(folder / "trips.csv")
    small.stations.write_csv(folder / "stations.csv")
    return ["--trips", str(folder / "trips.csv"), "--stations", str(folder / "stations.csv")]


@pytest.fixture
def study(city, capsys, monkeypatch):
    """Call `unmet study` in this process: exit code, standard output, standard error."""

    def call(name: str, *options: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["unmet", "study", name, *city, *map(str, options)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


EXPERIMENTS = {"total": 3, "competition": 5, "application": 1}  # and their numbers of scenes


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_dry_run_lists_the_grid_and_writes_nothing(name, study, tmp_path):
    code, out, err = study(name, "--out", tmp_path / "s", "--dry-run", "--json", "--backbones", "linear,seasonal")
    assert code == 0, err
    grid = json.loads(out)
    scenes = 1 if name == "application" else 3  # three runs, each in another city or for another operator
    assert len(grid["cells"]) == EXPERIMENTS[name] * (7 * 2 + 3)  # baselines have no backbone
    assert grid["runs_left"] == EXPERIMENTS[name] * (6 * 2 * 3 + (2 + 3) * scenes)  # CQRNN has backbones
    assert grid["estimated_seconds"] > 0
    label = "share" if name == "competition" else "penetration"
    assert all({"queue", label, "model", "backbone", "runs", "kept"} <= set(cell) for cell in grid["cells"])
    assert not (tmp_path / "s").exists()


def test_a_study_gives_its_cells_and_running_it_again_does_no_new_work(study, tmp_path, monkeypatch):
    options = ["--queue", "first-come", "--queue", "three-hour", "--models", ",".join(MODELS), *QUICK, "--json"]
    code, out, err = study("total", "--out", tmp_path / "s", *options)
    assert code == 0, err
    cells = json.loads(out)["cells"]
    assert [(c["queue"], c["model"]) for c in cells] == [(q, m) for q in ("first-come", "three-hour") for m in MODELS]
    for cell in cells:
        assert set(cell) >= FIELDS
        assert (cell["runs"], cell["penetration"], cell["backbone"]) == (2, 1.0, "seasonal")
        assert cell["seconds"] > 0
        assert cell["paper_tilted_loss"] is None
    written = contents(tmp_path / "s")
    assert {"cells.parquet", "study.md", "study.html", ".unmet-study"} <= set(written)
    assert pl.read_parquet(tmp_path / "s" / "cells.parquet")["tilted_loss"].to_list() == [
        cell["tilted_loss"] for cell in cells
    ]

    monkeypatch.setattr(executing, "perform", None)  # a further run would raise
    code, again, err = study("total", "--out", tmp_path / "s", *options)
    assert (code, again) == (0, out), err
    assert contents(tmp_path / "s") == written
    code, dry, _ = study("total", "--out", tmp_path / "s", *options, "--dry-run")
    assert json.loads(dry)["runs_left"] == 0


def test_a_study_continues_with_more_runs_and_starts_over_with_overwrite(study, tmp_path):
    options = ["--out", tmp_path / "s", "--queue", "first-come", "--models", "quantile", *QUICK]
    assert study("total", *options, "--runs", 1)[0] == 0
    before = contents(tmp_path / "s" / "runs")
    assert study("total", *options)[0] == 0
    after = contents(tmp_path / "s" / "runs")
    assert len(after) == 2
    assert before.items() <= after.items()
    code, out, _ = study("total", *options, "--runs", 1, "--seed", 1, "--overwrite")
    assert code == 0
    assert contents(tmp_path / "s" / "runs") == before
    assert out.startswith("Tilted loss on true demand")
    assert "Quantile" in out
    assert str(tmp_path / "s" / "study.html") in out.replace("\n", "")


def test_one_command_runs_all_experiments_of_the_paper(study, tmp_path):
    options = ["--out", tmp_path, "--models", "quantile,oracle", *QUICK, "--runs", 1, "--json"]
    code, out, err = study("all", *options)
    assert code == 0, err
    studies = [json.loads(line) for line in out.splitlines()]
    assert [len(one["cells"]) for one in studies] == [15, 2 * 3, 2 * 5, 2 * 1]
    assert {path.name for path in tmp_path.iterdir()} == {"censoring", *EXPERIMENTS}
    assert all((FIELDS - {"penetration"}) | {"share"} <= set(cell) for cell in studies[2]["cells"])
    forecasts = pl.read_parquet(tmp_path / "application" / "forecasts.parquet")
    assert set(forecasts.columns) == {"model", "unique_id", "ds", "q0.05", "q0.5", "q0.95", "y", "y_true"}
    assert forecasts["unique_id"].n_unique() == 1
    code, dry, _ = study("all", *options, "--dry-run")
    assert [json.loads(line)["runs_left"] for line in dry.splitlines()] == [0, 0, 0]
    page = drawn(tmp_path / "application" / "study.html", tmp_path / "profile")
    for figure in APPLICATION_FIGURES:
        assert "main-svg" in section(page, figure.name), figure.name


class Failing(Quantile):
    name = "failing"
    title = "Quantile that fails"

    def loss(self, outputs, seen):
        raise ArithmeticError("no loss today")


def test_failed_runs_are_listed_and_give_exit_code_1(study, tmp_path, monkeypatch):
    monkeypatch.setitem(LIKELIHOODS._parts, "failing", Failing)
    base = ["--out", tmp_path / "s", "--queue", "first-come", *QUICK]
    code, out, err = study("total", *base, "--models", "quantile,failing", "--json")
    results = json.loads(out)
    assert code == 1, err
    assert [cell["model"] for cell in results["cells"]] == ["quantile"]
    assert results["failed"] == [f"first-come 100 % failing seed {s}: ArithmeticError: no loss today" for s in (1, 2)]
    code, out, err = study("total", *base, "--models", "failing", "--json")
    assert (code, out) == (2, "")
    assert "All runs of the study failed" in err


def test_a_stopped_study_says_how_many_runs_are_kept(study, tmp_path, monkeypatch):
    done = []

    def once(run, scene, real=executing.perform):
        if done:
            raise KeyboardInterrupt
        done.append(run)
        return real(run, scene)

    monkeypatch.setattr(executing, "perform", once)
    code, out, err = study("total", "--out", tmp_path / "s", "--queue", "first-come", "--models", "quantile", *QUICK)
    assert (code, out) == (130, "")
    assert "Stopped: 1 of 2 runs are kept. Run the same command again to resume." in err
    assert [path.stem for path in (tmp_path / "s" / "runs").iterdir()] == [run.key for run in done]


BAD = {
    "model": ("total", ["--models", "quantile,oracel"], "no likelihood named 'oracel'"),
    "no model": ("total", ["--models", ","], "at least one model"),
    "backbone": ("application", ["--backbones", "spine"], "no backbone named 'spine'"),
    "queue": ("total", ["--queue", "express"], "no queue named 'express'"),
    "one queue": ("competition", ["--queue", "express"], "no queue named 'express'"),
    "penetration": ("application", ["--penetration", "5"], "penetration of 5 makes no sense"),
    "share": ("competition", ["--share", "1.5"], "market share of 1.5"),
    "grid": ("total", ["--runs", "9999999"], "models or more"),
    "sampling": ("competition", ["--sampling", "street"], "no sampling 'street'"),
    "mapping": ("total", ["--map-trips", "vehicle_id"], "NAME=COLUMN"),
    "mapped column": ("total", ["--map-trips", "vehicle_id=wagon"], "no column 'wagon'"),
    "preset": ("all", ["--preset", "slow"], "no preset 'slow'"),
    "scheduler that does not answer": ("total", ["--scheduler", "tcp://127.0.0.1:9"], "no Dask scheduler at tcp://"),
    "scheduler that is not an address": ("total", ["--scheduler", "the big one"], "no Dask scheduler at the big one"),
    "folder of something else": ("total", ["--out", "{foreign}"], "contains files that are not part of a study"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(case, study, tmp_path, monkeypatch):
    name, options, says = BAD[case]
    monkeypatch.setattr(clusters, "CONNECT_TIMEOUT", "1s")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.md").touch()
    given = [option.format(foreign=tmp_path / "foreign") for option in options]
    code, out, err = study(name, "--out", tmp_path / "s", *QUICK, *given, "--json")
    assert (code, out) == (2, "")
    assert says in err
    assert err.startswith("unmet: ")
    assert len(err.strip().splitlines()) == 1
    assert contents(tmp_path / "foreign") == {"thesis.md": b""}
    assert [path for path in contents(tmp_path) if "runs/" in path or "study." in path] == []
