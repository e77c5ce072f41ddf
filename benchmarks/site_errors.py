"""Errors of individual sites beyond their posterior: `python -m benchmarks.site_errors [--draws 3] [--seeds 3]`.

The estimator's intervals of individual sites include an error of the site. The scale of its prior (`SCALE` of
`unmet.estimation.site_errors`) is measured here: posterior draws without this error are compared with the true number
of lost drivers of every site that lost at least 20, in thinned real records and in simulated networks in which the
model is right. The error beyond the posterior is the standard deviation on the log scale that maximises the likelihood
of the log ratios of estimates to the truth.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import chain

import numpy as np
import polars as pl
from scipy.optimize import minimize_scalar

from benchmarks.data_sets import Source
from benchmarks.stress.arrivals import Case
from benchmarks.stress.cases import CASES
from benchmarks.stress.simulator import simulate
from benchmarks.towns import SOURCES, experiments
from unmet.demand.panel import Panel
from unmet.errors import InputError
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.sums import sum_draws
from unmet.estimation.towns import prior_without
from unmet.records.restarts import join_restarts
from unmet.study.thinning import thinned_panel

MIN_LOST = 20  # drivers that a site must have lost to count
# Cases of `benchmarks.stress` whose assumptions are those of the model.
SIMULATED = ("light", "base", "heavy", "both-days", "two-years", "city-days", "growth")

Errors = list[tuple[float, float]]
"""Log ratio of the estimate to the truth, and the relative standard deviation of the draws, of every site."""


def errors_of_sites(lost: LostDemand, true: pl.DataFrame) -> Errors:
    """Compare draws of lost drivers by site with `true`, the number by station (`station_id, len`).

    The draws exclude the errors of individual sites; the error of the network is fixed at its mean.
    """
    ingredients, network = lost.ingredients_, lost.network_
    error = np.full_like(ingredients.common.error, ingredients.common.error.mean())
    without = replace(ingredients.common, error=error, site_error=0.0)
    drawn = sum_draws(replace(ingredients, common=without), 0.9).station_arrivals
    stations = lost.panel_.stations.select("station_id").join(true, on="station_id", how="left", maintain_order="left")
    truth = stations["len"].fill_null(0).to_numpy()
    found = []
    for site in range(network.sites):
        own = network.site_of_station == site
        actual, draws = float(truth[own].sum()), drawn[:, own].sum(axis=1)
        if actual >= MIN_LOST and draws.mean() > 0:
            found.append((float(np.log(draws.mean() / actual)), float(draws.std() / draws.mean())))
    return found


def of_town(source: Source, draws: int) -> Errors:
    """Sites of the thinned records of a town."""

    def by_experiment() -> Iterator[Errors]:
        for sites, sessions, time_zone, _, thinned in experiments(source, draws):
            lost = LostDemand(prior=prior_without(source.name)).fit(thinned_panel(thinned, sites, "10", time_zone))
            removed = sessions.join(thinned.sessions, on=["session_id", "station_id", "start"], how="anti")
            yield errors_of_sites(lost, removed.group_by("station_id").len())

    try:
        return [pair for part in by_experiment() for pair in part]
    except InputError:  # no site qualifies
        return []


def of_network(case: Case, seed: int) -> Errors:
    """Sites of a simulated network."""
    network = simulate(case, seed)
    sessions, _ = join_restarts(network.sessions)
    panel = Panel(sessions, network.stations, regions="10", time_zone=network.time_zone)
    return errors_of_sites(LostDemand().fit(panel), network.lost.group_by("station_id").len())


def beyond_posterior(errors: Errors) -> float:
    """Standard deviation of the errors beyond that of the draws, by maximum likelihood."""
    ratio, spread = np.array(errors).T

    def minus_log_likelihood(extra: float) -> float:
        variance = spread**2 + extra**2
        return float((np.log(variance) + ratio**2 / variance).sum())

    return float(minimize_scalar(minus_log_likelihood, bounds=(0.0, 2.0), method="bounded").x)


def main() -> None:
    """Print the errors of towns and of simulated networks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.site_errors", description=__doc__)
    parser.add_argument("--draws", type=int, default=3, help="ways to remove plugs per town and share of the energy")
    parser.add_argument("--seeds", type=int, default=3, help="simulated networks per case")
    parser.add_argument("--workers", type=int, default=2, help="number of processes")
    options = parser.parse_args()
    chosen = [source for source in SOURCES if source.name != "Caltech"]  # one site, whose error is that of the town
    cases = [case for case in CASES if case.name in SIMULATED for _ in range(options.seeds)]
    with ProcessPoolExecutor(options.workers) as pool:
        towns = list(pool.map(of_town, chosen, [options.draws] * len(chosen)))
        networks = list(pool.map(of_network, cases, [1 + i % options.seeds for i in range(len(cases))]))
    named = {source.name: errors for source, errors in zip(chosen, towns, strict=True) if errors}
    together = {"all towns": list(chain(*towns)), "simulated networks": list(chain(*networks))}
    for name, errors in (named | together).items():
        print(f"{name}: {len(errors)} sites, {beyond_posterior(errors):.2f} beyond the posterior")


if __name__ == "__main__":
    main()
