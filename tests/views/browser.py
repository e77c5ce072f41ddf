"""Pages in a browser, if one is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parent / "axe" / "axe.min.js"
"""Accessibility checks by Deque Systems, MPL-2.0; for tests alone."""
SLOW = 300_000  # time limit of a step on a very busy machine [ms]


def chromium() -> str:
    """The path of the browser; the test is skipped if there is none."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium on this machine")
    return browser


def drawn(page: Path, profile: Path) -> str:
    """The HTML of a page after its scripts have run; they must not raise an error."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}",
             "--virtual-time-budget=20000", "--enable-logging=stderr", "--dump-dom"]  # fmt: skip
    done = subprocess.run([chromium(), *flags, page.as_uri()], capture_output=True, text=True, check=False, timeout=600)
    assert "Uncaught" not in done.stderr
    return done.stdout


def section(page: str, figure: str) -> str:
    """The section of a rendered page that contains a figure."""
    return page.split(f'id="{figure}"', 1)[1].split("</section>", 1)[0]


def visible_text(page: str) -> str:
    """The text of a page, without figures, scripts and styles."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body).replace("\N{NO-BREAK SPACE}", " "))


@contextmanager
def opened(browser: Any, **context: Any) -> Iterator[tuple[Any, list[str]]]:
    """A new page in a browser, and a list of its console messages, errors and requests to other hosts."""
    own = browser.new_context(**context)
    page = own.new_page()
    page.set_default_timeout(SLOW)
    messages: list[str] = []
    page.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: messages.append(f"error: {error}"))
    page.on("request", lambda request: messages.extend(_elsewhere(request.url)))
    yield page, messages
    own.close()


def _elsewhere(url: str) -> list[str]:
    is_local = url.startswith(("file:", "data:", "blob:", "about:", "http://127.0.0.1"))
    return [] if is_local else [f"requested {url}"]


def serious_issues(page: Any) -> list[str]:
    """The accessibility issues that axe-core rates as serious or critical."""
    found = page.evaluate(
        "async (source) => { if (!window.axe) { (0, eval)(source); } return (await axe.run(document)).violations; }",
        AXE.read_text(encoding="utf-8"),
    )
    return [
        f"{issue['id']}: {[node['target'] for node in issue['nodes']][:3]}"
        for issue in found
        if issue["impact"] in ("serious", "critical")
    ]


def wait_until_drawn(page: Any) -> None:
    """Wait until every figure is drawn as wide as its place, and the browser has shown it."""
    page.wait_for_function(
        """() => [...document.querySelectorAll(".plotly-graph-div")].every((plot) => {
          const drawn = plot.querySelector(".main-svg");
          return drawn && Math.abs(drawn.getBoundingClientRect().width - plot.getBoundingClientRect().width) < 2;
        })"""
    )
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def faults_of_boxes(page: Any) -> list[str]:
    """What is clipped, overlaps or needs scrolling sideways in a page."""
    return [f"{kind}: {part}" for kind, check in BOXES.items() for part in page.evaluate(check)]


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
"""Parts of a page that extend beyond the window, except those that scroll on their own."""

OVERLAPS = """() => {
  const parts = [...document.querySelectorAll("h1, h2, h3, p, li, figure, table, .fact, footer")]
    .filter((part) => part.getClientRects().length && !part.closest("figure, table") || part.matches("figure, table"));
  const boxes = parts.filter((part) => part.checkVisibility()).map((part) => [part, part.getBoundingClientRect()])
    .filter(([, box]) => box.width && box.height);
  const found = [];
  boxes.forEach(([a, x], i) => boxes.slice(i + 1).forEach(([b, y]) => {
    if (a.contains(b) || b.contains(a)) return;
    const across = Math.min(x.right, y.right) - Math.max(x.left, y.left);
    const down = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
    if (across > 2 && down > 2) found.push(`${a.outerHTML.slice(0, 60)} | ${b.outerHTML.slice(0, 60)}`);
  }));
  return found;
}"""
"""Pairs of parts that overlap."""

LABELS = """() => {
  const found = [];
  document.querySelectorAll(".js-plotly-plot").forEach((plot) => {
    const frame = plot.getBoundingClientRect();
    [".annotation-text-g", ".xtick text", ".ytick text", ".legendtext"].forEach((kind) => {
      const boxes = [...plot.querySelectorAll(kind)].map((part) => [part.textContent, part.getBoundingClientRect()])
        .filter(([, box]) => box.width);
      boxes.forEach(([text, x], i) => {
        if (x.left < frame.left - 1 || x.right > frame.right + 1) found.push(`${plot.id}: "${text}" is cut off`);
        boxes.slice(i + 1).forEach(([other, y]) => {
          const across = Math.min(x.right, y.right) - Math.max(x.left, y.left);
          const down = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
          if (across > 2 && down > 2) found.push(`${plot.id}: "${text}" covers "${other}"`);
        });
      });
    });
  });
  return found;
}"""
"""Labels in figures that overlap others of their kind, or extend beyond the figure."""

SIDEWAYS = """() => [
  ...(document.documentElement.scrollWidth > document.documentElement.clientWidth ? ["the page"] : []),
  ...[...document.querySelectorAll(".scroll")].filter((part) => part.scrollWidth > part.clientWidth + 1)
    .map((part) => part.getAttribute("aria-label")),
]"""
"""The page or tables that must be scrolled sideways."""
BOXES = {"clipped": CLIPPED, "overlap": OVERLAPS, "label": LABELS, "sideways": SIDEWAYS}
