"""The engine again in plain Python, written from the design and not from the engine: slow, short and independent."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, inf

from unmet.simulation.scenario import Curve, Scenario, TurnedAway
from unmet.simulation.simulate import Itinerary


@dataclass
class Station:
    power: float
    leaving: list[float] = field(default_factory=list)  # when each plug's last user leaves


@dataclass
class Car:
    soc: float
    capacity: float
    reach: float
    tries: int = 0


def beta_at(table: list[float], x: float) -> float:
    steps = len(table) - 1
    left = min(int(x * steps), steps - 1)
    return table[left] + (x * steps - left) * (table[left + 1] - table[left])


def t80(soc: float, capacity: float, power: float, literal: bool) -> float:
    return (0.8 * (1.0 - soc) if literal else max(0.8 - soc, 0.0)) * capacity / power


def t100(soc: float, capacity: float, power: float, literal: bool) -> float:
    above = 0.8 if literal else max(soc, 0.8)
    return t80(soc, capacity, power, literal) + (1.0 - above) * capacity / (0.25 * power)


def charge(soc: float, hours: float, capacity: float, power: float, literal: bool) -> float:
    full = t80(soc, capacity, power, literal)
    if hours < full:
        new = soc + hours * power / capacity
    else:
        new = (0.8 if literal else max(soc, 0.8)) + 0.25 * (hours - full) * power / capacity
    return min(max(new, soc), 1.0)


def offer(queue: str, stations: list[Station], chosen: int, nearest: list[int], now: float, leaves: float, car: Car,
          literal: bool) -> tuple[int, int, float, float] | None:  # fmt: skip
    """Station, plug, start and end that a driver gets, or None."""
    here = stations[chosen]
    if queue in ("first-come", "three-hour"):
        free = [plug for plug, until in enumerate(here.leaving) if until <= now]
        if not free:
            return None
        end = leaves if leaves < inf else now + 3600.0 * t100(car.soc, car.capacity, here.power, literal)
        return chosen, free[0], now, min(end, now + 3 * 3600.0) if queue == "three-hour" else end
    if queue == "gas-station":
        turn = max(now, min(here.leaving))
        if turn > now and turn >= leaves:
            return None
        end = min(turn + 3600.0 * t80(car.soc, car.capacity, here.power, literal), leaves)
        return chosen, here.leaving.index(min(here.leaving)), turn, end
    options = []
    for rank, candidate in enumerate(nearest):
        for plug, until in enumerate(stations[candidate].leaving):
            start = max(now, until)
            if start <= now + 3600.0 and (start < leaves or start == now):
                options.append((start, rank, plug))
    if not options:
        return None
    start, rank, plug = min(options)
    there = nearest[rank]
    end = start + 3600.0 * t80(car.soc, car.capacity, stations[there].power, literal)
    return there, plug, start, min(end, leaves)


def twin_log(itinerary: Itinerary, scenario: Scenario, electric, soc, capacity, reach, uniform, table):
    """Rows of station, plug (None if lost), start, end, SoC on arrival, energy and attempt, in order of time."""
    trips = itinerary.trips
    stations = [
        Station(float(row["power_kw"]), [-inf] * row["plugs"]) for row in itinerary.city.stations.iter_rows(named=True)
    ]
    cars = [Car(float(s), float(c), float(r)) for s, c, r in zip(soc, capacity, reach, strict=True)]
    literal = scenario.curve is not Curve.CONTINUOUS
    literal_lost = scenario.curve is Curve.LITERAL_LOST
    table = [float(f) for f in table]
    rows = []
    for i in range(len(trips.vehicle)):
        if not electric[trips.vehicle[i]]:
            continue
        car = cars[trips.vehicle[i]]
        before = car.soc
        car.soc = max(before - float(trips.distance_km[i]) / car.reach, 0.0)
        whether, where, then = (float(u) for u in uniform[i])
        if car.tries == 0:
            at_start = beta_at(table, before)
            certain = car.soc <= 0.0 or at_start <= 0.0
            if not certain and whether >= 1.0 - beta_at(table, car.soc) / at_start:
                continue
        nearest = [int(s) for s in trips.nearest[i]]
        km = [float(d) for d in trips.nearest_km[i]]
        weights = [exp(-scenario.distance_sensitivity * (d - km[0])) for d in km]
        total, below, chosen = 0.0, 0.0, nearest[-1]
        for weight in weights:
            total += weight
        for station, weight in zip(nearest[:-1], weights[:-1], strict=True):
            below += weight
            if where * total < below:
                chosen = station
                break
        now, leaves = float(trips.end_s[i]), float(trips.next_start_s[i])
        follows = then < scenario.turned_away_share
        asked = [chosen]
        if scenario.turned_away is TurnedAway.DIVERT and follows:
            asked += [s for s in nearest if s != chosen]
        attempt, slot = car.tries, None
        for station in asked:
            attempt += 1
            slot = offer(scenario.queue, stations, station, nearest, now, leaves, car, literal)
            if slot:
                break
            wanted = 0.8 * (1.0 - car.soc) if literal_lost else max(0.8 - car.soc, 0.0)
            rows.append((i, station, None, now, now, car.soc, wanted * car.capacity, attempt))
        if slot:
            station, plug, start, end = slot
            stations[station].leaving[plug] = end
            power = stations[station].power
            new = charge(car.soc, (end - start) / 3600.0, car.capacity, power, literal)
            rows.append((i, station, plug, start, end, car.soc, (new - car.soc) * car.capacity, attempt))
            car.soc, car.tries = new, 0
        elif scenario.turned_away is TurnedAway.RETRY and follows and car.soc > 0.0:
            car.tries = attempt
        elif scenario.turned_away is TurnedAway.KEEP and follows:
            car.tries = 0
        else:
            car.soc, car.tries = max(car.soc, 0.8), 0
    return rows
