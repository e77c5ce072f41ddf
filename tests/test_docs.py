"""The documentation agrees with the code."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from tests.simulation.cities import small_city
from unmet.city.gates import STATIONS, TRIPS
from unmet.city.stations import KINDS, STATION_SEED, synthetic_stations
from unmet.city.trips import Habits
from unmet.models.series import PANEL, POSITIONS
from unmet.planning.candidates import CANDIDATES
from unmet.planning.costs import COSTS
from unmet.simulation import queues
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_relative_links_point_to_existing_files(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_documented_columns_are_those_that_are_validated():
    text = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    assert TRIPS.to_markdown() in text
    assert STATIONS.to_markdown() in text
    assert PANEL.to_markdown() in text
    assert POSITIONS.to_markdown() in text
    assert COSTS.to_markdown() in text
    assert CANDIDATES.to_markdown() in text


def test_documented_calibration_is_the_one_in_use():
    text = (ROOT / "docs" / "city.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", text, re.MULTILINE))
    habits, scenario = Habits(), Scenario()
    assert rows["`plug_in_a`, `plug_in_b`"] == f"{scenario.plug_in_a}, {scenario.plug_in_b}"
    assert rows["`Habits.seen_days`, `seen_spread`"] == f"{habits.seen_days}, {habits.seen_spread}"
    shares = f"{habits.commuters}, {habits.another_errand}, {habits.stop_on_the_way}, {habits.evening_out}"
    assert rows["`Habits.commuters`, `another_errand`, `stop_on_the_way`, `evening_out`"] == shares
    assert rows["`Habits.errand_hours`, `work_hours`"] == f"{habits.errand_hours}, {habits.work_hours}"
    assert rows["`Habits.homeward_hour`"] == f"{habits.homeward_hour}"
    assert rows["`STATION_SEED`"] == str(STATION_SEED)
    for kind in KINDS:
        assert f"{100 * kind.share:.0f} % {kind.power_kw:g} kW" in rows["`KINDS`"]
    stations = synthetic_stations()
    assert f"{stations.height} with {stations['plugs'].sum()} plugs" in text


def test_the_queue_in_the_document_works():
    text = (ROOT / "docs" / "how-to" / "queue.md").read_text(encoding="utf-8")
    code = text.split("## Use it in a script")[1].split("```python\n")[1].split("```")[0]
    try:
        exec(code, {})  # noqa: S102
        city = small_city(1, 30, 15, 3, 2)
        arrivals = simulate(prepare(city), Scenario(queue="needy", penetration=1)).arrivals
        assert (arrivals.filter(pl.col("outcome") == "served")["soc"] <= 0.3).all()
        assert (arrivals["outcome"] == "lost").any()
    finally:
        queues.QUEUES._parts.pop("needy", None)


def test_the_results_in_the_readme_are_the_committed_ones(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from readme_table import with_table

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_table(text) == text, "run python docs/readme_table.py"


def test_the_site_lists_every_page_and_loads_nothing_from_elsewhere():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {
        str(path.relative_to(ROOT / "docs")) for kind in ("md", "ipynb") for path in (ROOT / "docs").rglob(f"*.{kind}")
    }
    listed = set(re.findall(r"[\w/-]+\.(?:md|ipynb)", settings.split("nav:\n  - Home")[1])) | {"index.md"}
    assert listed <= pages
    assert {page for page in pages - listed if not page.startswith("results/")} == set()
    assert "font: false" in settings
    assert "http" not in settings
