"""What earlier versions wrote is read by this one, or a sentence names the version that reads it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from unmet.demand.stored import load_panel, read_panel
from unmet.errors import InputError
from unmet.manifest import MANIFEST, read_manifest, verify
from unmet.models.forecaster import Forecaster
from unmet.simulation.scenario import read_scenario

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.iterdir() if path.is_dir() and path.name[0].isdecimal())


@pytest.mark.parametrize("version", VERSIONS)
def test_panels_models_and_runs_load(version):
    folder = HERE / version
    for part in ("panel", "model", "run"):
        assert verify(folder / part).is_whole
        assert verify(folder / part).manifest.unmet == version
    assert load_panel(folder / "panel").sessions.height > 0
    assert read_panel(folder / "panel").time_zone == "Europe/Copenhagen"
    assert read_scenario(folder / "run" / "scenario.yaml")[0].seed == 3
    forecast = Forecaster.load(folder / "model").forecast(pl.read_parquet(folder / "run" / "panel.parquet"))
    # The last digits depend on the processor's instructions.
    assert_frame_equal(forecast, pl.read_parquet(folder / "run" / "forecast.parquet"), rel_tol=1e-3, abs_tol=1e-3)


def test_a_later_version_is_named(tmp_path):
    (tmp_path / MANIFEST).write_text('{"format": 99, "unmet": "7.0", "libraries": {}, "files": {}}')
    with pytest.raises(InputError, match=r"written by unmet 7\.0"):
        read_manifest(tmp_path)
