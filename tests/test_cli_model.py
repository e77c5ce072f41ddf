"""`unmet fit`, `forecast` and `evaluate` from the command line."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from tests.command_line import unmet, unmet_process
from tests.models.direct.towns import town
from tests.models.panels import capped, small_panel, with_lost
from unmet.cli import app
from unmet.cli.gate import sentence_on
from unmet.errors import InputError
from unmet.models import seeds as seeds_room
from unmet.models.checkpoint import write_state
from unmet.runs import run_folder
from unmet.views import model_pages

QUICK = ("--backbone", "tgcn", "--seeds", 1, "--epochs", 2, "--lags", 24, "--horizon", 24)


def refused(*arguments: object) -> str:
    """What `main` would print for the `InputError` that a command raises, before it exits with code 2."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert isinstance(done.exception, InputError), done.exception
    return sentence_on(done.exception)


@pytest.fixture(scope="module")
def panel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("panel")
    table = capped(small_panel(), 9.0).rename({"truth": "y_true"})
    with_lost(table).write_parquet(folder / "panel.parquet")
    places = {"unique_id": ["r0", "r1", "r2"], "lat": [55.60, 55.61, 55.64], "lon": [12.50, 12.52, 12.49]}
    pl.DataFrame(places).write_parquet(folder / "regions.parquet")
    (folder / "panel.json").write_text('{"time_zone": "Europe/Copenhagen"}')
    return folder


