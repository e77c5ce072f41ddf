"""What a likelihood is: a loss that says what an observation tells about true demand, and the quantiles it implies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from unmet.models.quantile_levels import LEVELS, checked_levels

__all__ = ["LEVELS", "Likelihood", "Seen", "tilted"]


class Seen(NamedTuple):
    """What was seen of true demand, each of one shape, in units of each region's scale.

    True demand lies in [lower, upper]. Both equal `y` where it is known; `upper` is infinite where demand is censored
    on the right and `lower` is where it is censored on the left; both are finite and differ for an interval.
    """

    y: Tensor
    lower: Tensor
    upper: Tensor


class Likelihood(ABC):
    """A likelihood. A new one is a subclass with a name, a number of outputs, a loss and quantiles."""

    name: ClassVar[str]
    title: ClassVar[str]
    aware: ClassVar[bool] = False  # whether it reads the bounds
    imputes: ClassVar[bool] = False  # whether it learns observed demand plus draws of what was lost

    def __init__(self, levels: Sequence[float] = LEVELS) -> None:
        self.levels = checked_levels(levels)

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many numbers the network gives for each region and hour."""

    @abstractmethod
    def loss(self, outputs: Tensor, seen: Seen) -> Tensor:
        """The loss of each observation, (...), given (..., outputs)."""

    @abstractmethod
    def quantiles(self, outputs: Tensor) -> Tensor:
        """Quantiles of true demand at the levels, (..., levels), never crossing."""


def tilted(residual: Tensor, level: Tensor) -> Tensor:
    """Tilted loss rho_q(e) = max(q e, (q - 1) e) of residuals e at levels q."""
    return torch.maximum(level * residual, (level - 1) * residual)
