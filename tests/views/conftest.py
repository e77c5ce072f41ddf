"""Fixtures for tests of pages."""

from __future__ import annotations

import pytest

from tests.views.browser import SLOW, chromium


@pytest.fixture(scope="module")
def browser():
    """A browser under the control of Playwright, shared by the tests of a file."""
    playwright = pytest.importorskip("playwright.sync_api")
    playwright.expect.set_options(timeout=SLOW)
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield started
        started.close()
