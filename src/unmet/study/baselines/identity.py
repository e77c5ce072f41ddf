"""The T-GCN without its graph, which shows how much the graph contributes."""

from __future__ import annotations

import polars as pl

from unmet.models.training import Training
from unmet.study.baselines.base import Baseline
from unmet.study.networks import study_forecaster
from unmet.study.scenes import Scene

__all__ = ["IdentityGraph"]


class IdentityGraph(Baseline):
    """The quantile T-GCN without edges between regions: A-hat is the identity."""

    name = "identity-graph"
    title = "Quantile, no graph"
    trains_network = True
    reads_exposure = False

    def forecast(self, scene: Scene, levels: tuple[float, ...], seed: int, training: Training) -> pl.DataFrame:
        """Train the network, and forecast the test part."""
        model = study_forecaster("tgcn", "quantile", seed, training, scene.time_zone)
        model.fit(scene.panel)  # without positions, regions are not connected
        ahead: pl.DataFrame = model.predict(scene.panel, model.split_.fit_end)
        return ahead
