"""The app as a visitor meets it in a browser: a server of its own, on a free port, that wants a token."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.small_network import STATIONS, records
from tests.views.browser import faults_of_boxes, opened, serious_issues, wait_until_drawn
from tests.views.runs import write_lost, write_plan

TOKEN = "a-token-that-is-long-enough"  # noqa: S105
DUNDEE = Path(__file__).parents[4] / "shared" / "data" / "sessions" / "dundee_2017-09_2017-12.csv.gz"
START_SECONDS = 600.0  # the city is built first, which takes long on a busy machine
LINES = 4000  # of that file, so that it is read in seconds
PLACES = """() => {
  const plot = document.querySelector("#city-map .js-plotly-plot");
  const traces = plot._fullData;
  const { xaxis, yaxis } = plot._fullLayout;
  const box = plot.getBoundingClientRect();
  const at = (x, y) => [box.left + xaxis._offset + xaxis.d2p(x), box.top + yaxis._offset + yaxis.d2p(y)];
  const all = traces.filter((part) => part.mode === "markers");
  const taken = all.flatMap((part) => Array.from(part.x).map((x, i) => at(x, part.y[i])));
  const [own] = all;
  const size = Array.from(own.marker.size);
  const most = size.indexOf(Math.max(...size));
  const regions = traces.filter((part) => part.hoveron === "fills").map((part) => {
    const [x, y] = [Array.from(part.x), Array.from(part.y)];
    const middle = [x.reduce((a, b) => a + b) / x.length, y.reduce((a, b) => a + b) / y.length];
    const spot = [0, 0.2, 0.4, 0.6, 0.8].flatMap((t) => x.map((_, i) => at(
      middle[0] + t * (x[i] - middle[0]), middle[1] + t * (y[i] - middle[1])))).find((point) =>
      taken.every((other) => Math.hypot(other[0] - point[0], other[1] - point[1]) > 24));
    return { name: part.name, spot };
  });
  return { station: at(own.x[most], own.y[most]), regions: regions.filter((part) => part.spot) };
}"""
"""On the screen: the station that loses most, and for each region a spot with no station near."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    made = tmp_path_factory.mktemp("served")
    command = [sys.executable, "-m", "unmet", "serve", write_lost(made / "lost"), write_plan(made / "plan")]
    log = (made / "log").open("w")
    served = subprocess.Popen(
        [*map(str, command), "--port", "0", "--max-megabytes", "2"],
        stderr=log,
        env=os.environ | {"UNMET_TOKEN": TOKEN},
    )
    try:
        until = time.monotonic() + START_SECONDS
        while not (here := _ready_at((made / "log").read_text())):
            assert served.poll() is None, (made / "log").read_text()
            assert time.monotonic() < until, "the server did not start in time"
            time.sleep(0.2)
        yield here
    finally:
        served.terminate()
        served.wait(30)
        log.close()


def _ready_at(said: str) -> str:
    """The address that the server printed, once it has built its city; until then nothing."""
    found = re.search(r"unmet is at (http://\S+)", said)
    try:
        ask = Request(f"{found[1]}/api/health", headers={"authorization": f"Bearer {TOKEN}"}) if found else None  # noqa: S310
        return found[1] if found and b'"city_ready":true' in urlopen(ask, timeout=30).read() else ""  # noqa: S310
    except OSError:
        return ""


@pytest.fixture(scope="module")
def visit(browser, address):
    """A visitor who gave the token, after a wrong one was refused; and what the console said."""
    with opened(browser, viewport={"width": 1400, "height": 1000}, bypass_csp=True) as (page, said):
        page.goto(address)
        page.fill("#token", "not-the-right-token")
        page.click("button")
        page.wait_for_selector("text=That token is wrong")
        assert serious_issues(page) == []
        said.clear()  # the browser notes that it was refused
        page.fill("#token", TOKEN)
        page.click("button")
        yield page, said


