"""`unmet` as people and scripts run it: once for each verb in a process of its own, otherwise in this one."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import unmet, unmet_process
from tests.simulation.cities import small_city
from unmet import __version__
from unmet.cli import QUEUES
from unmet.simulation.queues import queue_names


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("city")
    city = small_city(1, 60, 20, 6, 2)
    city.trips.write_csv(folder / "trips.csv")
    city.stations.write_csv(folder / "stations.csv")
    return folder


def test_version_and_help():
    assert unmet_process("--version").stdout.strip() == f"unmet {__version__}"
    text = unmet("--help").stdout
    for verb in ("demo", "trips", "simulate", "study"):
        assert verb in text
        assert "--seed" in unmet(verb, *(["censoring"] if verb == "study" else []), "--help").stdout
    assert all(queue in unmet("simulate", "--help").stdout for queue in queue_names())
    assert queue_names() == QUEUES


def test_shell_completion_knows_verbs_and_queues():
    def complete(line: str) -> str:
        words = {
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split()) - (not line.endswith(" "))),
            "_UNMET_COMPLETE": "complete_bash",
        }
        command = [str(Path(sys.executable).with_name("unmet"))]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ | words, check=False).stdout

    assert complete("unmet s").split() == ["serve", "simulate", "study"]
    assert "three-hour" in complete("unmet simulate --queue t")


def simulate_in_a_process(files: Path, out: Path, threads: int) -> dict:
    """The summary of a simulation in a process of its own, with that many threads."""
    names = ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
    done = unmet_process("simulate", "--queue", "first-come", "--penetration", 0.5, "--seed", 1, "--out", out,
                         "--trips", files / "trips.csv", "--stations", files / "stations.csv", "--json",
                         **dict.fromkeys(names, str(threads)))  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def simulated(files, tmp_path_factory) -> tuple[Path, dict]:
    """A run of two threads, and its summary."""
    out = tmp_path_factory.mktemp("simulated") / "run"
    return out, simulate_in_a_process(files, out, threads=2)


def test_simulate_writes_a_run(simulated, tmp_path):
    out, summary = simulated
    written = {p.name for p in out.iterdir()}
    names = ("arrivals", "sessions", "stations", "vehicles", "panel", "regions")
    tables = {f"{name}.{form}" for name in names for form in ("parquet", "csv")}
    assert written == tables | {"stations.geojson", "regions.geojson"} | {
        ".unmet-run",
        "summary.json",
        "scenario.yaml",
        "panel.json",
    }
    panel = pl.read_parquet(out / "panel.parquet")
    assert panel["y"].sum() == pytest.approx(summary["observed_kwh"], abs=1e-2)
    assert panel["y_true"].sum() == pytest.approx(summary["true_kwh"], abs=1e-2)
    assert panel["exposure"].is_between(0, 1).all()
    assert {"lost_kwh_before", "lost_draws"} <= set(panel.columns)
    arrivals = pl.read_parquet(out / "arrivals.parquet")
    assert summary["arrivals"] == arrivals.height == summary["served"] + summary["lost"]
    assert summary["true_kwh"] == pytest.approx(arrivals["wanted_kwh"].sum(), abs=1e-3)
    assert summary["observed_kwh"] == pytest.approx(
        pl.read_parquet(out / "sessions.parquet")["energy_kwh"].sum(), abs=1e-2
    )
    lost = arrivals.filter(pl.col("outcome") == "lost")
    assert summary["wishes"] == summary["arrivals"]
    assert summary["wishes_unserved_percent"] == pytest.approx(100 * lost.height / arrivals.height, abs=1e-3)
    assert summary["unserved_share_of_energy"] == pytest.approx(summary["lost_share_of_energy"], abs=1e-6)
    assert summary["lost_kwh"] == pytest.approx(lost["wanted_kwh"].sum(), abs=1e-3)
    assert summary["vehicles"] == pl.read_parquet(out / "vehicles.parquet").height == 30
    again = unmet("simulate", "--scenario", out / "scenario.yaml", "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert "lost, of all energy wanted" in again.stdout
    assert (tmp_path / "again" / "arrivals.parquet").read_bytes() == (out / "arrivals.parquet").read_bytes()


def test_output_is_identical_for_any_number_of_threads(files, simulated, tmp_path):
    simulate_in_a_process(files, tmp_path / "run", threads=1)
    one, two = (
        {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(out.iterdir())}
        for out in (tmp_path / "run", simulated[0])
    )
    assert one == two


def test_study_censoring_runs_on_own_trips(files, tmp_path):
    out = tmp_path / "study"
    done = unmet("study", "censoring", "--out", out, "--regions", 3, "--cars", 900, "--trips", files / "trips.csv",
                 "--stations", files / "stations.csv", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    cells = json.loads(done.stdout)["cells"]
    assert len(cells) == 15
    needed = {"queue", "penetration", "censored_hours_percent", "censored_hours_percent_by_region", "arrivals",
              "lost_share_of_energy", "seconds"}  # fmt: skip
    assert all(needed <= set(cell) for cell in cells)
    assert {p.name for p in out.iterdir()} == {".unmet-run", "study.html", "study.md", "cells.parquet", "summary.json"}
    assert pl.read_parquet(out / "cells.parquet").height == 15


def test_exported_trips_of_the_built_in_city_can_be_simulated(tmp_path):
    out = tmp_path / "trips.parquet"
    done = unmet("trips", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["vehicles"] == 32_664
    few = ("--cars", 571_627, "--penetration", 0.005)  # all trips are read, but few of the cars are electric
    run = unmet("simulate", "--trips", out, *few, "--out", tmp_path / "run", "--json")
    assert run.returncode == 0, run.stderr
    summary = json.loads(run.stdout)
    assert (summary["rows_set_aside"], summary["vehicles"]) == (0, round(0.005 * 571_627))


BAD = {
    "unknown queue": (["--queue", "express"], "choose one of"),
    "penetration over one": (["--penetration", "5"], "less than or equal to 1"),
    "penetration over the data": (
        ["--penetration", "0.5", "--cars", "100000", "--time-zone", "UTC"],
        "ask for at most",
    ),
    "no such trips": (["--trips", "nowhere.csv"], "no file"),
    "stations without a column": (["--stations", "{trips}"], "has no column"),
    "trips that are binary": (["--trips", "{binary}"], "binary"),
    "sensitivity that is not a number": (["--distance-sensitivity", "nan"], "finite"),
    "unknown behaviour of lost drivers": (["--turned-away", "cry"], "elsewhere"),
    "file that is not a scenario": (["--scenario", "{trips}"], "not a"),
    "scenario with an unknown option": (["--scenario", "{odd}"], "no option 'speed'"),
    "folder that is not empty": (["--out", "{here}"], "not empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(case, files, tmp_path):
    arguments, says = BAD[case]
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    (tmp_path / "odd.yaml").write_text("speed: 3\n")
    names = {
        "trips": files / "trips.csv",
        "binary": tmp_path / "binary.csv",
        "odd": tmp_path / "odd.yaml",
        "here": tmp_path,
    }
    given = [argument.format(**names) for argument in arguments]
    base = ["--out", tmp_path / "run", "--trips", files / "trips.csv", "--stations", files / "stations.csv"]
    base += ["--time-zone", "UTC"]  # without it, a note says that UTC is assumed
    before = sorted(p.name for p in tmp_path.iterdir())
    done = unmet("simulate", *base, *given)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_process_ends_with_that_code_and_sentence(files, tmp_path):
    done = unmet_process("simulate", "--trips", "nowhere.csv", "--out", tmp_path / "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("unmet: There is no file nowhere.csv")
    assert len(done.stderr.strip().splitlines()) == 1


def test_rejected_rows_are_listed(files, tmp_path):
    trips = tmp_path / "trips.csv"
    trips.write_text((files / "trips.csv").read_text() + "vX,yesterday,today,55,12,1\n")
    done = unmet(
        "simulate",
        "--out",
        tmp_path / "run",
        "--penetration",
        1,
        "--trips",
        trips,
        "--stations",
        files / "stations.csv",
        "--json",
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["rows_set_aside"] == 1
    assert "start_time is not a time" in done.stderr
    rejected = pl.read_parquet(tmp_path / "run" / "rejected.parquet")
    assert rejected.select("table", "column", "value").rows() == [("trips", "start_time", "yesterday")]
