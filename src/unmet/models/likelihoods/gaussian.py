"""Gaussian likelihood, which ignores censoring."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from unmet.models.likelihoods.base import Likelihood, Observation

__all__ = ["Gaussian", "log_density"]

MIN_SIGMA = 1e-3  # relative to a region's scale; keeps the density of a constant region finite
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


class Gaussian(Likelihood):
    """y ~ N(mu, sigma^2), with mu the first output and sigma = softplus(second output) + 0.001.

    Loss: -log phi(y | mu, sigma).
    """

    name = "gaussian"
    title = "Gaussian"

    @property
    def outputs(self) -> int:
        """Two: mean and standard deviation."""
        return 2

    def mean_and_sigma(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation, each (...)."""
        return outputs[..., 0], softplus(outputs[..., 1]) + MIN_SIGMA

    def loss(self, outputs: Tensor, observed: Observation) -> Tensor:
        """Negative log-density of the observation."""
        mean, sigma = self.mean_and_sigma(outputs)
        return -log_density(observed.y, mean, sigma)

    def quantiles(self, outputs: Tensor) -> Tensor:
        """Mu + sigma Phi^-1(q)."""
        mean, sigma = self.mean_and_sigma(outputs)
        normal: Tensor = torch.special.ndtri(torch.tensor(self.levels, dtype=torch.float64)).to(mean)
        return mean[..., None] + sigma[..., None] * normal


def log_density(y: Tensor, mean: Tensor, sigma: Tensor) -> Tensor:
    """Log of the Gaussian density."""
    return -0.5 * ((y - mean) / sigma) ** 2 - torch.log(sigma) - _HALF_LOG_2PI
