"""Censored quantile regression: a forecast beyond the bound of a censored hour is not penalised."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import relu

from unmet.models.likelihoods.base import Observation, tilted
from unmet.models.likelihoods.quantile import Quantile

__all__ = ["CensoredQuantile"]


class CensoredQuantile(Quantile):
    """One output f_q per level. Loss: the sum over levels of rho_q(e_q), e_q the distance from f_q to [lower, upper].

    If demand is known, this is rho_q(y - f). If it is right-censored, it is the paper's rho_q(y - min(tau, f)) with
    tau = y, and if it is left-censored, rho_q(y - max(tau, f)). Within an interval the loss is 0.
    """

    name = "censored-quantile"
    title = "Censored quantile"
    aware = True

    def loss(self, outputs: Tensor, observed: Observation) -> Tensor:
        """Tilted loss of the distance to the bounds, summed over levels."""
        residual = relu(observed.lower[..., None] - outputs) - relu(outputs - observed.upper[..., None])
        return tilted(residual, self._levels(outputs)).sum(-1)
