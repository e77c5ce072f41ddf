"""Runs: one model trained on one scene from one seed. A run is identified by the hash of everything it depends on."""

from __future__ import annotations

import datetime as dt
import hashlib
import inspect
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unmet import __version__
from unmet.errors import InputError
from unmet.evaluation.score import score, with_actual
from unmet.models.backbones import BACKBONES
from unmet.models.direct import DIRECT
from unmet.models.draws import BEFORE, DRAWS, read_draws
from unmet.models.forecaster import Forecaster
from unmet.models.likelihoods import LEVELS, LIKELIHOODS
from unmet.models.training import Training
from unmet.study.baselines import BASELINES
from unmet.study.baselines.base import TRAIN_SHARE
from unmet.study.networks import study_forecaster
from unmet.study.scenes import Scene

__all__ = [
    "AWARE", "MEASURES", "NO_BACKBONE", "ORACLE", "PAPER_MODELS", "SIMPLE_BASELINES", "UNAWARE", "Run", "RunResult",
    "check_models", "is_baseline", "lost_energy", "need_estimates", "perform", "plan_runs",
]  # fmt: skip

AWARE = "exposure"  # the model of this package
ORACLE = "oracle"
UNAWARE = "quantile"  # the model whose distance to the oracle is the gap
PAPER_MODELS = ("gaussian", "tobit", "quantile", "censored-quantile")
SIMPLE_BASELINES = ("seen-over-exposed", "poisson", "cqrnn", "identity-graph")
NO_BACKBONE = "none"  # for baselines, which have no backbone to choose
FORMAT = 2  # part of the key of a run: increase it if the same options give other results than before
MEASURES = (
    "tilted_loss", "tilted_loss_true", "icp", "mil", "mil_true", "bias_percent", "crps", "tilted_loss_kwh",
    "icp_most_censored",
)  # fmt: skip
"""The measures of a run. Those that end in `_true` are in units of each region's largest true demand."""


