"""Take the screenshots of the documentation: `python docs/screens.py RUN PLAN FORECAST`, three folders of runs.

Those in `docs/images` show `unmet recover` on a year of public records of Dundee (see docs/planning.md), `unmet plan
--plugs 10` on its result, and `unmet fit` and `unmet forecast` on its panel.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).parent / "images"
DESKTOP, PHONE = {"width": 1200, "height": 1500}, {"width": 390, "height": 1100}
WAIT_MS, SLOW_MS = 2500, 600_000
UNMET = [sys.executable, "-m", "unmet"]
TABS = {"city": "#city-days .main-svg", "records": "#records-result .main-svg", "plan": "#plan-result .main-svg",
        "forecast": "#forecast-result .main-svg"}  # fmt: skip
"""Tabs of the app, and a selector of what each shows once it is drawn."""


def shoot(browser: Browser, address: str, name: str, size: dict[str, Any], ready: str, *, dark: bool = False) -> None:
    """Save a screenshot of a window of this size, once the selector `ready` matches."""
    page = browser.new_page(viewport=size, color_scheme="dark" if dark else "light")  # type: ignore[arg-type]
    page.goto(address, timeout=SLOW_MS)
    page.wait_for_selector(ready, timeout=SLOW_MS)
    page.wait_for_timeout(WAIT_MS)
    out = IMAGES / f"{name}.png"
    page.screenshot(path=str(out))
    page.close()
    print(out)


@contextmanager
def served(runs: list[str]) -> Iterator[str]:
    """Run the app on a free port, and yield its address once the built-in city is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([*UNMET, "serve", *runs, "--port", str(port)])  # noqa: S603
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            time.sleep(1)
            try:
                if b'"city_ready":true' in urlopen(f"{address}/api/health", timeout=9).read():  # noqa: S310
                    break
            except OSError:
                continue
        yield address
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Take all screenshots."""
    runs = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = Path(folder) / "report.html"
        command = [*UNMET, "report", *runs, "--out", str(page), "--price", "0.35", "--currency", "GBP"]
        subprocess.run(command, check=True)  # noqa: S603
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shoot(browser, page.as_uri(), "report", DESKTOP, "#site-map .main-svg")
        shoot(browser, page.as_uri(), "report-phone", PHONE, "#site-map .main-svg")
        shoot(browser, page.as_uri(), "report-dark", DESKTOP, "#site-map .main-svg", dark=True)
        with served(runs) as address:
            for tab, ready in TABS.items():
                shoot(browser, f"{address}/?tab={tab}", f"app-{tab}", DESKTOP | {"height": 1150}, ready)
            shoot(browser, f"{address}/?tab=city", "app-city-dark", DESKTOP | {"height": 1150}, TABS["city"], dark=True)
            shoot(browser, f"{address}/?tab=records", "app-phone", PHONE, TABS["records"])
        browser.close()


if __name__ == "__main__":
    main()
