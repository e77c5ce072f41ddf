"""Fixtures that all tests share."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts jobs in the background so. Processes that tests interrupt would inherit it, and never stop.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Dozens of processes import the package: without stored bytecode, each would compile all of its modules again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores: threads of linear algebra would only wait for each other. Torch reads this when imported.
    for _library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{_library}_NUM_THREADS"] = "1"

# In CI the examples are the same in every run, so that a commit passes or fails for what it contains.
settings.register_profile(
    "default", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")


SLOW_FIRST = (
    "views/app/test_browser.py",
    "study/test_same_results.py",
    "models/test_storage.py",
    "models/test_workers.py",
    "study/test_plugins.py",
    "test_cli_model.py",
    "study/test_scenes.py",
    "study/test_planning.py",
    "test_notebooks.py",
    "test_code_blocks.py",
    "test_cli.py",
    "views/app/test_server.py",
    "models/direct/test_forecaster.py",
    "simulation/test_laws.py",
    "test_cli_recover.py",
    "views/test_report.py",
    "estimation/test_lost_demand.py",
    "estimation/test_by_area.py",
    "city/test_matsim.py",
    "test_extras.py",
    "test_cli_panel.py",
)
"""Files of tests that take longest. `make test` gives whole files to its workers: none should be left at the end.

The first two differ in what they compile, so that the workers, which share what is compiled, do not do the same."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the files of `SLOW_FIRST` first; all others keep their order."""
    rank = {Path(__file__).parent / name: place for place, name in enumerate(SLOW_FIRST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real sessions and stations, which are not part of the project; without it the test is skipped."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"there is no real data at {folder}")
    return folder


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """One cache for all workers of a test run, separate from the user's.

    Compiled code stays where this process has it, so that commands in other processes do not compile it again.
    """
    import numba

    import unmet.compiled  # noqa: F401, sets the folder of compiled code

    root = tmp_path_factory.getbasetemp()
    folder = (root if worker_id == "master" else root.parent) / "unmet-cache"
    patch = pytest.MonkeyPatch()
    patch.setenv("UNMET_CACHE", str(folder))
    patch.setenv("NUMBA_CACHE_DIR", str(vars(numba.config)["CACHE_DIR"]))


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Torch draws the same numbers in a test whichever tests ran before it."""
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """Run `unmet` with bad input: one sentence on standard error, exit code 2, and nothing is written to --out."""
    from unmet.cli import main

    def call(*arguments: object) -> str:
        out = tmp_path / "refused"
        monkeypatch.setattr(sys, "argv", ["unmet", *map(str, arguments), "--out", str(out)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert (ended.value.code, captured.out) == (2, "")
        assert len(captured.err.strip().splitlines()) == 1
        assert not [path for path in tmp_path.iterdir() if out.name in path.name]
        return captured.err

    return call
