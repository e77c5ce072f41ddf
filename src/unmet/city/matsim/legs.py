"""Legs by car from plans or events: vehicle, origin, destination and times."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

from unmet.city.matsim.network import RoadNetwork
from unmet.city.matsim.xml import complete_elements, number_of, root_tag, seconds_of
from unmet.errors import InputError

__all__ = ["Leg", "car_legs"]


class Leg(NamedTuple):
    """A drive. Times are in seconds after midnight, positions in the scenario's coordinates; NaN if unknown."""

    person: str  # stands for the car: every person drives a car of their own
    start_s: float
    end_s: float
    start: tuple[float, float]
    end: tuple[float, float]
    distance_m: float


UNKNOWN = (math.nan, math.nan)


def car_legs(path: Path, network: RoadNetwork | None, mode: str = "car") -> Iterator[Leg]:
    """The legs by a transport mode in a file of plans (selected plans only) or of events."""
    root = root_tag(path)
    if root in ("population", "plans"):
        for person in complete_elements(path, "person"):
            yield from _legs_of_person(person, network, mode)
    elif root == "events":
        yield from _legs_of_events(path, network, mode)
    else:
        raise InputError(f"{path} begins with <{root}>: give plans (<population>) or events (<events>) of MATSim.")


def _legs_of_person(person: Element, network: RoadNetwork | None, mode: str) -> Iterator[Leg]:
    """The legs of a person's selected plan, or of the first plan if none is selected."""
    plans = person.findall("plan")
    chosen = next((plan for plan in plans if plan.get("selected") == "yes"), plans[0] if plans else None)
    if chosen is None:
        return
    parts = [part for part in chosen if part.tag in ("activity", "act", "leg")]
    clock = 0.0  # end of the last activity or leg [s after midnight]
    for i, part in enumerate(parts):
        if part.tag != "leg":
            end_time = seconds_of(part.get("end_time"))
            duration = seconds_of(part.get("max_dur")) or seconds_of(part.get("dur"))  # `dur` in older files
            if end_time is not None or duration is not None:
                clock = end_time if end_time is not None else clock + (duration or 0.0)
            continue
        departure = seconds_of(part.get("dep_time"))
        start = clock if departure is None else departure
        route = part.find("route")
        travel_s = seconds_of(part.get("trav_time"))
        travel_s = travel_s if travel_s is not None or route is None else seconds_of(route.get("trav_time"))
        arrival = seconds_of(parts[i + 1].get("start_time")) if i + 1 < len(parts) else None
        end = arrival if arrival is not None else (start + travel_s if travel_s is not None else math.nan)
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


def _legs_of_events(path: Path, network: RoadNetwork | None, mode: str) -> Iterator[Leg]:
    """Legs from departures to arrivals; distances are the lengths of the links entered, if the network is known."""
    under_way: dict[str, tuple[float, tuple[float, float]]] = {}  # start [s] and position of a person's leg
    driven: dict[str, float] = {}  # distance of a person's leg so far [m]
    driver_of: dict[str, str] = {}  # person by vehicle, since events on links name the vehicle only
    for event in complete_elements(path, "event"):
        kind, person, seconds = event.get("type"), event.get("person", ""), seconds_of(event.get("time"))
        time = math.nan if seconds is None else seconds
        if kind == "departure" and event.get("legMode") == mode:
            under_way[person], driven[person] = (time, _place(event, network)), 0.0
        elif kind == "vehicle enters traffic":
            driver_of[event.get("vehicle", "")] = person
        elif kind == "entered link" and network is not None:
            driver = driver_of.get(event.get("vehicle", ""), "")
            if driver in driven:
                driven[driver] += network.length_m.get(event.get("link", ""), 0.0)
        elif kind == "arrival" and event.get("legMode") == mode and person in under_way:
            start, origin = under_way.pop(person)
            metres = driven.pop(person)
            yield Leg(person, start, time, origin, _place(event, network), metres if metres > 0 else math.nan)


def _place(part: Element, network: RoadNetwork | None) -> tuple[float, float]:
    """The coordinates of an activity or event, else the middle of its link."""
    x, y = part.get("x"), part.get("y")
    if x is not None and y is not None:
        return number_of(x), number_of(y)
    link = part.get("link")
    return network.middle.get(link, UNKNOWN) if network is not None and link is not None else UNKNOWN
