"""Uncertainty of a plan: gain against plugs, its knee, and how the choice of sites depends on the estimate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from unmet.arrays import Floats, Integers
from unmet.estimation.sums import estimate
from unmet.planning.allocate import Options, choose_within, greedy_steps
from unmet.planning.changes import World
from unmet.planning.gains import Supply, site_curves
from unmet.planning.menu import Menu

__all__ = ["chosen_share", "gain_by_plugs", "knee", "sensitivity"]


NOT_GIVEN = float("nan")  # a single object as a dictionary key, since NaN is not equal to itself
TINY = 1e-9
RARELY = 0.2
"""Plugs that gain less than this share of the last one chosen are left out of the plans for single draws."""
MAX_DRIVERS, FEW_DRAWS = 3_000_000, 50
"""With more drivers than this over all draws, other assumptions are tried in the first few draws only."""
CROWDING_STREAM = 21  # stream of random numbers
MIN_BEND = 0.05  # height of the curve above the line, relative to its end, from which it has a knee
EXTREME = 0.2  # share of the draws that form the low end, or the high end, of the estimate


def gain_by_plugs(menu: Menu, max_plugs: int, interval: float) -> pl.DataFrame:
    """Gain by number of plugs, added in greedy order: `plugs, gain_kwh, gain_kwh_low, gain_kwh_high`."""
    options, draws = menu.options, len(menu.supplies[0].lost_kwh) if menu.supplies else 0
    total, plugs = np.zeros(draws), 0
    points = [(0, total)]
    taken: dict[int, tuple[int, float]] = {}
    for row in greedy_steps(options, float(max_plugs)):
        s, k, power = int(options.site[row]), int(options.plugs[row]), float(options.power[row])
        before = taken.get(s)
        total = total + menu.draw_gain(s, k, power) - (menu.draw_gain(s, *before) if before else 0.0)
        plugs += k - (before[0] if before else 0)
        taken[s] = (k, power)
        points.append((plugs, total))
    gain = estimate(np.array([values for _, values in points]).T, interval)
    return pl.DataFrame(
        {"plugs": [n for n, _ in points], "gain_kwh": gain.mean, "gain_kwh_low": gain.low, "gain_kwh_high": gain.high}
    )


def knee(curve: pl.DataFrame) -> int | None:
    """Number of plugs beyond which more plugs gain little: where the curve is highest above the line between its ends.

    Satopaa et al., *Finding a "kneedle" in a haystack*, 2011. None for a curve that hardly bends.
    """
    plugs, gain = curve["plugs"].to_numpy().astype(float), curve["gain_kwh"].to_numpy()
    if len(plugs) < 3 or gain[-1] <= 0:
        return None
    above = gain / gain[-1] - plugs / plugs[-1]
    return int(plugs[above.argmax()]) if above.max() > MIN_BEND else None


def chosen_share(menu: Menu, plugs: int) -> Floats:
    """Share of the draws in which a plan made for that draw alone adds plugs at a site, (sites + candidates,).

    The plan for a draw takes the plugs with the highest gains in it. The gain of a plug is capped by the gains of the
    plugs that have to be added before it.
    """
    share = np.zeros(len(menu.supplies))
    if not len(menu.options) or not plugs:
        return share
    chains = _chains(menu, plugs)
    gains = np.concatenate([gain for _, gain in chains], axis=1)  # (draws, plugs of all chains)
    last = max(gains.shape[1] - plugs, 0)
    threshold = np.partition(gains, last, axis=1)[:, last]
    for site, gain in chains:
        share[site] = max(share[site], float((gain[:, 0] >= np.maximum(threshold, TINY)).mean()))
    return share


def _chains(menu: Menu, plugs: int) -> list[tuple[int, Floats]]:
    """Site, and gain of its first, second, ... additional plug in every draw, (draws, plugs), non-increasing."""
    options, chains, mean = menu.options, [], []
    order = np.lexsort((options.plugs, options.power, options.site))
    for own in np.split(order, np.flatnonzero(np.diff(options.site[order])) + 1):
        kwh = _best_power(menu, options.where(own), plugs)
        chains.append((int(options.site[own[0]]), np.minimum.accumulate(np.diff(kwh, axis=1), axis=1)))
        mean.append(np.diff(kwh.mean(axis=0)))
    every = np.concatenate(mean) if mean else np.zeros(0)
    if len(every) <= plugs:
        return chains
    # Plugs that gain far less than the last one chosen are hardly ever chosen in any draw, and only take memory.
    threshold = RARELY * np.partition(every, len(every) - plugs)[len(every) - plugs]
    kept = [max(int((gain >= threshold).sum()), 1) for gain in mean]
    return [(site, gain[:, :k]) for (site, gain), k in zip(chains, kept, strict=True)]


def _best_power(menu: Menu, own: Options, plugs: int) -> Floats:
    """Gain of 0, 1, ... additional plugs of a site in every draw, at the power that gains most, (draws, plugs + 1)."""
    most = min(int(own.plugs.max()), plugs)
    by_power = []
    for power in np.unique(own.power):
        allowed = own.plugs[np.isclose(own.power, power, equal_nan=True)].max()
        kwh = menu.curve(int(own.site[0]), float(power)).kwh
        by_power.append(kwh[:, np.minimum(np.arange(most + 1), allowed)])
    return np.asarray(np.max(by_power, axis=0))


def sensitivity(world: World, menu: Menu, plugs: Integers, power: Floats, workers: int | None) -> pl.DataFrame:
    """Gain of the plan, and of the best plan with as many plugs, under other assumptions.

    Columns: `assumption, gain_kwh, best_kwh, moved` (plugs that the best plan puts elsewhere).
    """
    draws = world.demand.draws
    large = _drivers(world) > MAX_DRIVERS
    few_draws = replace(world, demand=world.demand.first_draws(min(draws, FEW_DRAWS if large else draws)))
    total = np.sum([menu.supplies[s].lost_kwh for s in menu.own], axis=0) if menu.own else np.zeros(draws)
    order = np.argsort(total, kind="stable")
    few = max(int(EXTREME * draws), 1)
    options = menu.options

    def of_draws(rows: Integers) -> Floats:
        means = {key: menu.curve(*key).kwh[rows].mean(axis=0) for key in _keys(options)}
        return np.array([means[key][k] for key, k in zip(_keys(options), options.plugs, strict=True)], float)

    rows = [
        ("as estimated", options.gain),
        (f"lost demand at its low end (lowest {100 * EXTREME:.0f} % of draws)", of_draws(order[:few])),
        (f"lost demand at its high end (highest {100 * EXTREME:.0f} % of draws)", of_draws(order[-few:])),
        ("drivers who stay away from busy sites come to new plugs", _if_nobody_stays_away(few_draws, menu, workers)),
    ]
    for name, factor in (("stays are a quarter longer", 1.25), ("stays are a quarter shorter", 0.75)):
        rows.append((name, _if_stays(few_draws, menu, factor, workers)))
    return pl.DataFrame(
        [(name, *_regret(replace(options, gain=gain), plugs, power)) for name, gain in rows],
        schema={"assumption": pl.String, "gain_kwh": pl.Float64, "best_kwh": pl.Float64, "moved": pl.Int64},
        orient="row",
    )


def _drivers(world: World) -> int:
    """Number of drivers to replay over all draws: lost drivers, and recorded ones as well if anything changes."""
    lost = int(world.demand.hidden.drivers.sum(dtype=np.int64))
    recorded = world.demand.draws * len(world.demand.session_end_ms) if world.is_changed else 0
    return int(world.change.growth * (lost + recorded))


def _keys(options: Options) -> list[tuple[int, float]]:
    """Site and power of every option as dictionary keys; `NOT_GIVEN` for the power of the existing plugs."""
    powers = {float(power): float(power) for power in np.unique(options.power) if not np.isnan(power)}
    return [
        (int(site), NOT_GIVEN if np.isnan(power) else powers[float(power)])
        for site, power in zip(options.site, options.power, strict=True)
    ]


def _regret(options: Options, plugs: Integers, power: Floats) -> tuple[float, float, int]:
    """Gain of a plan, gain of the best plan with as many plugs, and plugs that the best plan puts elsewhere."""
    chosen = plugs[options.site] == options.plugs
    chosen &= np.isclose(options.power, power[options.site], equal_nan=True)
    best = choose_within(options, float(plugs.sum())).rows
    other = np.zeros_like(plugs)
    other[options.site[best]] = options.plugs[best]
    gain = float(options.gain[chosen].sum())
    return gain, max(float(options.gain[best].sum()), gain), int(np.maximum(other - plugs, 0).sum())


def _if_nobody_stays_away(world: World, menu: Menu, workers: int | None) -> Floats:
    """Gains if arrivals did not fall at a full site: nobody is discouraged, and the pool of drivers is not depleted."""
    demand = world.demand
    factor = 1 / np.clip(demand.hidden.response, 0.05, 1.0)
    hidden = demand.hidden.scaled(factor, np.random.default_rng([demand.seed, CROWDING_STREAM]))
    return _gains(replace(world, demand=replace(demand, hidden=hidden)), menu, workers)


def _if_stays(world: World, menu: Menu, factor: float, workers: int | None) -> Floats:
    """Gains if lost drivers stayed as long as recorded ones, times a factor."""
    demand = world.demand
    stays = replace(demand.stays, stay_ms=np.maximum(demand.stays.stay_ms * factor, 1).astype(np.int64))
    return _gains(replace(world, demand=replace(demand, stays=stays)), menu, workers)


def _gains(world: World, menu: Menu, workers: int | None) -> Floats:
    """Mean gains of the menu's options in another world; gains of candidates are unchanged."""
    options, sites = menu.options, world.demand.sites
    max_plugs = int(options.plugs.max(initial=1))
    powers = tuple(menu.supplies[0].curves) if menu.supplies else (None,)
    other: list[Supply] = site_curves(world, max_plugs, powers, workers)
    means: dict[tuple[int, float], tuple[Floats, Floats]] = {}
    gain, baseline = options.gain.copy(), options.gain.copy()
    for row, (key, k) in enumerate(zip(_keys(options), options.plugs, strict=True)):
        if key[0] >= sites:
            continue
        if key not in means:
            changed = other[key[0]].curves[None if np.isnan(key[1]) else key[1]].mean_kwh
            means[key] = changed, menu.curve(*key).kwh[: world.demand.draws].mean(axis=0)
        gain[row], baseline[row] = (values[min(int(k), len(values) - 1)] for values in means[key])
    # Lost demand may differ between the first draws and all draws; the ratio removes this difference.
    return np.asarray(gain * (options.gain.sum() / max(float(baseline.sum()), TINY)))
