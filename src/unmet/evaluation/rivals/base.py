"""What a rival is: a name, and a function that forecasts past hours from the hours before their origin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from unmet.arrays import Floats, Integers

__all__ = ["Rival", "RivalTask"]


@dataclass(frozen=True, slots=True)
class RivalTask:
    """Hours to forecast, each the same number of hours ahead."""

    demand: Floats  # (hours, regions) [kWh], NaN where missing
    week: Integers  # (hours,), local hour of the week
    hours: Integers  # targets
    horizon: int  # hours ahead
    fitted: int  # first held-out hour
    levels: Floats


@dataclass(frozen=True, slots=True)
class Rival:
    """A forecasting method that an operator could have used."""

    name: str
    title: str
    answer: Callable[[Sequence[RivalTask]], list[Floats]]
    """To each question (targets, regions, levels) [kWh]; NaN for targets that it does not forecast."""
    needs: str | None = None  # library

    def is_installed(self) -> bool:
        """Whether its library is there."""
        return self.needs is None or find_spec(self.needs) is not None
