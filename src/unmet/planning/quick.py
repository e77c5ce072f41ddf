"""Quick bounds: Erlang's formula in every hour of the week, without a replay.

The load of a site in an hour of the week is its arrivals, recorded and lost, times the mean stay. Blocking is taken to
be that of steady demand in every hour (the pointwise stationary approximation), so that it is too high where stays are
long and a rush is short, and too low where days differ.
"""

from __future__ import annotations

import numpy as np

from unmet.arrays import Floats
from unmet.estimation.clock import BIN_MS, BINS_AN_HOUR
from unmet.planning.drivers import Truth
from unmet.planning.erlang import erlang_b_all

__all__ = ["erlang_turned_away"]


def erlang_turned_away(truth: Truth, site: int, plugs: int) -> Floats:
    """Drivers that a site turns away per week with its plugs and 0, 1, ..., `plugs` further ones."""
    clock, arrivals, hidden = truth.network.clock, truth.network.history.arrivals, truth.hidden
    of_week = clock.week[::BINS_AN_HOUR] // BINS_AN_HOUR
    own = arrivals.at_ms[slice(*np.searchsorted(arrivals.site, [site, site + 1]))]
    hour = np.clip((own - clock.first_ms) // (BIN_MS * BINS_AN_HOUR), 0, clock.hours - 1)
    rows = hidden.rows_of(site)
    came = np.bincount(of_week[hour], minlength=168).astype(float)
    came += np.bincount(of_week[hidden.hour[rows]], hidden.drivers[:, rows].mean(axis=0), minlength=168)
    rate = came / truth.weeks[site]
    seen = truth.recorded(site)
    stay_hours = float(seen.stay_ms[seen.recorded].mean()) / 3_600_000 if seen.recorded.any() else 0.0
    capacity = int(truth.network.capacity[site])
    blocked = erlang_b_all(rate * stay_hours, capacity + plugs)[capacity:]
    return np.asarray((blocked * rate).sum(axis=1))
