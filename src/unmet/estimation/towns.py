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
    """The prior of a network whose records say little."""

    no_crowding: float  # probability that arrivals do not respond to occupancy
    crowding: float  # mean of beta over networks where they do
    crowding_spread: float  # standard deviation of a network's mean beta
    site_spread: float  # scale of the standard deviation of beta between the sites of a network
    bias: float  # mean log ratio of true to estimated lost energy over towns
    bias_spread: float  # its standard deviation between towns


class Town(NamedTuple):
    """Results of the thinned records of one town."""

    name: str
    no_response: float  # probability that its arrivals do not respond to occupancy, under a nearly flat prior
    beta: float  # mean response to occupancy, if they do
    log_ratio: float  # mean over thinnings of log(true / estimated lost energy) without the bias of this prior


TOWN_RESULTS: tuple[Town, ...] = (
    Town("Boulder", 0.08, -1.45, 0.23),
    Town("Caltech", 0.95, -0.04, -0.28),
    Town("Dundee", 0.00, -1.94, 0.11),
    Town("Lugano", 0.54, -1.21, 0.06),
    Town("Paris", 0.01, -1.49, -0.06),
)
"""From `python -m benchmarks.towns --fit --draws 6`."""


def prior_without(name: str | None = None) -> TownPrior:
    """The prior from all towns but one, so that no town is tested against itself.

    A town counts as responding with the probability that it does. A mean error over towns that is not clearly different
    from 0 widens intervals, but does not shift them.
    """
    towns = [town for town in TOWN_RESULTS if town.name != name]
    count = sum(1 - town.no_response for town in towns)
    mean = sum((1 - town.no_response) * town.beta for town in towns) / count
    variance = sum((1 - town.no_response) * (town.beta - mean) ** 2 for town in towns) / (count - 1)
    ratios = [town.log_ratio for town in towns]
    mean_ratio = sum(ratios) / len(ratios)
    between = sum((ratio - mean_ratio) ** 2 for ratio in ratios) / (len(ratios) - 1)
    clear = mean_ratio**2 > 4 * between / len(ratios)  # by two standard errors
    return TownPrior(
        no_crowding=(1 + len(towns) - count) / (2 + len(towns)),  # Laplace's rule of succession
        crowding=mean,
        crowding_spread=max(variance, 0.5**2) ** 0.5,  # a floor: a few towns can be alike by chance
        site_spread=0.7,  # fixed, not estimated from the towns
        bias=mean_ratio if clear else 0.0,
        bias_spread=(between * (1 + 1 / len(ratios))) ** 0.5,  # of a further town, with the error of the mean
    )


TOWNS = prior_without()
"""The prior from all towns."""
