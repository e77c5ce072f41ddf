"""Queue disciplines: who gets a plug, and for how long.

To add one, write a compiled function in a file of its own, in this package or another, and call `register`.
"""

from __future__ import annotations

from unmet.registry import Registry
from unmet.simulation.queues.base import ADMIT, LOST, Driver, Plugs, Queue, Slot, free_plug, until_next_trip
from unmet.simulation.queues.first_come import FIRST_COME
from unmet.simulation.queues.gas_station import GAS_STATION
from unmet.simulation.queues.reservation import RESERVATION
from unmet.simulation.queues.three_hour import THREE_HOUR

__all__ = [
    "ADMIT",
    "LOST",
    "QUEUES",
    "Driver",
    "Plugs",
    "Queue",
    "Slot",
    "free_plug",
    "queue_named",
    "queue_names",
    "register",
    "until_next_trip",
]

QUEUES: Registry[Queue] = Registry("queue", "unmet.queues")
register, queue_named, queue_names = QUEUES.register, QUEUES.named, QUEUES.names

for _queue in (GAS_STATION, THREE_HOUR, FIRST_COME, RESERVATION):
    register(_queue)
