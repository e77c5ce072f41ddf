"""Loops over sites on several cores, with a result that does not depend on their number."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from unmet.runs import available_cores

__all__ = ["over_sites"]

PARTS = 8  # ranges of sites; the same on every machine, so that sums over them are too
FEW = 64  # with fewer sites, threads cost more than they save


def over_sites(function: Callable[..., Any], sites: int, *arguments: Any, few: int = FEW) -> list[Any]:
    """Call a function for ranges of sites and return the results in order.

    The function must release the interpreter lock, as compiled functions do. It is called with the arguments, the first
    site of the range, and the site after its last. Fewer than `few` sites are one range, on this thread.
    """
    if sites < few:
        return [function(*arguments, 0, sites)]
    bounds = np.linspace(0, sites, PARTS + 1).astype(np.int64)
    ranges = [(int(a), int(b)) for a, b in itertools.pairwise(bounds)]
    if available_cores() == 1:
        return [function(*arguments, a, b) for a, b in ranges]
    return list(_threads().map(lambda part: function(*arguments, *part), ranges))


@cache
def _threads() -> ThreadPoolExecutor:
    """One thread per core, kept between calls: an estimate makes thousands of calls."""
    return ThreadPoolExecutor(available_cores(), "sites")


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_threads.cache_clear)  # threads do not survive a fork
