"""Fixtures for tests of studies."""

from __future__ import annotations

import pytest

from unmet.models.backbones import BACKBONES
from unmet.models.likelihoods import LIKELIHOODS
from unmet.simulation.queues import QUEUES


@pytest.fixture
def own_registries(monkeypatch):
    """Restore the registries after a test that registers parts or installs a package."""
    for registry in (BACKBONES, LIKELIHOODS, QUEUES):
        monkeypatch.setattr(registry, "_parts", dict(registry._parts))
        monkeypatch.setattr(registry, "_entries", None)
        monkeypatch.setattr(registry, "_loaded", {})
