"""Queue disciplines: who gets a plug, and for how long.

A new one is a file beside these with one compiled function, and a call of `register`, from this package or another.
"""

from __future__ import annotations

from unmet.errors import InputError
from unmet.simulation.queues.base import ADMIT, LOST, Driver, Plugs, Queue, Slot, free_plug, until_next_trip
from unmet.simulation.queues.first_come import FIRST_COME
from unmet.simulation.queues.gas_station import GAS_STATION
from unmet.simulation.queues.reservation import RESERVATION
from unmet.simulation.queues.three_hour import THREE_HOUR

__all__ = [
    "ADMIT",
    "LOST",
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

_QUEUES: dict[str, Queue] = {}


def register(queue: Queue) -> Queue:
    """Make a queue discipline known by its name."""
    _QUEUES[queue.name] = queue
    return queue


def queue_named(name: str) -> Queue:
    """The queue discipline of that name."""
    try:
        return _QUEUES[name]
    except KeyError:
        raise InputError(f"There is no queue named {name!r}: choose one of {', '.join(_QUEUES)}.") from None


def queue_names() -> tuple[str, ...]:
    """The names of all known queue disciplines."""
    return tuple(_QUEUES)


for _queue in (GAS_STATION, THREE_HOUR, FIRST_COME, RESERVATION):
    register(_queue)
