"""A Poisson model of arrivals with log exposure as offset, and gamma-distributed energy."""

from __future__ import annotations

import numpy as np
import polars as pl

from unmet.models.training import Training
from unmet.study.baselines.base import Baseline, frame_of, parts_of
from unmet.study.scenes import Scene

__all__ = ["PoissonOffset"]

PRIOR_HOURS = 0.5  # pseudo-hours of exposure at the region's mean rate, for hours of the day that were never exposed


class PoissonOffset(Baseline):
    """log E[arrivals] = log exposure + one effect per region, hour of the day and day type.

    The design is saturated, so the maximum-likelihood rate is arrivals over exposure. Expected energy is the rate times
    the region's mean energy per session. Its variance is phi times its mean, with the region's Pearson dispersion phi,
    and its quantiles are those of a gamma distribution with that mean and variance (McCullagh and Nelder, Generalized
    Linear Models, 1989, section 6.2 on quasi-likelihood).
    """

    name = "poisson"
    title = "Poisson, offset"

    def forecast(self, scene: Scene, levels: tuple[float, ...], seed: int, training: Training) -> pl.DataFrame:
        """Fit each region, and forecast the quantiles of its hours."""
        from scipy.special import gammaincinv

        frames = []
        for part in parts_of(scene):
            seen, exposure = part.arrivals[: part.train], part.exposure[: part.train]
            overall = seen.sum() / max(exposure.sum(), 1e-9)
            kinds = part.kind[: part.train]
            count = np.bincount(kinds, seen, minlength=48) + PRIOR_HOURS * overall
            rate = count / (np.bincount(kinds, exposure, minlength=48) + PRIOR_HOURS)
            session_kwh = part.seen_kwh[: part.train].sum() / max(seen.sum(), 1.0)
            expected = rate[kinds] * exposure * session_kwh
            known = expected > 0
            residual = (part.seen_kwh[: part.train][known] - expected[known]) ** 2 / expected[known]
            dispersion = float(residual.mean()) if known.any() else 1.0
            mean = rate[part.kind[part.fit :]] * session_kwh
            shape = np.maximum(mean / max(dispersion, 1e-9), 1e-6)
            quantiles = gammaincinv(shape[:, None], np.asarray(levels)[None, :]) * dispersion
            frames.append(frame_of(part, np.nan_to_num(quantiles), levels))
        return pl.concat(frames)
