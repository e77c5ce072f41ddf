"""Quantile regression, which takes every observation for the truth."""

from __future__ import annotations

import torch
from torch import Tensor

from unmet.models.likelihoods.base import Likelihood, Seen, tilted

__all__ = ["Quantile"]


class Quantile(Likelihood):
    """One output f_q a level. Loss: the sum over levels of rho_q(y - f_q)."""

    name = "quantile"
    title = "Quantile"

    @property
    def outputs(self) -> int:
        """One a level."""
        return len(self.levels)

    def loss(self, outputs: Tensor, seen: Seen) -> Tensor:
        """Tilted loss summed over levels."""
        return tilted(seen.y[..., None] - outputs, self._levels(outputs)).sum(-1)

    def quantiles(self, outputs: Tensor) -> Tensor:
        """The outputs in rising order."""
        return outputs.sort(-1).values

    def _levels(self, like: Tensor) -> Tensor:
        return torch.tensor(self.levels, dtype=like.dtype, device=like.device)
