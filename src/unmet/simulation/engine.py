"""The event loop: process all trips of electric cars in order of arrival, with batteries, choices and queues."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled, named_tuple_type
from unmet.simulation.battery import (
    TAPER_SOC,
    energy_to_taper_kwh,
    hours_to_full,
    hours_to_taper,
    literal_energy_kwh,
    soc_after_charging,
    soc_after_trip,
)
from unmet.simulation.choice import choose_station, willingness
from unmet.simulation.queues.base import ADMIT, LOST, PLUGS_TYPE, SLOT_TYPE, Admit, Driver, Plugs, Slot

__all__ = ["COLUMNS", "Cars", "Rules", "Trips", "run"]


class Trips(NamedTuple):
    """Trips in order of their end, as the engine reads them. Times in seconds since 1970, UTC."""

    vehicle: Integers
    end_s: Floats
    next_start_s: Floats  # start of the vehicle's next trip; infinite after its last trip
    distance_km: Floats
    nearest: Integers  # (trips, k) stations, nearest first
    nearest_km: Floats  # (trips, k)
    uniform: Floats  # (trips, 3) draws in [0, 1): whether to charge, where, and what to do if turned away
    at_home: NDArray[np.bool_]  # whether it ends at the car's home; empty if no car charges at home


class Cars(NamedTuple):
    """The state of every car; `soc` and `tries` change as the engine runs."""

    soc: Floats
    tries: Integers  # number of attempts so far, if the driver was turned away and still wants to charge
    capacity_kwh: Floats
    range_km: Floats
    home_kw: Floats  # power of the plug at home, 0 without one


class Rules(NamedTuple):
    """The rules of a scenario, as the engine reads them."""

    beta_table: Floats  # result of `unmet.simulation.choice.beta_table`
    sensitivity: float  # s in exp(-s D) [1/km]
    literal: bool  # whether charging follows the curve as the paper prints it
    literal_lost: bool  # whether lost energy follows the printed curve too
    keeps: float  # share of lost drivers who keep their state of charge and decide again after their next trip
    retries: float  # share of lost drivers who try again after their next trip
    diverts: float  # share of lost drivers who try the next nearest stations at once


COLUMNS = ("trip", "station", "plug", "start_s", "taper_s", "charged_s", "end_s", "soc", "energy_kwh", "attempt")
"""Columns of the engine's log.

