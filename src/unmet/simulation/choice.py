"""Choice: whether a driver wants to charge after a trip, and at which station.

Whether: W = [F(x_i) - F(x_f)] / F(x_i), with F the distribution function of Beta(a, b), x_i and x_f the state of charge
before and after the trip. The probabilities of not charging multiply along a day to F(x_f) / F(x_i), so the state of
charge at which a driver plugs in is Beta(a, b)-distributed, with mean a / (a + b).

Where: P_j proportional to exp(-s D_j) among the five nearest stations, D in km.
"""

from __future__ import annotations

from math import exp

import numpy as np

from unmet.arrays import Floats
from unmet.compiled import compiled

__all__ = ["beta_table", "choose_station", "interpolate", "willingness"]


TABLE_STEPS = 4096  # makes interpolation accurate to 1e-6


def beta_table(a: float, b: float) -> Floats:
    """F of Beta(a, b) at 0, 1/4096, ..., 1, for `interpolate`."""
    from scipy.special import betainc

    return np.asarray(betainc(a, b, np.linspace(0, 1, TABLE_STEPS + 1)), float)


@compiled("float64(float64[::1], float64)")
def interpolate(table: Floats, x: float) -> float:
    """Linear interpolation at x of a function on [0, 1] that is tabulated in equal steps."""
    scaled = x * (table.size - 1)
    below = min(int(scaled), table.size - 2)
    return float(table[below] + (scaled - below) * (table[below + 1] - table[below]))


@compiled("float64(float64[::1], float64, float64)")
def willingness(table: Floats, soc_before: float, soc_after: float) -> float:
    """Probability of wanting to charge after a trip: [F(x_i) - F(x_f)] / F(x_i); certain when empty."""
    before = interpolate(table, soc_before)
    if soc_after <= 0.0 or before <= 0.0:
        return 1.0
    return 1.0 - interpolate(table, soc_after) / before


@compiled("int64(float64[::1], float64, float64)")
def choose_station(distance_km: Floats, sensitivity: float, uniform: float) -> int:
    """Which of the nearest stations a driver goes to: P_j = exp(-s D_j) / sum_k exp(-s D_k).

    `distance_km` is sorted; `uniform` is a random draw in [0, 1).

    The paper prints exp(+D_j), which prefers the farthest station; a sensitivity of -1 gives that.
    """
    # Relative to the nearest station: the same ratios, without overflow at large distances.
    total = 0.0
    for km in distance_km:
        total += exp(-sensitivity * (km - distance_km[0]))
    cumulative = 0.0
    for j in range(distance_km.size - 1):
        cumulative += exp(-sensitivity * (distance_km[j] - distance_km[0]))
        if uniform * total < cumulative:
            return j
    return distance_km.size - 1
