"""A browser to draw pages in, where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def drawn(page: Path, profile: Path) -> str:
    """The page after its scripts have run without an error."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium on this machine")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}",
             "--virtual-time-budget=20000", "--enable-logging=stderr", "--dump-dom"]  # fmt: skip
    done = subprocess.run([browser, *flags, page.as_uri()], capture_output=True, text=True, check=False, timeout=120)
    assert "Uncaught" not in done.stderr
    return done.stdout


def section(page: str, figure: str) -> str:
    """The part of a drawn page that holds a figure."""
    return page.split(f'id="{figure}"', 1)[1].split("</section>", 1)[0]
