"""What a member of a direct forecaster is: a model of expected demand that serves every horizon."""

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
    """What there is to learn from: one row is a region and hour, forecast some hours ahead."""

    features: Floats  # (rows, features)
    ratio: Floats  # (rows,), demand over scale
    weight: Floats  # (rows,), scale over the energy of a session: sessions that a ratio of 1 stands for
    band: NDArray[np.int64]  # (rows,), of the horizon


class Member(ABC):
    """A model of expected demand over scale. A new one is a subclass with a name, a title and these methods."""

    name: ClassVar[str]
    title: ClassVar[str]

    @classmethod
    def is_installed(cls) -> bool:
        """Whether the libraries that it needs are there."""
        return True

    @abstractmethod
    def fit(self, rows: Rows, covariates: int, seed: int, threads: int) -> None:
        """Learn from rows of all bands; the last `covariates` features are the user's."""

    @abstractmethod
    def predict(self, features: Floats, band: int, covariates: int) -> Floats:
        """Expected demand over scale of rows (..., features) of one band."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What was learned, as arrays and texts by name."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """The reverse of `state`."""
