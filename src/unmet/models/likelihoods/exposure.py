"""Exposure: quantile regression on observed demand plus a random draw of lost demand."""

from __future__ import annotations

from unmet.models.likelihoods.quantile import Quantile

__all__ = ["Exposure"]


class Exposure(Quantile):
    """One output f_q per level. Loss: the sum over levels of rho_q(y + L - f_q), with a new draw of L in every epoch.

    L is the energy lost in the hour, one of the posterior draws that `unmet.LostDemand` wrote into the panel
    (`lost_draws`). To lagged demand, which the network reads, the expectation of L given earlier days is added
    (`lost_kwh_before`). See `unmet.models.draws`.
    """

    name = "exposure"
    title = "Exposure-aware"
    imputes = True
