"""A browser to draw pages in, where there is one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parent / "axe" / "axe.min.js"
"""Accessibility checks by Deque Systems, MPL-2.0; for tests alone."""
SLOW = 120_000  # milliseconds that a step may take on a machine that is busy


def chromium() -> str:
    """Where the browser is; the test is skipped where there is none."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium on this machine")
    return browser


def drawn(page: Path, profile: Path) -> str:
    """The page after its scripts have run without an error."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}",
             "--virtual-time-budget=20000", "--enable-logging=stderr", "--dump-dom"]  # fmt: skip
    done = subprocess.run([chromium(), *flags, page.as_uri()], capture_output=True, text=True, check=False, timeout=120)
    assert "Uncaught" not in done.stderr
    return done.stdout


def section(page: str, figure: str) -> str:
    """The part of a drawn page that holds a figure."""
    return page.split(f'id="{figure}"', 1)[1].split("</section>", 1)[0]


@contextmanager
def opened(browser: Any, **context: Any) -> Iterator[tuple[Any, list[str]]]:
    """A page of its own in a browser, and all that it says on its console or asks of other hosts."""
    own = browser.new_context(**context)
    page = own.new_page()
    page.set_default_timeout(SLOW)
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", lambda request: said.extend(_elsewhere(request.url)))
    yield page, said
    own.close()


def _elsewhere(url: str) -> list[str]:
    here = url.startswith(("file:", "data:", "blob:", "about:", "http://127.0.0.1"))
    return [] if here else [f"asked {url}"]


def serious_issues(page: Any) -> list[str]:
    """What axe-core finds wrong with a page that keeps people from using it."""
    found = page.evaluate(
        "async (source) => { if (!window.axe) { (0, eval)(source); } return (await axe.run(document)).violations; }",
        AXE.read_text(encoding="utf-8"),
    )
    return [
        f"{issue['id']}: {[node['target'] for node in issue['nodes']][:3]}"
        for issue in found
        if issue["impact"] in ("serious", "critical")
    ]


CLIPPED = """() => {
  const wide = document.documentElement.clientWidth;
  const parts = document.querySelectorAll("h1, h2, h3, p, li, figure, .fact, .main-svg, footer");
  const clipped = [...parts].filter((part) => {
    if (part.closest(".scroll")) return false;
    const box = part.getBoundingClientRect();
    return box.width > 0 && (box.left < -1 || box.right > wide + 1);
  });
  return clipped.map((part) => part.outerHTML.slice(0, 80));
}"""
"""Parts of a page that stick out of the window; what scrolls on its own does not count."""

OVERLAPS = """() => {
  const parts = [...document.querySelectorAll("h1, h2, h3, p, li, figure, table, .fact, footer")]
    .filter((part) => part.getClientRects().length && !part.closest("figure, table") || part.matches("figure, table"));
  const boxes = parts.map((part) => [part, part.getBoundingClientRect()]).filter(([, box]) => box.width && box.height);
  const found = [];
  boxes.forEach(([a, x], i) => boxes.slice(i + 1).forEach(([b, y]) => {
    if (a.contains(b) || b.contains(a)) return;
    const across = Math.min(x.right, y.right) - Math.max(x.left, y.left);
    const down = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
    if (across > 2 && down > 2) found.push(`${a.outerHTML.slice(0, 60)} | ${b.outerHTML.slice(0, 60)}`);
  }));
  return found;
}"""
"""Pairs of parts that cover each other."""
