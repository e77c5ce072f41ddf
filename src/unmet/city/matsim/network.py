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
    """Read network.xml(.gz), in which nodes come before the links that join them."""
    nodes: dict[str, tuple[float, float]] = {}
    middle: dict[str, tuple[float, float]] = {}
    length: dict[str, float] = {}
    for element in complete_elements(path, "node", "link"):
        element_id = element.get("id", "")
        try:
            if element.tag == "node":
                nodes[element_id] = float(element.get("x", "")), float(element.get("y", ""))
                continue
            start, end = nodes[element.get("from", "")], nodes[element.get("to", "")]
            middle[element_id] = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
            length[element_id] = float(element.get("length", "0"))
            if not all(map(math.isfinite, (*middle[element_id], length[element_id]))):
                raise ValueError
        except (KeyError, ValueError):
            raise InputError(f"{path}: the {element.tag} {element_id!r} has no usable position or length.") from None
    if not middle:
        raise InputError(f"{path} holds no links: give the network.xml of the scenario.")
    return RoadNetwork(middle, length)
