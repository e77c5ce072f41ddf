"""Imputation: the part of demand that was not seen, drawn at random from what the exposure says of it.

Arrivals in a region-hour are Poisson(g lambda) with lambda = l_d lambda_k: k is the hour of the week, l_d the level of
the day, which moves slowly, and g a gamma variable of mean 1 and variance 1/r that makes hours vary beyond Poisson
where the data do. Those that could be seen are a share e of them, the exposure. So given n seen arrivals, g is
gamma(r + n, r + lambda e), and the arrivals that were not seen are negative binomial with mean
(1 - e) lambda (r + n) / (r + lambda e). Each wanted an energy drawn from those that were seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.demand.calendar import HOURS_A_DAY, HOURS_A_WEEK
from unmet.demand.energies import BLOCK
from unmet.demand.intensity import fit_intensity, gamma_shape, nearness, rates_nearby
from unmet.demand.levels import fit_levels, levels_around, levels_before
from unmet.errors import InputError

__all__ = ["Hidden", "Records", "Redraw", "Unseen", "fit_unseen", "records_of", "unseen_in_market"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_EXPOSED = 0.05  # share of its hours for which a region counts as exposed at least when its rate is fitted
POOL = 10.0  # sessions of the mean around it that each mean starts from
LEAST_SHAPE, MOST_SHAPE = 0.5, 1e4  # r of hours; the last is Poisson's
ENERGIES = 64  # energies of a session that are drawn from
LEAST_SINGLE = 100  # hours with one arrival from which those are read


class Records(NamedTuple):
    """What the records of a panel show in every region-hour, (hours, nodes), NaN where missing."""

    arrivals: Floats  # seen
    exposure: Floats  # share of the usual arrivals that could be seen
    unseen: Floats  # share of the usual arrivals that came, and could not
    session_kwh: Floats  # energy that a driver who was not seen would have taken, where the panel says so
    spread: Floats  # (nodes,), of the logarithm of the exposure: how unsure the market share is
    lost_spread: Floats  # (nodes,), of the logarithm of what full stations lost: how unsure their rates are


def records_of(reads: Floats) -> Records:
    """Records from the columns: arrivals, exposure, session_kwh, exposure_spread, lost_spread, turnout."""
    arrivals, exposure, session_kwh, *unsure, turnout = np.moveaxis(reads, -1, 0)
    come = np.where(np.isfinite(turnout), turnout, 1.0)
    spread, lost_spread = (np.nan_to_num(values).max(axis=0, initial=0.0) for values in unsure)
    return Records(arrivals, come * exposure, come * (1 - exposure), session_kwh, spread, lost_spread)


@dataclass(frozen=True, slots=True)
class Hidden:
    """The distribution of what was not seen in every region-hour; arrays are (hours, nodes)."""

    arrivals: Floats  # to be expected, given those seen
    shape: Floats  # r + n
    session_kwh: Floats  # mean energy of a session
    energies: Floats  # (draws,) energies of single sessions by their mean
    exposure: Floats  # share of the usual arrivals that could be seen
    unseen: Floats  # and of those that could not
    spread: Floats  # (nodes,)

    def expected_kwh(self) -> Floats:
        """Energy that was not seen, to be expected."""
        return self.arrivals * self.session_kwh

    def draw_arrivals(self, rng: np.random.Generator) -> Floats:
        """One draw of the arrivals that were not seen; where the market share is unsure, it is drawn for every hour."""
        mean = self.arrivals
        if self.spread.any():
            inverse = np.exp(self.spread * rng.standard_normal(mean.shape) - self.spread**2 / 2)
            unseen = unseen_in_market(self.exposure, self.unseen, inverse)
            mean = mean * unseen / np.where(self.unseen > 0, self.unseen, 1.0)
        frailty = rng.standard_gamma(self.shape) / self.shape
        return rng.poisson(mean * frailty).astype(float)

    def draw(self, rng: np.random.Generator) -> Floats:
        """One draw of the energy that was not seen [kWh]."""
        return self.energy_of(self.draw_arrivals(rng), rng)

    def draw_by_day(self, first_hour: int) -> Floats:
        """One draw, of every day by itself, so that none depends on later ones; `first_hour` counts from 1970."""
        day = (first_hour + np.arange(len(self.arrivals))) // HOURS_A_DAY
        parts = []
        for number in np.unique(day):
            of_day = day == number
            names = ("arrivals", "shape", "session_kwh", "exposure", "unseen")
            part = replace(self, **{name: getattr(self, name)[of_day] for name in names})
            parts.append(part.draw(np.random.default_rng([0, int(number)])))
        return np.concatenate(parts)

    def energy_of(self, arrivals: Floats, rng: np.random.Generator) -> Floats:
        """Energy [kWh] of so many arrivals, each drawn from those that were seen."""
        number = arrivals.astype(np.int64).ravel()
        each = self.energies[rng.integers(len(self.energies), size=int(number.sum()))]
        total = np.bincount(np.repeat(np.arange(len(number)), number), each, minlength=len(number))
        return total.reshape(arrivals.shape) * self.session_kwh


def unseen_in_market(exposure: Floats, unseen: Floats, inverse: Floats) -> Floats:
    """The share of the usual arrivals that could not be seen, with a market share that is another one.

    With s f instead of s, those who come are 1 / f times as many, of which as many are seen. E[1 / f] = 1.
    """
    return np.asarray(np.maximum(inverse * (exposure + unseen) - exposure, 0.0) * (unseen > 0))


@dataclass(frozen=True, slots=True)
class Unseen:
    """What a panel says of arrivals and energies, from which the unseen part of any hour follows."""

    rate: Floats  # (168, nodes), arrivals an hour that want to charge
    shape: Floats  # (nodes,), r
    memory: float  # days over which the level is measured; infinite: it never changes
    session_kwh: Floats  # (blocks of the day, nodes), mean energy of a session
    energies: Floats  # (draws,) energies of single sessions by their mean
    weight: Floats  # (168, nodes), arrivals that each rate rests on
    own: Floats  # (168, nodes), the share of each rate that is counts of that very hour of the week
    nearby: Floats  # (nodes,), the share of a region's mean that its neighbours lend

    def hidden(self, records: Records, week: Integers, *, by_days_before: bool = False) -> Hidden:
        """What was not seen in these hours; by the level of the days before each alone, if so asked."""
        known = np.isfinite(records.arrivals)
        exposed = np.where(np.isfinite(records.exposure), records.exposure, 1.0)
        unseen = np.where(np.isfinite(records.unseen), records.unseen, 0.0)
        seen = np.where(known, records.arrivals, 0.0)
        rate = self.rate[week] * self.level(records, week, by_days_before=by_days_before)
        expected = np.where(known, rate * exposed, 0.0)
        usual = self.session_kwh[(week % HOURS_A_DAY) // BLOCK]
        return Hidden(
            unseen * rate * (self.shape + seen) / (self.shape + expected),
            self.shape + seen,
            np.where(np.isfinite(records.session_kwh), records.session_kwh, usual),
            self.energies,
            exposed,
            unseen,
            records.spread,
        )

    def level(self, records: Records, week: Integers, *, by_days_before: bool = False) -> Floats:
        """How busy each hour's day was beside the usual week, (hours, nodes)."""
        known = np.isfinite(records.arrivals)
        exposed = np.where(known & np.isfinite(records.exposure), records.exposure, known.astype(float))
        seen, expected = (
            _by_day(values) for values in (np.where(known, records.arrivals, 0.0), self.rate[week] * exposed)
        )
        if by_days_before:
            level = levels_before(seen.T, expected.T, self.memory)
        else:
            level = levels_around(seen.T, expected.T, self.memory)
        return np.repeat(level.T, HOURS_A_DAY, axis=0)[: len(week)]


