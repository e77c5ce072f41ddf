"""The menu: every option of every site that fits within its limits, with its gain and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats, Integers
from unmet.errors import InputError
from unmet.planning.allocate import Options
from unmet.planning.costs import Costs
from unmet.planning.gains import GainCurve, Supply

__all__ = ["Menu", "make_menu"]


@dataclass(frozen=True, slots=True)
class Menu:
    """Options with the energy that they gain in every draw; sites first, then candidates."""

    site_ids: tuple[str, ...]
    supplies: tuple[Supply, ...]
    own: tuple[int, ...]  # existing sites that are open: all lost demand is theirs, candidates only recover part of it
    options: Options  # cost in plugs
    money: Floats  # (options,), cost in money, NaN if it is not known

    def priced(self) -> Options:
        """The options with their cost in money."""
        if np.isnan(self.money).any():
            site = self.site_ids[int(self.options.site[int(np.isnan(self.money).argmax())])]
            raise InputError(
                f"The cost of a plug at {site} is not known: give --plug-cost, or a row for it in the table of --costs."
            )
        return replace(self.options, cost=self.money)

    def curve(self, site: int, power: float) -> GainCurve:
        """Gain of additional plugs of a power at a site."""
        return self.supplies[site].curves[None if np.isnan(power) else float(power)]

    def draw_gain(self, site: int, plugs: int, power: float) -> Floats:
        """Gain of a number of plugs at a site in every draw, (draws,)."""
        curve = self.curve(site, power)
        return np.asarray(curve.kwh[:, curve.at(plugs)])

    def gain_of_site(self, site: int, plugs: int, power: float) -> float:
        """Mean gain of a number of plugs at a site."""
        return float(self.draw_gain(site, plugs, power).mean()) if plugs else 0.0

    def gain_of(self, plugs: Integers, power: Floats) -> float:
        """Mean gain of plugs at all sites, each on its own."""
        return sum(self.gain_of_site(int(s), int(plugs[s]), float(power[s])) for s in np.flatnonzero(plugs))

    def cost_of(self, site: int, plugs: int, power: float) -> float:
        """Cost of a number of plugs at a site; NaN if it is not known."""
        options = self.options
        rows = (options.site == site) & (options.plugs == plugs) & np.isclose(options.power, power, equal_nan=True)
        return float(self.money[rows][0]) if rows.any() else np.nan

    def of_existing(self, sites: int) -> Menu:
        """The options of existing sites, without candidates."""
        kept = self.options.site < sites
        return replace(self, options=self.options.where(kept), money=self.money[kept])

    def beyond(self, built: Integers, power: Floats) -> Menu:
        """The options that remain once some plugs are built; a site keeps the power of its first new plugs."""
        every, base = self.options, built[self.options.site]
        started = base > 0
        same = np.isclose(every.power, power[every.site], equal_nan=True)
        kept = np.flatnonzero((every.plugs > base) & (~started | same))
        gain, money = every.gain[kept].copy(), self.money[kept].copy()
        for i, row in enumerate(kept):
            if started[row]:
                so_far = int(every.site[row]), int(base[row]), float(every.power[row])
                gain[i] -= self.gain_of_site(*so_far)
                money[i] -= self.cost_of(*so_far)
        cost = (every.plugs - base)[kept].astype(float)
        return replace(
            self, options=Options(every.site[kept], every.plugs[kept], every.power[kept], gain, cost), money=money
        )


def make_menu(
    site_ids: Sequence[str],
    supplies: Sequence[Supply],
    existing: int,
    own_kw: Floats,
    allowed: NDArray[np.bool_],
    costs: Costs,
    max_per_site: Sequence[int | None],
) -> Menu:
    """Make the menu: all options that fit.

    Args:
        site_ids: ids of sites, then of candidates.
        supplies: gain curves of each.
        existing: number of existing sites; the others are candidates.
        own_kw: power of the existing plugs [kW], (sites,), NaN if it is not known.
        allowed: whether a site may get plugs.
        costs: costs, with limits on space and grid power.
        max_per_site: number of additional plugs that fit; None for no limit.
    """
    rows: list[tuple[int, int, float, float, float]] = []  # site, plugs, power, gain, cost in money
    for s, supply in enumerate(supplies):
        if not allowed[s]:
            continue
        for power, curve in supply.curves.items():
            kw = float(own_kw[s]) if power is None else power
            limit = _max_plugs(site_ids[s], kw, costs, max_per_site[s], curve.max_plugs)
            gain = curve.mean_kwh
            for k in range(1, limit + 1):
                cost = costs.of(site_ids[s], kw, k)
                rows.append((s, k, np.nan if power is None else power, gain[k], np.nan if cost is None else cost))
    table = np.array(rows, float).reshape(-1, 5)
    site, plugs = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
    options = Options(site, plugs, table[:, 2], table[:, 3], plugs.astype(float))
    own = tuple(int(s) for s in np.flatnonzero(allowed[:existing]))
    return Menu(tuple(site_ids), tuple(supplies), own, options, table[:, 4])


def _max_plugs(site_id: str, kw: float, costs: Costs, asked: int | None, curve_max: int) -> int:
    """Number of additional plugs of a power that fit at a site and gain something."""
    space, grid_kw = costs.limits(site_id, kw)
    plugs = min(limit for limit in (curve_max, asked, space) if limit is not None)
    if grid_kw is not None:
        if not np.isfinite(kw):
            raise InputError(
                f"The grid limit of {site_id} cannot be applied because the power of its plugs is not known: give "
                "--power, or power_kw in the table of stations."
            )
        plugs = min(plugs, int((grid_kw + 1e-9) // kw))
    return plugs
