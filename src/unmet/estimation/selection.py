"""Selection: which components the records need, by the likelihood of held-out blocks of exposed time.

A fifth of all site-blocks of three hours is held out at random. Starting from one weekly profile and nothing else,
components are tried one at a time and kept if they predict the arrivals of the held-out blocks better. Every number of
weekly profiles is tried, and the best is kept: with three kinds of sites, two profiles may be worse than one. Crowding
has a prior that includes no crowding at all, and bursts are selected by marginal likelihood, so neither is tried here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unmet.estimation.exposed import BLOCK_BINS
from unmet.estimation.occupancy import Network
from unmet.estimation.rates import Components, fit_rates, held_out_score

__all__ = ["Tried", "select_components"]

HELD_OUT = 0.2  # share of the blocks
MAX_SITES = 150
"""Number of sites on which components are chosen; a random sample of a larger network gives the same result."""
MAX_RANK = 4
SMOOTHER = (2.0, 4.0)
"""Stronger smoothing of the weekly profiles [bins], tried if there are few arrivals."""
FEW_ARRIVALS = 2000  # three per bin of the week
SEED = 12


class Tried(NamedTuple):
    """A component that was tried, and its gain."""

    name: str
    gain: float  # in held-out log likelihood
    kept: bool


def select_components(network: Network) -> tuple[Components, tuple[Tried, ...]]:
    """Choose the components of the intensity."""
    rng = np.random.default_rng(SEED)
    if network.sites > MAX_SITES:
        network = network.only(np.sort(rng.choice(network.sites, MAX_SITES, replace=False)))
    blocks = -(-len(network.clock.week) // BLOCK_BINS)
    held = rng.random((network.sites, blocks)) < HELD_OUT

    def score(components: Components) -> float:
        rates = fit_rates(network.history, network.clock, network.capacity, components, held=held)
        return held_out_score(rates, network.history, network.clock, network.capacity, held)

    chosen = Components(1, slow=False, city_day=False, site_day=False, crowding=False)
    best, tried = score(chosen), list[Tried]()

    def keep_best(options: list[tuple[str, dict[str, Any]]]) -> None:
        nonlocal chosen, best
        candidates = [chosen._replace(**change) for _, change in options]
        values = [score(candidate) for candidate in candidates]
        winner = int(np.argmax([best, *values])) - 1
        tried.extend(Tried(name, values[i] - best, i == winner) for i, (name, _) in enumerate(options))
        if winner >= 0:
            chosen, best = candidates[winner], values[winner]

    if len(network.history.arrivals.site) < FEW_ARRIVALS:
        keep_best([(f"profiles smoothed over {15 * bins:.0f} minutes", {"smooth": bins}) for bins in SMOOTHER])
    ranks = range(2, min(MAX_RANK, network.sites) + 1)
    keep_best([(f"{rank} weekly profiles", {"rank": rank}) for rank in ranks])
    keep_best([("growth and season", {"slow": True})])
    keep_best([("days of the network", {"city_day": True})])
    if network.sites > 1:
        keep_best([("days of each site", {"site_day": True})])
    return chosen._replace(crowding=True), tuple(tried)
