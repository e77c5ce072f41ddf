"""Quantile regression, which ignores censoring."""

from __future__ import annotations

import torch
from torch import Tensor

from unmet.models.likelihoods.base import Likelihood, Observation, tilted

__all__ = ["Quantile"]


class Quantile(Likelihood):
    """One output f_q per level. Loss: the sum over levels of rho_q(y - f_q)."""

    name = "quantile"
    title = "Quantile"

    @property
    def outputs(self) -> int:
        """One per level."""
        return len(self.levels)

    def loss(self, outputs: Tensor, observed: Observation) -> Tensor:
        """Tilted loss summed over levels."""
        return tilted(observed.y[..., None] - outputs, self._levels(outputs)).sum(-1)

    def quantiles(self, outputs: Tensor) -> Tensor:
        """The outputs in ascending order."""
        return outputs.sort(-1).values

    def _levels(self, like: Tensor) -> Tensor:
        return torch.tensor(self.levels, dtype=like.dtype, device=like.device)
