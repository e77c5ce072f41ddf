"""The calibrated city agrees with the paper's Table 1."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from unmet.city.build import build_city
from unmet.study import censoring
from unmet.study.censoring import CensoringStudy, run_censoring
from unmet.study.paper import CENSORED_HOURS_BY_REGION_PERCENT, CENSORED_HOURS_PERCENT, PENETRATIONS, QUEUES
from unmet.views.censoring import censoring_markdown


@pytest.fixture(scope="module")
def study() -> CensoringStudy:
    return run_censoring(build_city())


def test_within_three_points_of_the_paper_on_average_and_seven_at_most(study):
    differences = [
        abs(study.cell(queue, p).censored_hours_percent - paper)
        for queue, row in CENSORED_HOURS_PERCENT.items()
        for p, paper in zip(PENETRATIONS, row, strict=True)
    ]
    assert np.mean(differences) <= 3
    assert np.max(differences) <= 7


def test_stricter_queues_and_more_cars_lose_more(study):
    for p in PENETRATIONS:
        gas, three, first = (study.cell(queue, p).censored_hours_percent for queue in QUEUES)
        assert gas <= three <= first
    for queue in QUEUES:
        rising = [study.cell(queue, p).censored_hours_percent for p in PENETRATIONS]
        assert (np.diff(rising) > 0).all()


def test_regions_differ_as_in_the_paper(study):
    by_region = study.cell("first-come", 0.05).censored_hours_percent_by_region
    assert len(by_region) == 10
    by_rank = np.sort(CENSORED_HOURS_BY_REGION_PERCENT["first-come"][-1])
    assert np.abs(np.sort(by_region) - by_rank).mean() <= 6
    worst = study.regions.centres[int(np.argmax(by_region))]
    assert worst["stations"].item() == 2  # the paper: "only two regional charging stations"
    assert worst["unique_id"].item() == "r0"  # regions are numbered from west to east


def test_a_region_is_never_censored_more_often_than_the_city(study):
    for cell in study.cells:
        assert max(cell.censored_hours_percent_by_region) <= cell.censored_hours_percent
        assert cell.censored_hours_percent <= sum(cell.censored_hours_percent_by_region) + 1e-9
        assert cell.panel.height == 10 * 2184
        assert cell.arrivals == cell.panel["arrivals"].sum() + cell.panel["lost"].sum()
        assert cell.lost_share_of_energy == pytest.approx(1 - cell.panel["y"].sum() / cell.panel["y_true"].sum())


def test_the_result_does_not_depend_on_the_number_of_workers(study, monkeypatch):
    monkeypatch.setattr(censoring, "WORKERS", 1)
    alone = run_censoring(study.city, queues=QUEUES[:2], penetrations=(0.01, 0.05))
    both = [study.cell(cell.queue, cell.penetration) for cell in alone.cells]
    assert alone.table().rows() == [
        row for row in study.table().rows() if row[0] in QUEUES[:2] and row[1] in (0.01, 0.05)
    ]
    assert all(one.panel.equals(other.panel) for one, other in zip(alone.cells, both, strict=True))


def test_the_committed_result_is_reproduced_by_its_command(study):
    committed = Path(__file__).parents[2] / "docs" / "results" / "censoring.md"
    assert censoring_markdown(study) == committed.read_text(encoding="utf-8")


def test_the_papers_numbers_are_the_published_ones(shared_data):
    published = json.loads((shared_data.parent / "paper" / "tables.json").read_text())
    for queue in QUEUES:
        assert list(CENSORED_HOURS_PERCENT[queue]) == published["hours_censored_city_percent"][queue]
        clusters = published["hours_censored_by_region_percent"][queue]
        for i, row in enumerate(CENSORED_HOURS_BY_REGION_PERCENT[queue]):
            assert list(row) == [clusters[str(c)][i] for c in range(10)]
