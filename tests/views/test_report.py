"""The report on runs, as written and as rendered by a browser."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
import re
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from tests.views.browser import chromium, faults_of_boxes, opened, serious_issues, visible_text, wait_until_drawn
from tests.views.runs import rejected, write_forecast, write_lost, write_plan
from unmet.cli import app
from unmet.errors import InputError
from unmet.records.cells import REASONS
from unmet.views.figures.base import Figure
from unmet.views.figures.map_layers import MapLayers, region_outlines
from unmet.views.page import PageSection, PageTable
from unmet.views.page_weight import light_page
from unmet.views.picture_files import write_pictures
from unmet.views.report import SalesPrice, report_figures, report_page, write_report
from unmet.views.report_sections import build, quality
from unmet.views.stored import StoredRuns, read_runs
from unmet.views.theme import about_energy

MAX_BYTES = 6_000_000


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


def downloads(page: str) -> dict[str, bytes]:
    """Tables in a page, by the names of their files."""
    links = re.findall(r'download="([a-z]+\.csv)(|\.gz)" href="data:[^,"]+;base64,([^"]+)"', page)
    return {
        name: gzip.decompress(base64.b64decode(data)) if packed else base64.b64decode(data)
        for name, packed, data in links
    }


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
    assert f"{value} of sales lost, {span}, for every 0.10 charged per kWh" in without


def test_sections_are_in_the_order_of_a_readers_questions(page):
    names = ["sites", "when", "trust", "sensitivity", "notes", "plan", "forecast", "regions", "weeks", "quality",
             "method", "provenance"]  # fmt: skip
    places = [page.index(f'<section id="{name}"') for name in names]
    assert places == sorted(places)


def test_the_report_is_one_file_without_requests(page):
    assert len(page.encode()) < MAX_BYTES
    assert not re.search(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(?!data:)", page)
    assert "/somewhere/private" not in page  # a report does not reveal its author's folders


def test_every_download_is_the_whole_table(page, folders):
    links = downloads(page)
    assert {
        "sites.csv",
        "regions.csv",
        "weeks.csv",
        "sensitivity.csv",
        "rejected.csv",
        "plan.csv",
        "forecast.csv",
    } <= set(links)
    sites = pl.read_csv(links["sites.csv"])
    stored = pl.read_parquet(folders["lost"] / "sites.parquet")
    assert set(sites["site_id"]) == set(stored["site_id"])
    assert sites["lost_kwh"].sum() == pytest.approx(stored["lost_kwh"].sum(), rel=1e-5)
    assert pl.read_csv(links["rejected.csv"]).height == 10


def test_every_figure_has_alternative_text_and_names_are_escaped(page):
    assert page.count('role="img" aria-label="') == len(re.findall(r'id="plot-', page)) >= 7
    assert "Station <West>" not in page.replace("\\u003cWest\\u003e", "")
    assert "Station &lt;West&gt;" in page


def test_counts_of_records_are_in_words_and_notes_without_folders(folders):
    lost = read_runs([folders["lost"]]).lost
    about = lost.records | {
        "quality": dict.fromkeys(REASONS, 1) | {"restarts_joined": 2},
        "record_notes": ["/home/me/my data/stations.csv: converted (docs: Europe/Rome, 3 kWh/h)."],
        "formats": {"/home/me/my data/sessions.csv": "unmet"},
    }
    section = quality(replace(lost, summary=lost.summary | {"records": about}))
    words = [row[0] for row in section.table.rows]
    assert len(words) == len(REASONS) + 1
    assert not [text for text in words if text in {key.replace("_", " ") for key in REASONS}]
    assert section.items == ["stations.csv: converted (docs: Europe/Rome, 3 kWh/h)."]


def test_a_plan_names_the_sites_that_lost_much_and_are_missing_in_it(folders):
    runs = read_runs([folders["lost"], folders["plan"]])
    worst, second = runs.lost.ranked_sites()["site_id", "label"].rows()[:2]
    without = replace(
        runs.plan,
        tables=replace(runs.plan.tables, sites=runs.plan.tables.sites.with_columns(site_id=pl.lit(second[0]))),
    )
    said = " ".join(build(without, runs.lost).paragraphs)
    assert f"Not part of the plan: {worst[1]}" in said
    assert second[1] not in said
    assert "Not part of the plan" not in " ".join(build(without).paragraphs)


def test_a_report_on_records_without_loss_has_no_empty_figure(folders):
    runs = read_runs([folders["lost"]])
    nothing = {"mean": 0.0, "low": 0.0, "high": 0.0}
    none = {name: pl.lit(0.0) for name in ("lost_kwh", "lost_kwh_low", "lost_kwh_high", "lost_arrivals")}
    lost = replace(
        runs.lost,
        summary=runs.lost.summary | {"lost_kwh": nothing, "lost_arrivals": nothing},
        sites=runs.lost.sites.with_columns(**none),
        regions=runs.lost.regions.with_columns(**none),
    )
    page = report_page(replace(runs, lost=lost))
    assert "No charging demand was lost" in page
    assert 'id="plot-recovered-regions"' not in page
    assert "weeks that lost the most" not in page


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
    assert "Turns away 3.0 drivers per week now, 0.1 with the plan" in visible_text(page)


def test_folders_that_are_not_runs_are_refused_with_one_sentence(folders, tmp_path):
    with pytest.raises(InputError, match="There is no run at"):
        read_runs([tmp_path / "nowhere"])
    with pytest.raises(InputError, match="is not a run that a report can show"):
        read_runs([tmp_path])
    with pytest.raises(InputError, match="are all runs of"):
        read_runs([folders["lost"], folders["lost"]])
    (tmp_path / "sites.parquet").write_bytes(b"PAR1 but broken")
    (tmp_path / "summary.json").write_text("{}")
    for name in ("stations", "regions", "weeks", "sensitivity"):
        (tmp_path / f"{name}.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="damaged"):
        read_runs([tmp_path])
    with pytest.raises(InputError, match="price"):
        SalesPrice.checked(-1, "EUR")


def test_a_file_that_is_no_report_is_not_replaced(folders, tmp_path):
    out, runs = tmp_path / "thesis.txt", read_runs([folders["lost"]])
    out.write_text("precious")
    with pytest.raises(InputError, match="is not a report, so it is not replaced"):
        write_report(runs, out, None, "")
    assert out.read_text() == "precious"
    for _ in range(2):  # a report replaces a report
        write_report(runs, tmp_path / "new.html", None, "")


def test_the_command_writes_the_report_and_suggests_a_next_step(folders, tmp_path):
    out = tmp_path / "out" / "report.html"
    done = CliRunner().invoke(
        app, ["report", str(folders["lost"]), str(folders["plan"]), "--out", str(out), "--price", "0.4"]
    )
    assert done.exit_code == 0, done.output
    assert out.is_file()
    assert "What to build" in done.output
    assert "Next: open" in done.output


def test_figures_are_written_as_png_and_svg(folders, tmp_path):
    chromium()
    figures = report_figures(read_runs([folders["lost"]]))
    chosen = [pair for pair in figures if pair[0].name == "recovered-weeks"]
    paths = [Path(path) for path in write_pictures(chosen, tmp_path / "figures")]
    assert sorted(path.name for path in paths) == ["recovered-weeks.png", "recovered-weeks.svg"]
    png, svg = (tmp_path / "figures" / f"recovered-weeks.{form}" for form in ("png", "svg"))
    width, height = struct.unpack(">II", png.read_bytes()[16:24])  # of the header
    assert (width, height) == (2000, 1000)  # two pixels for each of the page
    text = svg.read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert "Week from Monday" in text
    assert "All regions" not in text  # a menu that cannot be opened
    with pytest.raises(InputError, match="is a file"):
        write_pictures(chosen, png)


@pytest.mark.parametrize("width", [1400, 390])
def test_a_browser_renders_the_report_without_a_network(browser, page, tmp_path, width):
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    with opened(browser, viewport={"width": width, "height": 900}, offline=True) as (view, messages):
        view.goto(file.as_uri())
        wait_until_drawn(view)
        assert faults_of_boxes(view) == []
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
    for part, name, begins in (
        ("provenance", "runs.csv", '"Run","Folder"'),
        ("quality", "rejected.csv", "file,line"),
        ("weeks", "weeks.csv", "unique_id,week"),
    ):
        with view.expect_download() as download:
            view.click(f"#{part} .download")
        assert download.value.suggested_filename == name
        assert Path(download.value.path()).read_text(encoding="utf-8-sig").startswith(begins)
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", view.pdf(prefer_css_page_size=True)))
    assert 2 <= pages <= 6


def large_runs(folders) -> StoredRuns:
    """Runs on a network of 5,000 stations, made up from those on the small one: two years, 100 regions."""
    few = read_runs(folders)
    number, regions, weeks = 5000, 100, 104
    rng = np.random.default_rng(1)

    def many(table: pl.DataFrame, rows: int, key: str) -> pl.DataFrame:
        pick = table[rng.integers(0, table.height, rows).tolist()]
        wide = [name for name, kind in table.schema.items() if kind == pl.Float64]
        spread = pl.Series(rng.lognormal(0, 1, rows))
        return pick.with_columns(*(pl.col(name) * spread for name in wide)).with_columns(
            pl.format("{}-{}", pl.lit(key), pl.int_range(rows)).alias(key)
        )

    place = {"lat": 51 + rng.normal(0, 0.5, number), "lon": rng.normal(0, 0.5, number)}
    names = [f'Site "{i}",\nHigh Street' for i in range(number)]
    sites = many(few.lost.sites, number, "site_id").with_columns(name=pl.Series(names), **place)
    stations = many(few.lost.stations, number, "station_id").with_columns(
        unique_id=pl.format("region {}", pl.int_range(number) % regions), **place
    )
    every = many(few.lost.regions, regions, "unique_id")
    keys = pl.DataFrame({"unique_id": ["all", *every["unique_id"]]}).join(
        pl.select(week=pl.date_range(dt.date(2023, 1, 2), dt.date(2024, 12, 30), "1w")).head(weeks), how="cross"
    )
    by_week = many(few.lost.weeks, keys.height, "unique_id").with_columns(keys)
    far = {"first_hour": "2023-01-02T00:00Z", "last_hour": "2024-12-29T22:00Z", "regions": regions}
    lost = replace(
        few.lost, summary=few.lost.summary | far, sites=sites, stations=stations, regions=every, weeks=by_week,
        layers=MapLayers(outlines=region_outlines(stations)), rejected=pl.concat([rejected()] * 2000),
    )  # fmt: skip
    planned = many(few.plan.tables.sites, number, "site_id").with_columns(name=pl.Series(names), **place)
    plan = replace(few.plan, tables=replace(few.plan.tables, sites=planned))
    return replace(few, lost=lost, plan=plan)


def test_a_report_on_5000_stations_can_be_sent_too(folders):
    runs = large_runs(list(folders.values()))
    page = report_page(runs, SalesPrice(0.4, "EUR"))
    assert 0.95 * MAX_BYTES < len(page.encode()) <= MAX_BYTES
    assert page.count('id="plot-') == 7
    whole = {"sites.csv": runs.lost.sites, "weeks.csv": runs.lost.weeks, "plan.csv": runs.plan.chosen}
    cut = {}
    for file, data in downloads(page).items():
        kept = pl.read_csv(data, infer_schema=False).height
        if file in whole:
            assert f"the download holds the first {kept:,} of {whole[file].height:,} rows" in page
            cut[file] = kept
    assert set(cut) == set(whole)
    assert page.count("Download the first rows (CSV)") == 3


def test_the_heaviest_figure_gives_way_where_downloads_are_not_enough():
    figures = [Figure(name, name, lambda _: None, lambda _: "") for name in ("light", "heavy")]
    weight = {"light": 100, "heavy": 1000}

    def render(sections: list[PageSection]) -> str:
        text = "".join(line for part in sections for line in (*part.paragraphs, part.table.csv if part.table else ""))
        return text + "".join(figure.name * weight[figure.name] for part in sections for figure, _ in part.figures)

    table = PageTable(("a",), (), "", csv="a\n" + "1\n" * 500)
    sections = [PageSection("s", "S", table=table, figures=[(figure, None) for figure in figures])]
    assert light_page(render, sections, 10_000) == render(sections)
    page = light_page(render, sections, 900)
    assert len(page.encode()) <= 900
    assert "lightlight" in page
    assert "The figure “heavy” is left out" in page
