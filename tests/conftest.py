"""Fixtures that all tests share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real sessions and stations, which are not part of the project; without it the test is skipped."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"there is no real data at {folder}")
    return folder


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """One cache for all workers of a test run, separate from the user's."""
    root = tmp_path_factory.getbasetemp()
    folder = (root if worker_id == "master" else root.parent) / "unmet-cache"
    patch = pytest.MonkeyPatch()
    patch.setenv("UNMET_CACHE", str(folder))


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
