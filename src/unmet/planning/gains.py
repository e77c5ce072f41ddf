"""Gains: the energy and drivers that every additional plug of a site serves, draw by draw.

By the proof in `unmet.planning.replay`, additional plugs serve only drivers whom the existing plugs do not serve. Each
of these takes the first additional plug if it is free, else the second, and so on. One pass over them gives the gain
of any number of plugs, with the same drivers in every draw.
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
RAPID_KW = 43.0  # from this power on, drivers wait at the car and leave when it is charged
RAPID_SHARE = 0.75  # mean power of a session at a rapid charger over its rated power
LEAVE_HOURS = 1 / 6  # time to leave a rapid charger once the car is charged


@dataclass(frozen=True, slots=True)
class GainCurve:
    """Energy and drivers that 0, 1, ... additional plugs serve per week; more plugs would serve nobody else."""

    kwh: Floats  # (draws, plugs + 1) [kWh per week]
    drivers: Floats  # (draws, plugs + 1), per week
    hours: Floats  # (plugs + 1,), mean plug-hours in use of the additional plugs

    @property
    def max_plugs(self) -> int:
        """Highest number of plugs of the curve."""
        return int(self.kwh.shape[1]) - 1

    @property
    def mean_kwh(self) -> Floats:
        """Mean gain, (plugs + 1,)."""
        return np.asarray(self.kwh.mean(axis=0))

    def at(self, plugs: int) -> int:
        """The column of the curve for this number of plugs; beyond its end, the last column."""
        return min(plugs, self.max_plugs)


@dataclass(frozen=True, slots=True)
class Supply:
    """Demand served and lost per week with the existing plugs of a site, and the gain of additional plugs by power."""

    served_kwh: Floats  # (draws,)
    served_drivers: Floats
    used_hours: Floats  # plug-hours
    lost_kwh: Floats
    lost_drivers: Floats
    curves: dict[float | None, GainCurve]  # by power of the additional plugs [kW]; None for that of the existing ones


def site_curves(
    world: World, max_plugs: int, powers: Sequence[float | None] = (None,), workers: int | None = None
) -> list[Supply]:
    """Demand that every site serves and loses, and would gain with additional plugs.

    Args:
        world: the drivers.
        max_plugs: highest number of additional plugs per site.
        powers: power of the additional plugs [kW]; None for that of the existing plugs.
        workers: threads; the result does not depend on their number.
    """
    weeks = world.demand.weeks

    def of_site(site: int) -> Supply:
        split, per_week = world.split(site), 1 / weeks[site]
        rest, leaves = split.rest, split.leaves
        own_kw = float(world.demand.stays.power_kw[site])
        return Supply(
            split.kwh * per_week,
            split.drivers * per_week,
            split.hours * per_week,
            rest.per_draw(leaves * rest.kwh) * per_week,
            rest.per_draw(leaves) * per_week,
            {power: power_curve(rest, leaves, max_plugs, own_kw, power, per_week) for power in powers},
        )

    with ThreadPoolExecutor(workers or available_cores()) as pool:
        return list(pool.map(of_site, range(world.demand.sites)))


def power_curve(
    rest: Drivers, leaves: Floats, max_plugs: int, own_kw: float, power: float | None, per_week: float
) -> GainCurve:
    """Energy and drivers that additional plugs of some power would serve among the drivers without a plug."""
    stay_ms, kwh = stays_at_power(rest.stay_ms, rest.kwh, own_kw, power)
    energy, drivers, hours = carried(rest.first, rest.at_ms, stay_ms, kwh, leaves, max_plugs)
    used = int(np.count_nonzero(hours))  # plugs beyond these are never taken
    by_plug = hours[None, :used] * (per_week / max(rest.draws, 1))
    return GainCurve(
        _from_zero(per_week * energy[:, :used]), _from_zero(per_week * drivers[:, :used]), _from_zero(by_plug)[0]
    )


def _from_zero(by_plug: Floats) -> Floats:
    """Cumulative sums over plugs, starting with 0 for no plug."""
    return np.concatenate([np.zeros((len(by_plug), 1)), np.cumsum(by_plug, axis=1)], axis=1)


def stays_at_power(stay_ms: Integers, kwh: Floats, own_kw: float, power: float | None) -> tuple[Integers, Floats]:
    """Stays [ms] and energies [kWh] of drivers at plugs whose power differs from the power at their site.

    At rapid chargers, drivers stay while the car charges and leave within ten minutes. Elsewhere the errand determines
    the stay, and a slower plug delivers less in that time.
    """
    if power is None or (np.isfinite(own_kw) and power == own_kw):
        return stay_ms, kwh
    hours = stay_ms / HOUR_MS
    if power < RAPID_KW:
        return stay_ms, np.minimum(kwh, power * hours)
    shorter = np.minimum(kwh / (RAPID_SHARE * power) + LEAVE_HOURS, hours)
    return np.maximum(shorter * HOUR_MS, 1).astype(np.int64), kwh
