"""The notebooks of the documentation run from top to bottom, and their stored outputs came from such a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


def cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(path.parent)
    names: dict[str, object] = {"__name__": "notebook"}
    for number, cell in enumerate(cells(path), 1):
        exec(compile("".join(cell["source"]), f"{path.name}[{number}]", "exec"), names)  # noqa: S102


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_outputs_and_no_errors(path: Path):
    found = cells(path)
    assert [cell["execution_count"] for cell in found] == list(range(1, len(found) + 1))
    outputs = [output for cell in found for output in cell["outputs"]]
    assert all(output["output_type"] != "error" for output in outputs)
    assert sum("image/svg+xml" in output.get("data", {}) for output in outputs) >= 1
    assert all("cdn" not in json.dumps(output) for output in outputs)


def test_there_are_notebooks_on_records_and_on_the_city():
    assert [path.stem for path in NOTEBOOKS] == ["built-in-city", "records-to-plan"]
