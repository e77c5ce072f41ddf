"""Lost demand in real records with plugs removed on paper: `python -m benchmarks.towns [--town Dundee] [--fit]`.

Sites that were almost never full recorded nearly all their arrivals. With plugs removed on paper, some of these
arrivals would have been turned away: the estimator reads the remaining sessions, and the original records are the
truth. The prior from other towns (`unmet.estimation.towns`) is always learned without the town under test. A run of all
towns writes docs/results/towns.md; `--fit` instead measures each town without the correction for other towns' errors,
and prints the lines of `TOWN_RESULTS`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill

import numpy as np
import polars as pl

from benchmarks.data_sets import BOULDER, DUNDEE, JPL, LUGANO, SAP, Source, chosen_sources, read_records
from benchmarks.report import write_or_print
from benchmarks.stress.measure import plain_count
from unmet.errors import InputError
from unmet.estimation.crowding import BETAS, Crowding
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.towns import TownPrior, prior_without
from unmet.study.thinning import NEAR, REMOVED, Thinned, quiet_sites, sessions_between, thin, thinned_panel

PAGE = Path(__file__).parents[1] / "docs" / "results" / "towns.md"

SMALL = 0.05  # share of the energy to turn away where plugs are too few for distinct draws of larger shares
TRIES = 10  # seeds to try per draw, until draws are distinct
MIN_LOST = 20  # drivers that a draw must turn away to count
VAGUE = TownPrior(no_crowding=0.5, crowding=-1.5, crowding_spread=2.0, site_spread=0.7, bias=0.0, bias_spread=1e-6)
"""A nearly flat prior, under which the response of a town to occupancy is measured."""

SOURCES = (
    DUNDEE,
    # From March 2020 on, the pandemic emptied the car parks.
    replace(BOULDER, until=dt.datetime(2020, 3, 1, tzinfo=dt.UTC)),
    Source("Caltech", "acn_caltech_2019-05*", part="May-Aug 2019"),
    Source("Caltech", "acn_caltech_2019-09*", part="Sep-Dec 2019"),
    Source("Caltech", "acn_caltech_2021*", part="May 2021"),
    LUGANO,
    Source("Paris", "belib_*"),
    JPL,
    SAP,
)


@dataclass(frozen=True, slots=True)
class Draw:
    """The result for one way to remove plugs. Ratios are estimates over the truth."""

    town: str
    part: str
    sites: int
    share: float  # nominal share of the energy turned away
    lost: int  # drivers turned away
    kwh: float
    drivers: float
    high: float  # upper end of the interval of lost energy over its mean
    low: float  # its mean over the lower end
    inside: bool  # whether the interval of lost energy contains the truth
    plain: float  # lost energy by a plain count
    self_check: float  # ratio that the estimator finds in its own check; NaN if it has none
    waiting: float  # estimated share of drivers who wait
    spill: float  # estimated share who charge nearby
    no_response: float  # probability that arrivals do not respond to occupancy
    beta: float  # mean response of the sites, if they respond


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a town: the mean or the median draw within a range."""

    what: str
    low: float
    high: float


TARGETS = {
    "Dundee": Target("mean", 0.85, 1.2),
    "Caltech": Target("mean", 0.8, 1.3),
    "Boulder": Target("median", 0.7, 1.35),
    "Lugano": Target("median", 0.7, 1.35),
    "Paris": Target("median", 0.7, 1.35),
}
MIN_INSIDE = 0.75  # share of the draws whose interval contains the truth
WIDEST = 2.0  # ratio of an end of an interval to its mean


