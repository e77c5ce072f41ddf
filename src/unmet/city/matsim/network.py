"""The network of a MATSim scenario: positions and lengths of links."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from unmet.city.matsim.xml import complete_elements
from unmet.errors import InputError

__all__ = ["RoadNetwork", "read_road_network"]


@dataclass(frozen=True, slots=True)
class RoadNetwork:
    """Links by their id."""

    middle: dict[str, tuple[float, float]]  # x, y in the scenario's coordinates
    length_m: dict[str, float]


def read_road_network(path: Path) -> RoadNetwork:
    """Read network.xml(.gz)."""
    nodes: dict[str, tuple[float, float]] = {}
    middle: dict[str, tuple[float, float]] = {}
    length: dict[str, float] = {}
    for element in complete_elements(path, "node", "link"):
        name = element.get("id", "")
        try:
            if element.tag == "node":
                nodes[name] = float(element.get("x", "")), float(element.get("y", ""))
                continue
            begin, end = nodes[element.get("from", "")], nodes[element.get("to", "")]
            middle[name] = (begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2
            length[name] = float(element.get("length", "0"))
            if not all(map(math.isfinite, (*middle[name], length[name]))):
                raise ValueError
        except (KeyError, ValueError):
            raise InputError(f"{path}: the {element.tag} {name!r} has no usable position or length.") from None
    if not middle:
        raise InputError(f"{path} holds no links: give the network.xml of the scenario.")
    return RoadNetwork(middle, length)
