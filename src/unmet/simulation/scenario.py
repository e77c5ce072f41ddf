"""Scenario: everything that determines a simulation of a given city, as a small file."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from unmet.errors import InputError, refusal
from unmet.files import read_yaml_lines
from unmet.simulation.fleet import Fleet
from unmet.simulation.queues import queue_named

__all__ = ["BUILT_IN", "Curve", "Scenario", "TurnedAway", "read_scenario", "scenario_from"]


class Curve(str, Enum):
    """The charging curve: continuous, or as printed in the paper."""

    CONTINUOUS = "continuous"
    LITERAL = "literal"
    LITERAL_LOST = "literal-lost"  # literal, also for the energy of lost drivers


class TurnedAway(str, Enum):
    """What a driver who finds no free plug does next."""

    ELSEWHERE = "elsewhere"  # counts as charged elsewhere, so that later demand does not depend on the queue
    KEEP = "keep"  # keeps the state of charge and decides again after the next trip: the literal reading of the paper
    RETRY = "retry"  # tries again after the next trip
    DIVERT = "divert"  # tries the next nearest station at once


class Scenario(BaseModel):
    """A counterfactual: which cars are electric, and which rules hold at the stations.

    Its fields are the options of `unmet.simulate` and of a scenario file. The paper's study simulates three queue
    disciplines at penetrations of 1 to 5 %.

    Example:
        >>> Scenario(queue="three-hour", penetration=0.03).penetration
        0.03
        >>> print(Scenario(seed=2).to_yaml().splitlines()[2])
        seed: 2
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    queue: str = Field("first-come", description="queue discipline at all stations")
    penetration: float = Field(0.05, gt=0, le=1, description="electric share of the city's cars")
    seed: int = Field(1, ge=0, lt=2**63, description="seed of every random choice")
    plug_in_a: float = Field(3.35, gt=0, description="a of Beta(a, b), the state of charge at which drivers plug in")
    plug_in_b: float = Field(3.7, gt=0, description="b of Beta(a, b), the state of charge at which drivers plug in")
    distance_sensitivity: float = Field(1.0, description="s in exp(-s D): how much nearer stations are preferred, 1/km")
    curve: Curve = Field(Curve.CONTINUOUS, description="charging curve")
    turned_away: TurnedAway = Field(TurnedAway.ELSEWHERE, description="what drivers who find no free plug do")
    fleet: Fleet | None = Field(None, description="models, initial charge and home charging; by default the paper's")
    turned_away_share: float = Field(1.0, ge=0, le=1, description="share of them who keep, retry or divert")

    @field_validator("queue")
    @classmethod
    def _check_queue(cls, name: str) -> str:
        try:
            return queue_named(name).name
        except InputError as error:
            raise ValueError(str(error)) from None

    def to_yaml(self) -> str:
        """The scenario as the text of a scenario file."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False)


def scenario_from(values: dict[str, Any], source: str) -> Scenario:
    """A scenario with these values; raises `InputError` if one is invalid."""
    try:
        return Scenario(**values)
    except ValidationError as error:
        known = ", ".join(Scenario.model_fields)
        unknown = f"has no option {{name}}: the options are {known}"
        raise refusal(error, source, unknown, {"penetration": " (0.05 is 5 %)"}) from None


def read_scenario(path: Path) -> tuple[Scenario, dict[str, Any]]:
    """Read a scenario file as a run writes it: the scenario, and the city if it is not the built-in one.

    The city contains the entries among `trips`, `stations`, `cars` and `time_zone` that the file has. The version that
    wrote the file is ignored.
    """
    values = read_yaml_lines(path, "scenario", "`queue: first-come`")
    values.pop("version", None)
    city = values.pop("city", None) or {}
    if not isinstance(city, dict) or not set(city) <= {"trips", "stations", "cars", "time_zone"}:
        raise InputError(f"{path}: the city of a scenario can only have trips, stations, cars and time_zone.")
    return scenario_from(values, str(path)), {name: value for name, value in city.items() if value != BUILT_IN}


BUILT_IN = "built-in"  # stands for the trips or stations of the built-in city in a scenario file
