"""The steps of a direct forecaster, in the order of the data: rows, members, rolling origins, weights, distributions.

1. Members learn expected demand from rows, each for a region, an hour and a horizon.
2. They are also fitted on the first half and on the first three quarters of the hours, and forecast the hours that
   follow: forecasts from rolling origins, of hours that a member was not fitted to.
3. The demand that followed these forecasts gives the distribution around an expected value (`conditional`).
4. Weights of members and tables minimise the loss in the last quarter (`stacking`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unmet.arrays import Floats, Integers
from unmet.models.direct.breaks import Breaks, find_breaks
from unmet.models.direct.climatology import WINDOWS, climatology, climatology_mean
from unmet.models.direct.conditional import WINDOW, conditional_quantiles
from unmet.models.direct.features import WEEK, band_of, bands, features
from unmet.models.direct.history import HourlyHistory, blend
from unmet.models.direct.member import Member, Rows
from unmet.models.direct.moving import LEVEL_MEMORY, MODEL_MEMORY, decay, moving_ratio
from unmet.models.direct.stacking import stack_weights

__all__ = ["MIN_HOURS", "Engine", "PastForecasts", "fit_engine", "session_energy"]


MIN_HOURS = 8 * WEEK  # with fewer, only the table is used
ROWS = 30_000  # approximate number of training rows in each band of horizons
WARM_UP = 4 * WEEK  # hours before the first row
WEIGHT_HOURS = 26 * WEEK  # highest number of hours, at the end, from which weights are learned
WEIGHT_STEP = 5  # every fifth of these hours is used: 5 does not divide 24, so that all hours of the day occur
CHUNK = 400_000  # region-hours whose features are computed at once
BREAK_BAND = 2  # band of the forecasts that show breaks: 7 to 24 hours ahead
STRIDE = 31  # step of the horizon from hour to hour within a band, so that every hour of the day has all horizons


@dataclass(frozen=True, slots=True)
class PastForecasts:
    """Forecasts of the last weeks and the demand that followed, as known when new forecasts are made."""

    until: int  # first hour without known demand
    expected: Floats  # (members, bands, hours, regions) [kWh], by members that were not fitted to those hours
    demand: Floats  # (hours, regions) [kWh], of the hours up to `until`
    fitted: int  # end of the fit: members were refitted after they forecast the hours before it

    @property
    def current(self) -> float:
        """Share of these forecasts, weighted as for the moving level, that were made by the present members."""
        weight = decay(len(self.demand), MODEL_MEMORY)
        later = min(max(self.until - self.fitted, 0), len(weight))
        return float(weight[len(weight) - later :].sum() / weight.sum()) if len(weight) else 0.0


@dataclass(frozen=True, slots=True)
class Engine:
    """The fitted parts: members, their weights, and their latest forecasts."""

    tables: tuple[str, ...]  # climatologies, by name
    members: tuple[Member, ...]
    weights: Floats  # (bands, regions, tables and members)
    past: Floats  # (members, bands, hours, regions) [kWh], expected by members that were not fitted to those hours
    horizon: int
    session_kwh: Floats  # (regions,)

    def expected(self, history: HourlyHistory, fitted: int, first: int, last: int) -> Floats:
        """Expected demand of the hours from `first` to `last`, in every band, (members, bands, hours, regions) [kWh].

        Up to `fitted`, the end of the fit, these are forecasts of members that were not fitted to those hours; NaN if
        there are none.
        """
        result = np.full((len(self.members), len(bands(self.horizon)), last - first, history.regions), np.nan)
        stored = np.arange(max(first, fitted - self.past.shape[2]), min(last, fitted))
        if len(stored):
            result[:, :, stored - first] = self.past[:, :, stored - fitted + self.past.shape[2]]
        later = max(first, fitted)
        if last > later:
            result[:, :, later - first :] = expected_by_band(self.members, history, later, last, self.horizon)
        return result

    def breaks(self, history: HourlyHistory, before: PastForecasts, expected: Floats) -> Breaks | None:
        """Breaks of the level up to now, relative to the table of the last weeks; None without members.

        Args:
            history: states up to the last past hour.
            before: past forecasts, whose last hour is the last of the table.
            expected: as `before.expected`, possibly continued to later hours, in which breaks are found too.
        """
        if not self.members:
            return None
        first = before.until - len(before.demand)
        hours = np.arange(first, first + expected.shape[2])
        band = min(BREAK_BAND, expected.shape[1] - 1)
        # With these horizons, every hour is looked up in the table as it is just before `before.until`.
        table = climatology_mean(history, hours, hours - before.until + 1, WINDOWS["climatology"])
        weights = self.weights[band, :, len(self.tables) :].T + 1e-6  # weights of the members, never all zero
        mean = np.einsum("mhr,mr->hr", expected[:, band], weights / weights.sum(axis=0))
        return find_breaks(history.target[hours], mean, table, self.session_kwh, first, len(before.demand))

    def quantiles(
        self,
        history: HourlyHistory,
        hours: Integers,
        horizon: Integers,
        before: PastForecasts,
        levels: Floats,
        breaks: Breaks | None = None,
    ) -> Floats:
        """Quantiles and mean [kWh], and probability of no demand, of the given hours, (targets, regions, levels + 2).

        `before` may end some hours before the time of a forecast, so that many forecasts share it.
        """
        result = np.empty((len(hours), history.regions, len(levels) + 2))
        for band in np.unique(band_of(horizon)):
            inside = band_of(horizon) == band
            parts = member_quantiles(
                self.tables,
                self.members,
                history,
                hours[inside],
                horizon[inside],
                int(band),
                before,
                levels,
                self.session_kwh,
            )
            result[inside] = pool(parts, self.weights[band], levels)
        return result if breaks is None else with_breaks(result, breaks, history, hours, horizon, levels)


def pool(parts: Floats, weights: Floats, levels: Floats) -> Floats:
    """The weighted mean of quantiles, level by level, with the weighted mean of the point masses at zero.

    Args:
        parts: quantiles, mean and probability of no demand of each part, (targets, regions, parts, levels + 2).
        weights: weights of the parts, (regions, parts).
        levels: levels of the quantiles.
    """
    pooled = np.einsum("hrml,rm->hrl", parts, weights)
    # A mean of quantiles is positive if any of them is, which would leave only the smallest of the point masses.
    pooled[..., :-2] = np.where(levels <= pooled[..., -1:], 0.0, pooled[..., :-2])
    return np.asarray(pooled)


def with_breaks(
    pooled: Floats, breaks: Breaks, history: HourlyHistory, hours: Integers, horizon: Integers, levels: Floats
) -> Floats:
    """The mean of a forecast and of the table at the level after a break, weighted by the probability of the break.

    `pooled` are the forecasts of these hours without breaks, as `pool` returns them.
    """
    chance, level = breaks.at(hours, horizon)
    affected = (chance > 0).any(axis=1)
    if not affected.any():
        return pooled
    table = climatology(history, hours[affected], horizon[affected], WINDOWS["climatology"], levels, level[affected])
    parts = np.stack([pooled[affected], table], axis=2)
    weights = np.stack([1 - chance[affected], chance[affected]], axis=2)
    mixed = np.einsum("hrml,hrm->hrl", parts, weights)
    # The point mass at zero is restored, as in `pool`.
    mixed[..., :-2] = np.where(levels <= mixed[..., -1:], 0.0, mixed[..., :-2])
    result = pooled.copy()
    result[affected] = np.where(chance[affected][..., None] > 0, mixed, pooled[affected])
    return result


def session_energy(demand: Floats) -> Floats:
    """Energy of a session in each region [kWh], estimated from hourly demand y as E(y^2) / E(y).

    If hours have at most one session, this is the mean energy per session, weighted by energy: long sessions count
    more. It is too high for busy regions, with several sessions per hour. A region without demand gets the median of
    the others, or 10 kWh if no region has demand.
    """
    total, squares = np.nansum(demand, axis=0), np.nansum(demand**2, axis=0)
    own = np.where(total > 0, squares / np.maximum(total, 1e-12), np.nan)
    return np.where(np.isfinite(own), own, np.nanmedian(own) if np.isfinite(own).any() else 10.0)


def fit_engine(
    history: HourlyHistory,
    tables: Sequence[str],
    kinds: Sequence[type[Member]],
    horizon: int,
    session_kwh: Floats,
    levels: Floats,
    *,
    seed: int,
    threads: int,
) -> Engine:
    """Fit members, forecast from rolling origins, and learn weights.

    If the history is too short, or there are no members, only the tables are used, with equal weights.

    Args:
        history: states of the hours to learn from.
        tables: names of climatologies, from `WINDOWS`.
        kinds: classes of the members.
        horizon: longest horizon [h].
        session_kwh: energy of a session, (regions,) [kWh].
        levels: levels of the quantiles whose loss the weights minimise.
        seed: seed of the training rows and the members.
        threads: number of threads for fitting a member.
    """
    hours = history.hours
    if hours < MIN_HOURS or not kinds:
        kinds, tables = (), tuple(tables) or ("climatology",)
        tables = tables[:1] if hours < MIN_HOURS else tables
    kept = min(hours - hours // 2, WINDOW + WEIGHT_HOURS)  # hours at the end whose forecasts are kept
    past = np.full((len(kinds), len(bands(horizon)), kept, history.regions), np.nan)
    members: list[Member] = []
    cuts = [hours // 2, hours * 3 // 4, hours]
    # Without demand in the training hours, as in a network that has not opened yet, there is nothing to model.
    all_rows = [learning_rows(history, cut, horizon, session_kwh, seed) for cut in cuts] if kinds else []
    if not all(rows.ratio.any() for rows in all_rows[1:]):
        tables = tuple(tables) or ("climatology",)
        return fit_engine(history, tables, (), horizon, session_kwh, levels, seed=seed, threads=threads)
    # Members learn from the hours before a cut and forecast those up to the next; the last ones are kept.
    for cut, next_cut, rows in zip(cuts, [*cuts[1:], hours], all_rows, strict=True) if kinds else ():
        if not rows.ratio.any():
            continue
        members = [kind() for kind in kinds]
        for member in members:
            member.fit(rows, history.extras.shape[2], seed, threads)
        begin = max(cut, hours - kept)
        if next_cut > begin:
            forecasts = expected_by_band(members, history, begin, next_cut, horizon)
            past[:, :, begin - hours + kept : next_cut - hours + kept] = forecasts
    weights = _weights(history, tuple(tables), members, past, horizon, levels, session_kwh)
    stored = past[:, :, -WINDOW:].astype(np.float32).astype(np.float64)  # with the precision of the stored model
    return Engine(tuple(tables), tuple(members), weights, stored, horizon, session_kwh)


def learning_rows(history: HourlyHistory, last: int, horizon: int, session_kwh: Floats, seed: int) -> Rows:
    """About `ROWS` rows of each band, from hours before `last` and regions that are not silent.

    Days off are left out: they are forecast between a weekday and a Sunday (`blend`), and not learned.
    """
    rng = np.random.default_rng([seed, last])
    parts = []
    for band, (nearest, farthest) in enumerate(bands(horizon)):
        start = min(WARM_UP, last // 2) + farthest
        hours = np.arange(min(start, max(last - WEEK, farthest)), last)
        hours = hours[history.quiet[hours] == 0] if (history.quiet[hours] == 0).any() else hours
        # Enough hours if every region has a row in each of them.
        n_hours = min(len(hours), max(WEEK, -(-ROWS // max(history.regions, 1))))
        hours = np.sort(rng.choice(hours, n_hours, replace=False))
        ahead = rng.integers(nearest, farthest + 1, n_hours)
        values, scale = features(history, hours, ahead)
        target = history.target[hours]
        used = np.isfinite(target) & (scale > 2 * history.floor)  # the scale of a silent region is the floor
        if used.sum() > 2 * ROWS:
            used &= rng.random(used.shape) < 2 * ROWS / used.sum()
        weight = (scale / session_kwh)[used]
        parts.append((values[used], (target / scale)[used], weight, np.full(int(used.sum()), band)))
    return Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def expected_by_band(members: Sequence[Member], history: HourlyHistory, first: int, last: int, horizon: int) -> Floats:
    """Expected demand of the hours from `first` to `last` in each band, (members, bands, hours, regions) [kWh].

    The horizon varies within the band from hour to hour.
    """
    result = np.full((len(members), len(bands(horizon)), last - first, history.regions), np.nan)
    size = max(1, CHUNK // max(history.regions, 1))
    for band, (nearest, farthest) in enumerate(bands(horizon) if members else ()):
        for begin in range(max(first, farthest), last, size):
            hours = np.arange(begin, min(begin + size, last))
            ahead = nearest + hours * STRIDE % (farthest - nearest + 1)
            result[:, band, hours - first] = _expected_at(members, history, hours, ahead, band)
    return result


def _expected_at(
    members: Sequence[Member], history: HourlyHistory, hours: Integers, ahead: Integers, band: int
) -> Floats:
    """Expected demand in one band, (members, hours, regions) [kWh]; on days off it depends on their quietness."""

    def lookup(hours: Integers, ahead: Integers, week: Integers) -> Floats:
        values, scale = features(history, hours, ahead, week)
        return np.stack([member.predict(values, band, history.extras.shape[2]) * scale for member in members])

    result, free = lookup(hours, ahead, history.week[hours]), np.flatnonzero(history.quiet[hours] > 0)
    if len(free):
        sundays = lookup(hours[free], ahead[free], history.sunday(hours[free]))
        result[:, free] = blend(result[:, free], sundays, history.quiet[hours[free]][:, None])
    return result


def member_quantiles(
    tables: Sequence[str],
    members: Sequence[Member],
    history: HourlyHistory,
    hours: Integers,
    horizon: Integers,
    band: int,
    before: PastForecasts,
    levels: Floats,
    session_kwh: Floats,
) -> Floats:
    """Quantiles, mean and probability of no demand of each part, (targets, regions, tables and members, levels + 2).

    Without members, tables are used unchanged; with members, their level follows recent demand.

    Args:
        tables: names of climatologies, from `WINDOWS`.
        members: fitted models of expected demand.
        history: states up to the last past hour.
        hours: hours to forecast.
        horizon: horizon of each [h], all in one band.
        band: that band.
        before: recent forecasts, and the demand that followed.
        levels: levels of the quantiles.
        session_kwh: energy of a session, (regions,) [kWh].
    """
    if not members:
        return np.stack([climatology(history, hours, horizon, WINDOWS[name], levels) for name in tables], axis=2)
    parts = []
    past = np.arange(before.until - len(before.demand), before.until)
    for name in tables:
        # With these horizons, every past hour is looked up in the table as it is just before `before.until`.
        table = climatology_mean(history, past, past - before.until + 1, WINDOWS[name])
        ratio = moving_ratio(table, before.demand, session_kwh, LEVEL_MEMORY)
        parts.append(climatology(history, hours, horizon, WINDOWS[name], levels, ratio))
    wanted = _expected_at(members, history, hours, horizon, band)
    for i in range(len(members)):
        expected = before.expected[i, band]
        # Forecasts made before the last refit are weaker evidence of the bias of the present members: their log
        # ratio counts half.
        ratio = moving_ratio(expected, before.demand, session_kwh, MODEL_MEMORY) ** ((1 + before.current) / 2)
        parts.append(conditional_quantiles(expected, before.demand, wanted[i], levels, ratio))
    return np.stack(parts, axis=2)


def _weights(
    history: HourlyHistory,
    tables: tuple[str, ...],
    members: Sequence[Member],
    past: Floats,
    horizon: int,
    levels: Floats,
    session_kwh: Floats,
) -> Floats:
    """Weights by band and region, from the forecasts of the last quarter of the hours, (bands, regions, parts).

    `past` is what members expected of the last hours, (members, bands, hours, regions) [kWh]. A week is forecast with
    the past forecasts up to its start.
    """
    n_parts, hours = len(tables) + len(members), history.hours
    equal = np.full((len(bands(horizon)), history.regions, n_parts), 1 / n_parts)
    if n_parts == 1 or not members:
        return equal
    first, kept = max(hours * 3 // 4, hours - WEIGHT_HOURS), past.shape[2]
    result = []
    for band, (nearest, farthest) in enumerate(bands(horizon)):
        blocks = []
        for begin in range(first, hours, WEEK):
            chosen = np.arange(begin, min(begin + WEEK, hours), WEIGHT_STEP)
            known = np.arange(max(begin - WINDOW, hours - kept), begin)
            ahead = nearest + chosen * STRIDE % (farthest - nearest + 1)
            before = PastForecasts(begin, past[:, :, known - hours + kept], history.target[known], hours)
            quantiles = member_quantiles(tables, members, history, chosen, ahead, band, before, levels, session_kwh)
            blocks.append((chosen, quantiles[..., :-2]))
        chosen = np.concatenate([hours_of for hours_of, _ in blocks])
        result.append(stack_weights(np.concatenate([part for _, part in blocks]), history.target[chosen], levels))
    return np.stack(result)
