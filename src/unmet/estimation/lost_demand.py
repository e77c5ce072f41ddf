"""LostDemand: the charging demand that an operator's records do not show, with its uncertainty.

`fit` reads like a methods section: every step is a function of its own module, in the order of the data.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Self

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from unmet.arrays import Floats, Integers
from unmet.demand.calendar import HOUR_MS
from unmet.demand.panel import Panel, station_rows
from unmet.errors import InputError
from unmet.estimation.clock import BIN_MS, BINS_AN_HOUR
from unmet.estimation.crowding import NO_STRENGTH, strength
from unmet.estimation.energies import ENERGIES, energy_variation, station_energies
from unmet.estimation.exposed import FullHours, full_hours, usual_of_rows
from unmet.estimation.hours import HourEffects, hour_effects
from unmet.estimation.need import require_draws, require_rates
from unmet.estimation.notes import estimate_notes
from unmet.estimation.occupancy import Network, failed_attempts, observe
from unmet.estimation.panel_table import panel_table
from unmet.estimation.posterior import draw_network
from unmet.estimation.rates import Rates, fit_rates, resampled_weekly, response_at_full, response_table
from unmet.estimation.selection import select_components
from unmet.estimation.selfcheck import self_check
from unmet.estimation.sensitivity import sensitivity_table
from unmet.estimation.shares import leaving_drivers
from unmet.estimation.spill import draw_spills, fit_spill, nearest_sites
from unmet.estimation.sums import Ingredients, Recovered, estimate, sum_draws
from unmet.estimation.tables import hour_table, region_table, site_table, station_hour_table, station_table, week_table
from unmet.estimation.towns import TOWNS, TownPrior
from unmet.estimation.waiting import after_departures, draw_waits, waiting_drivers
from unmet.frames import Frame, to_frame_type
from unmet.runs import available_cores
from unmet.shown import Shown

__all__ = ["LostDemand"]

PROFILES, MANY_SITES = 16, 1000
"""Number of resampled weekly profiles; half as many if there are more than `MANY_SITES` sites, to save time."""
NETWORK_STREAM = 1  # keeps the network's random numbers apart from those of its sites (2) and of competitors (3)


class LostDemand(Shown, BaseEstimator):  # type: ignore[misc]
    """Estimate lost charging demand from records alone.

    Arrivals while a plug is free are recorded; arrivals while none is free are lost. The arrival rate of every site is
    estimated from the time in which it was not full, and extended to the time in which it was:
    E(lost arrivals) = integral over full time of rate(t) dt, less the drivers who wait or charge nearby. The models of
    the paper (Mind The Gap) know only whether an hour was censored.

    Args:
        waiting: share of drivers at a full site who wait until they are served; estimated if None.
        spill: share of drivers at a full site who are served at another site nearby; estimated if None.
        energies: energy that a lost driver would have charged: as `seen` at that site and time, or `to-80` per cent.
        draws: number of posterior draws.
        interval: probability that an interval contains the truth.
        seed: the same seed gives the same draws.
        prior: prior from other towns, for what the records do not show.

    Examples:
        >>> lost = LostDemand(draws=50).fit(panel)  # an unmet.Panel
        >>> lost_kwh = lost.summary()["lost_kwh"]
        >>> lost_kwh["low"] < lost_kwh["mean"] < lost_kwh["high"]
        True
        >>> lost.by_site().columns[:4]
        ['site_id', 'name', 'lat', 'lon']
    """

    _keep_regions = False  # whether to keep all draws of region-hours; needed to add up areas

    def __init__(
        self,
        *,
        waiting: float | None = None,
        spill: float | None = None,
        energies: str = "seen",
        draws: int = 200,
        interval: float = 0.9,
        seed: int = 1,
        prior: TownPrior = TOWNS,
    ) -> None:
        self.waiting = waiting
        self.spill = spill
        self.energies = energies
        self.draws = draws
        self.interval = interval
        self.seed = seed
        self.prior = prior

    def fit(self, panel: Panel, until: dt.datetime | None = None) -> Self:
        """Estimate the lost demand of every station and hour of a panel.

        Args:
            panel: the records.
            until: estimate rates from the time before it only (UTC, if it has no zone); each later day is then
                estimated from the days before it. Capacities, sites, openings and the shares of stations in the
                losses of their site are those of the whole panel.
        """
        self._check_options()
        rng = np.random.default_rng([self.seed, NETWORK_STREAM])
        until = until if until is None or until.tzinfo is not None else until.replace(tzinfo=dt.UTC)
        until_ms = None if until is None else int(until.timestamp() * 1000)
        require_rates(panel.sessions.height, panel.sites.height, panel.hours // 24)
        # 1. Occupancy: when was every site full? Rates are learned from `learned`, and losses estimated for `network`.
        network = observe(panel)
        learned = network if until_ms is None else network.before(until_ms)
        # 2. Components: what does the arrival rate depend on in these records?
        components, tried = select_components(learned)
        # 3. Rates: weekly profiles, slow levels, day effects, crowding.
        rates = fit_rates(learned.history, learned.clock, learned.capacity, components, self.prior)
        # 4. Spill: how many drivers were served at a site nearby? Their arrivals there must not inflate its rate.
        burst = _mean_burst(learned, rates)
        spill = fit_spill(learned, nearest_sites(panel.sites), rates, burst, self.spill, self.prior, rng)
        initial_rates, rates, learned = rates, spill.rates, spill.network
        network = network.without(np.flatnonzero(learned.left_out))
        known = rates if until_ms is None else rates.onwards(network.history, network.clock, network.capacity, until_ms)
        spills = draw_spills(spill, self.spill, self.draws, rng)
        # 5. Bursts: how busy was each hour in which a site was full?
        response = response_table(known.crowding, network.capacity)
        rows = full_hours(network.history.spells, network.clock, known.weekly)
        until_hour = network.clock.hours if until_ms is None else (until_ms - network.clock.first_ms) // HOUR_MS
        sessions = panel.sessions.filter(~pl.Series(failed_attempts(panel.sessions)))
        sessions = sessions if until is None else sessions.filter(pl.col("start") < until)
        bursts = hour_effects(network.history, network.clock, known.weekly, known.level, response, rows, until_hour)
        # 6. Waiting: how many drivers waited and were served at the same site?
        turned_away = _turned_away(network, known, rows, bursts)
        departures = after_departures(learned.history, network.clock, known.weekly, known.level, response)
        away_of_site = network.by_site(rows.site, turned_away * (rows.hour < until_hour))
        waited = waiting_drivers(departures, learned.arrivals_at_full, away_of_site)
        waits = draw_waits(waited, self.waiting, self.draws, rng)
        leaving = leaving_drivers(waits, spills, waited.turned_away, refitted=rates is not initial_rates)
        # 7. Energies: how much would a lost driver have charged?
        station, _, _ = station_rows(sessions, panel.stations)
        hour_of_day = _hour_of_day(network, sessions)
        session_kwh = station_energies(station, hour_of_day, sessions, panel.stations, self.energies)
        # 8. Self-check: is the estimator right where it can be checked?
        self.self_check_ = self_check(learned, components, self.prior)
        # 9. Posterior draws, and their sums.
        require_draws(len(rows.site), network.clock.hours, PROFILES, self.draws, available_cores())
        usual = _resampled_usual(rates, learned, network, rows, rng)
        responds = NO_STRENGTH if known.crowding is None else strength(known.crowding, network.capacity, away_of_site)
        common = draw_network(known, usual.shape[1], leaving, self.prior, responds, self.self_check_, away_of_site, rng)
        variation = energy_variation(sessions)
        given = Ingredients(panel, network, known, rows, usual, bursts, common, session_kwh, variation, self.seed)
        self.recovered_: Recovered = sum_draws(given, self.interval, keep_regions=self._keep_regions)
        self.ingredients_ = given  # from which the draws of a site can be repeated
        self.panel_, self.network_, self.rates_, self.rows_, self.bursts_ = panel, network, known, rows, bursts
        self.components_, self.tried_, self.restarts_ = components, tried, waited.restarts
        self.waiting_, self.spill_ = leaving.waiting, leaving.spill
        self.strength_ = 0.0 if known.crowding is None else float(responds.of_hypothesis @ known.crowding.weight)
        self.turned_away_, self.session_kwh_ = turned_away, session_kwh
        # Share of the drivers turned away at each site who are lost, including the errors that all sites share.
        self.lost_share_ = np.asarray((common.leaves * common.error[:, None]).mean(axis=0))
        self.station_weight_ = np.bincount(station, minlength=panel.stations.height) + 0.5
        # Share of the drivers turned away who may have waited, at most.
        self.retaken_ = waited.retaken / max(float(waited.excess.turned_away.sum()), 1e-9)
        return self

    def summary(self) -> dict[str, Any]:
        """Totals with intervals, the self-check and notes.

        Returns:
            Dictionary with `lost_kwh` [kWh] and `lost_arrivals` (`mean`, `low` and `high` each), `seen_kwh` and
            `seen_arrivals` (recorded), `self_check`, `waiting`, `spill`, `notes` and more.
        """
        self._check_fitted()
        recovered, check, panel = self.recovered_, self.self_check_, self.panel_
        first, last = panel.period
        return {
            "lost_kwh": self._interval(recovered.station_kwh.sum(axis=1)),
            "lost_arrivals": self._interval(recovered.station_arrivals.sum(axis=1)),
            "seen_kwh": float(panel.sessions["energy_kwh"].sum()),
            "seen_arrivals": panel.sessions.height,
            "self_check": dict(zip(("ratio", "low", "high"), check[:3], strict=True)) if check.known else None,
            "waiting": self.waiting_,
            "spill": self.spill_,
            "busiest": self._busiest(),
            "sites": panel.sites.height,
            "stations": panel.stations.height,
            "regions": panel.regions.centres.height,
            "first_hour": f"{first:%Y-%m-%dT%H:%MZ}",
            "last_hour": f"{last - dt.timedelta(hours=1):%Y-%m-%dT%H:%MZ}",
            "hours": panel.hours,
            "interval": self.interval,
            "components": [tried.name for tried in self.tried_ if tried.kept],
            **self._from_prior(),
            "notes": self.notes(),
        }

    def by_station(self) -> Frame:
        """Observed, lost and true demand of every station, with intervals.

        Returns:
            Data frame of the library that the records came in: `station_id, name, site_id, unique_id` (region),
            `lat, lon` [degree], `capacity` [cars], `full_share` of its open time, `observed_kwh, lost_kwh, true_kwh`
            [kWh], and `arrivals, lost_arrivals, true_arrivals`. Lost and true values have `_low` and `_high`.
        """
        self._check_fitted()
        return self._as_given(station_table(self.panel_, self.network_, self.rows_, self.recovered_, self.interval))

    def by_site(self) -> Frame:
        """As `by_station`, one row per site (adjacent stations)."""
        self._check_fitted()
        return self._as_given(site_table(self.panel_, self.network_, self.rows_, self.recovered_, self.interval))

    def by_region(self) -> Frame:
        """As `by_station`, one row per region."""
        self._check_fitted()
        return self._as_given(region_table(self.panel_, self.recovered_, self.interval))

    def by_week(self) -> Frame:
        """As `by_station`, one row per region and local week, and per week for all regions together."""
        self._check_fitted()
        return self._as_given(week_table(self.panel_, self.recovered_, self.interval))

    def by_hour(self) -> Frame:
        """As `by_station`, one row per region and hour."""
        self._check_fitted()
        return self._as_given(hour_table(self.panel_, self.recovered_))

    def station_hours(self) -> Frame:
        """Station-hours with an arrival or without a free plug, with the posterior mean of lost arrivals and energy."""
        self._check_fitted()
        return self._as_given(station_hour_table(self.panel_, self.network_, self.rows_, self.recovered_))

    def panel_table(self) -> Frame:
        """The panel's table with estimates of unobserved demand, for training models.

        Returns:
            Data frame of the library that the records came in: `unique_id, ds, y` [kWh], `arrivals, censored, exposure`
            (in [0, 1]), `lost_arrivals, lost_kwh, elsewhere_kwh, lost_kwh_before, lost_draws` [kWh] and the calendar.
        """
        self._check_fitted()
        return self._as_given(panel_table(self))

    def sensitivity(self) -> Frame:
        """The estimate under other assumptions: `assumption, lost_kwh` [kWh], `lost_arrivals`."""
        self._check_fitted()
        return self._as_given(sensitivity_table(self))

    def notes(self) -> list[str]:
        """Warnings and findings to read before using the estimate, the most serious first."""
        self._check_fitted()
        shares = (self.waiting_, self.spill_, self.restarts_)
        lost, check = self._lost_by_site(), self.self_check_
        return estimate_notes(self.panel_, self.network_, self.rows_, lost, check, *shares, self.bursts_.shape)

    def _lost_by_site(self) -> Floats:
        """Posterior mean of the lost arrivals of each site."""
        lost = self.recovered_.station_arrivals.mean(axis=0)
        return self.network_.by_site(self.network_.site_of_station, lost)

    def _busiest(self) -> dict[str, int] | None:
        """Most plugs taken at once at the site that came closest to being full, and its capacity."""
        network, spells = self.network_, self.network_.history.spells
        if not len(spells.taken):
            return None
        observed = np.flatnonzero(np.diff(spells.first))
        most = np.zeros(network.sites, np.int64)
        most[observed] = np.maximum.reduceat(spells.taken, spells.first[observed])
        site = int((most / np.maximum(network.capacity, 1)).argmax())
        return {"taken": int(most[site]), "capacity": int(network.capacity[site])}

    def _from_prior(self) -> dict[str, float]:
        """How much of the estimate and of its interval depends on the prior from other towns.

        `from_prior` is the share of the loss at sites with one plug, whose response to occupancy their records cannot
        show, times the strength of the response; `prior_shift` the relative change of the estimate by the mean error
        in those towns; `prior_interval` the share of the variance of the log total that comes from them.
        """
        lost = self._lost_by_site()
        single = float(lost[self.network_.capacity == 1].sum() / max(lost.sum(), 1e-9))
        responds = self.strength_
        total = self.recovered_.station_arrivals.sum(axis=1)
        variance = float(np.log(np.maximum(total, 1.0)).var())
        towns = (responds * self.prior.bias_spread) ** 2
        return {
            "from_prior": single * responds,
            "prior_shift": float(np.exp(responds * self.prior.bias) - 1),
            "prior_interval": min(towns / variance, 1.0) if variance > 0 else 0.0,
        }

    def _interval(self, draws: Floats) -> dict[str, float]:
        values = estimate(draws, self.interval)
        return {name: float(value) for name, value in zip(("mean", "low", "high"), values, strict=True)}

    def _check_options(self) -> None:
        for name, value in (("waiting", self.waiting), ("spill", self.spill)):
            if value is not None and not 0 <= value <= 1:
                raise InputError(f"A share of {value:g} for {name} makes no sense: give one from 0 to 1, such as 0.3.")
        if self.energies not in ENERGIES:
            raise InputError(f"Unknown energies {self.energies!r}: choose one of {', '.join(ENERGIES)}.")
        if not 0 < self.interval < 1:
            raise InputError(f"An interval of {self.interval:g} makes no sense: give one between 0 and 1, such as 0.9.")
        if self.draws < 20:
            raise InputError(f"{self.draws} draws are too few for an interval: ask for at least 20.")

    def _as_given(self, table: pl.DataFrame) -> Frame:
        return to_frame_type(table, self.panel_.frame_type)

    def _check_fitted(self) -> None:
        if not hasattr(self, "recovered_"):
            raise NotFittedError("LostDemand is not fitted yet: call fit first.")


def _resampled_usual(
    rates: Rates, learned: Network, network: Network, rows: FullHours, rng: np.random.Generator
) -> Floats:
    """Arrivals predicted for full hours by resampled weekly profiles, (rows, profiles).

    Resampling measures the uncertainty of profiles; the mean of each site is scaled to that of the fitted profile.
    """
    profiles = PROFILES if network.sites <= MANY_SITES else PROFILES // 2
    weekly = resampled_weekly(rates, learned.history, learned.clock, learned.capacity, profiles, rng)
    usual = usual_of_rows(network.history.spells, network.clock, rows, weekly)
    mean = usual.mean(axis=1, keepdims=True)
    # Deviations from the mean of a few profiles are too small by this factor.
    usual = np.maximum(mean + (usual - mean) * np.sqrt(profiles / (profiles - 1)), 0.0)
    of_site, resampled = (network.by_site(rows.site, each) for each in (rows.usual, usual.mean(axis=1)))
    return np.asarray(usual * (of_site / np.maximum(resampled, 1e-12))[rows.site, None])


def _mean_burst(network: Network, rates: Rates) -> float:
    """Mean burst effect of the hours in which sites were full, weighted by their usual arrivals."""
    rows = full_hours(network.history.spells, network.clock, rates.weekly)
    response, usual = response_table(rates.crowding, network.capacity), rates.at_rows(network.clock, rows)
    bursts = hour_effects(
        network.history, network.clock, rates.weekly, rates.level, response, rows, network.clock.hours
    )
    return float(usual @ bursts.mean / max(usual.sum(), 1e-9)) if len(rows.site) else 1.0


def _turned_away(network: Network, rates: Rates, rows: FullHours, bursts: HourEffects) -> Floats:
    """Arrivals expected while sites were full, by full hour: usual arrivals x levels x burst x response, (rows,)."""
    return rates.at_rows(network.clock, rows) * bursts.mean * response_at_full(rates, network.capacity)[rows.site]


def _hour_of_day(network: Network, sessions: pl.DataFrame) -> Integers:
    """Local hour of the day of each session."""
    start = sessions["start"].dt.epoch("ms").to_numpy()
    bin_ = (start - network.clock.first_ms) // BIN_MS
    return np.asarray(network.clock.week[bin_] // BINS_AN_HOUR % 24, np.int64)
