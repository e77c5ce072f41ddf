"""Plugs of real records removed on paper and put back in the planned order: `python -m benchmarks.restoring`.

Sites that were almost never full recorded nearly all their drivers. With plugs removed on paper, some of these drivers
are turned away; a plan made from the remaining records says in which order to put the plugs back. The original records
show who would be served with any number of plugs, so the energy that every order recovers is known, and so is the best
order. Writes docs/results/restoring.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

import numpy as np
import polars as pl

from benchmarks.data_sets import Source, chosen_sources
from benchmarks.towns import SOURCES, experiments
from unmet.demand.spells import FULL
from unmet.errors import InputError
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.towns import prior_without
from unmet.planning.allocate import Options, greedy_steps
from unmet.planning.changes import changed_world
from unmet.planning.drivers import DrawnDemand, demand_of
from unmet.planning.gains import site_curves
from unmet.study.thinning import Thinned, thinned_panel, turned_away

PAGE = Path(__file__).parents[1] / "docs" / "results" / "restoring.md"
MIN_SITES, MIN_PLUGS = 3, 3  # that a draw must affect: with fewer, the order hardly matters
TARGET = 0.9  # mean of a town's planned orders


@dataclass(frozen=True, slots=True)
class Restored:
    """Energy that orders recover over that of the best order, for one way to remove plugs.

    Energies are summed over the first plug to the last but one.
    """

    town: str
    share: float  # of the energy that was turned away
    sites: int  # that lost plugs
    plugs: int  # that were removed
    planned: float  # order of the plan
    half: float  # the same, but with half of the plugs back instead of the sum
    observed: float  # by recorded energy per plug
    time_full: float  # by the time without a free plug
    chance: float  # mean of random orders


def true_gain(sessions: pl.DataFrame, thinned: Thinned, sites: pl.DataFrame) -> tuple[list[str], list[np.ndarray]]:
    """Energy that 0, 1, ... restored plugs recover, for every site that lost some."""
    before = dict(sites.select("station_id", "plugs").iter_rows())
    names, gains = [], []
    for name, left in thinned.plugs.iter_rows():
        if left == before[name]:
            continue
        own = sessions.filter(pl.col("station_id") == name).sort("start")
        start, end = (own[column].dt.epoch("ms").to_numpy().astype(np.int64) for column in ("start", "end"))
        energy = own["energy_kwh"].to_numpy()
        served = [energy[~turned_away(start, end, k)].sum() for k in range(left, before[name])] + [energy.sum()]
        names.append(name)
        gains.append(np.array(served) - served[0])
    return names, gains


def best_by_number(gains: Sequence[np.ndarray]) -> np.ndarray:
    """The most energy that 0, 1, ... plugs can recover, by dynamic programming."""
    best = np.zeros(1)
    for gain in gains:
        longer = np.full(len(best) + len(gain) - 1, -np.inf)
        for k, value in enumerate(gain):
            longer[k : k + len(best)] = np.maximum(longer[k : k + len(best)], best + value)
        best = longer
    return np.maximum.accumulate(best)


def recovered(order: Sequence[int], gains: Sequence[np.ndarray]) -> np.ndarray:
    """Energy that 0, 1, ... plugs recover, if they are restored in this order of sites."""
    have, total, points = [0] * len(gains), 0.0, [0.0]
    for s in order:
        total += gains[s][have[s] + 1] - gains[s][have[s]]
        have[s] += 1
        points.append(total)
    return np.array(points)


def planned_order(demand: DrawnDemand, names: Sequence[str], gains: Sequence[np.ndarray]) -> list[int]:
    """The order in which the plan restores plugs; those without a gain come last."""
    ids = demand.panel.sites["site_id"].to_list()
    supplies = site_curves(changed_world(demand), max(len(gain) for gain in gains))
    rows = []
    for i, (name, gain) in enumerate(zip(names, gains, strict=True)):
        curve = supplies[ids.index(name)].curves[None]
        rows += [(i, k, curve.mean_kwh[curve.at(k)] * demand.weeks[ids.index(name)]) for k in range(1, len(gain))]
    site, plugs, gain = (np.array(column) for column in zip(*rows, strict=True))
    options = Options(site, plugs, np.full(len(site), np.nan), gain, plugs.astype(float))
    order: list[int] = []
    have = [0] * len(gains)
    for row in greedy_steps(options):
        s, k = int(site[row]), int(plugs[row])
        order += [s] * (k - have[s])
        have[s] = k
    return order + [s for s, gain in enumerate(gains) for _ in range(len(gain) - 1 - have[s])]


def by_highest(value: Sequence[float], divisor: Sequence[float], gains: Sequence[np.ndarray]) -> list[int]:
    """Give each plug to the site with the highest value / divisor; every plug added raises the divisor by 1."""
    have, order = np.zeros(len(gains)), []
    max_plugs = np.array([len(gain) - 1 for gain in gains])
    for _ in range(int(max_plugs.sum())):
        rate = np.where(have < max_plugs, np.asarray(value) / (np.asarray(divisor) + have), -1.0)
        order.append(int(rate.argmax()))
        have[order[-1]] += 1
    return order


def measure(source: Source, draws: int) -> list[Restored]:
    """All distinct ways to remove plugs of a town."""
    found = []
    try:
        for sites, sessions, time_zone, share, thinned in experiments(source, draws):
            names, gains = true_gain(sessions, thinned, sites)
            best = best_by_number(gains)
            if len(names) < MIN_SITES or len(best) - 1 < MIN_PLUGS:
                continue
            panel = thinned_panel(thinned, sites, "10", time_zone)
            demand = demand_of(LostDemand(prior=prior_without(source.name)).fit(panel))
            found.append(_restored(source, share, demand, names, gains, best))
            print(found[-1], file=sys.stderr, flush=True)
    except InputError as error:
        print(f"{source.name} {source.part}: {error}", file=sys.stderr)
    return found


def _restored(
    source: Source, share: float, demand: DrawnDemand, names: list[str], gains: list[np.ndarray], best: np.ndarray
) -> Restored:
    ids = demand.panel.sites["site_id"].to_list()
    rows = [ids.index(name) for name in names]
    energy = demand.panel.stations.group_by("site_id").agg(pl.col("energy_kwh").sum())
    recorded = dict(energy.iter_rows())
    spells = demand.network.history.spells
    site = np.repeat(np.arange(demand.sites), np.diff(spells.first))
    full = np.bincount(site, (spells.end_ms - spells.begin_ms) * (spells.state == FULL), minlength=demand.sites)
    rng = np.random.default_rng(7)
    site_of_plug = [s for s, gain in enumerate(gains) for _ in range(len(gain) - 1)]
    inner = slice(1, len(best) - 1)

    def share_of_best(order: Sequence[int]) -> float:
        return float(recovered(order, gains)[inner].sum() / best[inner].sum())

    planned = planned_order(demand, names, gains)
    middle = (len(best) - 1) // 2
    capacity = demand.network.capacity[rows].astype(float)
    return Restored(
        source.name,
        share,
        len(names),
        len(best) - 1,
        share_of_best(planned),
        float(recovered(planned, gains)[middle] / best[middle]),
        share_of_best(by_highest([recorded[name] for name in names], capacity, gains)),
        share_of_best(by_highest(full[rows], np.ones(len(rows)), gains)),
        float(
            np.mean([share_of_best([site_of_plug[i] for i in rng.permutation(len(site_of_plug))]) for _ in range(200)])
        ),
    )


INTRODUCTION = f"""Written by `python -m benchmarks.restoring`. Plugs of real records are removed on paper, at sites
that were almost never full, until about 10, 20 or 35 % of the energy is turned away (draws). A plan is made from the
remaining records, and the plugs are put back in its order. The original records say who would be served, so the
energy that every order recovers is known. Numbers are this energy relative to the best possible choice of as many
plugs, summed over 1, 2, ... plugs up to the last but one: with the last, every order has put all plugs back. The
estimator's prior is always learned without the town under test. Draws of a town share their drivers, so n is the
number of towns. Draws in which fewer than {MIN_SITES} sites or {MIN_PLUGS} plugs are affected are left out, because
their order hardly matters."""


def page(found: Sequence[Restored]) -> str:
    """The results as Markdown."""
    towns = sorted({draw.town for draw in found})
    lines = [
        "# Plugs restored in the planned order",
        "",
        fill(INTRODUCTION, 120),
        "",
        "| town | draws | plugs removed | planned order (lowest draw) | with half of them back | recorded energy per "
        "plug | time full | random order | at least 0.9 |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    means = []
    for town in towns:
        own = [draw for draw in found if draw.town == town]

        def mean(what: str, own: Sequence[Restored] = own) -> float:
            return float(np.mean([getattr(draw, what) for draw in own]))

        lowest = min(draw.planned for draw in own)
        plugs = [draw.plugs for draw in own]
        means.append(mean("planned"))
        lines.append(
            f"| {town} | {len(own)} | {min(plugs)}-{max(plugs)} | **{mean('planned'):.3f}** ({lowest:.3f}) "
            f"| {mean('half'):.3f} | {mean('observed'):.3f} | {mean('time_full'):.3f} | {mean('chance'):.3f} "
            f"| {'yes' if mean('planned') >= TARGET else '**no**'} |"
        )
    lines += ["", f"Mean of the towns: {np.mean(means):.3f} (n = {len(towns)})."]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure all towns and write the page; exit code 1 if one misses the target."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--town", help="only this town; nothing is written")
    parser.add_argument("--draws", type=int, default=5, help="distinct draws per share")
    options = parser.parse_args()
    found = [draw for source in chosen_sources(SOURCES, options.town) for draw in measure(source, options.draws)]
    text = page(found)
    print(text)
    if options.town is None:
        PAGE.write_text(text, encoding="utf-8")
    return int(any("**no**" in line for line in text.splitlines()))


if __name__ == "__main__":
    sys.exit(main())
