"""Gas station: drivers wait their turn, first in, first out, charge to 80 % and drive off."""

from __future__ import annotations

from unmet.arrays import Integers
from unmet.compiled import compiled
from unmet.simulation.battery import hours_to_taper
from unmet.simulation.queues.base import ADMIT, LOST, Driver, Plugs, Queue, Slot

__all__ = ["GAS_STATION"]


@compiled(ADMIT)
def _admit(driver: Driver, chosen: int, nearest: Integers, plugs: Plugs) -> Slot:
    # Drivers who leave unserved never take a plug, so the turn is known on arrival: it is the plug that is free first.
    best = plugs.first[chosen]
    for plug in range(best + 1, plugs.first[chosen + 1]):
        if plugs.free_at[plug] < plugs.free_at[best]:
            best = plug
    start = max(driver.now, plugs.free_at[best])
    if start > driver.now and start >= driver.leaves:
        return Slot(chosen, LOST, driver.now, driver.now)
    hours = hours_to_taper(driver.soc, driver.capacity_kwh, plugs.power_kw[chosen], driver.literal)
    return Slot(chosen, best, start, min(start + 3600.0 * hours, driver.leaves))


GAS_STATION = Queue("gas-station", "Gas station", _admit)
