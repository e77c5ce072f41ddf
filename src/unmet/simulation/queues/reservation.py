"""Reservation: a driver books the first free slot within an hour among the five nearest stations.

Not in the paper. A booking lasts until the battery is at 80 %, or until the next trip if that comes first, so that the
end of every slot is known when the next one is booked. Among slots that start at the same time, the nearest station
wins.
"""

from __future__ import annotations

from unmet.arrays import Integers
from unmet.compiled import compiled
from unmet.simulation.battery import hours_to_taper
from unmet.simulation.queues.base import ADMIT, LOST, Driver, Plugs, Queue, Slot

__all__ = ["RESERVATION", "WITHIN_HOURS"]

WITHIN_HOURS = 1.0  # longest time until the booked slot starts


@compiled(ADMIT)
def _admit(driver: Driver, chosen: int, nearest: Integers, plugs: Plugs) -> Slot:
    station, best, earliest = chosen, LOST, driver.now + 3600.0 * WITHIN_HOURS
    for candidate in nearest:
        for plug in range(plugs.first[candidate], plugs.first[candidate + 1]):
            start = max(driver.now, plugs.free_at[plug])
            in_time = start < driver.leaves or start == driver.now
            if in_time and (start < earliest or (start == earliest and best == LOST)):
                station, best, earliest = candidate, plug, start
    if best == LOST:
        return Slot(chosen, LOST, driver.now, driver.now)
    hours = hours_to_taper(driver.soc, driver.capacity_kwh, plugs.power_kw[station], driver.literal)
    return Slot(station, best, earliest, min(earliest + 3600.0 * hours, driver.leaves))


RESERVATION = Queue("reservation", "Reservation", _admit)
