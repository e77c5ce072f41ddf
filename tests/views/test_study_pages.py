"""The page, the Markdown and the terminal of a study, from invented results."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from tests.study.grids import fake_result, small_scene
from tests.views.browser import drawn, section
from unmet.study.cells import plan_runs
from unmet.study.execute import Progress
from unmet.study.experiments import Experiment
from unmet.study.paper import TILTED_LOSS
from unmet.study.store import Store
from unmet.views.figures import STUDY_FIGURES
from unmet.views.study_pages import print_study, study_report, write_study
from unmet.views.study_text import study_markdown

MODELS = ("quantile", "censored-quantile", "tobit", "oracle")
LOSSES = dict(zip(MODELS, (2.0, 1.4, 2.2, 1.0), strict=True))  # closes 60 % of the gap, and -20 %
QUEUES, PENETRATIONS = ("gas-station", "first-come"), (0.01, 0.05)


def experiment(built_in: bool = True) -> Experiment:
    scenes = [
        replace(small_scene(seed=i), labels={"queue": queue, "penetration": penetration})
        for i, (queue, penetration) in enumerate((q, p) for q in QUEUES for p in PENETRATIONS)
    ]
    runs = plan_runs(scenes, MODELS, ["tgcn"], 2, 1)
    return Experiment(
        "total", "An invented study", "penetration", "All numbers are invented.", tuple(scenes), tuple(runs), built_in
    )


@pytest.fixture
def study_and_store(tmp_path):
    """The report of a study, in which gas stations at 1 % have hardly a gap, and its store."""
    study, store = experiment(), Store(tmp_path / "study")
    for run in study.runs:
        small = dict(run.labels) == {"queue": "gas-station", "penetration": 0.01}
        loss = 1 + (LOSSES[run.model] - 1) / (100 if small else 1)
        store.write(run, fake_result(run, loss + 0.001 * run.seed))
    return study_report(study, store, Progress(len(study.runs), len(study.runs))), store


def test_a_browser_draws_every_figure_and_the_answer_comes_first(study_and_store, tmp_path):
    write_study(study_and_store[0], tmp_path)
    page = drawn(tmp_path / "study.html", tmp_path / "profile")
    for figure in STUDY_FIGURES:
        assert "main-svg" in section(page, figure.name), figure.name
    assert "<h1>Censored quantile closes 60 % of the gap between records and truth</h1>" in page


def rows(text: str, title: str, table: str) -> dict[str, list[str]]:
    """The rows of one table under a heading of the Markdown, with the paper's rows after each model."""
    part = text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0].split(f"| {table} |", 1)[1].split("\n\n", 1)[0]
    found: dict[str, list[str]] = {}
    model = ""
    for line in part.splitlines()[2:]:
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        model = model if name in ("the paper's", "difference") else name
        found[name if name == model else f"{model}, {name}"] = cells
    return found


def test_markdown_has_our_numbers_the_papers_and_the_differences(study_and_store):
    text = study_markdown(study_and_store[0])
    for queue in QUEUES:
        losses = rows(text, "Tilted loss on true demand", queue)
        for model, title in (("quantile", "Quantile"), ("censored-quantile", "Censored quantile"), ("tobit", "Tobit")):
            ours = [float(cell.split(" ± ")[0]) for cell in losses[title]]
            paper = [TILTED_LOSS[queue][model][i][0] for i in (0, 4)]
            assert [float(cell) for cell in losses[f"{title}, the paper's"]] == paper
            differences = [float(cell) for cell in losses[f"{title}, difference"]]
            assert differences == pytest.approx([a - b for a, b in zip(ours, paper, strict=True)], abs=2e-3)
        assert "Oracle, the paper's" not in losses
    assert rows(text, "Gap closed", "gas-station")["Censored quantile"] == ["(0.60)", "0.60"]
    assert rows(text, "Gap closed", "first-come")["Tobit"] == ["-0.20", "-0.20"]


def test_the_papers_numbers_are_shown_only_for_the_built_in_city(study_and_store):
    elsewhere = replace(study_and_store[0].experiment, built_in=False)
    report = study_report(elsewhere, study_and_store[1], Progress(0, 0))
    assert "the paper's" not in study_markdown(report)
    assert report.cells["paper_tilted_loss"].null_count() == report.cells.height


def test_the_terminal_has_one_row_per_model_and_json_has_no_nan(study_and_store, tmp_path, capsys):
    report, store = study_and_store
    print_study(report, store, tmp_path, as_json=False)
    out = capsys.readouterr().out
    lines = [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()]
    paper = f"{TILTED_LOSS['first-come']['censored-quantile'][4][0]:.3f}"
    assert [line[0] for line in lines].count("Censored quantile") == len(QUEUES)
    assert any(line[0] == "Censored quantile" and line[-1] == f"1.401 ({paper}; 0.60)" for line in lines), out
    first = report.experiment.runs[0]
    store.write(first, fake_result(first, bias_percent=float("nan")))
    print_study(study_report(report.experiment, store, Progress(0, 0)), store, tmp_path, as_json=True)
    cells = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["cells"]
    assert cells[0]["bias_percent"] is None
    assert all(cell["seconds"] == 4.0 for cell in cells)
