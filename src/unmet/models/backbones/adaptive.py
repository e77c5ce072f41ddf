"""The T-GCN with a learned graph in addition to the graph of distances."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unmet.models.backbones.base import Shape
from unmet.models.backbones.tgcn import TGCN
from unmet.models.graph import Graph

__all__ = ["AdaptiveTGCN"]

EMBEDDING = 4  # size of the learned embedding of a region


class AdaptiveTGCN(TGCN):
    """A-hat + softmax(relu(E1 E2^T)), with E1 and E2 learned, in place of A-hat (Wu et al., 2019, Graph WaveNet).

    With weights exp(-km) between regions that are kilometres apart, A-hat is almost the identity, so that a busy day in
    one region does not inform the forecasts of others. Learned weights need no positions.
    """

    name = "tgcn-adaptive"
    title = "T-GCN, learned graph"

    def __init__(self, shape: Shape, graph: Graph) -> None:
        super().__init__(shape, graph)
        self.source = nn.Parameter(0.1 * torch.randn(shape.nodes, EMBEDDING))
        self.target = nn.Parameter(0.1 * torch.randn(shape.nodes, EMBEDDING))

    def convolve(self, values: Tensor) -> Tensor:
        """Graph features of each hour, (hours, batch, nodes, 8)."""
        learned = torch.softmax(torch.relu(self.source @ self.target.T), dim=1)

        def spread(x: Tensor) -> Tensor:
            return self.graph.spread(x) + torch.einsum("ij,tbjf->tbif", learned, x)

        hidden = torch.relu(spread(values) @ self.w0)
        return torch.sigmoid(spread(hidden @ self.w1))
