"""Experiments: the paper's, each a grid of scenes, models and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from unmet.city.build import City
from unmet.models.training import Training
from unmet.records.sessions import Records
from unmet.study.cells import AWARE, ORACLE, PAPER_MODELS, Run, check_models, plan
from unmet.study.paper import MARKET_SHARES, PENETRATIONS, QUEUES
from unmet.study.scenes import Scene, competition_scenes, total_scenes
from unmet.study.thinning import REMOVED, sessions_between, thinning_scenes

__all__ = ["PRESETS", "Choices", "Experiment", "application", "competition", "thinning", "total"]

COMPETITION_SCENE = ("gas-station", 0.05)
"""Queue and penetration of the experiment on competing services; the paper does not name them."""

FINE = 1e-4
"""Least improvement of an epoch on real records: an hour of a few stations is small beside the largest one."""

PRESETS = {"quick": 2, "paper": 10}
"""Runs a cell."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What an experiment is made with."""

    models: tuple[str, ...] = (*PAPER_MODELS, AWARE, ORACLE)
    backbones: tuple[str, ...] = ("tgcn",)
    runs: int = 2
    seed: int = 1
    epochs: int | None = None
    regions: int = 10

    def __post_init__(self) -> None:
        check_models(self.models, self.backbones)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A grid of cells, and what it shows."""

    name: str
    title: str
    across: str  # the label that varies along the columns of its tables
    about: str
    scenes: tuple[Scene, ...]
    runs: tuple[Run, ...]
    built_in: bool  # whether the city is the one that the paper's numbers can stand beside


def total(
    city: City, choices: Choices, queues: Sequence[str] = QUEUES, penetrations: Sequence[float] = PENETRATIONS
) -> Experiment:
    """Tilted loss, ICP and MIL over queues, penetrations and models: the paper's Table 3 and figure of intervals."""
    scenes = total_scenes(city, queues, penetrations, choices.regions, choices.seed)
    return _experiment(
        "total",
        "Forecasting the demand of the whole city",
        "penetration",
        "Every model is trained on observed demand. Aware ones are told which hours were censored; the exposure-aware "
        "one learns from draws of lost demand, estimated from the records of the training part alone. All are scored "
        "on the true demand of the last tenth of the hours, one hour ahead. The oracle is the quantile model with the "
        "same inputs, trained on the true demand.",
        scenes,
        choices,
        built_in=city.is_built_in,
    )


def competition(
    city: City,
    choices: Choices,
    shares: Sequence[float] = MARKET_SHARES,
    queue: str = COMPETITION_SCENE[0],
    penetration: float = COMPETITION_SCENE[1],
) -> Experiment:
    """One operator among competitors: the paper's Table 4.

    The paper does not say under which queue. With gas stations hardly anything is lost but to competitors, and at a
    share of 95 % its losses are those of its gas stations at 5 %.
    """
    scenes = competition_scenes(city, shares, queue, penetration, choices.regions, choices.seed, choices.runs)
    return _experiment(
        "competition",
        "Forecasting all demand from one operator's records",
        "share",
        f"An operator owns a share of the stations ({queue}, {100 * penetration:g} % electric); demand at all others "
        "is lost to it. Each run is another operator, with other stations. Regions are those of the whole city, and "
        "the operator has at least one station in each. Losses are in units of the largest demand that it saw in each "
        "region, so that they are larger where its share is smaller.",
        scenes,
        choices,
        built_in=city.is_built_in,
    )


def application(city: City, choices: Choices, queue: str = "first-come", penetration: float = 0.05) -> Experiment:
    """What models say of the most censored region: the paper's figure on expansion planning."""
    scenes = total_scenes(city, [queue], [penetration], choices.regions, choices.seed)
    return _experiment(
        "application",
        "What the models say of the most censored region",
        "penetration",
        f"True, observed and predicted demand, {queue} at {100 * penetration:g} %. Predictions are one hour ahead, "
        "means over the runs.",
        scenes,
        choices,
        built_in=city.is_built_in,
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
    """Real records with plugs removed on paper: how well each model finds again what that turned away.

    Sessions from `since` until `until` (UTC) are used, by default all.
    """
    zone = time_zone or records.time_zone
    used, grouping = sessions_between(records.sessions, since, until), regions or str(choices.regions)
    scenes, notes = thinning_scenes(used, records.stations, zone, removed, grouping, choices.seed, choices.runs)
    return _experiment(
        "thinning",
        "Finding again what was taken away from real records",
        "removed",
        "Plugs of real stations that were hardly ever full are removed on paper, in each run others, and with them the "
        "sessions that would have found none. The untouched records are the truth; the flag of censored hours is the "
        "one that an operator would have. What models learn of it is estimated from what is left in the training "
        "part alone. " + " ".join(notes),
        scenes,
        choices,
        built_in=False,
        training=replace(Training(), least_improvement=FINE),
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
    runs = plan(
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
