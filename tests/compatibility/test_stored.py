"""This version reads the files of earlier ones, or names the version that can read them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from unmet.demand.stored import load_panel, read_panel
from unmet.errors import InputError
from unmet.manifest import MANIFEST, read_manifest, verify
from unmet.models.storage import load_model
from unmet.planning.hidden import read_hidden
from unmet.simulation.scenario import read_scenario
from unmet.views.report import report_page
from unmet.views.stored import read_runs

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.iterdir() if path.is_dir() and path.name[0].isdecimal())


def test_there_is_a_released_version():
    assert "0.1.0" in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_stored_files_of_a_version_are_unchanged(version):
    for part in ("panel", "model", "stacked", "run", "lost"):
        found = verify(HERE / version / part)
        assert found.is_whole
        assert found.manifest.unmet == version


@pytest.mark.parametrize("version", VERSIONS)
def test_panels_and_scenarios_load(version):
    folder = HERE / version
    assert load_panel(folder / "panel").sessions.height > 0
    assert read_panel(folder / "panel").time_zone == "Europe/Copenhagen"
    assert read_scenario(folder / "run" / "scenario.yaml")[0].seed == 3


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("model", "forecast"), [("model", "forecast"), ("stacked", "stacked")])
def test_stored_models_give_the_same_forecasts(version, model, forecast):
    folder = HERE / version
    forecasts = load_model(folder / model).forecast(pl.read_parquet(folder / "run" / "panel.parquet")).table
    # The last digits depend on the processor's instructions.
    stored = pl.read_parquet(folder / "run" / f"{forecast}.parquet")
    assert_frame_equal(forecasts.select(stored.columns), stored, rel_tol=1e-3, abs_tol=1e-3)


@pytest.mark.parametrize("version", VERSIONS)
def test_stored_lost_demand_can_be_reported_and_planned(version):
    folder = HERE / version / "lost"
    runs = read_runs([folder])
    assert runs.lost is not None
    assert runs.lost.sites.height == runs.lost.summary["sites"]
    assert "Town hall" in report_page(runs)
    assert read_hidden(load_panel(folder / "panel"), folder).draws == runs.lost.summary["draws"]


def test_a_later_version_is_named(tmp_path):
    (tmp_path / MANIFEST).write_text('{"format": 99, "unmet": "7.0", "libraries": {}, "files": {}}')
    with pytest.raises(InputError, match=r"written by unmet 7\.0"):
        read_manifest(tmp_path)
