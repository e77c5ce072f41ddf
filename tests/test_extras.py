"""Without its extras the package reads records, estimates lost demand, plans and forecasts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numba
import pytest

from tests.small_network import STATIONS, records
from unmet.extras import EXTRA_OF

ROOT = Path(__file__).parents[1]

# Hide the packages of all extras from the import system, as in an environment without them.
WITHOUT = """
import json, sys
from importlib.machinery import PathFinder

blocked, commands = json.loads(sys.argv[1])

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in blocked else super().find_spec(name, path, target)

sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
from unmet.cli import main

codes = {}
for command in commands:
    sys.argv = ["unmet", *command]
    try:
        main()
    except SystemExit as ended:
        codes[" ".join(command[:2])] = ended.code or 0
print(json.dumps(codes))
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> tuple[dict[str, int], str]:
    """Exit codes of commands in an environment without any extra, and their standard error."""
    folder = tmp_path_factory.mktemp("bare")
    records()[0].write_csv(folder / "sessions.csv")
    STATIONS.write_csv(folder / "stations.csv")
    sessions = ["sessions.csv", "--stations", "stations.csv", "--regions", "2", "--time-zone", "Europe/Copenhagen"]
    few = ["--draws", "20"]
    commands = [
        ["inspect", "sessions.csv"],
        ["recover", *sessions, "--out", "lost", *few],
        ["plan", "lost", "--plugs", "3", "--out", "plan"],
        ["report", "lost", "plan", "--out", "report.html"],
        ["panel", *sessions, "--out", "panel"],
        ["fit", "panel", "--backbone", "climatology", "--out", "model"],
        ["forecast", "model", "panel", "--out", "week"],
        ["fit", "panel", "--out", "network", "--backbone", "tgcn"],
        ["serve", "lost"],
        ["recover", "--sql", "sqlite:///a.db", "--query", "select 1", "--out", "sql"],
    ]
    warm = os.environ | {"NUMBA_CACHE_DIR": str(vars(numba.config)["CACHE_DIR"])}
    blocked = json.dumps([sorted(EXTRA_OF), commands])
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, blocked], capture_output=True, text=True, env=warm, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_estimates_plans_and_forecasts_need_no_extra(bare):
    codes, stderr = bare
    works = (
        "inspect sessions.csv",
        "recover sessions.csv",
        "plan lost",
        "report lost",
        "panel sessions.csv",
        "forecast model",
    )
    assert {name: codes[name] for name in works} == dict.fromkeys(works, 0), stderr


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("fit panel", "needs the package torch: install it with `pip install 'unmet[forecast]'`"),
        ("serve lost", "needs the package uvicorn: install it with `pip install 'unmet[app]'`"),
        ("recover --sql", "needs the package sqlalchemy: install it with `pip install 'unmet[sql]'`"),
    ],
)
def test_a_command_that_needs_an_extra_names_it(bare, command, sentence):
    codes, stderr = bare
    assert codes[command] == 2
    assert sentence in " ".join(stderr.split())


def test_the_packages_of_extras_are_declared_in_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: lines for name, lines in project["optional-dependencies"].items() if name != "dev"}
    for package, extra in EXTRA_OF.items():
        assert any(line.startswith(package.replace("_", "-")) for line in extras[extra]), package
