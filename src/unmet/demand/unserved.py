"""What becomes of drivers who find no plug, as the analyst takes it."""

from __future__ import annotations

from dataclasses import dataclass

from unmet.demand.energies import ENERGIES
from unmet.errors import InputError

__all__ = ["Unserved"]


@dataclass(frozen=True, slots=True)
class Unserved:
    """Drivers who find no plug: whether they wait, are seen elsewhere or later, and what they would have taken."""

    waiting: float | None = None  # share who wait until they are served; None: as the records tell
    spill: float | None = 0.0  # share of the others who are seen at another station or time; None: as records tell
    energies: str = "seen"  # or to-80

    def __post_init__(self) -> None:
        for name, value in (("waiting", self.waiting), ("spill", self.spill)):
            if value is not None and not 0 <= value <= 1:
                raise InputError(f"A share of {value:g} for {name} makes no sense: give one from 0 to 1, as 0.3.")
        if self.energies not in ENERGIES:
            raise InputError(f"There are no energies {self.energies!r}: choose one of {', '.join(ENERGIES)}.")
