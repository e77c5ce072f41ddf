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

from unmet.arrays import Booleans, Floats, Integers
from unmet.compiled import compiled
from unmet.demand.calendar import HOUR_MS
from unmet.demand.panel import Panel
from unmet.demand.spells import FULL
from unmet.estimation.clock import BINS_AN_HOUR
from unmet.estimation.energies import BLOCK
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.occupancy import Network, observe
from unmet.planning.hidden import Hidden, hidden_drivers
from unmet.planning.replay import merge_order
from unmet.planning.stays import BLOCKS, Stays, recorded_stays

__all__ = ["Drivers", "Truth", "demand_of", "in_order", "true_demand"]


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
    session_end_ms: Integers  # (sessions,)
    session_kwh: Floats  # (sessions,)

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
        return np.asarray(np.maximum((self.network.closed_ms - self.network.opened_ms) / WEEK_MS, 1 / 7))

    @property
    def is_open(self) -> Booleans:
        """Sites that are still open at the end of the records, (sites,)."""
        return np.asarray(self.network.closed_ms >= self.network.closed_ms.max(initial=0))

    def first_draws(self, draws: int) -> Truth:
        """The same drivers in the first draws alone."""
        return replace(self, hidden=replace(self.hidden, drivers=self.hidden.drivers[:draws]))

    def lost(self, site: int) -> Drivers:
        """Lost drivers of a site; the first draws are the same whatever the number of draws."""
        hidden, clock, stays = self.hidden, self.network.clock, self.stays
        rows = hidden.rows_of(site)
        hour = hidden.hour[rows]
        block = clock.week[hour * BINS_AN_HOUR].astype(np.int64) // BINS_AN_HOUR % 24 // BLOCK
        # The mean energy of a lost driver is the estimator's, so that a plan and `unmet recover` agree.
        scale = hidden.kwh[rows] / np.maximum(stays.mean_kwh(site), 1e-9)[block]
        begin, before, low, high = self._full_time(site, hour)
        from_own, from_alike = stays.weights(site)
        own, alike = site * BLOCKS, int(stays.of_class[site]) * BLOCKS
        first, at, record, row = place_drivers(
            np.random.default_rng([self.seed, LOST_STREAM, site]), hidden.drivers[:, rows], begin, before, low, high,
            block, from_own, from_alike, stays.by_site.first[own : own + BLOCKS + 1], stays.by_site.row,
            stays.by_class.first[alike : alike + BLOCKS + 1], stays.by_class.row, len(stays.kwh),
        )  # fmt: skip
        no = np.zeros(len(at), bool)
        return Drivers(first, at, stays.stay_ms[record], stays.kwh[record] * scale[row], no, no)

    def _full_time(self, site: int, hour: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """Beginnings of the full spells of a site, its full time before each, and before and after some hours [ms]."""
        spells, first_ms = self.network.history.spells, self.network.clock.first_ms
        part = slice(int(spells.first[site]), int(spells.first[site + 1]))
        full = spells.state[part] == FULL
        begin, end = spells.begin_ms[part][full], spells.end_ms[part][full]
        if not len(begin):  # no spell is known, as for hours of another estimate: all of the hour may be full
            begin, end = np.array([first_ms]), np.array([self.network.clock.last_ms])
        before = np.concatenate([[0], np.cumsum(end - begin)])

        def elapsed(at: Integers) -> Integers:
            i = np.searchsorted(begin, at, side="right") - 1
            return np.where(i >= 0, before[i] + np.minimum(at, end[i]) - begin[i], 0)

        opens = first_ms + hour * HOUR_MS
        return begin, before, elapsed(opens), elapsed(opens + HOUR_MS)

    def recorded(self, site: int) -> Drivers:
        """Recorded drivers of a site and its outages, one draw of them."""
        visits, history = self.network.visits, self.network.history
        part = slice(int(visits.first[site]), int(visits.first[site + 1]))
        row, start = visits.row[part], visits.start_ms[part]
        is_car = row >= 0
        end = start + 1
        end[is_car] = self.session_end_ms[row[is_car]]
        if not is_car.all():
            # Ends are sorted on their own; outages get what the cars leave over.
            left = np.sort(visits.end_ms[part])
            own = np.sort(np.maximum(end[is_car], start[is_car] + 1))
            rest = _multiset_difference(left, own)
            end[~is_car] = rest[: int((~is_car).sum())]
        energy = np.where(is_car, self.session_kwh[row], 0.0)
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
        order = merge_order(seen.at_ms, lost.first, lost.at_ms)
        number = np.diff(lost.first) + len(seen.at_ms)

        def both(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(seen, name), getattr(lost, name)])[order]

        first = np.concatenate([[0], np.cumsum(number)])
        return Drivers(first, both("at_ms"), both("stay_ms"), both("kwh"), both("recorded"), both("forced"))


