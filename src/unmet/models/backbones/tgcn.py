"""The temporal graph convolutional network of the paper."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unmet.models.backbones.base import Backbone, Inputs, Shape
from unmet.models.graph import Graph

__all__ = ["TGCN"]

BLOCK = 64  # number of sequences that the LSTM processes at once


class TGCN(Backbone):
    """Two graph convolutions at every hour, and an LSTM over the hours that all regions share.

    f(A, x) = sigmoid(A relu(A x W0) W1), with 16 and 8 channels; i, f, o = sigmoid(W f(A, x) + U h + b),
    c' = f c + i tanh(W f(A, x) + U h + b), h' = o tanh(c'), with 32 units. Torch's LSTM has two biases, whose sum is b.
    """

    name = "tgcn"
    title = "T-GCN"
    width = 32
    channels = (16, 8)

    def __init__(self, shape: Shape, graph: Graph) -> None:
        super().__init__(shape, graph)
        self.w0 = nn.Parameter(torch.empty(shape.features, self.channels[0]))
        self.w1 = nn.Parameter(torch.empty(*self.channels))
        nn.init.xavier_uniform_(self.w0)
        nn.init.xavier_uniform_(self.w1)
        self.lstm = nn.LSTM(self.channels[1], self.width)

    def convolve(self, values: Tensor) -> Tensor:
        """Graph features of each hour, (hours, batch, nodes, 8)."""
        hidden = torch.relu(self.graph.spread(values) @ self.w0)
        return torch.sigmoid(self.graph.spread(hidden @ self.w1))

    def forward(self, inputs: Inputs) -> Tensor:
        """The LSTM's state after each hour that completes `lags` hours."""
        features = self.convolve(inputs.values)
        hours, batch, nodes, channels = features.shape
        sequences = features.reshape(hours, batch * nodes, channels)
        # Sequences are independent. Blocks of them fit into the cache, so that the time per sequence does not grow.
        blocks = torch.split(sequences, BLOCK, dim=1)
        state = torch.cat([self.lstm(block)[0] for block in blocks], dim=1)
        return state[self.shape.lags - 1 :].reshape(-1, batch, nodes, self.width)
