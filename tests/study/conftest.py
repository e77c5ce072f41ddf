"""What the tests of studies share."""

from __future__ import annotations

import pytest

from unmet.models.backbones import BACKBONES
from unmet.models.likelihoods import LIKELIHOODS
from unmet.simulation.queues import QUEUES


@pytest.fixture
def own_registries(monkeypatch):
    """What a test registers is forgotten after it."""
    for registry in (BACKBONES, LIKELIHOODS, QUEUES):
        monkeypatch.setattr(registry, "_parts", dict(registry._parts))
