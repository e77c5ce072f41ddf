"""Three-hour: first come, first served, but cars must leave after three hours."""

from __future__ import annotations

from unmet.arrays import Integers
from unmet.compiled import compiled
from unmet.simulation.queues.base import ADMIT, LOST, Driver, Plugs, Queue, Slot, free_plug, until_next_trip

__all__ = ["LIMIT_HOURS", "THREE_HOUR"]

LIMIT_HOURS = 3.0


@compiled(ADMIT)
def _admit(driver: Driver, chosen: int, nearest: Integers, plugs: Plugs) -> Slot:
    plug = free_plug(plugs, chosen, driver.now)
    if plug == LOST:
        return Slot(chosen, LOST, driver.now, driver.now)
    until = until_next_trip(driver, plugs.power_kw[chosen])
    return Slot(chosen, plug, driver.now, min(until, driver.now + 3600.0 * LIMIT_HOURS))


THREE_HOUR = Queue("three-hour", "Three-hour limit", _admit)