@pytest.fixture(scope="module")
def model(panel, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("fit") / "model"
    done = unmet("fit", panel, "--out", out, *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    return out


def test_fit_writes_a_model_its_scores_and_a_page(panel, model):
    measures = json.loads((model / "metrics.json").read_text())
    assert {"model.json", "weights.safetensors"} == {path.name for path in (model / "model").iterdir()}
    assert measures["unseen"]["against"] == "y_true"
    assert 0 <= measures["unseen"]["icp"] <= 1
    assert [row["unique_id"] for row in measures["unseen"]["regions"]] == ["r0", "r1", "r2"]
    assert "inside the 90 % interval" in (model / "report.html").read_text()
    assert json.loads((model / "model" / "model.json").read_text())["options"]["time_zone"] == "Europe/Copenhagen"
    assert not model.with_name("model.training").exists()


def test_the_same_seed_gives_the_same_bytes(panel, model, tmp_path):
    assert unmet_process("fit", panel, "--out", tmp_path / "again", *QUICK).returncode == 0
    for name in ("model/weights.safetensors", "model/model.json", "metrics.json", "unseen.parquet"):
        assert (tmp_path / "again" / name).read_bytes() == (model / name).read_bytes(), name


def test_a_forecast_starts_where_the_panel_ends(panel, model, tmp_path):
    done = unmet("forecast", model, panel, "--hours", 12, "--out", tmp_path / "f", "--json")
    summary = json.loads(done.stdout)
    forecast = pl.read_parquet(tmp_path / "f" / "forecast.parquet")
    last = pl.read_parquet(panel / "panel.parquet")["ds"].max()
    assert summary["hours"] == 12
    assert forecast.height == 36
    assert (forecast["ds"] > last).all()
    assert forecast["horizon"].to_list() == list(range(1, 13)) * 3
    assert np.isfinite(forecast.select(pl.col("^q.*$")).to_numpy()).all()
    total = json.loads((tmp_path / "f" / "summary.json").read_text())
    assert sum(row["kwh"] for row in total["by_region"]) == pytest.approx(summary["expected_kwh"], rel=1e-3)
    assert "The hours ahead" in (tmp_path / "f" / "forecast.html").read_text()


def test_the_default_needs_no_network_and_gives_draws_and_sums(tmp_path):
    table = with_lost(town(weeks=10, regions=2))
    early = table.filter(pl.col("ds") < table["ds"].max() - pl.duration(days=2))
    early.write_parquet(tmp_path / "early.parquet")
    table.filter(pl.col("ds") >= early["ds"].max() - pl.duration(days=1)).write_parquet(tmp_path / "new.parquet")
    done = unmet("fit", tmp_path / "early.parquet", "--out", tmp_path / "m", "--json")
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)["unseen"]
    assert {row["rival"] for row in scores["compared"]} == {"table", "last-week"}
    options = ("--out", tmp_path / "f", "--draws", 50, "--update", tmp_path / "new.parquet", "--json")
    done = unmet("forecast", tmp_path / "m", tmp_path / "early.parquet", *options)
    assert done.returncode == 0, done.stderr
    forecast = pl.read_parquet(tmp_path / "f" / "forecast.parquet")
    assert forecast["ds"].min() == table["ds"].max() + pl.Series([3_600_000], dtype=pl.Duration("ms"))[0]
    draws = pl.read_parquet(tmp_path / "f" / "draws.parquet")
    assert draws["draws"].to_numpy().shape == (2 * 168, 50)
    sums = pl.read_parquet(tmp_path / "f" / "sums.parquet")
    whole = sums.filter(pl.col("unique_id").is_null(), pl.col("day").is_null())
    assert whole["mean_kwh"][0] == pytest.approx(forecast["mean"].sum())
    assert whole["low_kwh"][0] < whole["mean_kwh"][0] < whole["high_kwh"][0]
    by_day = sums.filter(pl.col("unique_id").is_not_null(), pl.col("day").is_not_null())
    assert by_day["mean_kwh"].sum() == pytest.approx(forecast["mean"].sum())
    page = (tmp_path / "f" / "forecast.html").read_text().replace("\u00a0", " ")
    assert f"<h1>{forecast['mean'].sum() / 1000:,.1f} MWh is expected in the next 7 days (90 % interval: " in page
    assert "Only networks take --seeds" in refused(
        "fit", tmp_path / "early.parquet", "--out", tmp_path / "x", "--seeds", 2
    )


def test_evaluate_reproduces_the_scores_of_fit(panel, model, tmp_path):
    done = unmet("evaluate", model, panel, "--out", tmp_path / "e", "--no-peers", "--json")
    fitted = json.loads((model / "metrics.json").read_text())
    assert json.loads(done.stdout)["unseen"] == fitted["unseen"]


@pytest.mark.parametrize("likelihood", ["exposure", "gaussian"])
def test_other_likelihoods_and_backbones(panel, tmp_path, likelihood):
    options = ("--likelihood", likelihood, "--backbone", "linear", "--level", 0.1, "--level", 0.5, "--level", 0.9)
    done = unmet("fit", panel, "--out", tmp_path / "m", *QUICK, *options, "--test-share", 0)
    assert done.returncode == 0, done.stderr
    assert "No hours were left" in done.stderr
    assert unmet("forecast", tmp_path / "m", panel, "--out", tmp_path / "f").returncode == 0
    assert {"q0.1", "q0.5", "q0.9"} <= set(pl.read_parquet(tmp_path / "f" / "forecast.parquet").columns)


INTERRUPTED = """
import signal
from unmet import cli
from unmet.models import seeds

wait = seeds.wait
def wait_interrupted(*arguments):
    seeds.wait = wait
    signal.raise_signal(signal.SIGINT)  # Ctrl-C, once the trainings have been submitted
    return wait(*arguments)
seeds.wait = wait_interrupted
cli.main()
"""


def test_ctrl_c_keeps_the_best_weights_and_resume_continues(panel, tmp_path):
    options = [*map(str, QUICK[6:]), "--seeds", "2", "--workers", "2", "--epochs", "20", "--backbone", "linear"]
    command = [sys.executable, "-c", INTERRUPTED, "fit", str(panel), "--out", str(tmp_path / "m"), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)
    _, stderr = process.communicate(timeout=1200)
    assert process.returncode == 130, stderr
    assert "--resume continues" in stderr
    assert not json.loads((tmp_path / "m" / "model" / "model.json").read_text())["finished"]
    again = ("fit", panel, "--out", tmp_path / "m", *options, "--workers", 1)  # however many there were before
    assert "--resume" in refused(*again)
    done = CliRunner().invoke(app, [*map(str, again), "--resume"])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "m" / "model" / "model.json").read_text())["finished"]
    assert not (tmp_path / "m.training").exists()


