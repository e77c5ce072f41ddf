"""The networks of a study: the paper's settings, whatever a forecaster's defaults are."""

from __future__ import annotations

from unmet.models.forecaster import Forecaster
from unmet.models.likelihoods import LEVELS
from unmet.models.training import Training

__all__ = ["study_forecaster"]


def study_forecaster(
    backbone: str, likelihood: str, seed: int, training: Training, time_zone: str, target: str = "y"
) -> Forecaster:
    """A forecaster as in the paper: one network, one hour ahead, without calibration of its quantiles."""
    forecaster: Forecaster = Forecaster(
        backbone,
        likelihood,
        levels=LEVELS,
        seeds=1,
        seed=seed,
        horizon=1,
        target=target,
        training=training,
        calibrate=False,
        floor=None,
        time_zone=time_zone,
        workers=1,
    )
    return forecaster
