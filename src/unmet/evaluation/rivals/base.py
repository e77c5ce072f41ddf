"""The interface of rivals: a name, and a function that forecasts past hours from the hours before each origin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from unmet.arrays import Floats, Integers

__all__ = ["Rival", "RivalTask"]


@dataclass(frozen=True, slots=True)
class RivalTask:
    """Hours to forecast, all at the same horizon."""

    demand: Floats  # (hours, regions) [kWh], NaN if missing
    week: Integers  # (hours,), local hour of the week
    hours: Integers  # hours to forecast
    horizon: int  # [h]
    fitted: int  # number of hours before the held-out ones, which rivals are fitted to
    levels: Floats


@dataclass(frozen=True, slots=True)
class Rival:
    """A forecasting method that an operator could have used."""

    name: str
    title: str
    forecast: Callable[[Sequence[RivalTask]], list[Floats]]
    """Quantiles for each task, (targets, regions, levels) [kWh]; NaN for targets that it does not forecast."""
    needs: str | None = None  # library that it uses

    def is_installed(self) -> bool:
        """Whether its library is installed."""
        return self.needs is None or find_spec(self.needs) is not None
