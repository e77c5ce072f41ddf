"""Recovery: what past hours would have shown had nothing been hidden, with intervals.

Every number comes from the same draws of what was not seen, so that sums over hours, weeks or regions have intervals of
their own. A draw first settles what all its hours share (how busy each hour of the week is, the level of each week, the
market share, the rates of stations that were full), then every hour's luck.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.demand.calendar import HOURS_A_WEEK
from unmet.models.imputation import Hidden, Records, Unseen, unseen_in_market

__all__ = ["DRAWS", "Estimate", "Recovered", "Stations", "estimate", "recover_hours"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DRAWS = 200
MOST_CELLS = 20_000_000  # draws x hours x regions at a time


class Estimate(NamedTuple):
    """A mean, and the interval that holds the truth with the probability asked for."""

    mean: Floats
    low: Floats
    high: Floats


class Stations(NamedTuple):
    """Which station-hours what was lost in a region-hour is at; each row one of them."""

    station: Integers
    hour: Integers
    node: Integers
    share: Floats  # of what its region-hour lost
    session_kwh: Floats
    unsure: Floats  # (stations,), standard deviation of the logarithm of each one's rate
    number: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was lost in every region-hour, and in sums over them; arrays are (hours, nodes) where not said otherwise."""

    lost_arrivals: Estimate
    lost_kwh: Estimate
    drawn_arrivals: Floats  # (draws, groups, nodes): sums over groups of hours
    drawn_kwh: Floats  # (draws, groups, nodes)
    own: Floats  # share of the lost part that rests on counts of the region's own hour of the week,
    calendar: Floats  # on its other hours,
    nearby: Floats  # on its neighbours; the three sum to 1
    drawn_at_stations: Floats  # (2, draws, stations): arrivals and energy lost at each station over all hours


def _float64(made: Estimate) -> Estimate:
    return Estimate(*(part.astype(np.float64) for part in made))


def estimate(draws: NDArray[np.floating[Any]], interval: float) -> Estimate:
    """Mean and interval of draws along their first axis."""
    low, high = np.quantile(draws, ((1 - interval) / 2, (1 + interval) / 2), axis=0)
    return Estimate(draws.mean(axis=0), low, high)


