"""Exposure: quantile regression on what was seen and a random draw of what was not."""

from __future__ import annotations

from unmet.models.likelihoods.quantile import Quantile

__all__ = ["Exposure"]


class Exposure(Quantile):
    """One output f_q a level. Loss: the sum over levels of rho_q(y + L - f_q), with L drawn anew at every epoch.

    L is the demand that was not seen in the hour, given the arrivals seen and the exposure (`unmet.models.imputation`).
    Demand of the hours before, which the network reads, is filled up by its expectation.
    """

    name = "exposure"
    title = "Exposure-aware"
    imputes = True
    reads = ("arrivals", "exposure")
    may_read = ("session_kwh", "exposure_spread", "lost_spread", "turnout")