@dataclass(frozen=True, slots=True)
class Redraw:
    """Observed demand with a fresh draw of the unseen part, in units of each region's scale."""

    demand: Floats  # (hours, nodes) [kWh], 0 where missing
    hidden: Hidden
    scale: Floats  # (nodes,)

    def __call__(self, rng: np.random.Generator) -> Floats:
        """A draw of true demand, (hours, nodes)."""
        return np.asarray((self.demand + self.hidden.draw(rng)) / self.scale)


def fit_unseen(demand: Floats, records: Records, week: Integers, km: Floats | None = None) -> Unseen:
    """Learn rates and energies from demand [kWh] and records, (hours, nodes), NaN where missing.

    `km` are distances between regions, over which those that could hardly be seen borrow from others.
    """
    known = np.isfinite(demand) & np.isfinite(records.arrivals)
    exposed = np.where(known & np.isfinite(records.exposure), records.exposure, np.where(known, 1.0, 0.0))
    seen = np.where(known, records.arrivals, 0.0)
    if not seen.sum() > 0:
        raise InputError(
            "No arrival was seen in the part of the panel to learn from: nothing can be estimated from it."
        )
    # What a small market share hides is known, what full stations hide beyond that is not.
    least = LEAST_EXPOSED * _by_week(known.astype(float), week) * exposed.max(axis=0, initial=0.0)
    counts, exposed_hours = _by_week(seen, week), np.maximum(_by_week(exposed, week), least)
    nodes = demand.shape[1]
    nearby = rates_nearby(counts.sum(axis=0), exposed_hours.sum(axis=0), np.ones(nodes), nearness(nodes, km))
    fitted = fit_intensity(counts.T, exposed_hours.T, nearby)
    rate = fitted.per_hour.T
    levels = fit_levels(_by_day(seen).T, _by_day(rate[week] * exposed).T)
    level = np.repeat(levels.level.T, HOURS_A_DAY, axis=0)[: len(week)]
    if np.isfinite(levels.memory):  # the usual week is that of a level of 1
        fitted = fit_intensity(counts.T, np.maximum(_by_week(exposed * level, week), least).T, nearby)
        rate = fitted.per_hour.T
    session_kwh, spread = _energies(demand, seen, known, week)
    return Unseen(
        rate,
        gamma_shape(seen, rate[week] * level * exposed, LEAST_SHAPE, MOST_SHAPE, axis=0),
        float(levels.memory),
        session_kwh,
        _single(demand, seen, known, spread),
        fitted.prior + counts,
        fitted.own.T,
        fitted.nearby,
    )


