"""CQRNN: censored quantile regression with Portnoy's weights, the strongest published censored quantile network.

T. Pearce, J.-H. Jeong, Y. Jia and J. Zhu, Censored quantile regression neural networks for distribution-free survival
analysis, NeurIPS 35 (2022) 7450-7461.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unmet.models.likelihoods.base import Likelihood, Observation, tilted

__all__ = ["CQRNN"]

GRID = tuple(round(0.05 * i, 2) for i in range(1, 20))
"""Levels that are estimated together; the level q* of a bound is looked up among them."""


class CQRNN(Likelihood):
    """One output per level of a grid. A censored hour is split between its bound c and infinity.

    If c is the estimated quantile at level q*, then for q > q* the hour counts with weight w = (q - q*) / (1 - q*) at
    c and 1 - w at infinity; for q <= q* it counts with weight 1 at c, where rho_q has the same gradient as at
    infinity. The level q* comes from the network's own outputs at that step, without a gradient (the paper's
    Algorithm 2).
    """

    name = "cqrnn"
    title = "CQRNN"
    aware = True

    @property
    def outputs(self) -> int:
        """One per level of the grid."""
        return len(GRID)

    def loss(self, outputs: Tensor, observed: Observation) -> Tensor:
        """Weighted tilted loss: the mean over the grid times the number of levels to forecast."""
        level = torch.tensor(GRID, dtype=outputs.dtype, device=outputs.device)
        bound = torch.where(torch.isinf(observed.lower), observed.y, observed.lower)[..., None]
        exact = tilted(bound - outputs, level)
        censored = torch.isinf(observed.upper)[..., None]
        with torch.no_grad():
            below = (outputs.sort(-1).values < bound).sum(-1, keepdim=True)
            q_star = torch.cat([level.new_zeros(1), level])[below]
            weight = torch.where(level > q_star, (level - q_star) / (1 - q_star), torch.ones_like(outputs))
        # At infinity, the loss rho_q(inf - f) is -q f, up to a constant.
        loss = torch.where(censored, weight * exact - (1 - weight) * level * outputs, exact)
        return loss.mean(-1) * len(self.levels)

    def quantiles(self, outputs: Tensor) -> Tensor:
        """Quantiles at the levels to forecast: sorted outputs, interpolated linearly between levels of the grid."""
        rising = outputs.sort(-1).values
        grid = torch.tensor(GRID, dtype=outputs.dtype, device=outputs.device)
        wanted = torch.tensor(self.levels, dtype=outputs.dtype, device=outputs.device)
        above = torch.searchsorted(grid, wanted - 1e-6).clamp(1, len(GRID) - 1)
        share = ((wanted - grid[above - 1]) / (grid[above] - grid[above - 1])).clamp(0, 1)
        return rising[..., above - 1] * (1 - share) + rising[..., above] * share
