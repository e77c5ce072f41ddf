"""The interface of likelihoods: the loss of an observation that may be censored, and quantiles of true demand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from unmet.models.quantile_levels import LEVELS, checked_levels

__all__ = ["LEVELS", "Likelihood", "Observation", "tilted"]


class Observation(NamedTuple):
    """Observed demand and bounds of true demand, of one shape, in units of each region's scale.

    True demand lies in [lower, upper]. Both equal `y` if it is known. If demand is right-censored, `upper` is infinite;
    if it is left-censored, `lower` is minus infinity; if it is interval-censored, both are finite.
    """

    y: Tensor
    lower: Tensor
    upper: Tensor


class Likelihood(ABC):
    """A likelihood. A subclass has a name, a title, a number of outputs, a loss and quantiles."""

    name: ClassVar[str]
    title: ClassVar[str]
    aware: ClassVar[bool] = False  # whether it reads the bounds
    imputes: ClassVar[bool] = False  # whether it learns observed demand plus draws of lost demand

    def __init__(self, levels: Sequence[float] = LEVELS) -> None:
        self.levels = checked_levels(levels)

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of outputs of the network for each region and hour."""

    @abstractmethod
    def loss(self, outputs: Tensor, observed: Observation) -> Tensor:
        """The loss of each observation, (...), given (..., outputs)."""

    @abstractmethod
    def quantiles(self, outputs: Tensor) -> Tensor:
        """Quantiles of true demand at the levels, (..., levels), never crossing."""


def tilted(residual: Tensor, level: Tensor) -> Tensor:
    """Tilted loss rho_q(e) = max(q e, (q - 1) e) of residuals e at levels q."""
    return torch.maximum(level * residual, (level - 1) * residual)
