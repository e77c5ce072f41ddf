"""Poisson regression of demand on the logarithms of its tables, levels and recent ratios, for all regions together."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from unmet.arrays import Floats
from unmet.models.direct.features import CALENDAR, TABLES
from unmet.models.direct.member import Member, Rows

__all__ = ["Regression"]


RIDGE = 20.0  # weight of the prior that demand is the mean of its tables [sessions]
STEPS = 12  # steps of Newton's method
LOWEST, HIGHEST = -8.0, 4.0  # limits of the logarithm of demand over scale


class Regression(Member):
    """log E(y / scale) = b0 + x b, by quasi-likelihood: the variance of y is its mean times the energy of a session.

    Coefficients are shrunk towards the geometric mean of the three tables. Each band of horizons has its own.
    """

    name: ClassVar[str] = "regression"
    title: ClassVar[str] = "Poisson regression"

    def __init__(self) -> None:
        self.coefficients: dict[int, Floats] = {}

    def fit(self, rows: Rows, covariates: int, seed: int, threads: int) -> None:
        """Fit the coefficients of each band by Newton's method on the penalised deviance of its rows."""
        used = _used(rows.features, covariates)
        for band in np.unique(rows.band):
            own = rows.band == band
            self.coefficients[int(band)] = fit_poisson(used[own], rows.ratio[own], rows.weight[own])

    def predict(self, features: Floats, band: int, covariates: int) -> Floats:
        """Expected demand divided by scale, (...), of rows (..., features)."""
        b = self.coefficients[band]
        return np.asarray(np.exp(np.clip(b[0] + _used(features, covariates) @ b[1:], LOWEST, HIGHEST)))

    def state(self) -> dict[str, Any]:
        """Coefficients by band."""
        return {f"band-{band}": values for band, values in self.coefficients.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Set the coefficients that `state` returned."""
        self.coefficients = {int(key.removeprefix("band-")): np.asarray(value) for key, value in state.items()}


def _used(features: Floats, covariates: int) -> Floats:
    """All features except the numbers of hour, weekday and horizon, which only trees can use."""
    first = features.shape[-1] - covariates
    return np.concatenate([features[..., : first - CALENDAR], features[..., first:]], axis=-1)


def fit_poisson(features: Floats, ratio: Floats, weight: Floats) -> Floats:
    """Intercept and coefficients of a weighted Poisson regression, shrunk towards the mean of the first features.

    Args:
        features: (rows, features); the first `TABLES` are the logarithms of the tables.
        ratio: demand over scale, (rows,).
        weight: scale over the energy of a session, (rows,).
    """
    x = np.concatenate([np.ones((len(features), 1)), features], axis=1)
    prior = np.zeros(x.shape[1])
    prior[1 : 1 + TABLES] = 1 / TABLES
    penalty = np.full(x.shape[1], RIDGE)
    penalty[0] = 1e-6  # the intercept is free; the penalty only keeps the matrix invertible
    b = prior.copy()
    base = np.exp(np.clip(x @ b, LOWEST, HIGHEST))
    b[0] = np.log(max(float(weight @ ratio), 1e-9) / max(float(weight @ base), 1e-9))
    for _ in range(STEPS):
        mean = np.exp(np.clip(x @ b, LOWEST, HIGHEST))
        score = x.T @ (weight * (ratio - mean)) - penalty * (b - prior)
        information = x.T @ (x * (weight * mean)[:, None]) + np.diag(penalty)
        step = np.linalg.solve(information, score)
        b = b + step / max(1.0, float(np.abs(step).max()))  # no coefficient changes by more than 1 in a step
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(b)