def _by_week(values: Floats, week: Integers) -> Floats:
    total = np.zeros((HOURS_A_WEEK, values.shape[1]))
    np.add.at(total, week, values)
    return total


def _by_day(values: Floats) -> Floats:
    """Sums over days of 24 hours from the first hour on, (days, nodes)."""
    days = -(-len(values) // HOURS_A_DAY)
    total = np.zeros((days, values.shape[1]))
    np.add.at(total, np.arange(len(values)) // HOURS_A_DAY, values)
    return total


def _energies(demand: Floats, seen: Floats, known: NDArray[np.bool_], week: Integers) -> tuple[Floats, float]:
    """Mean energy of a session by block of the day and region, and its spread over all, relative to the mean.

    Demand of n sessions has mean n m and variance n s^2.
    """
    block, blocks = (week % HOURS_A_DAY) // BLOCK, HOURS_A_DAY // BLOCK
    used = known & (seen > 0)
    energy, number = np.where(used, demand, 0.0), np.where(used, seen, 0.0)
    overall = max(energy.sum() / max(number.sum(), 1.0), 1e-3)
    region = (energy.sum(axis=0) + POOL * overall) / (number.sum(axis=0) + POOL)
    mean = np.empty((blocks, demand.shape[1]))
    for i in range(blocks):
        rows = block == i
        mean[i] = (energy[rows].sum(axis=0) + POOL * region) / (number[rows].sum(axis=0) + POOL)
    mean = np.maximum(mean, 1e-3)
    usual = mean[block]
    off = np.where(used, (energy / usual - number) ** 2 / np.maximum(number, 1), 0.0).sum()
    spread = float(np.sqrt((off + POOL / 4) / (used.sum() + POOL)))
    return mean, float(np.clip(spread, 0.05, 3.0))


def _single(demand: Floats, seen: Floats, known: NDArray[np.bool_], spread: float) -> Floats:
    """Energies of single sessions by their mean: those of hours with one arrival, or of a gamma variable if few."""
    alone = demand[known & (seen == 1) & (demand > 0)]
    levels = (np.arange(ENERGIES) + 0.5) / ENERGIES
    if len(alone) >= LEAST_SINGLE:
        values = np.quantile(alone, levels)
    else:
        from scipy.stats import gamma

        values = gamma.ppf(levels, 1 / spread**2)
    return np.asarray(values / max(float(values.mean()), 1e-9))
