"""Kriging: arrival rates of stations without records, from those of the stations around them.

Log rates are a Gaussian process: a common mean, a part that near stations share (exponential in the distance), a part
that grows with the logarithm of the plugs, and an independent part per station. Its four parameters are averaged
over, weighted by the likelihood of the known rates.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats

__all__ = ["Kriged", "krige"]


SHARED = (0.02, 0.1, 0.3)  # variance that near stations share
KM = (1.0, 3.0, 9.0)  # and the distance over which it falls to 1/e
BY_PLUGS = (0.0, 0.5)  # variance of the exponent of the plugs
LUCK = (0.02, 0.08, 0.25)
MEAN = 100.0  # of the common mean: nothing is known of it


class Kriged(NamedTuple):
    """Mean and covariance of the log rates of all stations."""

    mean: Floats  # (stations,)
    covariance: Floats  # (stations, stations)

    def draws(self, number: int, rng: np.random.Generator) -> Floats:
        """Draws of rates, (number, stations)."""
        root = np.linalg.cholesky(self.covariance + 1e-9 * np.eye(len(self.mean)))
        return np.asarray(np.exp(self.mean + rng.standard_normal((number, len(self.mean))) @ root.T))


def krige(rate: Floats, noise: Floats, known: NDArray[np.bool_], km: Floats, plugs: Floats) -> Kriged:
    """Log rates of all stations from those `known`, whose logarithms have variances of `noise` by counting alone."""
    size = np.log(np.maximum(plugs, 1.0))
    size = size - size.mean()
    have = np.flatnonzero(known)
    values = np.log(rate[have])
    found = []
    for shared, reach, by_plugs, luck in itertools.product(SHARED, KM, BY_PLUGS, LUCK):
        every = shared * np.exp(-km / reach) + by_plugs * np.outer(size, size) + MEAN + luck * np.eye(len(rate))
        given = every[np.ix_(have, have)] + np.diag(noise[have])
        root = np.linalg.cholesky(given)
        half = np.linalg.solve(root, values)
        fit = -0.5 * half @ half - np.log(np.diag(root)).sum()
        gain = np.linalg.solve(root, every[have]).T
        found.append((fit, gain @ half, every - gain @ gain.T))
    weights = np.exp(np.array([fit for fit, _, _ in found]) - max(fit for fit, _, _ in found))
    weights /= weights.sum()
    mean = sum(weight * part for weight, (_, part, _) in zip(weights, found, strict=True))
    covariance = sum(
        weight * (part + np.outer(centre - mean, centre - mean))
        for weight, (_, centre, part) in zip(weights, found, strict=True)
    )
    return Kriged(np.asarray(mean), np.asarray(covariance))
