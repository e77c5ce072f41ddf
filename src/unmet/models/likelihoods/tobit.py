"""Tobit likelihood: Gaussian demand, censored in some hours."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.special import erfcx, log_ndtr

from unmet.models.likelihoods.base import Observation
from unmet.models.likelihoods.gaussian import Gaussian, log_density

__all__ = ["Tobit", "log_probability"]


class Tobit(Gaussian):
    """y* ~ N(mu, sigma^2), known exactly or only to lie in [lower, upper].

    Loss: -log phi(y) if it is known, -log(1 - Phi(lower)) if right-censored, -log Phi(upper) if left-censored, and
    -log(Phi(upper) - Phi(lower)) in an interval. Tails are computed as logarithms, so that residuals of forty sigma
    still have a finite loss and a gradient.
    """

    name = "tobit"
    title = "Tobit"
    aware = True

    def loss(self, outputs: Tensor, observed: Observation) -> Tensor:
        """Negative log-likelihood of the observation."""
        mean, sigma = self.mean_and_sigma(outputs)
        known = observed.lower == observed.upper
        exact = log_density(torch.where(known, observed.lower, observed.y), mean, sigma)
        # If demand is known, the bounds only have to keep the unused branch finite.
        low = _standardised(torch.where(known, -torch.inf, observed.lower), mean, sigma)
        high = _standardised(torch.where(known, torch.inf, observed.upper), mean, sigma)
        return -torch.where(known, exact, log_probability(low, high))


def _standardised(bound: Tensor, mean: Tensor, sigma: Tensor) -> Tensor:
    """(bound - mean) / sigma; an infinite bound stays infinite and has gradient 0, not NaN as the quotient would."""
    infinite = torch.isinf(bound)
    return torch.where(infinite, bound, (torch.where(infinite, mean.detach(), bound) - mean) / sigma)


def log_probability(low: Tensor, high: Tensor) -> Tensor:
    """Log of Phi(high) - Phi(low) for low <= high, either of which may be infinite."""
    # In the right tail both are close to 1 and their difference cancels, so the interval is mirrored to the left tail.
    mirror = low > -high
    low, high = torch.where(mirror, -high, low), torch.where(mirror, -low, high)
    open_below, open_above = low == -torch.inf, high == torch.inf
    # Infinite bounds are replaced before the functions see them: infinity times a zero gradient is not a number.
    finite_low = torch.where(open_below, torch.zeros_like(low), low)
    finite_high = torch.where(open_above, torch.zeros_like(high), high)
    top = torch.where(open_above, torch.zeros_like(high), _log_below(finite_high))
    below = torch.where(open_below, torch.full_like(low, -1.0), _log_below(finite_low) - top)
    narrow = torch.clamp(below, max=-torch.finfo(below.dtype).eps)
    return torch.where(open_below, top, top + torch.log(-torch.expm1(narrow)))


def _log_below(z: Tensor) -> Tensor:
    """Log of Phi(z), with phi / Phi as its gradient. Torch's own gradient is lost in single precision for large |z|."""
    at = z.detach()
    slope = math.sqrt(2 / math.pi) / erfcx(-at / math.sqrt(2))
    below: Tensor = log_ndtr(at) + slope * (z - at)
    return below
