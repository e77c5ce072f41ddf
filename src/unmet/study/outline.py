"""Outlines: list the runs that a study would make, without simulating anything."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unmet.errors import InputError
from unmet.simulation.queues import queue_named
from unmet.study.baselines import BASELINES
from unmet.study.cells import NO_BACKBONE, is_baseline, need_estimates
from unmet.study.experiments import Choices, check_size
from unmet.study.store import Store

__all__ = ["PlannedCell", "StudyOutline", "outline"]

NETWORK_SECONDS, BASELINE_SECONDS = 7.5, 0.2  # core time per run, measured in a study of the built-in city
SCENE_SECONDS, ESTIMATED_SECONDS = 0.6, 9.5  # time to simulate a scene, without and with an estimate of lost demand
CITY_SECONDS = 5.0  # time to read or generate trips, and to find the nearest stations of each


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """One model on one kind of scene."""

    labels: tuple[tuple[str, Any], ...]  # name and value of each label of the scene, such as its queue
    model: str
    backbone: str
    runs: int  # number of runs


@dataclass(frozen=True, slots=True)
class StudyOutline:
    """The grid of a study."""

    name: str
    title: str
    cells: tuple[PlannedCell, ...]
    scenes: int
    estimated: bool  # whether scenes need an estimate of lost demand
    cities: int

    def kept(self, store: Store) -> dict[PlannedCell, int]:
        """How many runs of each cell have a result in a store, matched by the names of models and scenes."""
        found = store.counts([name for name, _ in self.cells[0].labels])
        return {
            cell: min(found.get((*(value for _, value in cell.labels), cell.model, cell.backbone), 0), cell.runs)
            for cell in self.cells
        }

    def seconds(self, store: Store, workers: int) -> tuple[float, float]:
        """Estimated time [s] of the remaining runs, and of training one network, from earlier runs if there are any."""
        kept = self.kept(store)
        timed = store.typical_seconds()
        network = timed if timed is not None else NETWORK_SECONDS
        left = {cell: cell.runs - done for cell, done in kept.items()}
        work = sum(runs * (BASELINE_SECONDS if _is_quick(cell.model) else network) for cell, runs in left.items())
        if not any(left.values()):
            return 0.0, network
        scenes = self.scenes * (ESTIMATED_SECONDS if self.estimated else SCENE_SECONDS) + self.cities * CITY_SECONDS
        return scenes + work / workers, network


def _is_quick(model: str) -> bool:
    return model in BASELINES.names() and not BASELINES.named(model).trains_network


def outline(
    name: str, title: str, choices: Choices, axes: Mapping[str, Sequence[Any]], *, scene_per_run: bool = False
) -> StudyOutline:
    """The grid over `axes`, the values of each label. With `scene_per_run` every run has scenes of its own."""
    _check(axes)
    kinds = list(itertools.product(*axes.values()))
    check_size(choices.runs, len(choices.models) * len(choices.backbones), len(kinds))
    cities = len(choices.city_numbers())
    scenes_of_a_kind = choices.runs if scene_per_run else cities
    cells = [
        PlannedCell(
            tuple(zip(axes, values, strict=True)),
            model,
            NO_BACKBONE if model in BASELINES.names() else backbone,
            scenes_of_a_kind if is_baseline(model) else choices.runs,
        )
        for values in kinds
        for backbone in choices.backbones
        for model in choices.models
    ]
    unique = tuple(dict.fromkeys(cells))
    return StudyOutline(name, title, unique, scenes_of_a_kind * len(kinds), need_estimates(choices.models), cities)


def _check(axes: Mapping[str, Sequence[Any]]) -> None:
    for queue in axes.get("queue", ()):
        queue_named(queue)
    for label, name in (("penetration", "penetration"), ("share", "market share"), ("removed", "share to turn away")):
        for value in axes.get(label, ()):
            if not 0 < value <= 1:
                raise InputError(f"A {name} of {value:g} makes no sense: give one above 0 and up to 1 (0.05 is 5 %).")
