"""Find the trips that may end at a station, so that nearest stations are looked up for these alone.

Until a car first wants to charge, its state of charge depends on its own trips only. Within a batch, only the trips
from a car's first wish to charge onwards can therefore end at a station.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.simulation.battery import soc_after_trip
from unmet.simulation.choice import willingness

__all__ = ["may_charge"]


@compiled(
    "boolean[::1](int64[::1], float64[::1], float64[:, ::1], float64[::1], int64[::1], float64[::1], float64[::1])"
)
def may_charge(
    vehicle: Integers,
    distance_km: Floats,
    uniform: Floats,
    soc: Floats,
    tries: Integers,
    range_km: Floats,
    beta_table: Floats,
) -> NDArray[np.bool_]:
    """Flag the trips, in order of arrival, that the engine may send to a station; cars do not charge at home.

    Args:
        vehicle: (trips,) car of each trip.
        distance_km: (trips,) distance of each trip.
        uniform: (trips, 3) draws of the engine; the first decides whether to charge.
        soc: (cars,) state of charge before the first of the trips; not changed.
        tries: (cars,) attempts so far of drivers who still want to charge.
        range_km: (cars,) range with a full battery.
        beta_table: result of `unmet.simulation.choice.beta_table`.
    """
    # The state of charge of a car is known until its driver first wants to charge.
    soc_now, is_known = soc.copy(), np.ones(len(soc), np.bool_)
    flagged = np.zeros(len(vehicle), np.bool_)
    for trip in range(len(vehicle)):
        car = vehicle[trip]
        if is_known[car]:
            before = soc_now[car]
            soc_now[car] = soc_after_trip(before, distance_km[trip], range_km[car])
            is_known[car] = tries[car] == 0 and uniform[trip, 0] >= willingness(beta_table, before, soc_now[car])
        flagged[trip] = not is_known[car]
    return flagged
