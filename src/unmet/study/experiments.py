"""The experiments of the paper, and one on thinned records. Each is a grid of scenes, models and seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import prod

from unmet.city.build import City
from unmet.errors import InputError
from unmet.models.training import Training
from unmet.records.sessions import Records
from unmet.simulation.scenario import Scenario
from unmet.study.cells import (
    AWARE,
    ORACLE,
    PAPER_MODELS,
    SIMPLE_BASELINES,
    Run,
    check_models,
    need_estimates,
    plan_runs,
)
from unmet.study.paper import MARKET_SHARES, PENETRATIONS, QUEUES
from unmet.study.scenes import Sampling, Scene, competition_scenes, total_scenes
from unmet.study.thinning import REMOVED, sessions_between, thinning_scenes

__all__ = ["PRESETS", "Choices", "Experiment", "application", "competition", "thinning", "total"]

COMPETITION_SCENE = ("gas-station", 0.05)
"""Queue and penetration of the experiment on competing services, which the paper does not state."""

MIN_IMPROVEMENT = 1e-4
"""Smallest gain in validation loss that counts as an improvement on real records, where typical hours are small
compared with the largest one."""

PRESETS = {"quick": 3, "paper": 10}
"""Runs per cell."""

CityOf = Callable[[int], City]
"""Returns the city of a seed: the built-in city with different cars, trips and days, or the user's own trips."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The settings that experiments share."""

    models: tuple[str, ...] = (*PAPER_MODELS, AWARE, ORACLE, *SIMPLE_BASELINES)
    backbones: tuple[str, ...] = ("tgcn",)
    runs: int = 3  # runs per cell
    cities: int = 3  # runs take turns among them; standard deviations and p-values are over cities
    seed: int = 1
    epochs: int | None = None  # highest number of epochs; by default that of `Training`
    regions: int = 10  # number of regions
    scenario: Scenario = Scenario()  # noqa: RUF009 (it is frozen); its queue, penetration and seed are replaced

    def __post_init__(self) -> None:
        check_models(self.models, self.backbones)
        check_size(self.runs, len(self.models) * len(self.backbones))

    def city_numbers(self) -> range:
        """The numbers of the cities that runs take turns among; there are no more cities than runs."""
        return range(min(self.cities, self.runs))


@dataclass(frozen=True, slots=True)
class Experiment:
    """A grid of cells, and its description."""

    name: str
    title: str
    across: str  # the label that varies along the columns of its tables
    about: str  # sentences for its report
    scenes: tuple[Scene, ...]
    runs: tuple[Run, ...]
    built_in: bool  # whether the city is the built-in one, which the paper's numbers can be compared with


MAX_RUNS = 100_000  # highest number of runs in a study


def check_size(*factors: int) -> None:
    """Refuse a grid that is too large; `factors` are the numbers of values along its axes, such as runs and models."""
    trained = prod(factors)
    if trained > MAX_RUNS:
        raise InputError(
            f"That grid trains {trained:,} models or more, which takes over a week on one core: ask for fewer runs, "
            f"models, queues, penetrations or shares (at most {MAX_RUNS:,} models in all)."
        )


def _city_scenes(
    city_of: CityOf, choices: Choices, queues: Sequence[str], penetrations: Sequence[float]
) -> tuple[list[Scene], bool]:
    """Scenes of every city of a study, and whether all are of the built-in city."""
    check_size(choices.runs, len(choices.models) * len(choices.backbones), len(queues), len(penetrations))
    scenes: list[Scene] = []
    built_in = True
    for number in choices.city_numbers():
        seed = choices.seed + number
        city = city_of(seed)
        built_in &= city.is_built_in
        scenes += total_scenes(
            city,
            queues,
            penetrations,
            regions=choices.regions,
            seed=seed,
            city_number=number,
            base=choices.scenario,
            estimated=need_estimates(choices.models),
        )
    return scenes, built_in


def total(
    city_of: CityOf, choices: Choices, queues: Sequence[str] = QUEUES, penetrations: Sequence[float] = PENETRATIONS
) -> Experiment:
    """Tilted loss, ICP and MIL over queues, penetrations and models: the paper's Table 3 and figure of intervals."""
    scenes, built_in = _city_scenes(city_of, choices, queues, penetrations)
    return _experiment(
        "total",
        "Forecasting the demand of the whole city",
        "penetration",
        "Every model is trained on observed demand. Censoring-aware models also know which hours were censored; the "
        "exposure-aware model learns from draws of lost demand, estimated from the records of the training part "
        "alone. All are scored on the true demand of the last tenth of the hours, one hour ahead. The oracle is the "
        "quantile model trained on the true demand. Both read past observed demand; the exposure-aware model reads "
        "past observed demand plus the expected loss." + _cities_note(choices),
        scenes,
        choices,
        built_in=built_in and choices.scenario == Scenario(),
    )


