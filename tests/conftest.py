"""What the tests share: small random cities, and the folder of real data where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real sessions and stations, which lie beside the project and never in it."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"there is no real data at {folder}")
    return folder


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """One cache for all workers of a test run, and none of the user's."""
    root = tmp_path_factory.getbasetemp()
    folder = (root if worker_id == "master" else root.parent) / "unmet-cache"
    patch = pytest.MonkeyPatch()
    patch.setenv("UNMET_CACHE", str(folder))