A served driver is on the plug from `start_s` to `end_s`, at full power until `taper_s` and at a quarter of it until
`charged_s`. A lost driver has plug -1 and the energy wanted.
"""

_FLOATS = types.Array(types.float64, 1, "C")
_INTEGERS = types.Array(types.int64, 1, "C")
_FLOATS_2D = types.Array(types.float64, 2, "C")
_INTEGERS_2D = types.Array(types.int64, 2, "C")
_FLAGS = types.Array(types.boolean, 1, "C")
_TRIPS = named_tuple_type(Trips, _INTEGERS, _FLOATS, _FLOATS, _FLOATS, _INTEGERS_2D, _FLOATS_2D, _FLOATS_2D, _FLAGS)
_CARS = named_tuple_type(Cars, _FLOATS, _INTEGERS, _FLOATS, _FLOATS, _FLOATS)
_RULES = named_tuple_type(Rules, _FLOATS, types.float64, types.boolean, types.boolean, *(types.float64,) * 3)


@compiled(_FLOATS_2D(_FLOATS_2D, types.int64, types.int64, SLOT_TYPE, *(types.float64,) * 4, types.int64))
def _append(
    log: Floats, n: int, trip: int, slot: Slot, taper_s: float, charged_s: float, soc: float, kwh: float, attempt: int
) -> Floats:
    """Write row n of the log. Returns the log, doubled in length if it was full."""
    if n == len(log):
        longer = np.empty((2 * n, log.shape[1]))
        longer[:n] = log
        log = longer
    log[n, 0], log[n, 1], log[n, 2], log[n, 3] = trip, slot.station, slot.plug, slot.start
    log[n, 4], log[n, 5], log[n, 6] = taper_s, charged_s, slot.end
    log[n, 7], log[n, 8], log[n, 9] = soc, kwh, attempt
    return log


@compiled(_FLOATS_2D(types.FunctionType(ADMIT), _INTEGERS, _TRIPS, _CARS, PLUGS_TYPE, _RULES))
def run(admit: Admit, rows: Integers, trips: Trips, cars: Cars, plugs: Plugs, rules: Rules) -> Floats:
    """Process trips in order of time.

    Args:
        admit: the queue discipline.
        rows: rows of `trips` to process, those of electric cars.
        trips: all trips.
        cars: state of all cars, which is updated.
        plugs: state of all plugs, which is updated.
        rules: the rules of the scenario.

    Returns:
        One row of COLUMNS per arrival at a station.
    """
    log = np.empty((1024 + len(rows) // 8, len(COLUMNS)))  # about one trip in eight ends at a station; it can grow
    n = 0
    for row in rows:
        car = trips.vehicle[row]
        before = cars.soc[car]
        soc = soc_after_trip(before, trips.distance_km[row], cars.range_km[car])
        cars.soc[car] = soc
        if cars.home_kw[car] > 0.0 and trips.at_home[row]:
            hours = (trips.next_start_s[row] - trips.end_s[row]) / 3600.0
            cars.soc[car] = soc_after_charging(soc, hours, cars.capacity_kwh[car], cars.home_kw[car], rules.literal)
            cars.tries[car] = 0
            continue
        if cars.tries[car] == 0 and trips.uniform[row, 0] >= willingness(rules.beta_table, before, soc):
            continue
        nearest = trips.nearest[row]
        capacity = cars.capacity_kwh[car]
        driver = Driver(trips.end_s[row], trips.next_start_s[row], soc, capacity, rules.literal)
        wanted = literal_energy_kwh(soc, capacity) if rules.literal_lost else energy_to_taper_kwh(soc, capacity)
        chosen = nearest[choose_station(trips.nearest_km[row], rules.sensitivity, trips.uniform[row, 1])]
        attempt = cars.tries[car] + 1
        slot = admit(driver, chosen, nearest, plugs)
        if slot.plug == LOST and trips.uniform[row, 2] < rules.diverts:
            for other in nearest:
                if other == chosen:
                    continue
                log = _append(log, n, row, slot, driver.now, driver.now, soc, wanted, attempt)
                n += 1
                attempt += 1
                slot = admit(driver, other, nearest, plugs)
                if slot.plug != LOST:
                    break
        if slot.plug == LOST:
            log = _append(log, n, row, slot, driver.now, driver.now, soc, wanted, attempt)
            # An empty car cannot drive on and try later.
            if soc > 0.0 and trips.uniform[row, 2] < rules.retries:
                cars.tries[car] = attempt
            elif trips.uniform[row, 2] < rules.keeps:
                cars.tries[car] = 0
            else:  # the driver charges to 80 % elsewhere
                cars.tries[car] = 0
                cars.soc[car] = max(soc, TAPER_SOC)
        else:
            plugs.free_at[slot.plug] = slot.end
            power = plugs.power_kw[slot.station]
            taper_s = min(slot.end, slot.start + 3600.0 * hours_to_taper(soc, capacity, power, rules.literal))
            charged_s = min(slot.end, slot.start + 3600.0 * hours_to_full(soc, capacity, power, rules.literal))
            hours = (slot.end - slot.start) / 3600.0
            soc_at_end = soc_after_charging(soc, hours, capacity, power, rules.literal)
            cars.soc[car] = soc_at_end
            cars.tries[car] = 0
            log = _append(log, n, row, slot, taper_s, charged_s, soc, (soc_at_end - soc) * capacity, attempt)
        n += 1
    return log[:n].copy()