def experiments(source: Source, draws: int) -> Iterator[tuple[pl.DataFrame, pl.DataFrame, str, float, Thinned]]:
    """Quiet sites, their sessions, the time zone, the nominal share and the thinned records of all distinct draws."""
    records = read_records(source)
    used = sessions_between(records.sessions, None, source.until)
    sites, sessions = quiet_sites(used, records.stations, records.time_zone)
    seen: set[tuple[int, ...]] = set()
    for share in (*REMOVED, SMALL):
        found = 0
        if share == SMALL and len(seen) >= draws:
            return
        for seed in range(1, TRIES * draws + 1):
            thinned = thin(sessions, sites, share, seed)
            plugs = tuple(thinned.plugs["plugs"].to_list())
            enough = sessions.height - thinned.sessions.height >= MIN_LOST
            if plugs in seen or abs(thinned.removed - share) > NEAR or not enough:
                continue
            seen.add(plugs)
            yield sites, sessions, records.time_zone, share, thinned
            found += 1
            if found == draws:
                break


def measure(source: Source, draws: int, prior: TownPrior) -> list[Draw]:
    """Estimate the lost demand of every distinct draw; there are none if no site qualifies."""
    found = []
    try:
        for sites, sessions, time_zone, share, thinned in experiments(source, draws):
            lost = LostDemand(prior=prior).fit(thinned_panel(thinned, sites, "10", time_zone))
            found.append(_draw(source, sites.height, share, sessions, thinned, lost))
    except InputError as error:
        print(f"{source.name} {source.part}: {error}", file=sys.stderr)
    return found


def _draw(source: Source, sites: int, share: float, sessions: pl.DataFrame, thinned: Thinned, lost: LostDemand) -> Draw:
    """Compare an estimate with the sessions that were removed."""
    summary = lost.summary()
    true_kwh = float(sessions["energy_kwh"].sum()) - float(thinned.sessions["energy_kwh"].sum())
    true = sessions.height - thinned.sessions.height
    kwh, check, crowding = summary["lost_kwh"], summary["self_check"], lost.rates_.crowding
    draw = Draw(
        town=source.name,
        part=source.part,
        sites=sites,
        share=share,
        lost=true,
        kwh=kwh["mean"] / true_kwh,
        drivers=summary["lost_arrivals"]["mean"] / true,
        high=kwh["high"] / kwh["mean"],
        low=kwh["mean"] / max(kwh["low"], 1e-9),
        inside=bool(kwh["low"] <= true_kwh <= kwh["high"]),
        plain=plain_count(lost) / true_kwh,
        self_check=np.nan if check is None else check["ratio"],
        waiting=summary["waiting"],
        spill=summary["spill"],
        no_response=1.0 if crowding is None else crowding.no_response,
        beta=_mean_response(crowding),
    )
    _show(draw, summary["components"])
    return draw


def _show(draw: Draw, components: Sequence[str]) -> None:
    """One line of progress."""
    print(
        f"{draw.town} {draw.part} {100 * draw.share:g} %: energy {draw.kwh:.2f} "
        f"({draw.kwh / draw.low:.2f}-{draw.kwh * draw.high:.2f}) {'inside' if draw.inside else 'OUTSIDE'}, "
        f"drivers {draw.drivers:.2f} of {draw.lost}, self-check {draw.self_check:.2f}, waiting {draw.waiting:.2f}, "
        f"spill {draw.spill:.2f}, plain {draw.plain:.2f}, no response {draw.no_response:.2f}, beta {draw.beta:.2f}, "
        f"{'; '.join(components)}",
        file=sys.stderr,
        flush=True,
    )


def _mean_response(crowding: Crowding | None) -> float:
    """Mean of beta over sites, given that the network responds; 0 if it certainly does not."""
    if crowding is None or not crowding.weight[1:].sum() > 0:
        return 0.0
    weight = crowding.weight[1:] / crowding.weight[1:].sum()
    return float(np.einsum("h,hsb,b->s", weight, crowding.site[1:], BETAS).mean())


