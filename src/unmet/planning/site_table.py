"""The table of a plan: every site with its plugs now, the plugs added, and their effect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from unmet.arrays import Floats, Integers
from unmet.estimation.sums import estimate
from unmet.planning.candidates import Attracted, Candidates
from unmet.planning.changes import World
from unmet.planning.costs import Money
from unmet.planning.menu import Menu
from unmet.planning.quick import erlang_turned_away

__all__ = ["Chosen", "plan_table"]


WEEK_HOURS = 168.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """Plugs that a plan adds: arrays with one entry per existing site, then one per candidate."""

    plugs: Integers
    power: Floats
    year: Integers  # year in which the first of them is built
    share: Floats  # share of the draws in which a plan for that draw alone would choose the site


def plan_table(
    world: World,
    menu: Menu,
    chosen: Chosen,
    candidates: Candidates | None,
    attracted: list[Attracted],
    money: Money | None,
    interval: float,
) -> pl.DataFrame:
    """One row per open site and per candidate, highest gain first. Energies and drivers are per week."""
    sites, own = world.demand.panel.sites, set(menu.own)
    existing = sites.select("site_id", "name", "lat", "lon", is_new=pl.lit(value=False)).rows(named=True)
    rows = []
    for s in range(len(menu.supplies)):
        if s < sites.height:
            if s not in own:  # closed in this what-if
                continue
            about: dict[str, Any] = existing[s]
        else:
            about = _new_site(candidates, s - sites.height)
        rows.append(about | _measures(world, menu, chosen, s, attracted, money, interval))
    table = pl.DataFrame(rows, infer_schema_length=None)
    empty = [name for name in table.columns if table.schema[name] == pl.Null]
    return table.with_columns(pl.col(empty).cast(pl.Float64)).sort(
        "gain_kwh", "lost_kwh", "site_id", descending=[True, True, False]
    )


def _new_site(candidates: Candidates | None, j: int) -> dict[str, Any]:
    if candidates is None:
        raise IndexError("There are more options than sites, and no candidates.")
    name, lat, lon = candidates.name[j], float(candidates.lat[j]), float(candidates.lon[j])
    return {"site_id": name, "name": name, "lat": lat, "lon": lon, "is_new": True}


def _measures(
    world: World, menu: Menu, chosen: Chosen, s: int, attracted: list[Attracted], money: Money | None, interval: float
) -> dict[str, Any]:
    """The columns of site `s` that the plan determines; candidates come after the existing sites.

    Columns that do not apply to a site are None, so that all rows have the same columns.
    """
    sites, supply = world.demand.sites, menu.supplies[s]
    k, power = int(chosen.plugs[s]), float(chosen.power[s])
    curve = menu.curve(s, power) if k else next(iter(supply.curves.values()))
    gain, drivers = (values[:, curve.at(k)] for values in (curve.kwh, curve.drivers))
    plugs_now = int(world.capacity[s]) if s < sites else 0
    used_hours, added_hours = float(supply.used_hours.mean()), float(curve.hours[curve.at(k)])
    candidate = attracted[s - sites] if s >= sites else None
    plugs_after = plugs_now + k
    cost = menu.cost_of(s, k, power) if k else 0.0
    columns: dict[str, Any] = {
        "plugs_now": plugs_now,
        "plugs_added": k,
        "power_kw": None if np.isnan(power) else power,
        "year": int(chosen.year[s]) if k else None,
        "utilisation": used_hours / (plugs_now * WEEK_HOURS) if plugs_now else None,
        "utilisation_after": (used_hours + added_hours) / (plugs_after * WEEK_HOURS) if plugs_after else None,
        "served_kwh": float(supply.served_kwh.mean()),
    }
    measures = {
        "lost_kwh": supply.lost_kwh, "lost_drivers": supply.lost_drivers,
        "lost_kwh_after": np.maximum(supply.lost_kwh - gain, 0.0),
        "lost_drivers_after": np.maximum(supply.lost_drivers - drivers, 0.0),
        "gain_kwh": gain, "gain_drivers": drivers,
    }  # fmt: skip
    of_draws = estimate(np.stack(list(measures.values()), axis=1), interval)
    for name, *values in zip(measures, *of_draws, strict=True):
        columns |= _columns(name, values)
    if s < sites and k:
        quick = erlang_turned_away(world.demand, s, k)
        columns |= {"erlang_drivers": float(quick[0]), "erlang_drivers_after": float(quick[-1])}
    else:
        columns |= {"erlang_drivers": None, "erlang_drivers_after": None}
    columns |= {
        "attracted_kwh": None if candidate is None else float(candidate.attracted.mean_kwh[candidate.attracted.at(k)]),
        "taken_kwh": None if candidate is None else float(candidate.taken.mean_kwh[candidate.taken.at(k)]),
        "cost": None if np.isnan(cost) else cost,
        "gain_kwh_per_cost": float(gain.mean()) / cost if k and cost > 0 else None,
    }
    if money is not None and k and not np.isnan(cost):
        columns |= _interval("payback_years", money.payback_years(gain, k, cost), interval, median=True)
        columns |= _interval("net_present_value", money.net_present_value(gain, k, cost), interval)
    else:
        names = ("payback_years", "net_present_value")
        columns |= {f"{name}{end}": None for name in names for end in ("", "_low", "_high")}
    return columns | {"chosen_share": float(chosen.share[s])}


def _interval(name: str, draws: Floats, interval: float, *, median: bool = False) -> dict[str, float | None]:
    """Mean and interval as columns. With `median`, the median replaces the mean: draws may then be infinite."""
    if median:
        # Interpolation between infinite draws would give NaN, so the nearest draw is used.
        low, middle, high = np.quantile(draws, [(1 - interval) / 2, 0.5, (1 + interval) / 2], method="nearest")
        return _columns(name, (middle, low, high))
    return _columns(name, estimate(draws, interval))


def _columns(name: str, values: Iterable[Any]) -> dict[str, float | None]:
    """A value and its interval as columns; None if they are infinite."""
    ends = zip(("", "_low", "_high"), map(float, values), strict=True)
    return {f"{name}{end}": value if np.isfinite(value) else None for end, value in ends}