@dataclass(frozen=True, slots=True)
class Run:
    """A model with a backbone, to be trained on a scene from a seed."""

    scene: str  # fingerprint of the scene
    reads: str  # fingerprint of the additional columns that the model reads
    labels: tuple[tuple[str, Any], ...]  # name and value of each label of the scene
    model: str  # a likelihood, a baseline or the oracle
    backbone: str
    seed: int
    training: Training
    keep_hours: bool = False  # whether to keep the hourly forecasts, not only their scores
    city: int = 0  # number of the scene's city
    outside: str = ""  # hash of the source code of parts from other packages

    @property
    def key(self) -> str:
        """The hash of everything that the result depends on. Renaming a field changes it, and old results are lost."""
        values = asdict(self) | {"format": FORMAT, "unmet": __version__}
        if not self.outside:
            del values["outside"]
        text = json.dumps(values, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run."""

    row: dict[str, Any]  # labels, model, backbone, seed, measures
    hours: pl.DataFrame | None  # forecasts of the test part, one hour ahead, if they are kept
    seconds: float


def need_estimates(models: Sequence[str]) -> bool:
    """Whether any of these models reads estimates of `LostDemand`."""
    baselines = [name for name in models if name in BASELINES.names()]
    networks = [name for name in models if name != ORACLE and name not in baselines]
    return any(BASELINES.named(name).reads_exposure for name in baselines) or any(
        LIKELIHOODS.named(name).imputes for name in networks
    )


DIRECT_MODELS = ("quantile", "exposure", "oracle")
"""Models that can be combined with a backbone that is not a network."""


def check_models(models: Sequence[str], backbones: Sequence[str]) -> None:
    """Refuse unknown names, and backbones that none of the models can use."""
    for model in models:
        if model != ORACLE and model not in BASELINES.names():
            try:
                LIKELIHOODS.named(model)
            except InputError as error:
                known = ", ".join((ORACLE, *BASELINES.names()))
                raise InputError(f"{error} A study also knows {known}.") from None
    for backbone in backbones:
        if backbone not in DIRECT:
            BACKBONES.named(backbone)
        elif not set(models) & set(DIRECT_MODELS):
            raise InputError(
                f"The backbone {backbone} does not combine with {', '.join(models)}: study it with --models "
                f"{','.join(DIRECT_MODELS)}."
            )
    if not models or not backbones:
        raise InputError("A study needs at least one model and one backbone.")


def plan_runs(
    scenes: Sequence[Scene],
    models: Sequence[str],
    backbones: Sequence[str],
    runs: int,
    seed: int,
    epochs: int | None = None,
    *,
    training: Training = Training(),  # noqa: B008 (it is frozen)
    keep_hours: bool = False,
) -> list[Run]:
    """All runs of a study. The first seed of every cell comes first, so that every cell has a result early on.

    Runs alternate between the cities of the scenes. Baselines are run once per scene: their seed depends on
    the city alone, so that repeated runs are duplicates, which are dropped.

    Args:
        scenes: the scenes of all cities.
        models: names of likelihoods, baselines or the oracle.
        backbones: names of backbones.
        runs: number of runs per cell.
        seed: seed of the first run.
        epochs: highest number of epochs; by default that of `training`.
        training: how networks are trained.
        keep_hours: whether to keep hourly forecasts.
    """
    check_models(models, backbones)
    if epochs is not None:
        training = replace(training, epochs=epochs)
    fingerprints = [scene.fingerprint() for scene in scenes]
    cities = 1 + max((scene.city for scene in scenes), default=0)
    planned = (
        Run(
            scene=fingerprint,
            reads=_reads(scene, model),
            labels=tuple(scene.labels.items()),
            model=model,
            backbone=backbone,
            seed=seed + (scene.city if is_baseline(model) else number),
            training=training,
            keep_hours=keep_hours,
            city=scene.city,
            outside=_outside(model, backbone),
        )
        for number in range(runs)
        for scene, fingerprint in zip(scenes, fingerprints, strict=True)
        if (scene.run is None and scene.city == number % cities) or scene.run == number
        for given in backbones
        for model in models
        for backbone in (NO_BACKBONE if model in BASELINES.names() else given,)
        if backbone not in DIRECT or model in DIRECT_MODELS  # other models need a network
    )
    return list(dict.fromkeys(planned))


def is_baseline(model: str) -> bool:
    """Whether other models are only compared with it, so that one run per scene is enough."""
    return model in SIMPLE_BASELINES or model in BASELINES.names()


def _reads(scene: Scene, model: str) -> str:
    """Fingerprint of the columns that only this model reads; empty if there are none."""
    if model in BASELINES.names():
        return scene.fingerprint(("arrivals", "exposure")) if "exposure" in scene.panel.columns else ""
    if model == ORACLE or not LIKELIHOODS.named(model).imputes:
        return ""
    return scene.fingerprint((BEFORE, DRAWS))


def _outside(model: str, backbone: str) -> str:
    """A hash of the source code of parts from other packages, which the version of unmet does not cover."""
    parts: list[type]
    if model in BASELINES.names():
        parts = [BASELINES.named(model)]
    else:
        network = () if backbone in DIRECT else (BACKBONES.named(backbone),)
        parts = [*network, *(() if model == ORACLE else (LIKELIHOODS.named(model),))]
    bases = dict.fromkeys(base for part in parts for base in part.__mro__)
    sources = [_source(base) for base in bases if base.__module__.split(".")[0] not in COVERED_BY_VERSION]
    return hashlib.sha256("\n".join(sources).encode()).hexdigest()[:20] if sources else ""


def _source(part: type) -> str:
    try:
        return inspect.getsource(part)
    except (OSError, TypeError):  # defined in an interactive session
        return part.__qualname__


COVERED_BY_VERSION = ("unmet", "torch", "abc", "builtins")  # packages whose source code is not hashed


def forecaster_of(run: Run, time_zone: str) -> Forecaster:
    """The model of a run. The oracle is the quantile model with the same inputs, trained on true demand."""
    oracle = run.model == ORACLE
    likelihood, target = (UNAWARE, "y_true") if oracle else (run.model, "y")
    if run.backbone in DIRECT:  # it has no training options, and is asked for one hour ahead
        direct: Forecaster = Forecaster(
            run.backbone, likelihood, levels=LEVELS, seed=run.seed, horizon=1, target=target, time_zone=time_zone
        )
        return direct
    return study_forecaster(run.backbone, likelihood, run.seed, run.training, time_zone, target)


def lost_energy(panel: pl.DataFrame, since: dt.datetime | None = None, interval: float = 0.9) -> dict[str, float]:
    """Energy lost in the hours from `since` on [kWh]: `kwh, low, high` from the draws of a panel, and `true`.

    Draw i of all region-hours belongs to one joint posterior draw, so sums are taken draw by draw. Quantiles are at
    Weibull's rank p (n + 1) of n draws, because an interval from few draws would otherwise be too short.
    """
    hours = panel if since is None else panel.filter(pl.col("ds") >= since)
    draws = read_draws(hours).sum(axis=0, dtype=np.float64)
    low, high = np.quantile(draws, ((1 - interval) / 2, (1 + interval) / 2), method="weibull")
    true = hours.select((pl.col("y_true") - pl.col("y")).sum()).item()
    return {"kwh": float(draws.mean()), "low": float(low), "high": float(high), "true": float(true)}


def _lost(model: Forecaster, scene: Scene) -> dict[str, float]:
    """Energy lost in the test part, as `lost`, and in all hours, as `lost_all`, for models that learn from draws."""
    if not LIKELIHOODS.named(model.likelihood).imputes:
        return {}
    parts = {"lost": model.split_.fit_end} | ({"lost_all": None} if scene.reports_all_hours else {})
    return {
        f"{name}_{key}": value
        for name, since in parts.items()
        for key, value in lost_energy(scene.panel, since).items()
    }


def _largest(scene: Scene, column: str) -> dict[str, float]:
    """The largest demand of each region in the training part [kWh]: the unit of scaled losses."""
    hours = scene.panel["ds"].n_unique()
    end = scene.panel["ds"].unique().sort()[int(hours * TRAIN_SHARE)]
    largest = scene.panel.filter(pl.col("ds") < end).group_by("unique_id").agg(pl.col(column).max()).rows()
    return {str(name): float(kwh) if kwh and kwh > 0 else 1.0 for name, kwh in largest}


def perform(run: Run, scene: Scene) -> RunResult:
    """Train the model of a run, and score it on the true demand of the test part."""
    started = time.perf_counter()
    extra: dict[str, Any] = {}
    if run.model in BASELINES.names():
        ahead = BASELINES.named(run.model)().forecast(scene, LEVELS, run.seed, run.training)
    else:
        model = forecaster_of(run, scene.time_zone)
        model.fit(scene.panel, scene.positions)
        if not model.finished_:  # interrupted by Ctrl-C: a half-trained model is not a result
            raise KeyboardInterrupt
        ahead = model.predict(scene.panel, model.split_.fit_end)
        extra = {"epochs": len(getattr(model, "losses_", [[]])[0]), **_lost(model, scene)}
    rows = with_actual(ahead, scene.panel, "y_true", _largest(scene, "y"))
    measured = score(rows, LEVELS)
    in_true = score(with_actual(ahead, scene.panel, "y_true", _largest(scene, "y_true")), LEVELS)
    measured |= {"tilted_loss_true": in_true["tilted_loss"], "mil_true": in_true["mil"]}
    worst = score(rows.filter(pl.col("unique_id") == scene.most_censored), LEVELS)
    row = {
        **dict(run.labels),
        "model": run.model,
        "backbone": run.backbone,
        "seed": run.seed,
        "city": run.city,
        "scene": run.scene,
        **{name: measured[name] for name in MEASURES if name in measured},
        "icp_most_censored": worst["icp"],
        **extra,
    }
    return RunResult(row, ahead if run.keep_hours else None, time.perf_counter() - started)