def fit(sources: Sequence[Source], draws: int, pool: ProcessPoolExecutor) -> list[str]:
    """The lines of `TOWN_RESULTS`: how each town responds to occupancy, and the error of the estimate there."""
    neutral = [prior_without(source.name)._replace(bias=0.0, bias_spread=1e-6) for source in sources]
    ratios = _flat(pool.map(measure, sources, [draws] * len(sources), neutral))
    betas = _flat(pool.map(measure, sources, [draws] * len(sources), [VAGUE] * len(sources)))
    lines = []
    for town in sorted({draw.town for draw in ratios}):
        log_ratio = -np.mean([np.log(draw.kwh) for draw in ratios if draw.town == town])
        own = [draw for draw in betas if draw.town == town]
        no_response, beta = _mean(own, "no_response"), _mean(own, "beta")
        lines.append(f'    Town("{town}", {no_response:.2f}, {beta:.2f}, {log_ratio:.2f}),')
    return lines


def _flat(parts: Iterator[list[Draw]]) -> list[Draw]:
    return [draw for part in parts for draw in part]


def page(draws: Sequence[Draw], command: str) -> str:
    """The results as Markdown."""
    towns = [name for name in dict.fromkeys(source.name for source in SOURCES) if any(d.town == name for d in draws)]
    return "\n".join(
        [
            "# Lost demand in thinned real records",
            "",
            fill(f"Written by `{command}`. {INTRODUCTION}", 120),
            "",
            *_criteria(draws, towns),
            "",
            "## By town",
            "",
            fill(COLUMNS, 120),
            "",
            "| town | sites | draws | mean | median | range | drivers | inside | high / mean | mean / low | self-check "
            "| waiting | spill | plain |",
            "| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *(_line(town, [draw for draw in draws if draw.town == town]) for town in towns),
            "",
            "## By part of the records and share of the energy turned away",
            "",
            "| town | turned away | draws | lost drivers | estimate / truth | inside | self-check | no response "
            "| plain |",
            "| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |",
            *_cells(draws),
            "",
        ]
    )


INTRODUCTION = """Public records of sites that had two plugs or more, were open on 95 % of the days and full for less
than 2 % of the time. Plugs are removed on paper until about 10, 20 or 35 % of the energy is turned away, in distinct
random ways (draws); the original records are the truth. Where there are fewer distinct draws than asked for, those of
5 % are added; the criteria are given without and with them. The estimator reads what is left, with its default settings
and a prior that was learned without the town under test. Nobody waits, diverts or returns in thinned records, so
waiting and spill should be about 0: an estimate that is right thanks to a false waiting share would show there. Draws
of one town share their drivers: a town is one experiment, however many draws there are."""
COLUMNS = """Estimated over true lost energy: mean, median and range over distinct draws; the same ratio of drivers;
draws whose 90 % interval contains the truth; ends of the interval relative to its mean (median draw, and the widest
in brackets); estimated self-check, waiting and spill (means); and the ratio of a plain count at every site: arrivals
per hour with a free plug, times the hours without one."""


def _line(town: str, draws: Sequence[Draw]) -> str:
    """The row of one town."""
    ratios, high, low = (np.array([getattr(draw, what) for draw in draws]) for what in ("kwh", "high", "low"))
    parts = {draw.part: draw.sites for draw in draws}
    return (
        f"| {town} | {sum(parts.values()) if len(parts) == 1 else f'{len(parts)} x 1'} | {len(draws)} "
        f"| {ratios.mean():.2f} | {np.median(ratios):.2f} | {ratios.min():.2f}-{ratios.max():.2f} "
        f"| {_mean(draws, 'drivers'):.2f} | {sum(draw.inside for draw in draws)} "
        f"| {np.median(high):.2f} ({high.max():.2f}) | {np.median(low):.2f} ({low.max():.2f}) "
        f"| {_mean(draws, 'self_check'):.2f} | {_mean(draws, 'waiting'):.2f} | {_mean(draws, 'spill'):.2f} "
        f"| {_mean(draws, 'plain'):.2f} |"
    )


