"""Exposure: quantile regression on observed demand plus a random draw of lost demand."""

from __future__ import annotations

from unmet.models.likelihoods.quantile import Quantile

__all__ = ["Exposure"]


class Exposure(Quantile):
    """One output f_q per level. Loss: the sum over levels of rho_q(y + L - f_q), with a new draw of L in every epoch.

    L is the energy lost in the hour, one of the posterior draws that `unmet.LostDemand` wrote into the panel
    (`lost_draws`). The expectation of L given earlier days (`lost_kwh_before`) is added to the lagged demand that the
    network reads. See `unmet.models.draws`.
    """

    name = "exposure"
    title = "Exposure-aware"
    imputes = True
