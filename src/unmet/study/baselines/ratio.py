"""The simplest baseline: quantiles of observed demand divided by exposure, by hour and day type."""

from __future__ import annotations

import numpy as np
import polars as pl

from unmet.arrays import Floats
from unmet.models.training import Training
from unmet.study.baselines.base import Baseline, frame_of, parts_of
from unmet.study.scenes import Scene

__all__ = ["SeenOverExposed", "weighted_quantiles"]

MIN_EXPOSURE = 0.02  # hours with less exposure are left out: y / exposure would be mostly noise


def weighted_quantiles(values: Floats, weights: Floats, levels: tuple[float, ...]) -> Floats:
    """Weighted quantiles: for each level, the smallest value that has this share of the weight at or below it.

    Example:
        >>> weighted_quantiles(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), (0.2, 0.5, 0.9)).tolist()
        [1.0, 2.0, 3.0]
    """
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    at = np.searchsorted(share, np.asarray(levels) * (1 - 1e-12))
    return np.asarray(values[order][np.minimum(at, len(values) - 1)])


class SeenOverExposed(Baseline):
    """Quantiles of y / exposure over the training hours of each region, hour of the day and day type.

    Hours are weighted by their exposure, because y / exposure is mostly noise where exposure is low. The baseline reads
    no recent hours and shares nothing across regions, so a model that beats it has learned something.
    """

    name = "seen-over-exposed"
    title = "Seen / exposed"

    def forecast(self, scene: Scene, levels: tuple[float, ...], seed: int, training: Training) -> pl.DataFrame:
        """Look up the quantiles of each hour and day type."""
        frames = []
        for part in parts_of(scene):
            usable = np.arange(part.train)[part.exposure[: part.train] >= MIN_EXPOSURE]
            usable = usable if len(usable) else np.arange(part.train)
            exposure = np.maximum(part.exposure[usable], MIN_EXPOSURE)
            ratio, kinds = part.seen_kwh[usable] / exposure, part.kind[usable]
            quantiles = np.empty((len(part.kind) - part.fit, len(levels)))
            for kind in np.unique(part.kind[part.fit :]):
                # A kind of hour that was never usable takes the quantiles of all hours.
                of_kind = kinds == kind if (kinds == kind).any() else np.ones(len(kinds), bool)
                quantiles[part.kind[part.fit :] == kind] = weighted_quantiles(ratio[of_kind], exposure[of_kind], levels)
            frames.append(frame_of(part, quantiles, levels))
        return pl.concat(frames)
