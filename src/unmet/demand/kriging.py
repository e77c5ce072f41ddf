"""Kriging: arrival rates of stations without records, estimated from the stations around them.

Log rates are a Gaussian process: a common mean, a part that nearby stations share (with exponential covariance), a part
that is linear in the logarithm of the plugs, and an independent part per station. Stations i and j, d km apart, have
the prior covariance

    MEAN_VARIANCE + shared exp(-d / range_km) + by_plugs log(plugs[i]) log(plugs[j]) + own [i = j],

with centred logarithms. The result is averaged over a grid of the four covariance parameters, weighted by the
likelihood of the known rates.

Assumption: competitors' stations have the rates that the operator's own stations would have in their place.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats

__all__ = ["Kriged", "krige"]


SHARED = (0.02, 0.1, 0.3)  # variance of the part that nearby stations share
RANGE_KM = (1.0, 3.0, 9.0)  # distance over which its covariance falls to 1/e
BY_PLUGS = (0.0, 0.5)  # variance of the slope in the logarithm of the plugs
OWN = (0.02, 0.08, 0.25)  # variance of the independent part per station
MEAN_VARIANCE = 100.0  # prior variance of the common mean: practically flat


class Kriged(NamedTuple):
    """Mean and covariance of the log rates of all stations."""

    mean: Floats  # (stations,)
    covariance: Floats  # (stations, stations)

    def draws(self, number: int, rng: np.random.Generator) -> Floats:
        """Draws of rates, (number, stations)."""
        root = np.linalg.cholesky(self.covariance + 1e-9 * np.eye(len(self.mean)))  # positive despite rounding
        return np.asarray(np.exp(self.mean + rng.standard_normal((number, len(self.mean))) @ root.T))


def krige(rate: Floats, noise: Floats, known: NDArray[np.bool_], km: Floats, plugs: Floats) -> Kriged:
    """Infer the log rates of all stations from the rates of the `known` ones.

    Args:
        rate: arrival rates, used where `known`, (stations,).
        noise: variance of the logarithm of each known rate due to counting, (stations,).
        known: stations with a rate, (stations,).
        km: distances between stations [km], (stations, stations).
        plugs: number of plugs, (stations,).
    """
    size = np.log(np.maximum(plugs, 1.0))
    size = size - size.mean()
    data = np.flatnonzero(known)
    values = np.log(rate[data])
    posteriors = []
    for shared, range_km, by_plugs, own in itertools.product(SHARED, RANGE_KM, BY_PLUGS, OWN):
        prior = shared * np.exp(-km / range_km) + by_plugs * np.outer(size, size) + MEAN_VARIANCE
        prior += own * np.eye(len(rate))
        root = np.linalg.cholesky(prior[np.ix_(data, data)] + np.diag(noise[data]))
        whitened = np.linalg.solve(root, values)
        log_likelihood = -0.5 * whitened @ whitened - np.log(np.diag(root)).sum()
        gain = np.linalg.solve(root, prior[data]).T
        posteriors.append((log_likelihood, gain @ whitened, prior - gain @ gain.T))
    log_weights = np.array([log_likelihood for log_likelihood, _, _ in posteriors])
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = sum(weight * centre for weight, (_, centre, _) in zip(weights, posteriors, strict=True))
    covariance = sum(
        weight * (spread + np.outer(centre - mean, centre - mean))
        for weight, (_, centre, spread) in zip(weights, posteriors, strict=True)
    )
    return Kriged(np.asarray(mean), np.asarray(covariance))
