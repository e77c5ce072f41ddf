"""The report on runs, as written and as rendered by a browser."""

from __future__ import annotations

import base64
import json
import re

import polars as pl
import pytest
from typer.testing import CliRunner

from tests.views.browser import CLIPPED, OVERLAPS, opened, serious_issues, visible_text
from tests.views.runs import write_forecast, write_lost, write_plan
from unmet.cli import app
from unmet.errors import InputError
from unmet.views.report import SalesPrice, report_page
from unmet.views.stored import read_runs
from unmet.views.theme import about_energy

MOST_BYTES = 6_000_000


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("runs")
    return {
        "lost": write_lost(folder / "lost"),
        "plan": write_plan(folder / "plan"),
        "forecast": write_forecast(folder / "forecast"),
    }


@pytest.fixture(scope="module")
def page(folders) -> str:
    return report_page(read_runs(list(folders.values())), SalesPrice(0.4, "EUR"), "Small town")


def test_the_report_starts_with_the_answer_of_the_run(page, folders):
    summary = json.loads((folders["lost"] / "summary.json").read_text())
    value, span = about_energy(**summary["lost_kwh"])
    heading = re.search(r"<h1>(.*?)</h1>", page)
    assert heading is not None
    assert (
        heading[1].replace("\N{NO-BREAK SPACE}", " ").startswith(f"About {value} of charging demand was lost ({span})")
    )
    value, span = SalesPrice(0.4, "EUR").of(*(summary["lost_kwh"][end] for end in ("mean", "low", "high")))
    assert f"{value} of sales lost, {span}, at 0.4 EUR per kWh" in visible_text(page)
    without = visible_text(report_page(read_runs([folders["lost"]])))
    value, span = SalesPrice(0.1).of(*(summary["lost_kwh"][end] for end in ("mean", "low", "high")))
    assert f"{value} of sales lost, {span}, for every 0.10 that a kWh sells for" in without


def test_sections_are_in_the_order_of_a_readers_questions(page):
    names = ["sites", "when", "trust", "sensitivity", "notes", "plan", "forecast", "regions", "weeks", "quality",
             "method", "provenance"]  # fmt: skip
    places = [page.index(f'<section id="{name}"') for name in names]
    assert places == sorted(places)


def test_the_report_is_one_file_without_requests(page):
    assert len(page.encode()) < MOST_BYTES
    assert not re.search(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(?!data:)", page)
    assert "/somewhere/private" not in page  # a report does not reveal its author's folders


def test_every_download_is_the_whole_table(page, folders):
    links = dict(re.findall(r'download="([a-z]+\.csv)" href="data:text/csv;charset=utf-8;base64,([^"]+)"', page))
    assert {
        "sites.csv",
        "regions.csv",
        "weeks.csv",
        "sensitivity.csv",
        "rejected.csv",
        "plan.csv",
        "forecast.csv",
    } <= set(links)
    sites = pl.read_csv(base64.b64decode(links["sites.csv"]))
    stored = pl.read_parquet(folders["lost"] / "sites.parquet")
    assert set(sites["site_id"]) == set(stored["site_id"])
    assert sites["lost_kwh"].sum() == pytest.approx(stored["lost_kwh"].sum(), abs=1e-3)
    assert pl.read_csv(base64.b64decode(links["rejected.csv"])).height == 10


def test_every_figure_has_alternative_text_and_names_are_escaped(page):
    assert page.count('role="img" aria-label="') == len(re.findall(r'id="plot-', page)) >= 7
    assert "Station <West>" not in page.replace("\\u003cWest\\u003e", "")
    assert "Station &lt;West&gt;" in page


def test_hours_of_the_week_add_up_to_the_whole_loss(folders):
    lost = read_runs([folders["lost"]]).lost
    assert lost is not None
    hours = lost.hours.group_by("ds").agg(pl.sum("lost_kwh"))
    local = pl.col("ds").dt.convert_time_zone("Europe/Copenhagen")
    number = hours.group_by(week_hour=(local.dt.weekday().cast(pl.Int64) - 1) * 24 + local.dt.hour()).len()
    total = lost.week_hours.join(number, on="week_hour").select(pl.col("lost_kwh") * pl.col("len")).sum().item()
    assert total == pytest.approx(hours["lost_kwh"].sum())


def test_a_report_of_only_a_plan_starts_with_the_plan(folders):
    page = report_page(read_runs([folders["plan"]]))
    assert "<h1>3 plugs at 2 sites recover 80 % of lost energy, 70 to 90 %</h1>" in page
    assert "Turns away 3.0 drivers a week now, 0.1 with the plan" in visible_text(page)


def test_folders_that_are_not_runs_are_refused_with_one_sentence(folders, tmp_path):
    with pytest.raises(InputError, match="There is no run at"):
        read_runs([tmp_path / "nowhere"])
    with pytest.raises(InputError, match="is not a run that a report can show"):
        read_runs([tmp_path])
    with pytest.raises(InputError, match="are both runs of"):
        read_runs([folders["lost"], folders["lost"]])
    (tmp_path / "sites.parquet").write_bytes(b"PAR1 but broken")
    (tmp_path / "summary.json").write_text("{}")
    for name in ("stations", "regions", "weeks", "sensitivity"):
        (tmp_path / f"{name}.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="damaged"):
        read_runs([tmp_path])
    with pytest.raises(InputError, match="price"):
        SalesPrice.checked(-1, "EUR")


def test_the_command_writes_the_report_and_suggests_a_next_step(folders, tmp_path):
    out = tmp_path / "out" / "report.html"
    done = CliRunner().invoke(
        app, ["report", str(folders["lost"]), str(folders["plan"]), "--out", str(out), "--price", "0.4"]
    )
    assert done.exit_code == 0, done.output
    assert out.is_file()
    assert "What to build" in done.output
    assert "Next: open" in done.output


@pytest.mark.parametrize("width", [1400, 390])
def test_a_browser_renders_the_report_without_a_network(browser, page, tmp_path, width):
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    with opened(browser, viewport={"width": width, "height": 900}, offline=True) as (view, messages):
        view.goto(file.as_uri())
        view.wait_for_function(
            "[...document.querySelectorAll('.plotly-graph-div')].every((p) => p.querySelector('.main-svg'))"
        )
        view.wait_for_timeout(300)
        assert view.evaluate("document.documentElement.scrollWidth") <= width
        assert view.evaluate(CLIPPED) == []
        assert view.evaluate(OVERLAPS) == []
        assert serious_issues(view) == []
        view.emulate_media(color_scheme="dark")
        assert serious_issues(view) == []
        view.emulate_media(color_scheme="light")
        assert messages == []
        if width == 1400:
            check_table_and_print(view)


def check_table_and_print(view) -> None:
    """A click on a heading sorts, a second click reverses the order; the report prints on two to six pages."""
    cells = "[...document.querySelectorAll('#regions tbody td:nth-child(3)')]"
    rows = f"{cells}.map((cell) => parseFloat(cell.textContent.replace(',', '')))"
    view.click("#regions th:nth-child(3) button")
    assert view.evaluate(rows) == sorted(view.evaluate(rows), reverse=True)
    view.click("#regions th:nth-child(3) button")
    assert view.evaluate(rows) == sorted(view.evaluate(rows))
    with view.expect_download() as download:
        view.click("#provenance .download")
    assert download.value.suggested_filename == "runs.csv"
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", view.pdf(prefer_css_page_size=True)))
    assert 2 <= pages <= 6
