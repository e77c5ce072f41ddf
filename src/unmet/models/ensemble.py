"""Ensembles: networks trained from different seeds, whose forecasts are averaged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unmet.arrays import Floats
from unmet.errors import InputError
from unmet.models.encoding import Data, Encoding
from unmet.models.likelihoods import Likelihood
from unmet.models.network import ForecastNetwork
from unmet.models.prediction import from_origins, one_hour_ahead
from unmet.models.seeds import one_thread
from unmet.runs import available_cores

__all__ = ["Ensemble"]


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Networks with a common likelihood and encoding."""

    networks: Sequence[ForecastNetwork]
    likelihood: Likelihood
    encoding: Encoding
    lags: int

    def one_hour_ahead(self, data: Data, first: int, last: int) -> Floats:
        """Quantiles of the hours from `first` to `last`, each from the `lags` hours before it; (hours, nodes, levels).

        They are in units of each region's scale, as in `from_origins`.
        """
        with one_thread():
            return _mean(
                one_hour_ahead(network, self.likelihood, data, self.lags, first, last) for network in self.networks
            )

    def from_origins(self, data: Data, origins: NDArray[np.int64], hours: int) -> Floats:
        """Quantiles of the hours from each origin on; (origins, hours, nodes, levels)."""

        def predict(network: ForecastNetwork) -> Floats:
            return from_origins(network, self.likelihood, data, self.encoding, self.lags, origins, hours)

        # Each network runs on one thread, so that results do not depend on the number of cores.
        with one_thread(), ThreadPoolExecutor(available_cores()) as pool:
            return _mean(pool.map(predict, self.networks))


def _mean(parts: Iterable[Floats]) -> Floats:
    """The mean of arrays, summed one by one in order."""
    total, number = None, 0
    for part in parts:
        total = part if total is None else total + part
        number += 1
    if total is None:
        raise InputError("The forecaster has no network: fit it again.")
    return np.asarray(total / number)
