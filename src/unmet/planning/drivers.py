"""Drivers: every driver of a site, recorded and lost, draw by draw.

Recorded drivers arrive and stay as recorded, the same in every draw. Lost drivers arrive at random moments while the
site was full; a draw of `LostDemand` gives their number in each hour.

Drivers who wait are served and therefore recorded, so waiting needs no separate model. The same holds for drivers who
are served at a site nearby. Drivers who stay away from a busy site without trying it are not lost arrivals, and are not
expected to come to new plugs: in `unmet.estimation.crowding`, the cars present use up the pool of drivers, whatever
the number of plugs. The opposite assumption is part of a plan's sensitivity.
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

__all__ = ["DrawnDemand", "Drivers", "demand_of", "drawn_demand", "in_order"]


WEEK_MS = 7 * 24 * HOUR_MS
LOST_STREAM, MOVE_STREAM = 16, 17  # streams of random numbers


@dataclass(frozen=True, slots=True)
class Drivers:
    """Drivers who want to charge at a site, in order of time within each draw."""

    first: Integers  # (draws + 1,), position of the first driver of each draw
    at_ms: Integers
    stay_ms: Integers
    kwh: Floats
    recorded: Booleans  # whether the driver was served in the records
    forced: Booleans  # takes a plug even if none is free: outages, and records that overlap because clocks are wrong

    @property
    def draws(self) -> int:
        """Number of draws."""
        return len(self.first) - 1

    @property
    def draw(self) -> Integers:
        """Draw of each driver."""
        return np.repeat(np.arange(self.draws), np.diff(self.first))

    def where(self, rows: Booleans) -> Drivers:
        """The drivers for whom `rows` is true."""
        first = np.concatenate([[0], np.cumsum(np.bincount(self.draw[rows], minlength=self.draws))])
        stay, kwh = self.stay_ms[rows], self.kwh[rows]
        return Drivers(first, self.at_ms[rows], stay, kwh, self.recorded[rows], self.forced[rows])

    def per_draw(self, values: NDArray[Any]) -> Floats:
        """Sum over drivers of a value, by draw, (draws,)."""
        return np.bincount(self.draw, values, minlength=self.draws).astype(float)

    def staying(self, stay_ms: Integers, kwh: Floats) -> Drivers:
        """The same drivers with other stays and energies."""
        return replace(self, stay_ms=stay_ms, kwh=kwh)


def in_order(draw: Integers, draws: int, at_ms: Integers, *columns: NDArray[np.generic]) -> Drivers:
    """Sort drivers by draw and time; columns are stay, energy, recorded and forced."""
    order = np.lexsort((at_ms, draw))
    first = np.concatenate([[0], np.cumsum(np.bincount(draw, minlength=draws))])
    return Drivers(first, at_ms[order], *(column[order] for column in columns))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class DrawnDemand:
    """Recorded drivers of all sites, and posterior draws of the lost ones."""

    panel: Panel
    network: Network
    hidden: Hidden
    stays: Stays
    waiting: float  # share of the drivers at full sites who wait until they are served
    spill: float  # share who are served at another site nearby
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

    def first_draws(self, draws: int) -> DrawnDemand:
        """The same drivers, in the first draws only."""
        return replace(self, hidden=replace(self.hidden, drivers=self.hidden.drivers[:draws]))

    def lost(self, site: int) -> Drivers:
        """Lost drivers of a site; the first draws are the same whatever the number of draws."""
        hidden, clock, stays = self.hidden, self.network.clock, self.stays
        rows = hidden.rows_of(site)
        hour = hidden.hour[rows]
        block = clock.week[hour * BINS_AN_HOUR].astype(np.int64) // BINS_AN_HOUR % 24 // BLOCK
        # Energies are scaled to the estimator's mean, so that a plan and `unmet recover` agree.
        scale = hidden.kwh[rows] / np.maximum(stays.mean_kwh(site), 1e-9)[block]
        begin, before, low, high = self._full_time(site, hour)
        from_own, from_alike = stays.weights(site)
        own, alike = site * BLOCKS, int(stays.of_class[site]) * BLOCKS
        first, at, record, row = place_drivers(
            np.random.default_rng([self.seed, LOST_STREAM, site]), hidden.drivers[:, rows], begin, before, low, high,
            block, from_own, from_alike, stays.by_site.first[own : own + BLOCKS + 1], stays.by_site.row,
            stays.by_class.first[alike : alike + BLOCKS + 1], stays.by_class.row, len(stays.kwh),
        )  # fmt: skip
        none = np.zeros(len(at), bool)  # neither recorded nor forced
        return Drivers(first, at, stays.stay_ms[record], stays.kwh[record] * scale[row], none, none)

    def _full_time(self, site: int, hour: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """Starts of the full spells of a site, its full time before each of them, and before and after hours [ms]."""
        spells, first_ms = self.network.history.spells, self.network.clock.first_ms
        part = slice(int(spells.first[site]), int(spells.first[site + 1]))
        full = spells.state[part] == FULL
        begin, end = spells.begin_ms[part][full], spells.end_ms[part][full]
        if not len(begin):  # the draws come from another estimate, without spells: the whole hour may be full
            begin, end = np.array([first_ms]), np.array([self.network.clock.last_ms])
        before = np.concatenate([[0], np.cumsum(end - begin)])

        def elapsed(at: Integers) -> Integers:
            """Full time of the site before given times [ms]."""
            i = np.searchsorted(begin, at, side="right") - 1
            return np.where(i >= 0, before[i] + np.minimum(at, end[i]) - begin[i], 0)

        hour_ms = first_ms + hour * HOUR_MS
        return begin, before, elapsed(hour_ms), elapsed(hour_ms + HOUR_MS)

    def recorded(self, site: int) -> Drivers:
        """Recorded drivers of a site and its outages, as a single draw."""
        visits, history = self.network.visits, self.network.history
        part = slice(int(visits.first[site]), int(visits.first[site + 1]))
        row, start = visits.row[part], visits.start_ms[part]
        is_car = row >= 0
        end = start + 1  # replaced below, for cars and outages alike
        end[is_car] = self.session_end_ms[row[is_car]]
        if not is_car.all():
            # Visits keep starts and ends sorted separately; ends that belong to no car belong to outages.
            all_ends = np.sort(visits.end_ms[part])
            car_ends = np.sort(np.maximum(end[is_car], start[is_car] + 1))
            outage_ends = _multiset_difference(all_ends, car_ends)
            end[~is_car] = outage_ends[: int((~is_car).sum())]
        energy = np.where(is_car, self.session_kwh[row], 0.0)
        arrivals = history.arrivals
        at_site = slice(*np.searchsorted(arrivals.site, [site, site + 1]))
        at_full = arrivals.row[at_site][arrivals.state[at_site] == FULL]
        forced = ~is_car | np.isin(row, at_full)
        at = np.clip(start, self.network.opened_ms[site], None)
        stay = np.maximum(end - at, 1)
        return Drivers(np.array([0, len(at)]), at, stay, energy, is_car, forced)

    def everyone(self, site: int) -> Drivers:
        """Recorded and lost drivers of a site."""
        recorded, lost = self.recorded(site), self.lost(site)
        order = merge_order(recorded.at_ms, lost.first, lost.at_ms)
        number = np.diff(lost.first) + len(recorded.at_ms)

        def both(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(recorded, name), getattr(lost, name)])[order]

        first = np.concatenate([[0], np.cumsum(number)])
        return Drivers(first, both("at_ms"), both("stay_ms"), both("kwh"), both("recorded"), both("forced"))


def _multiset_difference(whole: Integers, part: Integers) -> Integers:
    """Multiset difference of two sorted arrays."""
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
    """Place drivers at random moments of full time, in order, and assign each a record for its stay and energy.

    Within a draw, records of the site are drawn as from Polya's urn: every record used goes back with a copy. That is
    the Bayesian bootstrap (Rubin, 1981): a site with few records leaves its stays and energies uncertain.

    Args:
        rng: random numbers of the site.
        count: drivers of each draw and full hour, (draws, hours).
        begin: starts of the full spells [ms], (spells,).
        before: full time before each spell, and the total last [ms], (spells + 1,).
        low: full time of the site before each hour [ms], (hours,).
        high: full time of the site up to the end of each hour [ms], (hours,).
        block: block of the day of each hour, (hours,).
        from_own: probability of a record of the site itself, by block.
        from_alike: probability of a record of the site or of its class of power, by block; other drivers are assigned
            any record.
        own_first: position in `own_row` of the first record of each block.
        own_row: records of the site, grouped by block.
        alike_first: position in `alike_row` of the first record of each block.
        alike_row: records of the class of power, grouped by block.
        records: number of all records.

    Returns:
        Position of the first driver of each draw; then time [ms], record and position of the hour of each driver.
    """
    draws, hours = count.shape
    total = longest = 0
    for d in range(draws):
        number = 0
        for r in range(hours):
            number += int(count[d, r])
        total, longest = total + number, max(longest, number)
    first = np.zeros(draws + 1, np.int64)
    at, record, row = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    urn = np.empty((len(from_own), longest), np.int64)  # records of the site that this draw has used so far, by block
    n = 0
    for d in range(draws):
        used = np.zeros(len(from_own), np.int64)
        for r in range(hours):
            first_of_hour = n
            for _ in range(int(count[d, r])):
                target = low[r] + int(rng.random() * (high[r] - low[r]))
                spell = min(np.searchsorted(before, target, side="right") - 1, len(begin) - 1)
                origin, pick, b = rng.random(), rng.random(), block[r]  # where the record comes from, and which one
                if origin < from_own[b]:
                    recorded = own_first[b + 1] - own_first[b]
                    ball = int(pick * (recorded + used[b]))
                    chosen = own_row[own_first[b] + ball] if ball < recorded else urn[b, ball - recorded]
                    urn[b, used[b]] = chosen
                    used[b] += 1
                elif origin < from_alike[b]:
                    chosen = alike_row[alike_first[b] + int(pick * (alike_first[b + 1] - alike_first[b]))]
                else:
                    chosen = int(pick * records)
                moment, k = begin[spell] + target - before[spell], n
                while k > first_of_hour and at[k - 1] > moment:  # in order of time within the hour
                    at[k], record[k] = at[k - 1], record[k - 1]
                    k -= 1
                at[k], record[k], row[n] = moment, chosen, r
                n += 1
        first[d + 1] = n
    return first, at, record, row


def drawn_demand(
    panel: Panel, hidden: Hidden, waiting: float, spill: float, seed: int, network: Network | None = None
) -> DrawnDemand:
    """The drivers of a panel, with draws of the lost ones."""
    network = observe(panel) if network is None else network
    end_ms = panel.sessions["end"].dt.epoch("ms").to_numpy()
    kwh = panel.sessions["energy_kwh"].to_numpy()
    return DrawnDemand(panel, network, hidden, recorded_stays(panel, network), waiting, spill, seed, end_ms, kwh)


def demand_of(lost: LostDemand, seed: int = 1) -> DrawnDemand:
    """The drivers of a fitted estimator."""
    return drawn_demand(lost.panel_, hidden_drivers(lost), lost.waiting_, lost.spill_, seed, lost.network_)
