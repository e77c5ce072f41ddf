"""Erlang's formulas: the share of drivers turned away, or made to wait, at steady demand.

Plans show them as a quick check, and tests compare with them. With offered load a = arrival rate x mean stay and c
plugs, the blocking probability of a site where drivers who find no plug leave (M/G/c/c; it does not depend on the
distribution of stays) satisfies

    B(0, a) = 1,      B(c, a) = a B(c - 1, a) / (c + a B(c - 1, a)),

and the probability of waiting if all of them wait (M/M/c) is C(c, a) = B / (1 - (a / c)(1 - B)).
Erlang, *Solution of some problems in the theory of probabilities of significance in automatic telephone exchanges*,
1917.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unmet.arrays import Floats
from unmet.errors import InputError

__all__ = ["erlang_b", "erlang_b_all", "erlang_c", "plugs_for_blocking"]


def erlang_b_all(load: ArrayLike, max_plugs: int) -> Floats:
    """Share of drivers turned away with 0, 1, ..., `max_plugs` plugs, (max_plugs + 1, *loads).

    Args:
        load: arrivals per hour times mean stay in hours [Erlang].
        max_plugs: highest number of plugs.
    """
    offered = np.asarray(load, float)
    if (offered < 0).any() or not np.isfinite(offered).all() or max_plugs < 0:
        raise InputError("A load or a number of plugs below 0 makes no sense: give 0 or more.")
    blocked = np.ones((max_plugs + 1, *offered.shape))
    for c in range(1, max_plugs + 1):
        carried = offered * blocked[c - 1]
        blocked[c] = carried / (c + carried)
    return blocked


def erlang_b(plugs: int, load: ArrayLike) -> Floats:
    """Share of drivers turned away by a site without waiting.

    Example:
        >>> round(float(erlang_b(5, 3.0)), 4)
        0.1101
    """
    return np.asarray(erlang_b_all(load, plugs)[plugs])


def erlang_c(plugs: int, load: ArrayLike) -> Floats:
    """Share of drivers who have to wait if everyone waits; 1 if the load is at least the number of plugs.

    Example:
        >>> round(float(erlang_c(5, 3.0)), 4)
        0.2362
    """
    offered, blocked = np.asarray(load, float), erlang_b(plugs, load)
    utilisation = np.divide(offered, plugs, out=np.full(offered.shape, np.inf), where=np.full(offered.shape, plugs > 0))
    waits = blocked / np.where(utilisation < 1, 1 - utilisation * (1 - blocked), 1.0)
    return np.asarray(np.where(utilisation < 1, waits, 1.0))


def plugs_for_blocking(load: float, max_blocked: float) -> int:
    """The smallest number of plugs that turns away at most this share of the drivers.

    Example:
        >>> plugs_for_blocking(3.0, 0.05)
        7
    """
    if not 0 < max_blocked <= 1:
        raise InputError(f"A share of {max_blocked:g} turned away makes no sense: give one above 0 and up to 1.")
    blocked, plugs = 1.0, 0
    while blocked > max_blocked:
        plugs += 1
        blocked = load * blocked / (plugs + load * blocked)
    return plugs
