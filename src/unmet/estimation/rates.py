"""Arrival rates: the components of the intensity, fitted in turn until the likelihood of exposed time settles.

The arrival rate of site s at time t, in week bin k on day d with n plugs taken, is

    weekly[s, k] * slow[s, d] * city_day[d] * site_day[s, d] * response[s, n].

Components are fitted in turn, each given the others: profiles by penalised likelihood, levels by kernel ratios, day
effects and crowding by their marginal likelihood. The log likelihood of the arrivals observed in exposed time,

    sum over arrivals of log rate - integral of the rate over exposed time,

decides when to stop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import lambertw, xlogy

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.demand.spells import FREE, History
from unmet.estimation.clock import BIN_MS, BINS_A_WEEK, BINS_AN_HOUR, Clock
from unmet.estimation.crowding import (
    BETAS,
    POOL_PLUGS,
    Crowding,
    fit_crowding,
    log_likelihoods,
    occupancy_at_full,
    occupancy_at_steps,
    step_of_taken,
)
from unmet.estimation.exposed import (
    BLOCK_BINS,
    FullHours,
    expected_by_day,
    expected_by_step,
    exposed_by_week,
    exposed_by_week_weighted,
    full_hours,
    time_sums,
)
from unmet.estimation.gammas import gamma_shape, quiet_days
from unmet.estimation.levels import level_before, slow_level
from unmet.estimation.profiles import SMOOTH_BINS, Profiles, departure_shape, fit_profiles, own_departures
from unmet.estimation.towns import TOWNS, TownPrior

__all__ = [
    "Components",
    "Rates",
    "fit_rates",
    "held_out_score",
    "resampled_weekly",
    "response_at_full",
    "response_table",
]

NOTHING_HELD = np.zeros((0, 0), np.bool_)
MAX_ROUNDS, SETTLED = 8, 1e-4  # highest number of rounds, and relative change of the log likelihood at which they end
MIN_EXPOSED = 0.05  # a site counts as exposed for at least this share of its time
MANY_SITES, FEWER_ROUNDS = 1000, 3  # for large networks: the first rounds make nearly all of the difference


class Components(NamedTuple):
    """Which components the intensity has."""

    rank: int = 2  # number of weekly profiles
    slow: bool = True  # levels of the network and of sites
    city_day: bool = True
    site_day: bool = True
    crowding: bool = True
    smooth: float = SMOOTH_BINS  # smoothing of the weekly profiles [bins]


@dataclass(frozen=True, slots=True)
class Rates:
    """Fitted components."""

    components: Components
    profiles: Profiles  # shared by the sites
    weekly: Floats  # (sites, bins of the week), arrivals per hour, with each site's own departures
    slow: Floats  # (sites, days)
    memories: tuple[float, float]  # memories of the slow levels of the network and of sites [days]
    city_day: Floats  # (days,), posterior mean
    city_shape: float  # shape of the gamma effects of the network's days; infinite for none
    site_shape: float  # the same of site-days
    count: Floats  # (sites, days), arrivals in exposed time
    expected: Floats  # (sites, days), arrivals expected before day effects of sites
    crowding: Crowding | None
    objective: float  # log likelihood of the arrivals in exposed time, up to a constant

    @property
    def site_day(self) -> Floats:
        """Posterior mean of the effects of site-days, (a + n) / (a + m) with shape a, (sites, days)."""
        if np.isinf(self.site_shape):
            return np.ones_like(self.count)
        return (self.site_shape + self.count) / (self.site_shape + self.expected)

    @property
    def level(self) -> Floats:
        """Product of all components that vary by day, (sites, days)."""
        return np.asarray(self.slow * self.city_day * self.site_day)

    def at_rows(self, clock: Clock, rows: FullHours) -> Floats:
        """Usual arrivals of full hours with the levels of their days, before bursts and crowding."""
        return np.asarray(rows.usual * self.level[rows.site, clock.day[rows.hour * BINS_AN_HOUR]])

    def onwards(self, history: History, clock: Clock, capacity: Integers, until_ms: int) -> Rates:
        """The same rates, except that from `until_ms` on each day is predicted from the days before it alone.

        The slow level of such a day is `level_before`, with the memories that were fitted; its day effects are 1.
        """
        site, bin_, _ = _observed(history, clock, NOTHING_HELD, False)
        count = _count(site, clock.day[bin_], self.count.shape)
        response = response_table(self.crowding, capacity)
        expected = expected_by_day(history.spells, clock, self.weekly, response, NOTHING_HELD, False)
        quiet = quiet_days(count.sum(axis=0), expected.sum(axis=0))
        count, expected = count * ~quiet, expected * ~quiet
        city = level_before(count.sum(axis=0, keepdims=True), expected.sum(axis=0, keepdims=True), self.memories[0])
        own = level_before(count, expected * city, self.memories[1])
        bin_of_end = max((until_ms - clock.first_ms) // BIN_MS, 0)
        if bin_of_end >= len(clock.day):  # the records end earlier
            return self
        later = np.arange(clock.days) >= clock.day[bin_of_end]
        slow = np.where(later, city * own, self.slow)
        return replace(
            self,
            slow=slow,
            city_day=np.where(later, 1.0, self.city_day),
            count=np.where(later, 0.0, self.count),
            expected=np.where(later, 0.0, self.expected),
        )


def fit_rates(
    history: History,
    clock: Clock,
    capacity: Integers,
    components: Components,
    prior: TownPrior = TOWNS,
    held: NDArray[np.bool_] = NOTHING_HELD,
) -> Rates:
    """Fit the components to the arrivals in exposed time.

    Each round fits one component after the other, given the latest values of the others, as the comments say. n and m
    are the arrivals observed and expected in exposed time.

    Args:
        history: spells and arrivals of the sites.
        clock: clock of the period.
        capacity: number of cars that each site can charge at once, (sites,).
        components: the components to fit.
        prior: prior of crowding.
        held: blocks of three hours to leave out, (sites, blocks).
    """
    sites, days = len(capacity), clock.days
    site, bin_, taken = _observed(history, clock, held, False)
    by_week, by_day = _count(site, clock.week[bin_], (sites, BINS_A_WEEK)), _count(site, clock.day[bin_], (sites, days))
    step, x = step_of_taken(capacity), occupancy_at_steps(capacity)
    by_taken = _count(site, taken, step.shape)
    found = (by_taken * np.take_along_axis(x, step, axis=1)).sum(axis=1)  # sum of the occupancy x that arrivals found
    if not components.crowding:  # occupancy does not matter then
        step, x = np.zeros_like(step), np.zeros((sites, 1))

    profiles = Profiles(np.empty((0, 0)), np.empty((0, 0)))
    slow, city_day, site_day = np.ones((sites, days)), np.ones(days), np.ones((sites, days))
    beta, response, crowding = np.zeros(sites), np.ones_like(step, dtype=float), None
    memories, city_shape, site_shape, objective = (np.inf, np.inf), np.inf, np.inf, -np.inf
    missing, is_open = _missing_hours(history), _open_days(history, clock)
    for _ in range(MAX_ROUNDS if sites <= MANY_SITES else FEWER_ROUNDS):
        # Weekly profiles, given exposed hours that are weighted by all other components.
        exposed = exposed_by_week(history.spells, clock, slow * city_day * site_day, response, held)
        exposed += missing[:, None]
        profiles = fit_profiles(
            by_week, exposed, components.rank, profiles if np.isfinite(objective) else None, components.smooth
        )
        shape = departure_shape(by_week, exposed, profiles.rate)
        weekly = own_departures(by_week, exposed, profiles.rate, shape)
        # Arrivals that the added exposed hours predict, spread evenly over the open days of the site.
        unseen = missing * weekly.sum(axis=1) / np.maximum(is_open.sum(axis=1), 1)
        by_step = expected_by_step(history.spells, clock, weekly, step, x.shape[1], held)
        by_step[:, :, 0] += unseen[:, None] * is_open
        expected = np.einsum("sdn,sn->sd", by_step, np.exp(beta[:, None] * x))  # m at level 1, (sites, days)
        # Slow levels of the network, then of each site relative to it, from n / m on the days around.
        quiet = quiet_days(by_day.sum(axis=0), (expected * slow).sum(axis=0))
        if components.slow:
            count, ordinary = by_day * ~quiet, expected * ~quiet
            city = slow_level(count.sum(axis=0, keepdims=True), ordinary.sum(axis=0, keepdims=True))
            own = slow_level(count, ordinary * city.level)
            slow, memories = city.level * own.level, (city.memory, own.memory)
        total, usual = by_day.sum(axis=0), (expected * slow * site_day).sum(axis=0)
        # Effects of the network's days: posterior mean (a + n) / (a + m). A quiet day has its own ratio, hardly shrunk.
        if components.city_day:
            city_shape = gamma_shape(total[~quiet], usual[~quiet])
            city_day = np.ones(days) if np.isinf(city_shape) else (city_shape + total) / (city_shape + usual)
        city_day = np.where(quiet, (total + 0.5) / (usual + 0.5), city_day if components.city_day else 1.0)
        # Effects of site-days: the same, given the network's days.
        expected = expected * slow * city_day
        if components.site_day:
            site_shape = gamma_shape(by_day, expected)
            finite = np.isfinite(site_shape)
            site_day = (site_shape + by_day) / (site_shape + expected) if finite else np.ones_like(by_day)
        # Crowding, with the effects of site-days integrated out.
        if components.crowding:
            by_step *= (slow * city_day)[..., None]
            crowding = fit_crowding(*log_likelihoods(by_step, by_day, found, x, site_shape), prior)
            beta, response = crowding.beta, response_table(crowding, capacity)
        before = objective
        mean = expected * site_day
        objective = float(
            xlogy(by_week, np.maximum(weekly, 1e-12)).sum()
            + xlogy(by_taken, response).sum()
            + xlogy(by_day, slow * city_day * site_day).sum()
            - mean.sum()
        )
        if abs(objective - before) < SETTLED * abs(objective):
            break
    if crowding is not None:
        crowding = _with_turned_away(crowding, history, clock, capacity, weekly, slow * city_day * site_day)
    return Rates(
        components, profiles, weekly, slow, memories, city_day, city_shape, site_shape, by_day, expected, crowding,
        objective,
    )  # fmt: skip


def response_table(crowding: Crowding | None, capacity: Integers) -> Floats:
    """Factor on the arrival rate by number of taken plugs, exp(beta x), (sites, largest capacity + 1)."""
    step = step_of_taken(capacity)
    if crowding is None:
        return np.ones(step.shape)
    return np.asarray(np.exp(crowding.beta[:, None] * np.take_along_axis(occupancy_at_steps(capacity), step, axis=1)))


def response_at_full(rates: Rates, capacity: Integers) -> Floats:
    """Posterior mean of the share of the usual arrivals that still come to a full site, (sites,).

    It is E(level(beta) exp(beta x)) at the occupancy x of the full site, over the posterior of beta.
    """
    if rates.crowding is None:
        return np.ones(len(capacity))
    full = np.exp(BETAS * occupancy_at_full(rates.crowding, capacity)[:, None]) * rates.crowding.level
    return np.asarray(np.einsum("h,hsb,sb->s", rates.crowding.weight, rates.crowding.site, full))


def resampled_weekly(
    rates: Rates, history: History, clock: Clock, capacity: Integers, resamples: int, rng: np.random.Generator
) -> Floats:
    """Weekly rates refitted with random weights of days (Bayesian bootstrap), (resamples, sites, bins of the week).

    The weights of the days are independent standard exponentials, scaled to a mean of 1 (Rubin, 1981).
    The shape of the sites' own departures is the one estimated from the records: random weights alone would make sites
    look as if they departed from their profiles.
    """
    site, bin_, _ = _observed(history, clock, NOTHING_HELD, False)
    response, components = response_table(rates.crowding, capacity), rates.components
    weight = rng.standard_exponential((resamples, clock.days))
    weight = np.concatenate([np.ones((1, clock.days)), weight / weight.mean(axis=1, keepdims=True)])
    count = _weighted_count(
        site, clock.week[bin_], clock.day[bin_], weight, np.zeros((resamples + 1, *rates.weekly.shape))
    )
    exposed = exposed_by_week_weighted(history.spells, clock, rates.level, response, NOTHING_HELD, weight)
    exposed += _missing_hours(history)[:, None]
    shape = departure_shape(count[0], exposed[0], rates.profiles.rate)
    for i in range(1, resamples + 1):
        fitted = fit_profiles(count[i], exposed[i], components.rank, rates.profiles, components.smooth)
        # Rates replace the counts that they were fitted to, to save memory.
        count[i] = own_departures(count[i], exposed[i], fitted.rate, shape)
    return count[1:]


def held_out_score(rates: Rates, history: History, clock: Clock, capacity: Integers, held: NDArray[np.bool_]) -> float:
    """Log likelihood of the arrivals in held-out blocks under rates that were fitted without them."""
    response = response_table(rates.crowding, capacity)
    site, bin_, taken = _observed(history, clock, held, True)
    rate = rates.weekly[site, clock.week[bin_]] * rates.level[site, clock.day[bin_]] * response[site, taken]
    expected = expected_by_day(history.spells, clock, rates.weekly, response, held, True) * rates.level
    return float(np.log(np.maximum(rate, 1e-12)).sum() - expected.sum())


def _with_turned_away(
    crowding: Crowding, history: History, clock: Clock, capacity: Integers, weekly: Floats, level: Floats
) -> Crowding:
    """Crowding with the drivers who were turned away shortly before, and have left the pool for the length of a stay.

    Their number is the rate of lost arrivals times the mean time for which a full site has been full, at most a mean
    stay (by Little's law: car-hours over arrivals). At a random moment of full periods of lengths L, a site has been
    full for sum of L^2 / (2 sum of L) on average. The rate of lost arrivals falls with the number away in turn.
    """
    sites, time = len(capacity), time_sums(history.spells)
    stay = time.cars / np.maximum(np.bincount(history.arrivals.site, minlength=sites), 1)
    full_for = np.minimum(time.full_squared / np.maximum(2 * time.full, 1e-9), stay)
    rows = full_hours(history.spells, clock, weekly)
    usual = rows.usual * level[rows.site, clock.day[rows.hour * BINS_AN_HOUR]]
    rate = np.bincount(rows.site, usual, minlength=sites) / np.maximum(time.full, 1e-9)
    return crowding._replace(away=_turned_away_before(rate * full_for, crowding.beta, capacity))


def _turned_away_before(usual: Floats, beta: Floats, capacity: Integers) -> Floats:
    """Drivers who have left the pool, a = usual * exp(beta (c + a) / (c + POOL_PLUGS)), at most c, (sites,).

    With k = -beta / (c + POOL_PLUGS), the solution is W(k usual exp(-k c)) / k, where W is Lambert's function.
    """
    k = np.maximum(-beta, 1e-9) / (capacity + POOL_PLUGS)
    away = np.real(lambertw(k * usual * np.exp(-k * capacity))) / k
    return np.asarray(np.minimum(away, capacity))


def _missing_hours(history: History) -> Floats:
    """Exposed hours per bin of the week to add for sites that were almost always full, (sites,).

    A site counts as exposed for at least `MIN_EXPOSED` of its time: what it turned away beyond that is unknowable.
    """
    time = time_sums(history.spells)
    return np.asarray(np.maximum(MIN_EXPOSED * time.whole - time.free, 0.0) / BINS_A_WEEK)


def _open_days(history: History, clock: Clock) -> NDArray[np.bool_]:
    """Days from the first to the last record of each site, (sites, days)."""
    spells, day = history.spells, np.arange(clock.days)
    is_open = np.zeros((len(spells.first) - 1, clock.days), np.bool_)
    recorded = np.flatnonzero(np.diff(spells.first))  # sites with records
    first, last = spells.begin_ms[spells.first[recorded]], spells.end_ms[spells.first[recorded + 1] - 1] - 1
    first_day, last_day = (clock.day[(at - clock.first_ms) // BIN_MS] for at in (first, last))
    is_open[recorded] = (day >= first_day[:, None]) & (day <= last_day[:, None])
    return is_open


def _observed(
    history: History, clock: Clock, held: NDArray[np.bool_], in_held: bool
) -> tuple[Integers, Integers, NDArray[np.int32]]:
    """Site, bin and taken plugs of the arrivals in exposed time, in held-out blocks if `in_held`, else outside them."""
    arrivals = history.arrivals
    bin_ = np.maximum(arrivals.at_ms - clock.first_ms - 1, 0) // BIN_MS  # an arrival belongs to the time before it
    used = arrivals.state == FREE
    if len(held):
        used &= held[arrivals.site, bin_ // BLOCK_BINS] == in_held
    return arrivals.site[used], bin_[used], arrivals.taken[used]


def _count(site: Integers, column: NDArray[np.integer], shape: tuple[int, ...]) -> Floats:
    """Arrivals by site and column."""
    return np.bincount(site * shape[1] + column, minlength=shape[0] * shape[1]).reshape(shape).astype(float)


@compiled()
def _weighted_count(
    site: Integers, week: NDArray[np.integer], day: NDArray[np.integer], weight: Floats, total: Floats
) -> Floats:
    """Arrivals by site and bin of the week for several weightings of days, (weightings, sites, bins of the week)."""
    for j in range(len(weight)):
        for i in range(len(site)):
            total[j, site[i], week[i]] += weight[j, day[i]]
    return total
