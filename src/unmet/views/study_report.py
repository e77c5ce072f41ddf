"""The data of pages on a study: its cells, and their arrangement in tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from unmet.models.likelihoods import LIKELIHOODS
from unmet.study.baselines import BASELINES
from unmet.study.cells import NO_BACKBONE, ORACLE
from unmet.study.experiments import Experiment
from unmet.study.results import SCENE_LABELS
from unmet.views.theme import percent

__all__ = ["StudyReport", "model_title"]


def model_title(model: str) -> str:
    """The name of a model as shown to people."""
    if model == ORACLE:
        return "Oracle"
    return BASELINES.named(model).title if model in BASELINES.names() else LIKELIHOODS.named(model).title


@dataclass(frozen=True, slots=True)
class StudyReport:
    """The results of an experiment."""

    experiment: Experiment
    cells: pl.DataFrame
    seconds: float  # total training time of all runs
    failed: tuple[str, ...]
    hours: pl.DataFrame | None = None  # forecasts, if they are kept: model, unique_id, ds, quantiles, y, y_true

    @property
    def labels(self) -> list[str]:
        """The labels that distinguish scenes."""
        return [name for name in SCENE_LABELS if name in self.cells.columns]

    @property
    def columns(self) -> list[Any]:
        """The values that vary along the columns of the tables."""
        return self.cells[self.experiment.across].unique().sort().to_list()

    def column_name(self, value: Any) -> str:
        """A column's heading."""
        return f"{100 * value:g} %" if isinstance(value, float) else str(value)

    def groups(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """The parts of the grid that get a table each, with a title made of queue, backbone and other labels."""
        # Baselines have no backbone, but belong to the table of the networks that they are compared with.
        networks = self.cells.filter(pl.col("backbone") != NO_BACKBONE)
        apart = [
            name
            for name in (*self.labels, "backbone")
            if name != self.experiment.across and (name == "queue" or networks[name].n_unique() > 1)
        ]
        if not apart:
            yield self.experiment.across, self.cells
            return
        for key, part in self.cells.group_by(apart, maintain_order=True):
            yield ", ".join(percent(v) if isinstance(v, float) else str(v) for v in key), part

    def models(self) -> list[str]:
        """The models, in the order in which they were given."""
        return self.cells["model"].unique(maintain_order=True).to_list()

    def cell(self, group: pl.DataFrame, model: str, column: Any) -> dict[str, Any] | None:
        """One cell of a group, if it has been run."""
        found = group.filter((pl.col("model") == model) & (pl.col(self.experiment.across) == column))
        return found.row(0, named=True) if found.height else None

    def has_measure(self, model: str, measure: str) -> bool:
        """Whether any cell of a model has a measure."""
        return measure in self.cells.columns and self.cells.filter(pl.col("model") == model)[measure].count() > 0

    def closed(self, model: str) -> float | None:
        """Gap closed by a model, averaged over the cells that have a gap (`judged`)."""
        judged = self.cells.filter((pl.col("model") == model) & pl.col("judged").fill_null(value=False))
        mean = judged["gap_closed"].mean()
        return float(mean) if mean is not None else None  # type: ignore[arg-type]