def accessible(page) -> None:
    """No serious issue, by day and by night."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert serious_issues(page) == []
    page.emulate_media(color_scheme="light")


def test_the_city_is_simulated_again_for_every_question(visit):
    expect = pytest.importorskip("playwright.sync_api").expect
    page, said = visit
    answer = page.locator("#city-answer")
    expect(answer).to_contain_text("of charging demand is lost")
    accessible(page)
    usual = answer.inner_text()
    page.fill("#cars", "2")
    page.press("#cars", "Enter")
    expect(answer).not_to_have_text(usual)
    assert share(answer.inner_text()) < share(usual)
    # A click into a region shows it over time.
    region = page.evaluate(PLACES)["regions"][0]
    page.mouse.click(*region["spot"])
    expect(page.locator("#city-days-title")).to_have_text(f"Day by day, region {region['name']}")
    expect(page.locator("#city-hours-caption")).to_contain_text(f"In region {region['name']}")
    # A click on a station offers its plugs; more of them lower the loss.
    before = answer.inner_text()
    page.mouse.click(*page.evaluate(PLACES)["station"])
    page.wait_for_url(re.compile(r"station="))
    page.wait_for_function("document.getElementById('station-plugs').value !== ''")
    page.fill("#station-plugs", str(int(page.input_value("#station-plugs")) + 6))
    page.press("#station-plugs", "Tab")
    page.click("#apply")
    expect(page.locator("#city-facts")).to_contain_text("less than without changes")
    assert share(answer.inner_text()) < share(before)
    # The address holds all of it.
    shared, seen = page.url, answer.inner_text()
    page.goto("about:blank")
    page.goto(shared)
    expect(answer).to_have_text(seen)
    expect(page.locator("#changed")).to_contain_text("plugs")
    # So does another tab, and the way back from it.
    station = re.search(r"station=(\w+)", shared)[1]
    page.goto(shared.replace("tab=city", "tab=plan"))
    expect(page.locator("#plan-result h2")).to_contain_text("plugs at")
    page.click("#to-city")
    expect(page.locator("#station")).to_contain_text(station)
    expect(page.locator("#region")).to_contain_text(re.search(r"region=(\w+)", shared)[1])
    expect(page.locator("#station-plugs")).to_have_value(re.search(rf"{station}%3A(\d+)", shared)[1])
    assert page.url == shared
    assert said == []


def test_dropped_records_are_estimated(visit, address, tmp_path):
    expect = pytest.importorskip("playwright.sync_api").expect
    page, said = visit
    page.goto(f"{address}/?tab=records&waiting=30")
    found = page.locator("#records-result")
    expect(found.locator("h2")).to_contain_text("of charging demand was lost")
    expect(page.locator("#records-waiting")).to_have_value("30")
    accessible(page)
    if DUNDEE.is_file():
        lines = gzip.decompress(DUNDEE.read_bytes()).splitlines(keepends=True)[:LINES]
        (tmp_path / "records.csv").write_bytes(b"".join(lines))
        period = "December 2017"
    else:
        STATIONS.write_csv(tmp_path / "stations.csv")
        page.set_input_files("#stations-file", tmp_path / "stations.csv")
        records(days=21)[0].write_csv(tmp_path / "records.csv")
        period = "January 2024"
    page.set_input_files("#sessions-file", tmp_path / "records.csv")
    page.wait_for_url(re.compile(r"run=[0-9a-f]{16}"), timeout=400_000)
    expect(found).to_contain_text(period)
    expect(found).to_contain_text("Drivers who wait until they are served (30 % of those")
    expect(found).to_contain_text("Data quality")
    assert said == []


def test_files_that_are_too_large_and_paths_that_lead_away_are_refused(visit, address, tmp_path):
    expect = pytest.importorskip("playwright.sync_api").expect
    page, said = visit
    page.goto(f"{address}/?tab=records&run=../../etc/passwd&plan=..%2F..%2Fplan")
    expect(page.locator("#records-result h2")).to_contain_text("of charging demand was lost")  # the run that was given
    said.clear()
    (tmp_path / "large.csv").write_bytes(b"start,end\n" * 250_000)
    page.set_input_files("#sessions-file", tmp_path / "large.csv")
    expect(page.locator("#records-status")).to_contain_text("2 MB")
    assert not re.search(r"run=[0-9a-f]{16}", page.url)
    refused = [line for line in said if "413" not in line]  # the browser notes the status
    assert refused == []
    said.clear()
    for path in ("runs/..%2F..%2Fetc/summary", "runs/given/files/..%2F..%2Fetc%2Fpasswd", "jobs/..%2F.."):
        answer = page.request.get(f"{address}/api/{path}")
        assert answer.status in (404, 422)
        assert "root:" not in answer.text()


def test_a_budget_is_planned_and_exported_and_a_forecast_cancelled(visit, address):
    expect = pytest.importorskip("playwright.sync_api").expect
    page, said = visit
    page.goto(f"{address}/?tab=plan&by=budget")
    expect(page.locator("#plan-result h2")).to_contain_text("3 plugs at 2 sites")
    with page.expect_download() as download:
        page.click("text=plan.csv")
    assert "Town hall" in Path(download.value.path()).read_text()
    page.focus("#plan-budget .dash-slider-thumb")
    page.keyboard.press("PageDown")  # a smaller budget, which is planned at once
    page.wait_for_url(re.compile(r"plan=[0-9a-f]{16}"), timeout=400_000)
    expect(page.locator("#plan-result")).to_contain_text("It costs")
    cost = float(re.search(r"It costs ([\d,]+)", page.inner_text("#plan-result"))[1].replace(",", ""))
    assert 0 < cost <= float(re.search(r"budget=(\d+)", page.url)[1]) < 150_000
    accessible(page)
    with page.expect_download() as download:
        page.click("text=plan.geojson")
    assert '"plugs_added"' in Path(download.value.path()).read_text()
    page.click("#to-forecast")
    expect(page.locator("#forecast-result h2")).to_contain_text("Forecast the hours ahead")
    accessible(page)
    page.click("#forecast-start")
    page.click("#forecast-cancel")
    expect(page.locator("#forecast-progress")).to_contain_text("Cancelled")
    assert [line for line in said if "Download" not in line] == []


def test_a_phone_shows_the_answer_first_and_all_of_it(visit, address):
    page, said = visit
    page.set_viewport_size({"width": 390, "height": 844})
    for tab, shown, ready in (
        ("city", "#city-answer", "#tab-city .main-svg"),
        ("records", "#records-result h2", "#tab-records .main-svg"),
        ("plan", "#plan-result h2", "#tab-plan .main-svg"),
        ("forecast", "#forecast-result h2", "#forecast-result h2"),
    ):
        page.goto(f"{address}/?tab={tab}")
        page.wait_for_selector(ready)
        wait_until_drawn(page)
        assert faults_of_boxes(page) == []
        assert page.locator(shown).bounding_box()["y"] < 500
        assert serious_issues(page) == []
    page.set_viewport_size({"width": 1400, "height": 1000})
    assert said == []


def share(text: str) -> float:
    """The lost share in a headline [%]."""
    return float(text.split(" %")[0])
