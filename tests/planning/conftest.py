"""Fixtures of the planning tests: a small network, and the estimate of its lost demand."""

from __future__ import annotations

import pytest

from tests.estimation.networks import Simulated, network
from unmet.estimation.lost_demand import LostDemand
from unmet.planning.drivers import DrawnDemand, demand_of


@pytest.fixture(scope="session")
def town() -> Simulated:
    """Pairs of sites half a kilometre apart, with a rush every day."""
    return network(plugs=(1, 2, 2, 3, 1, 4), per_plug=0.25, days=28, stay=2.0, seed=3, kinds=(0, 1, 2, 0, 1, 2))


@pytest.fixture(scope="session")
def lost(town: Simulated) -> LostDemand:
    return LostDemand(draws=40).fit(town.panel())


@pytest.fixture(scope="session")
def demand(lost: LostDemand) -> DrawnDemand:
    return demand_of(lost)