def _mean(draws: Sequence[Draw], what: str) -> float:
    """Mean over draws; NaN if nothing is known."""
    values = np.array([getattr(draw, what) for draw in draws], float)
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _cells(draws: Sequence[Draw]) -> list[str]:
    """The rows by part and share."""
    lines = []
    for town, part, share in dict.fromkeys((draw.town, draw.part, draw.share) for draw in draws):
        own = [draw for draw in draws if (draw.town, draw.part, draw.share) == (town, part, share)]
        ratios = [draw.kwh for draw in own]
        lines.append(
            f"| {f'{town} {part}'.strip()} | {100 * share:g} % | {len(own)} "
            f"| {min(draw.lost for draw in own)}-{max(draw.lost for draw in own)} "
            f"| {np.mean(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) | {sum(draw.inside for draw in own)} "
            f"| {_mean(own, 'self_check'):.2f} | {_mean(own, 'no_response'):.2f} "
            f"| {_mean(own, 'plain'):.2f} |"
        )
    return lines


def _criteria(draws: Sequence[Draw], towns: Sequence[str]) -> list[str]:
    """The targets and whether they are met, with the usual shares of energy and with all of them."""
    usual = [draw for draw in draws if draw.share != SMALL]
    lines = [line for town in towns for line in _of_town(town, usual)]
    lines += [_coverage("all draws together", usual)]
    for what, text in (("high", "upper end over mean"), ("low", "mean over lower end")):
        widths = np.array([getattr(draw, what) for draw in usual])
        found = (
            f"median {np.median(widths):.2f}, widest {widths.max():.2f}; {(widths <= WIDEST).sum()} of {len(widths)}"
        )
        target = f"intervals span at most a factor of {WIDEST:g}: {text}"
        lines.append((target, f"{found} draws", bool((widths <= WIDEST).all())))
    more = [town for town in towns if any(draw.town == town and draw.share == SMALL for draw in draws)]
    for town in more:
        lines += [(f"with draws of 5 % as well: {target}", found, met) for target, found, met in _of_town(town, draws)]
    return ["| target | found | met |", "| --- | --- | --- |"] + [
        f"| {target} | {found} | {'yes' if met else 'NO'} |" for target, found, met in lines
    ]


def _of_town(town: str, draws: Sequence[Draw]) -> list[tuple[str, str, bool]]:
    """The targets of one town."""
    own = [draw for draw in draws if draw.town == town]
    if not own:
        return []
    lines = [_coverage(town, own)]
    if town in TARGETS:
        target, ratios = TARGETS[town], [draw.kwh for draw in own]
        value = float(np.mean(ratios) if target.what == "mean" else np.median(ratios))
        text = f"{town}: {target.what} draw within {target.low:g}-{target.high:g}"
        lines.insert(0, (text, f"{value:.3f} of {len(own)}", target.low <= value <= target.high))
    return lines


def _coverage(name: str, draws: Sequence[Draw]) -> tuple[str, str, bool]:
    """Whether enough intervals contain the truth."""
    inside = sum(draw.inside for draw in draws)
    text = f"{name}: intervals contain the truth in {100 * MIN_INSIDE:.0f} % of draws"
    return text, f"{inside} of {len(draws)}", inside >= MIN_INSIDE * len(draws)


def main() -> None:
    """Measure one town or all, and print or write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.towns", description=__doc__)
    parser.add_argument("--town", help="only this town; by default all")
    parser.add_argument("--draws", type=int, default=6, help="distinct ways to remove plugs per share of the energy")
    parser.add_argument("--fit", action="store_true", help="measure the towns for the prior instead")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    options = parser.parse_args()
    chosen = chosen_sources(SOURCES, options.town)
    with ProcessPoolExecutor(options.workers) as pool:
        if options.fit:
            print("\n".join(fit(chosen, options.draws, pool)))
            return
        priors = [prior_without(source.name) for source in chosen]
        draws = _flat(pool.map(measure, chosen, [options.draws] * len(chosen), priors))
    text = page(draws, f"python -m benchmarks.towns --draws {options.draws}")
    write_or_print(text, PAGE, complete=options.town is None)


if __name__ == "__main__":
    main()
