"""The graph of regions, in which nearby regions have large weights."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from torch import Tensor, nn

from unmet.geo import haversine_km, nearest_stations

__all__ = ["DENSE_UP_TO", "NEIGHBOURS", "Graph", "adjacency", "region_graph"]

DENSE_UP_TO = 200  # number of regions; with more, only nearest neighbours are connected
NEIGHBOURS = 16  # nearest regions to which each is then connected


def adjacency(lat: ArrayLike, lon: ArrayLike, neighbours: int | None = None) -> sparse.csr_array:
    """A-hat = D^-1/2 A D^-1/2, A_ij = exp(-haversine(i, j) in km), with A_ii = 1 and D the row sums of A.

    With `neighbours`, a region is connected only to this many nearest regions, and to those that have it among theirs.
    """
    lat, lon = np.asarray(lat, float), np.asarray(lon, float)
    nodes = len(lat)
    if neighbours is None or neighbours >= nodes - 1:
        weights = sparse.csr_array(np.exp(-haversine_km(lat[:, None], lon[:, None], lat, lon)))
    else:
        near = nearest_stations(lat, lon, lat, lon, neighbours + 1)
        rows = np.repeat(np.arange(nodes), near.station.shape[1])
        one_way = sparse.csr_array((np.exp(-near.km.ravel()), (rows, near.station.ravel())), (nodes, nodes))
        weights = one_way.maximum(one_way.T).tocsr()
        weights.setdiag(1.0)
    root = 1 / np.sqrt(np.asarray(weights.sum(axis=1)).ravel())
    return sparse.csr_array(sparse.diags_array(root) @ weights @ sparse.diags_array(root))


def region_graph(positions: NDArray[np.float64] | None, nodes: int) -> sparse.csr_array:
    """A-hat of regions at positions (nodes, 2) [degree]; without positions, regions are not connected."""
    if positions is None:
        return sparse.csr_array(sparse.eye_array(nodes))
    return adjacency(positions[:, 0], positions[:, 1], NEIGHBOURS if nodes > DENSE_UP_TO else None)


class Graph(nn.Module):
    """A-hat as a tensor, dense for few regions and sparse for many. It is not learned."""

    matrix: Tensor

    def __init__(self, weights: sparse.csr_array) -> None:
        super().__init__()
        self.dense = weights.shape[0] <= DENSE_UP_TO
        if self.dense:
            matrix = torch.from_numpy(weights.toarray().astype(np.float32))
        else:
            entries = weights.tocoo()
            where = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
            values = torch.from_numpy(entries.data.astype(np.float32))
            matrix = torch.sparse_coo_tensor(where, values, weights.shape, check_invariants=True).coalesce()
        self.register_buffer("matrix", matrix, persistent=False)

    def spread(self, values: Tensor) -> Tensor:
        """A-hat x for x of shape (hours, batch, nodes, features)."""
        if self.dense:  # A-hat is symmetric, so a single matrix product serves all hours
            return torch.nn.functional.linear(values.transpose(-1, -2), self.matrix).transpose(-1, -2)
        hours, batch, nodes, features = values.shape
        flat = values.permute(2, 0, 1, 3).reshape(nodes, -1)
        spread: Tensor = torch.sparse.mm(self.matrix, flat)
        return spread.reshape(nodes, hours, batch, features).permute(1, 2, 0, 3)
