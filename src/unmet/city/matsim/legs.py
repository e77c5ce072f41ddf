"""Legs by car from plans or events: vehicle, origin, destination and times."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

from unmet.city.matsim.network import RoadNetwork
from unmet.city.matsim.xml import ends, number_of, root_of, seconds_of
from unmet.errors import InputError

__all__ = ["Leg", "car_legs"]


class Leg(NamedTuple):
    """A drive. Times are in seconds after midnight, positions in the scenario's coordinates; NaN if unknown."""

    person: str
    start_s: float
    end_s: float
    start: tuple[float, float]
    end: tuple[float, float]
    distance_m: float


UNKNOWN = (math.nan, math.nan)


def car_legs(path: Path, network: RoadNetwork | None, mode: str = "car") -> Iterator[Leg]:
    """The legs of a mode in a file of plans (the selected ones) or of events."""
    root = root_of(path)
    if root in ("population", "plans"):
        for person in ends(path, "person"):
            yield from _of_person(person, network, mode)
    elif root == "events":
        yield from _of_events(path, network, mode)
    else:
        raise InputError(f"{path} begins with <{root}>: give plans (<population>) or events (<events>) of MATSim.")


def _of_person(person: Element, network: RoadNetwork | None, mode: str) -> Iterator[Leg]:
    plans = person.findall("plan")
    chosen = next((plan for plan in plans if plan.get("selected") == "yes"), plans[0] if plans else None)
    if chosen is None:
        return
    parts = [part for part in chosen if part.tag in ("activity", "act", "leg")]
    clock = 0.0  # when the last activity ended
    for i, part in enumerate(parts):
        if part.tag != "leg":
            ends_at = seconds_of(part.get("end_time"))
            stays = seconds_of(part.get("max_dur")) or seconds_of(part.get("dur"))
            if ends_at is not None or stays is not None:
                clock = ends_at if ends_at is not None else clock + (stays or 0.0)
            continue
        left = seconds_of(part.get("dep_time"))
        start = clock if left is None else left
        route = part.find("route")
        took = seconds_of(part.get("trav_time"))
        took = took if took is not None or route is None else seconds_of(route.get("trav_time"))
        arrives = seconds_of(parts[i + 1].get("start_time")) if i + 1 < len(parts) else None
        end = arrives if arrives is not None else (start + took if took is not None else math.nan)
        if part.get("mode") == mode:
            distance = number_of(route.get("distance") if route is not None else None)
            yield Leg(
                person.get("id", ""),
                start,
                end,
                _place(parts[i - 1], network) if i else UNKNOWN,
                _place(parts[i + 1], network) if i + 1 < len(parts) else UNKNOWN,
                distance,
            )
        clock = end if not math.isnan(end) else start


def _of_events(path: Path, network: RoadNetwork | None, mode: str) -> Iterator[Leg]:
    """Departures and arrivals; distances are the lengths of the links entered, if the network is known."""
    under_way: dict[str, tuple[float, tuple[float, float]]] = {}
    driven: dict[str, float] = {}
    driver_of: dict[str, str] = {}
    for event in ends(path, "event"):
        kind, person, time = event.get("type"), event.get("person", ""), number_of(event.get("time"))
        if kind == "departure" and event.get("legMode") == mode:
            under_way[person], driven[person] = (time, _place(event, network)), 0.0
        elif kind == "vehicle enters traffic":
            driver_of[event.get("vehicle", "")] = person
        elif kind == "entered link" and network is not None:
            driver = driver_of.get(event.get("vehicle", ""), "")
            if driver in driven:
                driven[driver] += network.length_m.get(event.get("link", ""), 0.0)
        elif kind == "arrival" and event.get("legMode") == mode and person in under_way:
            start, begin = under_way.pop(person)
            metres = driven.pop(person)
            yield Leg(person, start, time, begin, _place(event, network), metres if metres > 0 else math.nan)


def _place(part: Element, network: RoadNetwork | None) -> tuple[float, float]:
    x, y = part.get("x"), part.get("y")
    if x is not None and y is not None:
        return number_of(x), number_of(y)
    link = part.get("link")
    return network.middle.get(link, UNKNOWN) if network is not None and link is not None else UNKNOWN
