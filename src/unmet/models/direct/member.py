"""The interface of members of a direct forecaster: models of expected demand at every horizon."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats

__all__ = ["Member", "Rows"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Training data; one row is a region, an hour and a horizon."""

    features: Floats  # (rows, features)
    ratio: Floats  # (rows,), demand over scale
    weight: Floats  # (rows,), scale over the energy of a session: number of sessions at a ratio of 1
    band: NDArray[np.int64]  # (rows,), band of the horizon


class Member(ABC):
    """A model of expected demand over scale. A subclass has a name, a title and these methods."""

    name: ClassVar[str]
    title: ClassVar[str]

    @classmethod
    def is_installed(cls) -> bool:
        """Whether the libraries that the member needs are installed."""
        return True

    @abstractmethod
    def fit(self, rows: Rows, covariates: int, seed: int, threads: int) -> None:
        """Learn from rows of all bands; the last `covariates` features are columns that the user gave."""

    @abstractmethod
    def predict(self, features: Floats, band: int, covariates: int) -> Floats:
        """Expected demand divided by scale, (...), of rows (..., features) of one band."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """The fitted values, as arrays and texts by name."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Set the fitted values that `state` returned."""
