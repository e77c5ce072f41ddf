"""Drivers: every driver of a site, recorded and lost, draw by draw.

Recorded drivers come at their own times, stay as they did and are the same in every draw. Lost drivers come at random
moments of the time in which the site was full, as many in each hour as that draw of `LostDemand` says.

Which drivers wait is in the records already: whoever waits is served, and is recorded. The same holds for drivers who
are served at a site nearby. Drivers who stay away from a busy site without trying it are no lost arrivals, and are not
expected to come to new plugs: by `unmet.estimation.crowding` the pool of drivers is used up by those who are there,
with however many plugs. The opposite assumption is part of a plan's sensitivity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unmet.demand.occupancy import HOUR_MS
from unmet.demand.panel import Panel
from unmet.demand.spells import FULL
from unmet.estimation.clock import BINS_AN_HOUR
from unmet.estimation.energies import BLOCK
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.occupancy import Network, observe
from unmet.planning.hidden import Hidden, hidden_drivers
from unmet.planning.stays import Stays, recorded_stays

__all__ = ["Drivers", "Truth", "demand_of", "in_order", "true_demand"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

WEEK_MS = 7 * 24 * HOUR_MS
LOST_STREAM, MOVE_STREAM = 16, 17  # of random numbers


@dataclass(frozen=True, slots=True)
class Drivers:
    """Drivers who want to charge at a site, in order of time within each draw."""

    first: Integers  # (draws + 1,), position of the first driver of each draw
    at_ms: Integers
    stay_ms: Integers
    kwh: Floats
    recorded: Booleans  # served in the records
    forced: Booleans  # on a plug whatever the others do: outages, and records that overlap by wrong clocks

    @property
    def draws(self) -> int:
        """Number of draws."""
        return len(self.first) - 1

    @property
    def draw(self) -> Integers:
        """Draw of each driver."""
        return np.repeat(np.arange(self.draws), np.diff(self.first))

    def where(self, rows: Booleans) -> Drivers:
        """Some of the drivers."""
        first = np.concatenate([[0], np.cumsum(np.bincount(self.draw[rows], minlength=self.draws))])
        stay, kwh = self.stay_ms[rows], self.kwh[rows]
        return Drivers(first, self.at_ms[rows], stay, kwh, self.recorded[rows], self.forced[rows])

    def per_draw(self, values: NDArray[Any]) -> Floats:
        """Sums of a value of every driver, (draws,)."""
        return np.bincount(self.draw, values, minlength=self.draws).astype(float)

    def staying(self, stay_ms: Integers, kwh: Floats) -> Drivers:
        """The same drivers with other stays and energies."""
        return replace(self, stay_ms=stay_ms, kwh=kwh)


def in_order(draw: Integers, draws: int, at_ms: Integers, *columns: NDArray[np.generic]) -> Drivers:
    """Drivers given in any order; columns are stay, energy, recorded and forced."""
    order = np.lexsort((at_ms, draw))
    first = np.concatenate([[0], np.cumsum(np.bincount(draw, minlength=draws))])
    return Drivers(first, at_ms[order], *(column[order] for column in columns))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Truth:
    """Recorded and lost drivers of all sites, draw by draw."""

    panel: Panel
    network: Network
    hidden: Hidden
    stays: Stays
    waiting: float  # share of the drivers at full sites who are served there after all
    spill: float  # and nearby
    seed: int

    @property
    def sites(self) -> int:
        """Number of sites."""
        return self.network.sites

    @property
    def draws(self) -> int:
        """Number of draws."""
        return self.hidden.draws

    @property
    def weeks(self) -> Floats:
        """Weeks for which each site was open, (sites,)."""
        return np.maximum((self.network.closed_ms - self.network.opened_ms) / WEEK_MS, 1 / 7)

    @property
    def is_open(self) -> Booleans:
        """Sites that are still open at the end of the records, (sites,)."""
        return np.asarray(self.network.closed_ms >= self.network.closed_ms.max(initial=0))

    def first_draws(self, draws: int) -> Truth:
        """The same drivers in the first draws alone."""
        return replace(self, hidden=replace(self.hidden, drivers=self.hidden.drivers[:draws]))

    def lost(self, site: int) -> Drivers:
        """Lost drivers of a site; the first draws are the same whatever the number of draws."""
        hidden, clock = self.hidden, self.network.clock
        rows = hidden.rows_of(site)
        count = hidden.drivers[:, rows]
        number = int(count.sum())
        rng = np.random.default_rng([self.seed, LOST_STREAM, site])
        uniform = rng.random((number, 3))
        flat = np.repeat(np.arange(count.size), count.ravel())
        draw, row = flat // max(count.shape[1], 1), flat % max(count.shape[1], 1)
        hour = hidden.hour[rows][row]
        at = self._full_moment(site, hour, uniform[:, 0])
        block = clock.week[hour * BINS_AN_HOUR].astype(np.int64) // BINS_AN_HOUR % 24 // BLOCK
        record = self.stays.draw(site, block, uniform[:, 1:])
        # The mean energy of a lost driver is the estimator's, so that a plan and `unmet recover` agree.
        scale = hidden.kwh[rows][row] / np.maximum(self.stays.mean_kwh(site), 1e-9)[block]
        no = np.zeros(number, bool)
        return in_order(draw, self.draws, at, self.stays.stay_ms[record], self.stays.kwh[record] * scale, no, no)

    def _full_moment(self, site: int, hour: Integers, uniform: Floats) -> Integers:
        """A moment of the full time of each hour [ms]."""
        spells, first_ms = self.network.history.spells, self.network.clock.first_ms
        part = slice(int(spells.first[site]), int(spells.first[site + 1]))
        full = spells.state[part] == FULL
        begin, end = spells.begin_ms[part][full], spells.end_ms[part][full]
        if not len(begin):
            return first_ms + hour * HOUR_MS + (uniform * HOUR_MS).astype(np.int64)
        before = np.concatenate([[0], np.cumsum(end - begin)])  # full time until each spell

        def elapsed(at: Integers) -> Integers:
            i = np.searchsorted(begin, at, side="right") - 1
            return np.where(i >= 0, before[i] + np.minimum(at, end[i]) - begin[i], 0)

        opens = first_ms + hour * HOUR_MS
        low, high = elapsed(opens), elapsed(opens + HOUR_MS)
        target = low + np.minimum((uniform * (high - low)).astype(np.int64), np.maximum(high - low - 1, 0))
        i = np.clip(np.searchsorted(before, target, side="right") - 1, 0, len(begin) - 1)
        return np.asarray(begin[i] + target - before[i])

    def recorded(self, site: int) -> Drivers:
        """Recorded drivers of a site and its outages, one draw of them."""
        visits, history = self.network.visits, self.network.history
        part = slice(int(visits.first[site]), int(visits.first[site + 1]))
        row, start = visits.row[part], visits.start_ms[part]
        is_car = row >= 0
        end = start + 1
        ends = self.panel.sessions["end"].dt.epoch("ms").to_numpy()
        end[is_car] = ends[row[is_car]]
        if not is_car.all():
            # Ends are sorted on their own; outages get what the cars leave over.
            left = np.sort(visits.end_ms[part])
            own = np.sort(np.maximum(end[is_car], start[is_car] + 1))
            rest = _multiset_difference(left, own)
            end[~is_car] = rest[: int((~is_car).sum())]
        energy = np.where(is_car, self.panel.sessions["energy_kwh"].to_numpy()[row], 0.0)
        arrivals = history.arrivals
        mine = slice(*np.searchsorted(arrivals.site, [site, site + 1]))
        at_full = arrivals.row[mine][arrivals.state[mine] == FULL]
        forced = ~is_car | np.isin(row, at_full)
        at = np.clip(start, self.network.opened_ms[site], None)
        stay = np.maximum(end - at, 1)
        return Drivers(np.array([0, len(at)]), at, stay, energy, is_car, forced)

    def everyone(self, site: int) -> Drivers:
        """Recorded and lost drivers of a site."""
        seen, lost = self.recorded(site), self.lost(site)
        number = len(seen.at_ms)

        def both(name: str) -> NDArray[np.generic]:
            return np.concatenate([np.tile(getattr(seen, name), self.draws), getattr(lost, name)])

        draw = np.concatenate([np.repeat(np.arange(self.draws), number), lost.draw])
        columns = [both(name) for name in ("at_ms", "stay_ms", "kwh", "recorded", "forced")]
        return in_order(draw, self.draws, *columns)  # type: ignore[arg-type]


def _multiset_difference(whole: Integers, part: Integers) -> Integers:
    """Numbers of a sorted array that are not in another one, as often as they are there more often."""
    kept, j = [], 0
    for value in whole:
        if j < len(part) and part[j] == value:
            j += 1
        else:
            kept.append(value)
    return np.array(kept, np.int64)


def true_demand(
    panel: Panel, hidden: Hidden, waiting: float, spill: float, seed: int, network: Network | None = None
) -> Truth:
    """Drivers of a panel, with draws of the lost ones."""
    network = observe(panel) if network is None else network
    return Truth(panel, network, hidden, recorded_stays(panel, network), waiting, spill, seed)


def demand_of(lost: LostDemand, seed: int = 1) -> Truth:
    """Drivers of a fitted estimator."""
    return true_demand(lost.panel_, hidden_drivers(lost), lost.waiting_, lost.spill_, seed, lost.network_)