def _cities_note(choices: Choices) -> str:
    number = len(choices.city_numbers())
    return f" Runs take turns among {number} cities, which differ in their cars, trips and days." if number > 1 else ""


def competition(
    city_of: CityOf,
    choices: Choices,
    shares: Sequence[float] = MARKET_SHARES,
    queue: str = COMPETITION_SCENE[0],
    penetration: float = COMPETITION_SCENE[1],
    sampling: Sampling = Sampling.REGION,
) -> Experiment:
    """One operator among competitors: the paper's Table 4.

    The paper does not state the queue. At a share of 95 %, its losses match those of the gas-station queue at a
    penetration of 5 %, where hardly any demand is lost except to competitors.
    """
    check_size(choices.runs, len(choices.models) * len(choices.backbones), len(shares))
    scenes: list[Scene] = []
    built_in = True
    numbers = choices.city_numbers()
    for number in numbers:
        city = city_of(choices.seed + number)
        built_in &= city.is_built_in
        scenes += competition_scenes(
            city,
            shares,
            queue,
            penetration,
            regions=choices.regions,
            seed=choices.seed + number,
            runs=range(number, choices.runs, len(numbers)),
            city_number=number,
            sampling=sampling,
            base=choices.scenario,
            estimated=need_estimates(choices.models),
        )
    return _experiment(
        "competition",
        "Forecasting all demand from one operator's records",
        "share",
        f"An operator owns a share of the stations ({queue}, {100 * penetration:g} % electric); demand at all others "
        "is lost to it. Each run has a different operator, with other stations. Regions are those of the whole city, "
        "and the operator has at least one station in each. Losses and lengths of intervals are given first in units "
        "of each region's largest true demand, as those of the paper seem to be, and then in units of the largest "
        "demand that the operator observed, in which a smaller share gives larger values." + _cities_note(choices),
        scenes,
        choices,
        built_in=built_in and sampling is Sampling.REGION and choices.scenario == Scenario(),
    )


def application(city_of: CityOf, choices: Choices, queue: str = "first-come", penetration: float = 0.05) -> Experiment:
    """Forecasts for the most censored region of one city: the paper's figure on expansion planning."""
    choices = replace(choices, cities=1)
    scenes, built_in = _city_scenes(city_of, choices, [queue], [penetration])
    return _experiment(
        "application",
        "Forecasts for the most censored region",
        "penetration",
        f"True, observed and predicted demand, {queue} at {100 * penetration:g} %. Predictions are one hour ahead, "
        "means over the runs.",
        scenes,
        choices,
        built_in=built_in and choices.scenario == Scenario(),
        keep_hours=True,
    )


def thinning(
    records: Records,
    choices: Choices,
    removed: Sequence[float] = REMOVED,
    regions: str | None = None,
    time_zone: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Experiment:
    """Real records with plugs removed on paper: how well each model recovers the demand turned away.

    Sessions from `since` until `until` (UTC) are used, by default all.
    """
    zone = time_zone or records.time_zone
    used, grouping = sessions_between(records.sessions, since, until), regions or str(choices.regions)
    scenes, notes = thinning_scenes(used, records.stations, zone, removed, grouping, choices.seed, choices.runs)
    return _experiment(
        "thinning",
        "Recovering demand that was removed from real records",
        "removed",
        "Plugs of real stations that were hardly ever full are removed on paper, different ones in each run, together "
        "with the sessions that would have found no free plug. The original records are the truth; hours are flagged "
        "as censored as an operator would flag them. Lost demand is estimated from the remaining sessions of the "
        "training part alone. " + " ".join(notes),
        scenes,
        choices,
        built_in=False,
        training=replace(Training(), least_improvement=MIN_IMPROVEMENT),
    )


def _experiment(
    name: str,
    title: str,
    across: str,
    about: str,
    scenes: Sequence[Scene],
    choices: Choices,
    *,
    built_in: bool,
    training: Training = Training(),  # noqa: B008 (it is frozen)
    keep_hours: bool = False,
) -> Experiment:
    runs = plan_runs(
        scenes,
        choices.models,
        choices.backbones,
        choices.runs,
        choices.seed,
        choices.epochs,
        training=training,
        keep_hours=keep_hours,
    )
    return Experiment(name, title, across, about, tuple(scenes), tuple(runs), built_in)
