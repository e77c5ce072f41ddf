"""The first-come city as one would write it with SimPy: a process per car, a resource per station."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, inf
from typing import Any

import numpy as np
import simpy

from unmet.simulation.choice import beta_table
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import Draw, Itinerary


def simpy_city(itinerary: Itinerary, drawn: Draw, scenario: Scenario) -> tuple[simpy.Environment, dict[str, int]]:
    """A first-come scenario with the same random numbers as the engine, ready to run, and its counts of outcomes."""
    trips = itinerary.trips
    rows = np.flatnonzero(drawn.electric[trips.vehicle])
    env = simpy.Environment(initial_time=float(trips.end_s[rows[0]]) - 1)
    stations = itinerary.city.stations
    plugs = [simpy.Resource(env, capacity) for capacity in stations["plugs"]]
    power = [float(kw) for kw in stations["power_kw"]]
    table = beta_table(scenario.plug_in_a, scenario.plug_in_b).tolist()
    steps = len(table) - 1
    outcome = {"served": 0, "lost": 0}

    def plug_in_cdf(x: float) -> float:
        left = min(int(x * steps), steps - 1)
        return float(table[left] + (x * steps - left) * (table[left + 1] - table[left]))

    def hold(station: simpy.Resource, request: Any, until: float) -> Iterator[Any]:
        yield env.timeout(until - env.now)
        station.release(request)

    def car(legs: list[tuple[float, float, float, list[int], list[float], list[float]]], soc: float, capacity: float,
            range_km: float) -> Iterator[Any]:  # fmt: skip
        for end, leaves, km, nearest, nearest_km, (whether, where, _) in legs:
            yield env.timeout(end - env.now)
            before, soc = soc, max(soc - km / range_km, 0.0)
            start = plug_in_cdf(before)
            if soc > 0.0 and start > 0.0 and whether >= 1.0 - plug_in_cdf(soc) / start:
                continue
            weights = [exp(-scenario.distance_sensitivity * (d - nearest_km[0])) for d in nearest_km]
            draw, chosen = where * sum(weights), nearest[-1]
            for candidate, weight in zip(nearest, weights, strict=True):
                draw -= weight
                if draw < 0:
                    chosen = candidate
                    break
            station, power_kw = plugs[chosen], power[chosen]
            if station.count >= station.capacity:
                outcome["lost"] += 1
                soc = max(soc, 0.8)
                continue
            outcome["served"] += 1
            to_80 = max(0.8 - soc, 0.0) * capacity / power_kw
            full = to_80 + (1.0 - max(soc, 0.8)) * capacity / (0.25 * power_kw)
            until = leaves if leaves < inf else end + 3600.0 * full
            env.process(hold(station, station.request(), until))
            hours = (until - end) / 3600.0
            if hours < to_80:
                soc += hours * power_kw / capacity
            else:
                soc = min(max(soc, 0.8) + 0.25 * (hours - to_80) * power_kw / capacity, 1.0)

    legs_of: dict[int, list[Any]] = {}
    columns = (trips.vehicle, trips.end_s, trips.next_start_s, trips.distance_km, trips.nearest, trips.nearest_km)
    for vehicle, *rest in zip(*(c[rows].tolist() for c in columns), drawn.uniform[rows].tolist(), strict=True):
        legs_of.setdefault(vehicle, []).append(tuple(rest))
    for vehicle, legs in legs_of.items():
        soc, capacity, range_km = (float(a[vehicle]) for a in (drawn.soc, drawn.capacity_kwh, drawn.range_km))
        env.process(car(legs, soc, capacity, range_km))
    return env, outcome
