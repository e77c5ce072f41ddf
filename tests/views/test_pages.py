"""The page of the censoring study, as written and as rendered by a browser."""

from __future__ import annotations

import re

import pytest

from tests.simulation.cities import small_city
from tests.views.browser import drawn, section
from unmet.simulation.scenario import Scenario
from unmet.study.censoring import run_censoring
from unmet.views.censoring import censoring_markdown, censoring_page
from unmet.views.figures import CENSORING_FIGURES


@pytest.fixture(scope="module")
def study():
    return run_censoring(small_city(3, 60, 25, 8, 2), penetrations=(0.2, 1.0), regions=3, scenario=Scenario(seed=2))


@pytest.fixture(scope="module")
def page(study):
    return censoring_page(study)


def test_the_page_needs_no_network(page):
    body = page.split("</script>", 1)[1]
    assert not re.search(r"""(src|href)\s*=\s*["']https?:""", body)
    assert not re.search(r"<script[^>]+src=", page)


def test_the_answer_comes_first(page, study):
    percent = round(study.cell("first-come", 1.0).censored_hours_percent)
    assert re.search(rf"<h1>With 100 % electric cars, .* {percent} % of all hours</h1>", page)


def test_every_figure_has_a_title_labelled_axes_and_a_caption(study):
    for figure in CENSORING_FIGURES:
        drawn = figure.draw(study)
        assert figure.title
        assert figure.caption(study).rstrip(")").endswith(".")
        axes = [*drawn.select_xaxes(), *drawn.select_yaxes()]
        titled = [axis for axis in axes if axis.title.text]
        assert len(titled) >= 2, figure.name


def test_names_from_outside_cannot_break_the_page(study):
    from unmet.views.page import PageTable, render_page

    table = PageTable(["<b>"], [["<script>alert(1)</script>"]], "")
    text = render_page(study, (), title="t", headline="<i>", lead="", facts=(), table=table, footer="")
    assert "<script>alert(1)" not in text
    assert "&lt;i&gt;" in text


def test_markdown_has_one_row_per_queue_and_per_region(study):
    text = censoring_markdown(study)
    assert text.count("\n| r") - text.count("\n| region ") == 3
    assert "| First come, first served |" in text


def test_a_browser_draws_every_figure(page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    shown = drawn(path, tmp_path / "profile")
    for figure in CENSORING_FIGURES:
        assert "main-svg" in section(shown, figure.name), figure.name
