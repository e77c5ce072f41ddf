"""The interface of queue disciplines: a compiled function that decides which plug a driver gets, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import types

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled, named_tuple_type
from unmet.simulation.battery import hours_to_full

__all__ = ["ADMIT", "LOST", "Admit", "Driver", "Plugs", "Queue", "Slot", "free_plug", "until_next_trip"]


class Driver(NamedTuple):
    """What a queue knows about a driver. Times are in seconds; `leaves` is infinite if no later trip is known."""

    now: float
    leaves: float
    soc: float
    capacity_kwh: float
    literal: bool  # whether to use the paper's printed charging curve


class Plugs(NamedTuple):
    """All plugs of the city; the plugs of station s are first[s], ..., first[s + 1] - 1."""

    first: Integers  # (stations + 1,)
    power_kw: Floats  # (stations,)
    free_at: Floats  # (plugs,), second at which the plug's last user leaves


class Slot(NamedTuple):
    """The plug that a driver gets, from `start` to `end` [s]; a plug of -1 means lost."""

    station: int
    plug: int
    start: float
    end: float


LOST = -1

Admit = Callable[[Driver, int, Integers, Plugs], Slot]
"""(driver, station the driver chose, nearest stations in order, plugs) -> slot."""

_FLOATS = types.Array(types.float64, 1, "C")
_INTEGERS = types.Array(types.int64, 1, "C")
DRIVER_TYPE = named_tuple_type(Driver, *(types.float64,) * 4, types.boolean)
PLUGS_TYPE = named_tuple_type(Plugs, _INTEGERS, _FLOATS, _FLOATS)
SLOT_TYPE = named_tuple_type(Slot, types.int64, types.int64, types.float64, types.float64)
ADMIT = SLOT_TYPE(DRIVER_TYPE, types.int64, _INTEGERS, PLUGS_TYPE)
"""The compiled signature of `Admit`."""


@compiled(types.int64(PLUGS_TYPE, types.int64, types.float64))
def free_plug(plugs: Plugs, station: int, now: float) -> int:
    """The first free plug of a station, or LOST."""
    for plug in range(plugs.first[station], plugs.first[station + 1]):
        if plugs.free_at[plug] <= now:
            return plug
    return LOST


@compiled(types.float64(DRIVER_TYPE, types.float64))
def until_next_trip(driver: Driver, power_kw: float) -> float:
    """Time at which a driver leaves who stays until the next trip; if none is known, until the battery is full [s]."""
    if driver.leaves < np.inf:
        return driver.leaves
    return driver.now + 3600.0 * hours_to_full(driver.soc, driver.capacity_kwh, power_kw, driver.literal)


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue discipline."""

    name: str  # in options and files
    title: str  # in tables and figures
    admit: Admit
