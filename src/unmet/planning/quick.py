"""Quick check: Erlang's formula in every hour of the week, without a replay.

The load of a site in an hour of the week is its arrival rate, recorded and lost, times the mean stay. Demand is taken
as steady within every hour (the pointwise stationary approximation). The blocking probability is therefore too high if
stays are long and a rush is short, and too low if days differ.
"""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats
from unmet.estimation.clock import BIN_MS, BINS_AN_HOUR
from unmet.planning.drivers import DrawnDemand
from unmet.planning.erlang import erlang_b_all

__all__ = ["erlang_turned_away"]


def erlang_turned_away(demand: DrawnDemand, site: int, plugs: int) -> Floats:
    """Drivers that a site turns away per week with 0, 1, ..., `plugs` additional plugs, (plugs + 1,)."""
    clock, arrivals, hidden = demand.network.clock, demand.network.history.arrivals, demand.hidden
    week_hour = clock.week[::BINS_AN_HOUR] // BINS_AN_HOUR
    arrived_ms = arrivals.at_ms[slice(*np.searchsorted(arrivals.site, [site, site + 1]))]
    hour = np.clip((arrived_ms - clock.first_ms) // (BIN_MS * BINS_AN_HOUR), 0, clock.hours - 1)
    rows = hidden.rows_of(site)
    total = np.bincount(week_hour[hour], minlength=168).astype(float)
    total += np.bincount(week_hour[hidden.hour[rows]], hidden.drivers[:, rows].mean(axis=0), minlength=168)
    rate = total / demand.weeks[site]
    recorded = demand.recorded(site)
    is_driver = recorded.recorded
    stay_hours = float(recorded.stay_ms[is_driver].mean()) / 3_600_000 if is_driver.any() else 0.0
    capacity = int(demand.network.capacity[site])
    blocked = erlang_b_all(rate * stay_hours, capacity + plugs)[capacity:]
    return np.asarray((blocked * rate).sum(axis=1))
