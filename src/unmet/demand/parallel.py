"""Loops over sites on several cores, with a result that does not depend on their number."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from unmet.runs import available_cores

__all__ = ["over_sites"]

PARTS = 8  # ranges of sites
FEW = 64  # with fewer sites, threads cost more than they save


def over_sites(function: Callable[..., Any], sites: int, *arguments: Any) -> list[Any]:
    """Call a function for ranges of sites and return the results in order.

    The function must release the interpreter lock, as compiled ones do. It is called with the arguments, the first
    site of the range and the one after the last.
    """
    bounds = np.linspace(0, sites, PARTS + 1).astype(np.int64)
    # Without sites there is one empty range, so that the function still returns arrays of the right type.
    ranges = [(int(a), int(b)) for a, b in itertools.pairwise(bounds) if a < b or sites == 0][: sites or 1]
    if sites < FEW or available_cores() == 1:
        return [function(*arguments, a, b) for a, b in ranges]
    with ThreadPoolExecutor(available_cores()) as pool:
        return list(pool.map(lambda part: function(*arguments, *part), ranges))
