"""Breaks: a region that closes, reopens, halves or doubles overnight.

The stack follows slow changes. After a break it stays wrong for weeks, because ordinary days taught it to distrust two
unusual ones. A region is therefore in one of two states. In the normal state, demand is what the models had expected.
In the broken state, which began some hours ago, it is the table of the last weeks times an unknown level L. For n
sessions in a block of hours in which the models had expected m and the table has b:

    normal:  n ~ Poisson(m),    broken:  n ~ Poisson(L b),  L ~ Gamma(a, a),

so that a break that began with earlier blocks predicts n by a negative binomial distribution. The posterior of the
state and of the time since the break follows by recursion [1]: overwhelming evidence switches within a day or two, and
ordinary noise does not. Sessions are divided by the dispersion of daily sums (quasi-likelihood), so that demand which
varies from day to day needs more evidence.

[1] R. P. Adams, D. J. C. MacKay, Bayesian online changepoint detection, arXiv:0710.3742 (2007).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled

__all__ = ["Breaks", "find_breaks"]


BLOCK = 6  # hours after which the state is updated
AGES = 56  # ages of a break that are distinguished [blocks]: two weeks; older breaks are forgotten gradually
BREAK_DAYS = 100.0  # mean time between breaks of a region [days]
END_DAYS = 20.0  # mean time until a region is normal again [days]
NEXT_DAYS = 60.0  # mean time until the level breaks again [days]
SHAPE = 1.0  # a: shape of the gamma prior of a new level, whose mean is 1, the level of the table
MIN_EXPECTED = 0.01  # smallest expected number of sessions in a block, so that its logarithm is finite
SMALLEST, LARGEST = 0.01, 5.0  # limits of the level after a break
IGNORED = 0.02  # probability of a break below which forecasts are not changed
MAX_SQUARED_RESIDUAL = 16.0  # squared standardised residual of a day, at most
MIN_DAILY_MEAN = 0.5  # smallest expected number of sessions in a day by which a residual is standardised


@dataclass(frozen=True, slots=True)
class Breaks:
    """The state of each region before the first block of hours (row 0) and after every block."""

    first: int  # first hour of the first block
    chance: Floats  # (blocks + 1, regions), probability of the broken state
    level: Floats  # (blocks + 1, regions), expected level in the broken state, relative to the table

    def at(self, hours: Integers, horizon: Integers) -> tuple[Floats, Floats]:
        """Probability that a region is still in the broken state, and its level; (targets, regions) each."""
        known = np.clip((hours - horizon + 1 - self.first) // BLOCK, 0, len(self.chance) - 1)
        chance = self.chance[known] * np.exp(-horizon / (24 * END_DAYS))[:, None]
        return np.where(chance > IGNORED, chance, 0.0), self.level[known]


def find_breaks(
    demand: Floats, expected: Floats, table: Floats, session_kwh: Floats, first: int, settled: int
) -> Breaks:
    """Infer the state of each region after every block of hours.

    Args:
        demand: demand of the last hours, (hours, regions) [kWh]; NaN if missing.
        expected: demand that the models had expected, of the same shape [kWh]; NaN if unknown.
        table: demand according to the table as it is now, of the same shape [kWh]; NaN if unknown.
        session_kwh: energy of a session, (regions,) [kWh].
        first: number of the first hour.
        settled: number of hours, from the first, from which the dispersion is estimated.
    """
    known = np.isfinite(demand) & np.isfinite(expected) & np.isfinite(table)
    sessions, normal, tabled = (np.where(known, part, 0.0) / session_kwh for part in (demand, expected, table))
    spread = dispersion(sessions[:settled], normal[:settled], known[:settled])
    return Breaks(first, *_states(*(_sums(part / spread, BLOCK) for part in (sessions, normal, tabled))))


def dispersion(sessions: Floats, expected: Floats, known: NDArray[np.bool_]) -> Floats:
    """Variance of daily sums over their mean, (regions,); at least 1, as for a Poisson distribution.

    Days without a known hour do not count. The arguments have shape (hours, regions).
    """
    days, means, hours = (_sums(values, 24) for values in (sessions, expected, known.astype(float)))
    squared = np.minimum((days - means) ** 2 / np.maximum(means, MIN_DAILY_MEAN), MAX_SQUARED_RESIDUAL) * (hours > 0)
    return np.asarray(np.maximum(squared.sum(axis=0) / np.maximum((hours > 0).sum(axis=0), 1), 1.0))


def _sums(values: Floats, size: int) -> Floats:
    """Sums over blocks of hours; an incomplete one at the end is dropped."""
    whole = len(values) // size * size
    return np.asarray(values[:whole].reshape(-1, size, values.shape[1]).sum(axis=1))


@compiled()
def _states(sessions: Floats, normal: Floats, table: Floats) -> tuple[Floats, Floats]:
    """Probability of the broken state after each block, and the expected level; row 0 is before the first block.

    Args:
        sessions: number of sessions over their dispersion, (blocks, regions).
        normal: the same, as the models had expected.
        table: the same, according to the table.
    """
    blocks, regions = sessions.shape
    chance, level = np.zeros((blocks + 1, regions)), np.ones((blocks + 1, regions))
    # Probabilities per block of a break, of the end of the broken state, and of another break in that state.
    to_break, to_end, to_next = (BLOCK / 24 / BREAK_DAYS, BLOCK / 24 / END_DAYS, BLOCK / 24 / NEXT_DAYS)
    log_likelihood = np.zeros(AGES)
    for r in range(regions):
        intact, broken = 1.0, np.zeros(AGES)  # probabilities of the normal state, and of the broken one by age
        seen, tabled = np.zeros(AGES), np.zeros(AGES)  # sessions since the break, and according to the table
        for t in range(blocks):
            n, m, b = sessions[t, r], max(normal[t, r], MIN_EXPECTED), max(table[t, r], MIN_EXPECTED)
            total = broken.sum()
            _grow_older(broken, seen, tabled)
            broken *= 1.0 - to_end - to_next
            broken[0] = intact * to_break + total * to_next
            intact = intact * (1.0 - to_break) + total * to_end
            # Log likelihoods, up to a common term.
            for j in range(AGES):
                shape, rate = SHAPE + seen[j], SHAPE + tabled[j]
                log_likelihood[j] = math.lgamma(shape + n) - math.lgamma(shape) + shape * math.log(rate / (rate + b))
                log_likelihood[j] += n * math.log(b / (rate + b))
            log_intact = n * math.log(m) - m
            best = max(log_intact, log_likelihood.max())
            intact *= math.exp(log_intact - best)
            broken *= np.exp(log_likelihood - best)
            seen += n
            tabled += b
            total = intact + broken.sum()
            if not total > 0.0:  # all probabilities underflowed: start again from the normal state
                intact, total = 1.0, 1.0
            intact /= total
            broken /= total
            chance[t + 1, r] = broken.sum()
            if chance[t + 1, r] > 0.0:
                mean = (broken * (SHAPE + seen) / (SHAPE + tabled)).sum() / chance[t + 1, r]
                level[t + 1, r] = min(max(mean, SMALLEST), LARGEST)
    return chance, level


@compiled()
def _grow_older(broken: Floats, seen: Floats, tabled: Floats) -> None:
    """Age all breaks by one block, in place. The two oldest ages are merged, and their sessions discounted."""
    oldest = AGES - 1
    both = broken[oldest] + broken[oldest - 1]
    share = broken[oldest] / both if both > 0.0 else 0.0
    for values in (seen, tabled):
        values[oldest] = (share * values[oldest] + (1.0 - share) * values[oldest - 1]) * (1.0 - 1.0 / AGES)
        values[1:oldest] = values[: oldest - 1].copy()
        values[0] = 0.0
    broken[1:oldest] = broken[: oldest - 1].copy()
    broken[oldest], broken[0] = both, 0.0