def _multiset_difference(whole: Integers, part: Integers) -> Integers:
    """Multiset difference of two sorted arrays of numbers."""
    kept, j = [], 0
    for value in whole:
        if j < len(part) and part[j] == value:
            j += 1
        else:
            kept.append(value)
    return np.array(kept, np.int64)


@compiled()
def place_drivers(
    rng: np.random.Generator,
    count: NDArray[np.uint16],
    begin: Integers,
    before: Integers,
    low: Integers,
    high: Integers,
    block: Integers,
    from_own: Floats,
    from_alike: Floats,
    own_first: Integers,
    own_row: Integers,
    alike_first: Integers,
    alike_row: Integers,
    records: int,
) -> tuple[Integers, Integers, Integers, Integers]:
    """Place drivers at random moments of full time, in order, and give each a record whose stay and energy it takes.

    Args:
        rng: random numbers of the site.
        count: drivers of each draw and full hour, (draws, hours).
        begin: beginnings of the full spells.
        before: full time before each of them, and all of it last.
        low: full time before each hour,
        high: and after it.
        block: of the day, of each hour.
        from_own: probability that the record is one of the site at that time of the day, by block,
        from_alike: that, or one of its class of power; all others are drawn from all records.
        own_first: where the records of each block begin in
        own_row: the records of the site, grouped by block.
        alike_first: the same of its class,
        alike_row: likewise.
        records: number of all records.

    Returns:
        Position of the first driver of each draw, moments [ms], records and hours of the drivers.
    """
    draws, hours = count.shape
    total = 0
    for d in range(draws):
        for r in range(hours):
            total += int(count[d, r])
    first = np.zeros(draws + 1, np.int64)
    at, record, row = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    n = 0
    for d in range(draws):
        for r in range(hours):
            opened = n
            for _ in range(int(count[d, r])):
                target = low[r] + int(rng.random() * (high[r] - low[r]))
                spell = min(np.searchsorted(before, target, side="right") - 1, len(begin) - 1)
                level, pick, b = rng.random(), rng.random(), block[r]
                if level < from_own[b]:
                    chosen = own_row[own_first[b] + int(pick * (own_first[b + 1] - own_first[b]))]
                elif level < from_alike[b]:
                    chosen = alike_row[alike_first[b] + int(pick * (alike_first[b + 1] - alike_first[b]))]
                else:
                    chosen = int(pick * records)
                moment, k = begin[spell] + target - before[spell], n
                while k > opened and at[k - 1] > moment:  # in order of time within the hour
                    at[k], record[k] = at[k - 1], record[k - 1]
                    k -= 1
                at[k], record[k], row[n] = moment, chosen, r
                n += 1
        first[d + 1] = n
    return first, at, record, row


def true_demand(
    panel: Panel, hidden: Hidden, waiting: float, spill: float, seed: int, network: Network | None = None
) -> Truth:
    """Drivers of a panel, with draws of the lost ones."""
    network = observe(panel) if network is None else network
    end_ms = panel.sessions["end"].dt.epoch("ms").to_numpy()
    kwh = panel.sessions["energy_kwh"].to_numpy()
    return Truth(panel, network, hidden, recorded_stays(panel, network), waiting, spill, seed, end_ms, kwh)


def demand_of(lost: LostDemand, seed: int = 1) -> Truth:
    """Drivers of a fitted estimator."""
    return true_demand(lost.panel_, hidden_drivers(lost), lost.waiting_, lost.spill_, seed, lost.network_)
