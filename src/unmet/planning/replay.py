"""Replay: repeat the same arrivals at a site for every number of plugs at once.

A driver who finds every plug taken leaves. Let plugs be numbered, and let each driver take the free one with the lowest
number. If every driver's stay is fixed in advance, then plugs 1 to c together behave exactly like a site with c plugs,
for every c at once: the drivers whom c plugs serve are those who took a plug numbered c or lower.

Proof. Compare c and c + 1 plugs. Suppose that the cars present at c plugs are also present at c + 1 plugs, which have
at most one car more. This holds at the start. If c plugs serve the next driver, they had a free plug; so had c + 1, and
both gain the same car. If they do not, only c + 1 plugs may gain a car, and only if they held the same c cars. As each
car leaves at its own fixed time in both, the claim holds at all times. Hence one more plug serves everyone who was
served before: adding plugs never increases losses, in any draw.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled

__all__ = ["NOBODY", "carried", "merge_order", "served_by", "take_plugs"]


NOBODY = -1
"""Stands for the plug of a driver who is not served."""


@compiled()
def take_plugs(first: Integers, at_ms: Integers, stay_ms: Integers, max_plugs: int) -> NDArray[np.int32]:
    """The plug that each driver takes, 0 for the first; `NOBODY` if `max_plugs` plugs are all taken.

    Args:
        first: position of the first arrival of each draw, and the number of arrivals last, (draws + 1,).
        at_ms: arrival times, in order within each draw.
        stay_ms: stay of each driver.
        max_plugs: number of plugs.
    """
    taken = np.empty(len(at_ms), np.int32)
    free_at = np.empty(max_plugs, np.int64)
    for draw in range(len(first) - 1):
        free_at[:] = np.iinfo(np.int64).min
        for i in range(first[draw], first[draw + 1]):
            taken[i] = NOBODY
            for plug in range(max_plugs):
                if free_at[plug] <= at_ms[i]:
                    free_at[plug] = at_ms[i] + stay_ms[i]
                    taken[i] = plug
                    break
    return taken


@compiled()
def carried(
    first: Integers, at_ms: Integers, stay_ms: Integers, kwh: Floats, weight: Floats, max_plugs: int
) -> tuple[Floats, Floats, Floats]:
    """Energy and drivers that each plug of `take_plugs` serves, (draws, plugs) each, and its hours in use, (plugs,).

    Energy and drivers are weighted. The last column that is not 0 belongs to the last plug ever taken.
    """
    draws = len(first) - 1
    energy, drivers, hours = np.zeros((draws, max_plugs)), np.zeros((draws, max_plugs)), np.zeros(max_plugs)
    free_at = np.empty(max_plugs, np.int64)
    for draw in range(draws):
        free_at[:] = np.iinfo(np.int64).min
        for i in range(first[draw], first[draw + 1]):
            for plug in range(max_plugs):
                if free_at[plug] <= at_ms[i]:
                    free_at[plug] = at_ms[i] + stay_ms[i]
                    energy[draw, plug] += weight[i] * kwh[i]
                    drivers[draw, plug] += weight[i]
                    hours[plug] += stay_ms[i] / 3_600_000
                    break
    return energy, drivers, hours


@compiled()
def merge_order(recorded_ms: Integers, first: Integers, lost_ms: Integers) -> Integers:
    """Order in which to merge recorded drivers, the same in each draw, with the lost ones of every draw, by time.

    Returns positions in an array of recorded drivers followed by all lost ones. Recorded drivers come first at ties.
    """
    draws, recorded = len(first) - 1, len(recorded_ms)
    order = np.empty(draws * recorded + len(lost_ms), np.int64)
    n = 0
    for draw in range(draws):
        i = 0
        for j in range(first[draw], first[draw + 1]):
            while i < recorded and recorded_ms[i] <= lost_ms[j]:
                order[n] = i
                n, i = n + 1, i + 1
            order[n] = recorded + j
            n += 1
        while i < recorded:
            order[n] = i
            n, i = n + 1, i + 1
    return order


@compiled()
def served_by(
    first: Integers, at_ms: Integers, stay_ms: Integers, forced: NDArray[np.bool_], plugs: int
) -> NDArray[np.bool_]:
    """Which drivers a site with a given number of plugs serves.

    The first arguments are as in `take_plugs`. Forced drivers (outages, and records that overlap because clocks are
    wrong) are always served, even if all plugs are taken; nobody else is served until a plug is free again. The proof
    above holds for them too: a forced driver is added at c plugs and at c + 1 plugs alike.
    """
    served = np.zeros(len(at_ms), np.bool_)
    ends = np.empty(plugs + 1, np.int64)
    for draw in range(len(first) - 1):
        cars = 0
        for i in range(first[draw], first[draw + 1]):
            present = 0
            for k in range(cars):
                if ends[k] > at_ms[i]:
                    ends[present] = ends[k]
                    present += 1
            cars = present
            if cars < plugs or forced[i]:
                if cars == len(ends):
                    longer = np.empty(2 * len(ends), np.int64)
                    longer[:cars] = ends
                    ends = longer
                ends[cars] = at_ms[i] + stay_ms[i]
                cars += 1
                served[i] = True
    return served