def test_a_disk_that_is_full_before_the_first_checkpoint_leaves_nothing_behind(panel, tmp_path, monkeypatch):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def write_little(path, state):
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            write_state(path, state)  # safetensors has an error of its own for this
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    monkeypatch.setattr(seeds_room, "write_state", write_little)
    said = refused("fit", panel, "--out", tmp_path / "m", *QUICK)
    assert "Cannot write to" in said
    assert "Free some space" in said
    assert "--resume" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_after_a_training_keeps_it_and_says_how_to_continue(panel, tmp_path, monkeypatch):
    def no_space(result, folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    command = ("fit", panel, "--out", tmp_path / "m", *QUICK)
    with monkeypatch.context() as full:
        full.setattr(model_pages, "write_fit", no_space)
        said = refused(*command)
    assert f"The training so far is kept in {tmp_path / 'm.training'}: the same command with --resume" in said
    assert "Nothing was written" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["m.training"]
    assert "There is unfinished training" in refused(*command)
    done = CliRunner().invoke(app, [*map(str, command), "--resume"])
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_second_fit_is_told_of_the_first_one(panel, tmp_path):
    with run_folder(tmp_path / "m"):
        trainings = tmp_path / "m.training"
        trainings.mkdir()
        (trainings / "training-of").write_text("the first one's")
        for more in ((), ("--overwrite",), ("--resume",)):
            assert "Another process is writing" in refused("fit", panel, "--out", tmp_path / "m", *QUICK, *more)
        assert (trainings / "training-of").read_text() == "the first one's"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--backbone", "transformer"), "There is no backbone named 'transformer': choose one of"),
        (("--likelihood", "poisson"), "There is no likelihood named 'poisson': choose one of"),
        (("--level", 0.9, "--level", 0.1), "give ascending numbers between 0 and 1"),
        (("--feature", "weather"), "has no column weather"),
        (("--lags", 5000), "give"),
        (("--training", "slow"), "There is no training named 'slow'"),
        (("--training", "paper", "--horizon", 24), "set the horizon to 1"),
        (("--time-zone", "Mars/Olympus"), "Mars/Olympus"),
        (("--resume",), "There is no unfinished training"),
        (("--regions", "nowhere.csv"), "no file nowhere.csv"),
    ],
)
def test_bad_options_give_one_sentence(panel, tmp_path, arguments, says):
    assert says in refused("fit", panel, "--out", tmp_path / "m", *QUICK[:6], *arguments)
    assert not list(tmp_path.iterdir())


def test_rejected_rows_of_a_csv_are_listed_with_their_lines(tmp_path):
    lines = small_panel().write_csv(None).splitlines()
    lines[11] = lines[11].rsplit(",", 1)[0] + ",much"  # line 12 of the file
    lines[20] += ",one,more"
    lines[30] = lines[30].rsplit(",", 1)[0] + ",1e9"
    (tmp_path / "mine.csv").write_text("\n".join(lines) + "\n")
    done = unmet("fit", tmp_path / "mine.csv", "--out", tmp_path / "m", *QUICK, "--backbone", "seasonal",
                 "--likelihood", "quantile")  # fmt: skip
    assert done.returncode == 0, done.stderr
    rejected = pl.read_parquet(tmp_path / "m" / "rejected.parquet")
    assert rejected["line"].to_list() == [12, 21]
    assert rejected["value"][0] == "much"
    assert "2 rows were set aside" in done.stderr
    assert "1,000,000,000 kWh in r0" in done.stderr
    assert (tmp_path / "m" / "model" / "weights.safetensors").stat().st_mode & 0o044


def test_bad_models_and_panels_give_one_sentence(panel, model, tmp_path):
    small_panel().write_csv(tmp_path / "bare.csv")
    with_lost(small_panel(regions=2)).write_parquet(tmp_path / "other.parquet")
    (tmp_path / "empty").mkdir()
    for arguments, says in (
        (("forecast", tmp_path / "empty", panel), "There is no model at"),
        (("forecast", model, tmp_path / "nothing"), "There is no panel at"),
        (("forecast", model, tmp_path / "empty"), "holds no panel.parquet"),
        (("forecast", model, tmp_path / "other.parquet"), "not those that the model was fitted on"),
        (("forecast", model, tmp_path / "bare.csv"), "no column lost_kwh_before, lost_draws"),
        (("fit", tmp_path / "bare.csv", *QUICK), "make the panel with `unmet panel`"),
        (("fit", tmp_path / "bare.csv", *QUICK), "with --likelihood quantile, which forecasts observed demand"),
        (("forecast", model, panel, "--hours", 25), "ask for fewer"),
        (("evaluate", model, panel, "--since", "2030-01-01"), "The panel ends before 2030-01-01"),
    ):
        assert says in refused(*arguments, "--out", tmp_path / "out")
        assert not (tmp_path / "out").exists()
