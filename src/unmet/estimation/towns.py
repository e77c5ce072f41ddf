"""The prior from other towns, for what the records of a network do not show.

Sites that were almost never full have records of all their arrivals. With plugs removed on paper, some of these
arrivals are turned away, and the estimator can be compared with the truth (`python -m benchmarks.towns`,
docs/results/towns.md). Every town contributes the response of its arrivals to occupancy, and the log ratio of true to
estimated lost energy.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TOWNS", "TownPrior", "prior_without"]


class TownPrior(NamedTuple):
    """Prior of a network."""

    no_crowding: float  # probability that arrivals do not respond to occupancy
    crowding: float  # mean of beta over networks where they do
    crowding_spread: float  # standard deviation of a network's mean beta
    site_spread: float  # scale of the standard deviation of beta between the sites of a network
    bias: float  # mean log ratio of true to estimated lost energy over towns
    bias_spread: float  # its standard deviation between towns


class Town(NamedTuple):
    """Results of the thinned records of one town."""

    name: str
    beta: float  # mean response to occupancy; 0 if there is none
    log_ratio: float  # mean over draws of log(true / estimated lost energy) without the bias of this prior


TOWN_RESULTS: tuple[Town, ...] = (
    Town("Boulder", -1.44, 0.26),
    Town("Caltech", 0.00, -0.29),
    Town("Dundee", -1.76, 0.05),
    Town("Lugano", 0.00, 0.03),
    Town("Paris", -1.49, -0.06),
)
"""From `python -m benchmarks.towns --fit --draws 6`."""


def prior_without(name: str | None = None) -> TownPrior:
    """The prior from all towns but one, so that no town is tested against itself.

    A mean error over towns that is not clearly different from 0 widens intervals, but does not shift them.
    """
    towns = [town for town in TOWN_RESULTS if town.name != name]
    responding = [town for town in towns if town.beta < 0]
    count = len(responding)
    mean = sum(town.beta for town in responding) / count
    variance = sum((town.beta - mean) ** 2 for town in responding) / (count - 1)
    ratios = [town.log_ratio for town in towns]
    mean_ratio = sum(ratios) / len(ratios)
    between = sum((ratio - mean_ratio) ** 2 for ratio in ratios) / (len(ratios) - 1)
    clear = mean_ratio**2 > 4 * between / len(ratios)  # by two standard errors
    return TownPrior(
        no_crowding=(1 + len(towns) - count) / (2 + len(towns)),
        crowding=mean,
        crowding_spread=max(variance, 0.5**2) ** 0.5,
        site_spread=0.7,
        bias=mean_ratio if clear else 0.0,
        bias_spread=(between * (1 + 1 / len(ratios))) ** 0.5,
    )


TOWNS = prior_without()
"""The prior from all towns."""
