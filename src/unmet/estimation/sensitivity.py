"""Sensitivity: how lost demand changes under other assumptions about drivers and plugs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from unmet.estimation.exposed import full_hours
from unmet.estimation.hours import hour_effects
from unmet.estimation.rates import fit_rates, response_at_full, response_table

if TYPE_CHECKING:
    from unmet.estimation.lost_demand import LostDemand

__all__ = ["sensitivity_table"]

MOST_SITES = 1000  # of a network for which other capacities are tried


def sensitivity_table(lost: LostDemand) -> pl.DataFrame:
    """Lost energy and arrivals under other assumptions, the estimate itself first."""
    recovered = lost.recovered_
    kwh, arrivals = (
        float(recovered.station_kwh.sum(axis=1).mean()),
        float(recovered.station_arrivals.sum(axis=1).mean()),
    )
    leaves = max(1 - lost.waiting_ - lost.spill_, 1e-9)
    turned_away = max(float(lost.turned_away_.sum()), 1e-9)
    most_waiting = min(lost.retaken_, 1.0)
    factors = {
        "as estimated": 1.0,
        "nobody waits": (1 - lost.spill_) / leaves,
        "everybody waits who took a plug within five minutes of its release": max(1 - most_waiting - lost.spill_, 0.0)
        / leaves,
        "nobody charges at another site nearby": (1 - lost.waiting_) / leaves,
        "half of those turned away charge nearby": max(0.5 - lost.waiting_, 0.0) / leaves,
    }
    if lost.network_.sites <= MOST_SITES:
        for name, change in (("one car more", 1), ("one car fewer", -1)):
            factors[f"every site charges {name} at once than assumed"] = _other_capacity(lost, change) / turned_away
    return pl.DataFrame(
        {
            "assumption": list(factors),
            "lost_kwh": [kwh * factor for factor in factors.values()],
            "lost_arrivals": [arrivals * factor for factor in factors.values()],
        }
    )


def _other_capacity(lost: LostDemand, change: int) -> float:
    """Arrivals expected at full sites if every site had `change` more plugs."""
    network = lost.network_.with_capacity(np.maximum(lost.network_.capacity + change, 1))
    rates = fit_rates(network.history, network.clock, network.capacity, lost.components_, lost.prior)
    rows = full_hours(network.history.spells, network.clock, rates.weekly)
    response = response_table(rates.crowding, network.capacity)
    bursts = hour_effects(
        network.history, network.clock, rates.weekly, rates.level, response, rows, network.clock.hours
    )
    return float(
        (rates.at_rows(network.clock, rows) * bursts.mean * response_at_full(rates, network.capacity)[rows.site]).sum()
    )
