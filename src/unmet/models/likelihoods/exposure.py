"""Exposure: quantile regression on what was observed and a random draw of what was lost."""

from __future__ import annotations

from unmet.models.likelihoods.quantile import Quantile

__all__ = ["Exposure"]


class Exposure(Quantile):
    """One output f_q per level. Loss: the sum over levels of rho_q(y + L - f_q), with L drawn again at every epoch.

    L is the energy lost in the hour, one of the posterior draws that `unmet.LostDemand` wrote into the panel
    (`lost_draws`). Demand of the hours before, which the network reads, is filled up by the expectation of L, as it
    was known before that day (`lost_kwh_before`). See `unmet.models.draws`.
    """

    name = "exposure"
    title = "Exposure-aware"
    imputes = True
