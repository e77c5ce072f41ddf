"""Elsewhere: the demand that goes to other operators, given this operator's market share.

If an operator with a share s of a region's market would have m arrivals in an hour, its competitors have m (1 - s) / s.
The share is uncertain: log s is normal, with one value per posterior draw for all hours of a region. Demand is
proportional to 1 / s, whose draws are scaled so that their mean is the inverse of the estimated share.

Assumption: within a region, drivers choose operators in the same proportion at all times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.demand.market import Shares
from unmet.demand.spells import FULL, Spells, pieces
from unmet.estimation.clock import BIN_HOURS, BIN_MS, BINS_AN_HOUR, Clock

__all__ = ["Parts", "draw_elsewhere", "expected_elsewhere", "own_arrivals"]


class Parts(NamedTuple):
    """Regions of the arrivals of sites; the regions of site s are at positions first[s], ..., first[s + 1] - 1."""

    first: Integers  # (sites + 1,)
    region: Integers
    share: Floats  # of the site's arrivals


@compiled()
def own_arrivals(
    spells: Spells,
    clock: Clock,
    rate: Floats,
    level: Floats,
    response: Floats,
    at_full: Floats,
    parts: Parts,
    regions: int,
) -> Floats:
    """Arrivals expected at the operator's own sites, served or lost, (regions, hours).

    Args:
        spells: spells of all sites.
        clock: clock of the period.
        rate: arrivals per hour, (sites, bins of the week).
        level: level of each site and day, (sites, days).
        response: factor on the rate by number of taken plugs, (sites, max_taken + 1).
        at_full: factor on the rate while a site is full, (sites,).
        parts: regions of the sites.
        regions: number of regions.
    """
    total = np.zeros((regions, len(clock.week) // BINS_AN_HOUR))
    last = response.shape[1] - 1
    for s in range(len(rate)):
        for i in range(spells.first[s], spells.first[s + 1]):
            weight = at_full[s] if spells.state[i] == FULL else response[s, min(spells.taken[i], last)]
            begin_ms, end_ms = spells.begin_ms[i] - clock.first_ms, spells.end_ms[i] - clock.first_ms
            for bin_, share in pieces(begin_ms, end_ms, BIN_MS):
                hourly = rate[s, clock.week[bin_]] * level[s, clock.day[bin_]] * weight
                value = share * BIN_HOURS * hourly
                for k in range(parts.first[s], parts.first[s + 1]):
                    total[parts.region[k], bin_ // BINS_AN_HOUR] += value * parts.share[k]
    return total


def expected_elsewhere(own: Floats, shares: Shares) -> Floats:
    """Arrivals expected at other operators' stations, (regions, hours); 0 where this operator has no share."""
    known = shares.share > 0
    ratio = np.where(known, 1 / np.where(known, shares.share, 1.0) - 1, 0.0)
    return np.asarray(own * ratio[:, None])


def draw_elsewhere(
    own: Floats, shares: Shares, kwh: Floats, variation: float, draws: int, rng: np.random.Generator
) -> Floats:
    """Draws of the energy that other operators served or lost [kWh], (regions, hours, draws).

    Args:
        own: arrivals expected at own sites, (regions, hours).
        shares: market share of every region.
        kwh: mean energy of a driver, (regions, hours).
        variation: coefficient of variation of a driver's energy.
        draws: number of draws.
        rng: random numbers.
    """
    known = shares.share > 0
    inverse = np.exp(
        shares.spread[:, None] * rng.standard_normal((len(known), draws)) - shares.spread[:, None] ** 2 / 2
    )
    ratio = np.where(known[:, None], np.maximum(inverse / np.where(known, shares.share, 1.0)[:, None] - 1, 0.0), 0.0)
    arrivals = rng.poisson(own[..., None] * ratio[:, None, :]).astype(float)
    shape = 1 / max(variation, 0.05) ** 2
    drawn = rng.standard_gamma(np.maximum(arrivals * shape, 1e-9)) / shape
    return np.asarray(drawn * kwh[..., None] * (arrivals > 0))
