"""Predictions of trained networks: one hour ahead over past hours, and many hours ahead from an origin."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from unmet.arrays import Floats
from unmet.models.encoding import Data, Encoding
from unmet.models.likelihoods.base import Likelihood
from unmet.models.network import ForecastNetwork

__all__ = ["from_origins", "one_hour_ahead"]

SEQUENCES = 4096  # regions times windows at a time: enough to be fast, few enough to fit into memory


@torch.inference_mode()
def one_hour_ahead(
    network: ForecastNetwork, likelihood: Likelihood, data: Data, lags: int, first: int, last: int
) -> Floats:
    """Quantiles of the hours from `first` to `last`, each from the `lags` hours before it; (hours, nodes, levels)."""
    network.eval()
    starts = torch.arange(first - lags, last - lags, device=data.values.device)
    size = max(1, SEQUENCES // data.y.shape[1])
    parts = [likelihood.quantiles(network(data.inputs(batch, lags))[0]) for batch in torch.split(starts, size)]
    return torch.cat(parts).double().cpu().numpy()


@torch.inference_mode()
def from_origins(
    network: ForecastNetwork,
    likelihood: Likelihood,
    data: Data,
    encoding: Encoding,
    lags: int,
    origins: NDArray[np.int64],
    hours: int,
) -> Floats:
    """Quantiles of the hours from each origin on, given the `lags` before it; (origins, hours, nodes, levels)."""
    network.eval()
    starts = torch.from_numpy(origins - lags).to(data.values.device)
    size = max(1, SEQUENCES // data.y.shape[1])
    parts = []
    for batch in torch.split(starts, size):
        inputs = data.inputs(batch, lags + hours - 1)
        if hours > 1:
            origin = torch.full((len(batch),), lags, device=batch.device)  # the hours from it on are not known yet
            inputs = inputs._replace(values=encoding.blank(inputs.values, origin))
        parts.append(likelihood.quantiles(network(inputs)).transpose(0, 1))
    return torch.cat(parts).double().cpu().numpy()
