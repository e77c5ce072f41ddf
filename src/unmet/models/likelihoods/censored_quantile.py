"""Censored quantile regression: a forecast beyond the bound of a censored hour is not punished."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import relu

from unmet.models.likelihoods.base import Seen, tilted
from unmet.models.likelihoods.quantile import Quantile

__all__ = ["CensoredQuantile"]


class CensoredQuantile(Quantile):
    """One output f_q a level. Loss: the sum over levels of rho_q(e_q), e_q the way from f_q to [lower, upper].

    Where demand is known this is rho_q(y - f). On the right it is the paper's rho_q(y - min(tau, f)) with tau = y, on
    the left rho_q(y - max(tau, f)); within an interval nothing, and beyond its ends what is missing to them.
    """

    name = "censored-quantile"
    title = "Censored quantile"
    aware = True

    def loss(self, outputs: Tensor, seen: Seen) -> Tensor:
        """Tilted loss of what is missing to the bounds, summed over levels."""
        residual = relu(seen.lower[..., None] - outputs) - relu(outputs - seen.upper[..., None])
        return tilted(residual, self._levels(outputs)).sum(-1)
