"""Documents say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unmet.city.build import build_city
from unmet.city.gates import STATIONS, TRIPS
from unmet.city.stations import DRAW, KINDS, synthetic_stations
from unmet.city.trips import Habits
from unmet.simulation.scenario import Scenario
from unmet.study.censoring import run_censoring
from unmet.views.censoring import censoring_markdown

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_columns_of_tables_are_those_of_the_gates():
    text = (ROOT / "docs" / "nomenclature.md").read_text(encoding="utf-8")
    assert TRIPS.to_markdown() in text
    assert STATIONS.to_markdown() in text


def test_calibrated_values_are_the_ones_in_force():
    text = (ROOT / "docs" / "city.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", text, re.MULTILINE))
    habits, scenario = Habits(), Scenario()
    assert rows["`plug_in_a`, `plug_in_b`"] == f"{scenario.plug_in_a}, {scenario.plug_in_b}"
    assert rows["`Habits.seen_days`, `seen_spread`"] == f"{habits.seen_days}, {habits.seen_spread}"
    shares = f"{habits.commuters}, {habits.another_errand}, {habits.stop_on_the_way}, {habits.evening_out}"
    assert rows["`Habits.commuters`, `another_errand`, `stop_on_the_way`, `evening_out`"] == shares
    assert rows["`Habits.errand_hours`, `work_hours`"] == f"{habits.errand_hours}, {habits.work_hours}"
    assert rows["`Habits.homeward_hour`"] == f"{habits.homeward_hour}"
    assert rows["`DRAW`"] == str(DRAW)
    for kind in KINDS:
        assert f"{100 * kind.share:.0f} % {kind.power_kw:g} kW" in rows["`KINDS`"]
    stations = synthetic_stations()
    assert f"{stations.height} with {stations['plugs'].sum()} plugs" in text


def test_the_committed_result_is_what_the_command_gives():
    committed = (ROOT / "docs" / "results" / "censoring.md").read_text(encoding="utf-8")
    assert censoring_markdown(run_censoring(build_city())) == committed


def test_the_queue_in_the_document_works():
    text = (ROOT / "docs" / "simulation.md").read_text(encoding="utf-8")
    code = text.split("## Another queue")[1].split("```python\n")[1].split("```")[0]
    body = code.replace("@compiled(ADMIT)", "").replace('register(Queue("needy", "Only the needy", admit))', "")
    names: dict[str, object] = {}
    exec(body, names)  # noqa: S102
    admit = names["admit"]
    import numba
    import numpy as np

    from unmet.simulation.queues import ADMIT, LOST, Driver, Plugs

    compiled = numba.njit(ADMIT)(admit)
    plugs = Plugs(np.array([0, 1]), np.array([22.0]), np.array([-np.inf]))
    nearest = np.array([0])
    assert compiled(Driver(0.0, 9.0, 0.2, 50.0, False), 0, nearest, plugs).plug == 0
    assert compiled(Driver(0.0, 9.0, 0.5, 50.0, False), 0, nearest, plugs).plug == LOST
