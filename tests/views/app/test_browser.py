"""The app as a visitor meets it in a browser: a server of its own, on a free port."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.small_network import STATIONS, records
from tests.views.browser import CLIPPED, opened, serious_issues
from tests.views.runs import write_lost, write_plan

LARGEST = """() => {
  const plot = document.querySelector("#city-map .js-plotly-plot");
  const trace = plot._fullData.find((part) => part.mode === "markers");
  const size = Array.from(trace.marker.size);
  const most = size.indexOf(Math.max(...size));
  const { xaxis, yaxis } = plot._fullLayout;
  const box = plot.getBoundingClientRect();
  return [box.left + xaxis._offset + xaxis.d2p(trace.x[most]), box.top + yaxis._offset + yaxis.d2p(trace.y[most])];
}"""
"""Where the station is on the screen that loses most."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    made = tmp_path_factory.mktemp("served")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "unmet", "serve", write_lost(made / "lost"), write_plan(made / "plan")]
    log = (made / "log").open("w")
    served = subprocess.Popen(
        [*map(str, command), "--port", str(port)], stderr=log, env=os.environ | {"UNMET_TOKEN": ""}
    )
    here = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                if b'"city_ready":true' in urlopen(f"{here}/api/health", timeout=5).read():  # noqa: S310
                    break
            except OSError:
                assert served.poll() is None, (made / "log").read_text()
            time.sleep(0.2)
        yield here
    finally:
        served.terminate()
        served.wait(30)
        log.close()


def test_a_visit(address, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    expect = playwright.expect
    records(days=21)[0].write_csv(tmp_path / "june.csv")
    STATIONS.write_csv(tmp_path / "stations.csv")
    with opened(viewport={"width": 1400, "height": 1000}, bypass_csp=True) as (page, said):
        page.goto(address)
        answer = page.locator("#city-answer")
        expect(answer).to_contain_text("of charging demand is lost")
        usual = answer.inner_text()
        assert serious_issues(page) == []
        # Fewer electric cars lose less.
        page.fill("#cars", "2")
        page.press("#cars", "Enter")
        expect(answer).not_to_have_text(usual)
        assert share(answer.inner_text()) < share(usual)
        # A click on a station shows its region, and its plugs can be changed.
        before = answer.inner_text()
        page.mouse.click(*page.evaluate(LARGEST))
        page.wait_for_function("document.getElementById('station').value !== ''")
        page.wait_for_url(re.compile(r"region=r\d"))
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
        # What was given at the start.
        page.click("#to-plan")
        expect(page.locator("#plan-result h2")).to_contain_text("3 plugs at 2 sites")
        with page.expect_download() as download:
            page.click("text=plan.csv")
        assert "Town hall" in Path(download.value.path()).read_text()
        assert serious_issues(page) == []
        # A file of one's own.
        page.click("#to-records")
        expect(page.locator("#records-result h2")).to_contain_text("of charging demand was lost")
        assert serious_issues(page) == []
        page.set_input_files("#sessions-file", tmp_path / "june.csv")
        page.set_input_files("#stations-file", tmp_path / "stations.csv")
        page.fill("#records-zone", "Europe/Copenhagen")
        page.click("#records-start")
        page.wait_for_url(re.compile(r"run=[0-9a-f]{16}"), timeout=400_000)
        expect(page.locator("#records-result")).to_contain_text("21 January 2024")
        assert [line for line in said if "Download" not in line] == []


def test_a_phone_shows_all_of_it(address):
    with opened(viewport={"width": 390, "height": 844}) as (page, said):
        page.goto(f"{address}/?tab=plan")
        page.wait_for_selector("#plan-result .main-svg")
        page.wait_for_timeout(500)
        assert page.evaluate(CLIPPED) == []
        assert said == []


def share(text: str) -> float:
    """The lost share in a headline [%]."""
    return float(text.split(" %")[0])
