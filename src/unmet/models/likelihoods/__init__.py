"""Likelihoods. To add one, write a small class in a file of its own and call `LIKELIHOODS.register`."""

from __future__ import annotations

from unmet.models.likelihoods.base import LEVELS, Likelihood, Observation
from unmet.models.likelihoods.censored_quantile import CensoredQuantile
from unmet.models.likelihoods.exposure import Exposure
from unmet.models.likelihoods.gaussian import Gaussian
from unmet.models.likelihoods.quantile import Quantile
from unmet.models.likelihoods.tobit import Tobit
from unmet.registry import Registry

__all__ = ["LEVELS", "LIKELIHOODS", "Likelihood", "Observation"]

LIKELIHOODS: Registry[type[Likelihood]] = Registry("likelihood", "unmet.likelihoods")

for _likelihood in (Gaussian, Tobit, Quantile, CensoredQuantile, Exposure):
    LIKELIHOODS.register(_likelihood)
