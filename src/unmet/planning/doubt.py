"""Doubt: gain against plugs with a band, its knee, and how the choice of sites depends on the estimate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.estimation.sums import estimate
from unmet.planning.allocate import Options, choose_within, greedy, greedy_steps
from unmet.planning.changes import World
from unmet.planning.gains import Supply, site_curves
from unmet.planning.menu import Menu

__all__ = ["chosen_share", "gain_by_plugs", "knee", "sensitivity"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

EXTREME = 0.2  # share of the draws that are called the low end, or the high end, of the estimate


def gain_by_plugs(menu: Menu, most: int, interval: float) -> pl.DataFrame:
    """Gain against the number of plugs, in the order in which greedy takes them: `plugs, gain_kwh, _low, _high`."""
    options, draws = menu.options, len(menu.supplies[0].lost_kwh) if menu.supplies else 0
    total, plugs = np.zeros(draws), 0
    points = [(0, total)]
    taken: dict[int, tuple[int, float]] = {}
    for row in greedy_steps(options, float(most)):
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
    """Plugs from which more of them gain little: where the curve is highest above the line between its ends.

    Satopaa et al., *Finding a kneedle in a haystack*, 2011. None for a curve that does not bend.
    """
    plugs, gain = curve["plugs"].to_numpy().astype(float), curve["gain_kwh"].to_numpy()
    if len(plugs) < 3 or gain[-1] <= 0:
        return None
    above = gain / gain[-1] - plugs / plugs[-1]
    return int(plugs[above.argmax()]) if above.max() > 0.05 else None


def chosen_share(menu: Menu, plugs: int) -> Floats:
    """Share of the draws in which a plan for that draw alone gives a site plugs, (sites + candidates,)."""
    options, draws = menu.options, len(menu.supplies[0].lost_kwh) if menu.supplies else 0
    share = np.zeros(len(menu.supplies))
    if not len(options) or not draws:
        return share
    gains = np.stack([menu.draw_gain(*_place(options, row)) for row in range(len(options))])  # (options, draws)
    for d in range(draws):
        rows = greedy(replace(options, gain=gains[:, d]), float(plugs))
        share[options.site[rows]] += 1 / draws
    return share


def _place(options: Options, row: int) -> tuple[int, int, float]:
    return int(options.site[row]), int(options.plugs[row]), float(options.power[row])


def sensitivity(world: World, menu: Menu, plugs: Integers, power: Floats, workers: int | None) -> pl.DataFrame:
    """What the plan gains, and what the best plan with as many plugs would gain, under other assumptions.

    Columns: `assumption, gain_kwh, best_kwh, moved` (plugs that the best plan puts elsewhere).
    """
    draws = world.truth.draws
    total = np.sum([menu.supplies[s].lost_kwh for s in menu.own], axis=0) if menu.own else np.zeros(draws)
    order = np.argsort(total, kind="stable")
    few = max(int(EXTREME * draws), 1)
    options = menu.options
    gains = (
        np.stack([menu.draw_gain(*_place(options, row)) for row in range(len(options))])
        if len(options)
        else np.zeros((0, draws))
    )
    rows = [
        ("as estimated", options.gain),
        (f"lost demand at its low end (lowest {100 * EXTREME:.0f} % of draws)", gains[:, order[:few]].mean(axis=1)),
        (f"lost demand at its high end (highest {100 * EXTREME:.0f} % of draws)", gains[:, order[-few:]].mean(axis=1)),
        ("drivers who stay away from busy sites come to new plugs", _if_nobody_stays_away(world, menu, workers)),
    ]
    for name, factor in (("stays are a quarter longer", 1.25), ("stays are a quarter shorter", 0.75)):
        rows.append((name, _if_stays(world, menu, factor, workers)))
    return pl.DataFrame(
        [(name, *_regret(replace(options, gain=gain), plugs, power)) for name, gain in rows],
        schema={"assumption": pl.String, "gain_kwh": pl.Float64, "best_kwh": pl.Float64, "moved": pl.Int64},
        orient="row",
    )


def _regret(options: Options, plugs: Integers, power: Floats) -> tuple[float, float, int]:
    """Gain of a plan, gain of the best plan with as many plugs, and plugs that this one puts elsewhere."""
    chosen = plugs[options.site] == options.plugs
    chosen &= np.isclose(options.power, power[options.site], equal_nan=True)
    best = choose_within(options, float(plugs.sum())).rows
    other = np.zeros_like(plugs)
    other[options.site[best]] = options.plugs[best]
    gain = float(options.gain[chosen].sum())
    return gain, max(float(options.gain[best].sum()), gain), int(np.maximum(other - plugs, 0).sum())


def _if_nobody_stays_away(world: World, menu: Menu, workers: int | None) -> Floats:
    """Gains if as many came to a full site as usual: none of them is discouraged, and the pool is not used up."""
    truth = world.truth
    factor = 1 / np.clip(truth.hidden.response, 0.05, 1.0)
    hidden = truth.hidden.scaled(factor, np.random.default_rng([truth.seed, 21]))
    return _gains(replace(world, truth=replace(truth, hidden=hidden)), menu, workers)


def _if_stays(world: World, menu: Menu, factor: float, workers: int | None) -> Floats:
    """Gains if lost drivers stayed longer, or shorter, than recorded ones."""
    truth = world.truth
    stays = replace(truth.stays, stay_ms=np.maximum(truth.stays.stay_ms * factor, 1).astype(np.int64))
    return _gains(replace(world, truth=replace(truth, stays=stays)), menu, workers)


def _gains(world: World, menu: Menu, workers: int | None) -> Floats:
    """Mean gains of the menu's options in another world; those of candidates stay as they are."""
    options, sites = menu.options, world.truth.sites
    most = int(options.plugs.max(initial=1))
    powers = tuple(menu.supplies[0].curves) if menu.supplies else (None,)
    other: list[Supply] = site_curves(world, most, powers, workers)
    gain = options.gain.copy()
    for row in range(len(options)):
        s, k, power = _place(options, row)
        if s < sites:
            curve = other[s].curves[None if np.isnan(power) else power]
            gain[row] = curve.mean_kwh[curve.at(k)]
    return gain