def recover_hours(
    unseen: Unseen,
    records: Records,
    week: Integers,
    group: Integers,
    stations: Stations | None = None,
    *,
    interval: float = 0.9,
    draws: int = DRAWS,
    seed: int = 0,
    on_progress: Callable[[float], None] | None = None,
) -> Recovered:
    """Recover what was lost in every hour, and in sums over `group`, the number of each hour's group (as its week)."""
    hours, nodes = records.arrivals.shape
    groups = int(group.max(initial=-1)) + 1
    hidden = unseen.hidden(records, week)
    level = unseen.level(records, week)
    block = max(1, MOST_CELLS // (draws * max(hours, 1)))
    parts: list[tuple[Estimate, Estimate]] = []
    drawn_arrivals, drawn_kwh = np.empty((draws, groups, nodes)), np.empty((draws, groups, nodes))
    at_stations = np.zeros((2, draws, 0 if stations is None else stations.number))
    for begin in range(0, nodes, block):
        columns = slice(begin, begin + block)
        sampler = _Sampler(unseen, records, hidden, level, week, group, columns)
        arrivals, energy = np.empty((2, draws, hours, sampler.nodes), np.float32)
        for i in range(draws):
            market = _market(records.spread, np.random.default_rng([seed, i, nodes]))
            arrivals[i], energy[i] = sampler.draw(np.random.default_rng([seed, i, begin]), market[columns])
            drawn_arrivals[i, :, columns], drawn_kwh[i, :, columns] = (
                _sums(values[i], group, groups) for values in (arrivals, energy)
            )
            if stations is not None:
                at_stations[:, i] += _at_stations(
                    stations, arrivals[i], columns, np.random.default_rng([seed, i, begin, 1])
                )
            if on_progress is not None:
                on_progress((begin * draws + (i + 1) * sampler.nodes) / (nodes * draws))
        parts.append((_float64(estimate(arrivals, interval)), _float64(estimate(energy, interval))))
    lost_arrivals, lost_kwh = (
        Estimate(*(np.concatenate([part[kind][i] for part in parts], axis=1) for i in range(3))) for kind in (0, 1)
    )
    own = unseen.own[week]
    nearby = (1 - own) * unseen.nearby
    return Recovered(lost_arrivals, lost_kwh, drawn_arrivals, drawn_kwh, own, 1 - own - nearby, nearby, at_stations)


def _at_stations(stations: Stations, lost: Floats, columns: slice, rng: np.random.Generator) -> Floats:
    """What of a draw of lost arrivals (hours, nodes) was at each station: arrivals and energy, (2, stations).

    Each arrival was at a station by its share, so that sums over hours are close to normal.
    """
    here = (stations.node >= columns.start) & (stations.node < columns.start + lost.shape[1])
    station, share = stations.station[here], stations.share[here]
    number = lost[stations.hour[here], stations.node[here] - columns.start]
    luck = rng.standard_normal(stations.number)
    rate = np.exp(stations.unsure * rng.standard_normal(stations.number) - stations.unsure**2 / 2)
    sums = []
    for each in (np.ones(len(share)), stations.session_kwh[here]):
        mean = np.bincount(station, number * share * each, minlength=stations.number) * rate
        variance = np.bincount(station, number * share * (1 - share) * each**2, minlength=stations.number)
        sums.append(np.maximum(mean + luck * np.sqrt(variance), 0.0))
    return np.stack(sums)


class _Sampler:
    """Draws of what was lost in some regions."""

    def __init__(
        self,
        unseen: Unseen,
        records: Records,
        hidden: Hidden,
        level: Floats,
        week: Integers,
        group: Integers,
        columns: slice,
    ) -> None:
        self.week, self.group = week, group
        self.exposure, self.unseen = hidden.exposure[:, columns], hidden.unseen[:, columns]
        known = np.isfinite(records.arrivals[:, columns])
        self.seen = np.where(known, records.arrivals[:, columns], 0.0)
        self.could = np.where(known, self.exposure, 0.0)
        self.rate = unseen.rate[week][:, columns] * level[:, columns]
        self.shape = unseen.shape[columns]
        self.weight = unseen.weight[:, columns]
        self.spread, self.lost_spread = records.spread[columns], records.lost_spread[columns]
        self.kwh = Hidden(
            hidden.arrivals[:, columns],
            hidden.shape[:, columns],
            hidden.session_kwh[:, columns],
            hidden.energies,
            self.exposure,
            self.unseen,
            self.spread,
        )
        self.nodes = self.rate.shape[1]
        self.groups = int(group.max(initial=-1)) + 1
        # Arrivals that the level of a week rests on: those of one memory before it and one after.
        expected = (self.rate * self.could).sum(axis=0) * HOURS_A_WEEK / max(len(week), 1)
        self.level_weight = np.full(self.nodes, np.inf)
        if np.isfinite(unseen.memory):
            self.level_weight = np.maximum(expected * 2 * unseen.memory / 7, 1.0)

    def draw(self, rng: np.random.Generator, inverse: Floats) -> tuple[Floats, Floats]:
        """Arrivals and energy that were lost, (hours, nodes), given one over each region's share beside its mean."""
        usual = rng.standard_gamma(self.weight) / self.weight
        rate = self.rate * usual[self.week]
        if np.isfinite(self.level_weight).all():
            size = (self.groups, self.nodes)
            rate = rate * (rng.standard_gamma(self.level_weight, size) / self.level_weight)[self.group]
        stations = np.exp(self.lost_spread * rng.standard_normal(self.nodes) - self.lost_spread**2 / 2)
        unseen_share = unseen_in_market(self.exposure, self.unseen, inverse)
        mean = unseen_share * stations * rate * (self.shape + self.seen) / (self.shape + rate * self.could)
        shape = self.shape + self.seen
        arrivals = rng.poisson(mean * rng.standard_gamma(shape) / shape).astype(float)
        return arrivals, self.kwh.energy_of(arrivals, rng)


def _market(spread: Floats, rng: np.random.Generator) -> Floats:
    """One over the market share of each region, beside its mean: a share that is the same everywhere is one draw."""
    one = len(spread) > 0 and bool((spread == spread[0]).all())
    luck = np.full(len(spread), rng.standard_normal()) if one else rng.standard_normal(len(spread))
    return np.asarray(np.exp(spread * luck - spread**2 / 2))


def _sums(values: Floats, group: Integers, groups: int) -> Floats:
    total = np.zeros((groups, values.shape[1]))
    np.add.at(total, group, values)
    return total
