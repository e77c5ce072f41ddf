"""Posterior draws of lost demand: first the factors that all sites share, then each site.

In draw i, the arrivals lost at site s in an hour in which it was full for some time are Poisson with mean

    usual * slow * city_day * site_day * burst * level * response * leaves * error,

where every factor but `slow` is drawn from its posterior: `usual` from a weekly profile fitted to reweighted days (the
Bayesian bootstrap, Rubin, Annals of Statistics 9, 1981), day effects and bursts from gamma distributions, and `level`
and `response` from the posterior of crowding. `leaves` is one minus the shares that wait (by site) and spill, and
`error` is the error of the estimator found in other towns and by its own self-check, and of the single site. If the
capacity of a site is uncertain, the site was not full with some probability. Energies of lost drivers are gamma
distributed around the mean of the site at that time of day.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.estimation.clock import BINS_AN_HOUR, Clock
from unmet.estimation.crowding import BETAS, Crowding, Strength, occupancy_at_full
from unmet.estimation.energies import BLOCK
from unmet.estimation.exposed import FullHours
from unmet.estimation.hours import HourEffects
from unmet.estimation.rates import Rates
from unmet.estimation.selfcheck import SelfCheck
from unmet.estimation.shares import Leaving
from unmet.estimation.towns import TownPrior

__all__ = ["NetworkDraws", "SiteDraws", "draw_network", "draw_site"]

MODEL_ERROR = 0.03
"""Error of the estimator if all of its assumptions hold (bins, smoothing, selection), on the log scale."""
MAX_ERROR = 0.35
"""Highest standard deviation, on the log scale, to which the checks widen intervals: of a site, and of the network's
total including the response and other towns. A 90 % interval then spans about a factor of 1.8 either way; beyond that,
the warning has to suffice."""
LARGE_MEAN, MAX_INVERTED = 20.0, 1000  # highest mean for drawing by inversion, and the largest number drawn that way


@dataclass(frozen=True, slots=True)
class NetworkDraws:
    """Draws of the factors that all sites share."""

    profile: Integers  # (draws,), which of the resampled weekly profiles
    city_day: Floats  # (draws, days)
    hypothesis: Integers  # (draws,), hypothesis about crowding
    leaves: Floats  # (draws, sites), share of the drivers at full sites who neither wait nor are served nearby
    error: Floats  # (draws,), factor for the errors that all sites share, with mean 1 unless other towns shift it
    site_error: float  # standard deviation of the error of a single site, on the log scale

    @property
    def draws(self) -> int:
        """Number of draws."""
        return len(self.error)


@dataclass(frozen=True, slots=True)
class SiteDraws:
    """Lost demand of one site."""

    hour: Integers  # (hours,), hours in which the site was full for some time
    arrivals: Floats  # (hours, draws)
    kwh: Floats  # (hours, draws)


def draw_network(
    rates: Rates,
    profiles: int,
    leaving: Leaving,
    prior: TownPrior,
    strength: Strength,
    check: SelfCheck,
    turned_away: Floats,
    rng: np.random.Generator,
) -> NetworkDraws:
    """Draw the factors that all sites share.

    With the strength s of the response, the error of other towns and that of this network are log-normal:

        log error = s (bias + bias_spread z1) - (s bias_spread)^2 / 2 + spread z2 - spread^2 / 2,
        spread^2 = excess of the self-check^2 + MODEL_ERROR^2 + rate_spread^2,      z1, z2 ~ Normal(0, 1).

    Args:
        rates: the fitted intensity.
        profiles: number of resampled weekly profiles.
        leaving: drivers at full sites who neither wait nor are served nearby, and the uncertainty of rates that were
            fitted without those served nearby.
        prior: prior of the estimator's error, from other towns.
        strength: how strongly arrivals respond to full sites, relative to those towns; the error of the response grows
            with the response.
        check: the self-check. Its distance from 1 beyond chance widens intervals, and never shifts them; so does the
            error of single sites.
        turned_away: drivers turned away at each site, (sites,). Errors of sites matter for the total only if a few
            sites have most of them.
        rng: random numbers.
    """
    draws, days = len(leaving.share), len(rates.city_day)
    city = np.broadcast_to(rates.city_day, (draws, days))
    if np.isfinite(rates.city_shape):
        shape = rates.city_shape + rates.count.sum(axis=0)
        city = rates.city_day * rng.standard_gamma(shape, (draws, days)) / shape
    weight = np.ones(1) if rates.crowding is None else rates.crowding.weight
    hypothesis = rng.choice(len(weight), draws, p=weight)
    towns = prior.bias + prior.bias_spread * _stratified_normal(draws, rng)
    of_towns = float(strength.of_hypothesis @ weight) * prior.bias_spread
    site_error, shares = min(check.site_error, MAX_ERROR), turned_away / max(float(turned_away.sum()), 1e-12)
    others = of_towns**2 + strength.variance + site_error**2 * float(shares @ shares)  # variance of the total
    excess = min(check.excess, np.sqrt(max(MAX_ERROR**2 - others, 0.0)))
    spread = np.sqrt(excess**2 + MODEL_ERROR**2 + leaving.rate_spread**2)
    own = spread * _stratified_normal(draws, rng) - spread**2 / 2
    responds = strength.of_hypothesis[hypothesis]
    error = np.exp(responds * towns - (responds * prior.bias_spread) ** 2 / 2 + own)
    return NetworkDraws(np.arange(draws) % profiles, city, hypothesis, leaving.share, error, site_error)


def _stratified_normal(draws: int, rng: np.random.Generator) -> Floats:
    """Standard normal draws, one from each of `draws` equally likely strata, so that means hardly depend on chance."""
    return np.asarray(rng.permutation(ndtri((np.arange(draws) + rng.random(draws)) / draws)))


def draw_site(
    site: int,
    rows: FullHours,
    usual: Floats,
    network: NetworkDraws,
    rates: Rates,
    bursts: HourEffects,
    clock: Clock,
    capacity: int,
    capacity_sure: float,
    session_kwh: Floats,
    variation: float,
    rng: np.random.Generator,
) -> SiteDraws:
    """Draw the lost demand of one site.

    Args:
        site: row of the site.
        rows: hours in which this site was full.
        usual: arrivals predicted for the full time by each resampled profile, (rows, profiles).
        network: draws of the factors that all sites share.
        rates: the fitted intensity.
        bursts: burst effects of the same rows.
        clock: clock of the period.
        capacity: number of cars that the site can charge at once.
        capacity_sure: probability that it is full with that many cars.
        session_kwh: mean energy of a lost driver by block of the day.
        variation: coefficient of variation of a session's energy.
        rng: random numbers of this site.
    """
    draws, day = network.draws, clock.day[rows.hour * BINS_AN_HOUR]
    response = _response(site, network, rates.crowding, capacity, rng)
    own = np.exp(network.site_error * _stratified_normal(draws, rng) - network.site_error**2 / 2)
    scale = network.leaves[:, site] * response * network.error * own
    if capacity_sure < 1:
        scale *= rng.random(draws) < capacity_sure
    days, of_day = np.unique(day, return_inverse=True)
    site_day = np.ones((draws, len(days)))
    if np.isfinite(rates.site_shape):
        shape = rates.site_shape + rates.count[site, days]
        site_day = rng.standard_gamma(shape, (draws, len(days))) / (rates.site_shape + rates.expected[site, days])
    level = scale[:, None] * network.city_day[:, days] * rates.slow[site, days] * site_day
    block = clock.week[rows.hour * BINS_AN_HOUR] // BINS_AN_HOUR % 24 // BLOCK
    arrivals, kwh = _draw_hours(
        rng,
        np.ascontiguousarray(usual),
        network.profile,
        np.ascontiguousarray(level.T),
        np.ascontiguousarray((site_day / _mean_site_day(rates, site, days)).T),
        of_day,
        bursts,
        session_kwh[block],
        1 / max(variation, 0.05) ** 2,
    )
    return SiteDraws(rows.hour, arrivals, kwh)


@compiled()
def _draw_hours(
    rng: np.random.Generator,
    usual: Floats,
    profile: Integers,
    level: Floats,
    busier: Floats,
    of_day: Integers,
    bursts: HourEffects,
    session_kwh: Floats,
    energy_shape: float,
) -> tuple[Floats, Floats]:
    """Draw arrivals and energy of every full hour, (hours, draws).

    Arrivals are Poisson with mean usual * level * burst. Given n arrivals in the exposed part of the hour where m were
    expected, the burst is gamma with shape c + n and rate c + m * busier.

    Args:
        rng: random numbers.
        usual: arrivals predicted by each profile, (hours, profiles).
        profile: profile of each draw, (draws,).
        level: factor on these arrivals on each full day, (full days, draws).
        busier: drawn effect of the site-day over its mean, (full days, draws).
        of_day: full day of each hour, (hours,).
        bursts: effects of the hours.
        session_kwh: mean energy of a lost driver, (hours,).
        energy_shape: shape of the gamma distribution of a session's energy.
    """
    hours, draws = len(of_day), len(profile)
    arrivals, kwh = np.zeros((hours, draws)), np.zeros((hours, draws))
    for h in range(hours):
        d = of_day[h]
        for i in range(draws):
            mean = usual[h, profile[i]] * level[d, i]
            if np.isfinite(bursts.shape):
                # Conditional on the drawn day effect: the same arrivals must not raise both effects.
                rate = bursts.shape + bursts.expected[h] * busier[d, i]
                number = _gamma_poisson(rng, bursts.shape + bursts.arrivals[h], mean / rate)
            else:
                number = _poisson(rng, mean)
            if number > 0:
                arrivals[h, i] = number
                kwh[h, i] = rng.standard_gamma(number * energy_shape) / energy_shape * session_kwh[h]
    return arrivals, kwh


@compiled()
def _gamma_poisson(rng: np.random.Generator, shape: float, scale: float) -> int:
    """A Poisson number whose mean is gamma distributed with this shape and scale: negative binomial, by inversion."""
    if shape * scale > LARGE_MEAN:
        return int(rng.poisson(rng.standard_gamma(shape) * scale))
    uniform = rng.random()
    if uniform <= 1 - shape * scale:  # a lower bound of (1 + scale)^-shape, the probability of 0
        return 0
    number, probability = 0, (1 + scale) ** -shape
    while uniform > probability and number < MAX_INVERTED:
        uniform -= probability
        probability *= (shape + number) / (number + 1) * scale / (1 + scale)
        number += 1
    return number


@compiled()
def _poisson(rng: np.random.Generator, mean: float) -> int:
    """A Poisson number by inversion; most means are small, and most numbers 0."""
    if mean > LARGE_MEAN:
        return int(rng.poisson(mean))
    uniform = rng.random()
    if uniform <= 1 - mean:  # a lower bound of exp(-mean), the probability of 0
        return 0
    number, probability = 0, np.exp(-mean)
    while uniform > probability and number < MAX_INVERTED:
        uniform -= probability
        number += 1
        probability *= mean / number
    return number


def _mean_site_day(rates: Rates, site: int, days: NDArray[np.integer]) -> Floats:
    """Posterior mean of the effects of a site on given days."""
    if np.isinf(rates.site_shape):
        return np.ones(len(days))
    shape = rates.site_shape
    return np.asarray((shape + rates.count[site, days]) / (shape + rates.expected[site, days]))


def _response(
    site: int, network: NetworkDraws, crowding: Crowding | None, capacity: int, rng: np.random.Generator
) -> Floats:
    """Share of the usual arrivals that still come to the full site, times its level, (draws,).

    Beta is drawn from the site's posterior under the hypothesis of each draw, by inversion on the grid `BETAS`.
    """
    if crowding is None:
        return np.ones(network.draws)
    away = crowding.away[site] if len(crowding.away) > 1 else crowding.away[0]
    full = occupancy_at_full(crowding._replace(away=np.array([away])), np.array([capacity]))[0]
    cumulative = crowding.site[:, site].cumsum(axis=1)[network.hypothesis]
    at = (cumulative < rng.random((network.draws, 1)) * cumulative[:, -1:]).sum(axis=1)
    beta = np.minimum(at, len(BETAS) - 1)
    return np.asarray(np.exp(BETAS[beta] * full) * crowding.level[site, beta])
