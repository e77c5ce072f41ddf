"""Sensitivity: how lost demand changes under other assumptions about drivers and plugs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from unmet.estimation.exposed import full_hours
from unmet.estimation.hours import hour_effects
from unmet.estimation.occupancy import Network
from unmet.estimation.rates import fit_rates, response_at_full, response_table

if TYPE_CHECKING:
    from unmet.estimation.lost_demand import LostDemand

__all__ = ["sensitivity_table"]

MAX_SITES = 200  # highest number of sites to try other capacities on; a random sample of more gives the same result
SEED = 13


def sensitivity_table(lost: LostDemand) -> pl.DataFrame:
    """Lost energy and arrivals under other assumptions, the estimate itself first.

    The loss is proportional to the share of drivers who neither wait nor divert, and to the drivers turned away. The
    former gives the factors for other shares; for other capacities, rates are fitted again.
    """
    recovered = lost.recovered_
    kwh, arrivals = (
        float(recovered.station_kwh.sum(axis=1).mean()),
        float(recovered.station_arrivals.sum(axis=1).mean()),
    )
    leaves = max(1 - lost.waiting_ - lost.spill_, 1e-9)
    if_most_wait = max(1 - min(lost.retaken_, 1.0) - lost.spill_, 0.0)
    factors = {
        "as estimated": 1.0,
        "nobody waits": (1 - lost.spill_) / leaves,
        "everybody waits who took a plug within five minutes of its release": if_most_wait / leaves,
        "nobody charges at another site nearby": (1 - lost.waiting_) / leaves,
        "half of those turned away charge nearby": max(0.5 - lost.waiting_, 0.0) / leaves,
    }
    network, turned_away = lost.network_, float(lost.turned_away_.sum())
    if network.sites > MAX_SITES:
        chosen = np.random.default_rng(SEED).choice(network.sites, MAX_SITES, replace=False)
        network = network.only(np.sort(chosen))
        turned_away = _other_capacity(lost, network, 0)
    if turned_away > 0 or kwh == 0:  # else no site of the sample was full, so it says nothing about the network
        for name, change in (("one car more", 1), ("one car fewer", -1)):
            factor = _other_capacity(lost, network, change) / max(turned_away, 1e-9)
            factors[f"every site charges {name} at once than assumed"] = factor
    return pl.DataFrame(
        {
            "assumption": list(factors),
            "lost_kwh": [kwh * factor for factor in factors.values()],
            "lost_arrivals": [arrivals * factor for factor in factors.values()],
        }
    )


def _other_capacity(lost: LostDemand, sites: Network, change: int) -> float:
    """Arrivals expected at full sites if the capacity of every site changed by `change` cars."""
    network = sites.with_capacity(np.maximum(sites.capacity + change, 1))
    rates = fit_rates(network.history, network.clock, network.capacity, lost.components_, lost.prior)
    rows = full_hours(network.history.spells, network.clock, rates.weekly)
    response = response_table(rates.crowding, network.capacity)
    bursts = hour_effects(
        network.history, network.clock, rates.weekly, rates.level, response, rows, network.clock.hours
    )
    return float(
        (rates.at_rows(network.clock, rows) * bursts.mean * response_at_full(rates, network.capacity)[rows.site]).sum()
    )
