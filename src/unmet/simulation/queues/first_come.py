"""First come, first served: a driver who finds a free plug keeps it until the next trip; others are lost."""

from __future__ import annotations

from unmet.arrays import Integers
from unmet.compiled import compiled
from unmet.simulation.queues.base import ADMIT, LOST, Driver, Plugs, Queue, Slot, free_plug, until_next_trip

__all__ = ["FIRST_COME"]


@compiled(ADMIT)
def _admit(driver: Driver, chosen: int, nearest: Integers, plugs: Plugs) -> Slot:
    plug = free_plug(plugs, chosen, driver.now)
    if plug == LOST:
        return Slot(chosen, LOST, driver.now, driver.now)
    return Slot(chosen, plug, driver.now, until_next_trip(driver, plugs.power_kw[chosen]))


FIRST_COME = Queue("first-come", "First come, first served", _admit)
