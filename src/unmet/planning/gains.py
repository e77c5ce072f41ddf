"""Gains: what every further plug of a site serves, draw by draw.

By `unmet.planning.replay`, the drivers whom the present plugs do not serve are all that further plugs see: the first of
these finds the first further plug free or goes on to the second, and so on. One pass over them gives the gain of any
number of plugs, in every draw with the same drivers.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from unmet.arrays import Floats, Integers
from unmet.planning.changes import World
from unmet.planning.drivers import Drivers
from unmet.planning.replay import carried
from unmet.runs import available_cores

__all__ = ["RAPID_KW", "GainCurve", "Supply", "power_curve", "site_curves", "stays_at_power"]


HOUR_MS = 3_600_000
RAPID_KW = 43.0  # power from which drivers wait at the car and leave when it is charged
RAPID_SHARE = 0.75  # of its power that a rapid charger delivers on average over a session
LEAVE_HOURS = 1 / 6  # until a driver has left a rapid charger


@dataclass(frozen=True, slots=True)
class GainCurve:
    """Energy and drivers that 0, 1, ... further plugs of a site serve per week; more plugs serve no more."""

    kwh: Floats  # (draws, plugs + 1)
    drivers: Floats  # (draws, plugs + 1)
    hours: Floats  # (plugs + 1,), mean hours for which further plugs are taken

    @property
    def most(self) -> int:
        """Plugs up to which it goes."""
        return int(self.kwh.shape[1]) - 1

    @property
    def mean_kwh(self) -> Floats:
        """Mean gain, (plugs + 1,)."""
        return np.asarray(self.kwh.mean(axis=0))

    def at(self, plugs: int) -> int:
        """The position of so many plugs."""
        return min(plugs, self.most)


@dataclass(frozen=True, slots=True)
class Supply:
    """Demand served and lost per week with the present plugs of a site, and the gain of further plugs by power."""

    served_kwh: Floats  # (draws,)
    served_drivers: Floats
    used_hours: Floats  # plug-hours
    lost_kwh: Floats
    lost_drivers: Floats
    curves: dict[float | None, GainCurve]  # by power of the further plugs [kW]; None: as those that are there


def site_curves(
    world: World, most: int, powers: Sequence[float | None] = (None,), workers: int | None = None
) -> list[Supply]:
    """What every site serves, loses and would gain.

    Args:
        world: the drivers.
        most: further plugs per site up to which gains are computed.
        powers: of the further plugs [kW]; None for the power of those that are there.
        workers: threads; the result does not depend on them.
    """
    weeks = world.truth.weeks

    def of_site(site: int) -> Supply:
        split, per_week = world.split(site), 1 / weeks[site]
        rest, leaves = split.rest, split.leaves
        own_kw = float(world.truth.stays.power_kw[site])
        return Supply(
            split.kwh * per_week,
            split.drivers * per_week,
            split.hours * per_week,
            rest.per_draw(leaves * rest.kwh) * per_week,
            rest.per_draw(leaves) * per_week,
            {power: power_curve(rest, leaves, most, own_kw, power, per_week) for power in powers},
        )

    with ThreadPoolExecutor(workers or available_cores()) as pool:
        return list(pool.map(of_site, range(world.truth.sites)))


def power_curve(
    rest: Drivers, leaves: Floats, most: int, own_kw: float, power: float | None, per_week: float
) -> GainCurve:
    """Energy and drivers that further plugs of some power would serve among the lost drivers."""
    stay_ms, kwh = stays_at_power(rest.stay_ms, rest.kwh, own_kw, power)
    energy, drivers, hours = carried(rest.first, rest.at_ms, stay_ms, kwh, leaves, most)
    top = int(np.count_nonzero(hours))
    by_plug = hours[None, :top] * (per_week / max(rest.draws, 1))
    return GainCurve(
        _from_zero(per_week * energy[:, :top]), _from_zero(per_week * drivers[:, :top]), _from_zero(by_plug)[0]
    )


def _from_zero(by_plug: Floats) -> Floats:
    """Cumulative sums over plugs, with 0 for none of them first."""
    return np.concatenate([np.zeros((len(by_plug), 1)), np.cumsum(by_plug, axis=1)], axis=1)


def stays_at_power(stay_ms: Integers, kwh: Floats, own_kw: float, power: float | None) -> tuple[Integers, Floats]:
    """Stays [ms] and energies of drivers at plugs of another power than those of their site.

    At rapid chargers drivers stay while the car charges, and leave within ten minutes. Elsewhere the stay is that of
    the errand, and a slower plug delivers less in it.
    """
    if power is None or (np.isfinite(own_kw) and power == own_kw):
        return stay_ms, kwh
    hours = stay_ms / HOUR_MS
    if power < RAPID_KW:
        return stay_ms, np.minimum(kwh, power * hours)
    shorter = np.minimum(kwh / (RAPID_SHARE * power) + LEAVE_HOURS, hours)
    return np.maximum(shorter * HOUR_MS, 1).astype(np.int64), kwh
