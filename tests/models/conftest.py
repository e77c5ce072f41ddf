"""Fixtures of the model tests: torch on one thread, which is faster for networks this small."""

from __future__ import annotations

import pytest

from unmet.models.seeds import one_thread


@pytest.fixture(autouse=True, scope="package")
def single_thread():
    with one_thread():
        yield
