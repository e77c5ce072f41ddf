"""Backbones on lags: a perceptron and a linear map that read the last hours of each region separately."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unmet.models.backbones.base import Backbone, Inputs, Shape
from unmet.models.graph import Graph

__all__ = ["LaggedLinear", "Perceptron"]


class LaggedLinear(Backbone):
    """Linear in the last `lags` hours of a region and in the known features of the next hour.

    All regions share 32 linear combinations; the head of each region weights them.
    """

    name = "linear"
    title = "Linear on lags"
    width = 32

    def __init__(self, shape: Shape, graph: Graph) -> None:
        super().__init__(shape, graph)
        # A linear map of each window of lags is a convolution over the hours.
        self.past = nn.Conv1d(shape.past_features, self.width, shape.lags)
        self.ahead = nn.Linear(shape.features - shape.past_features, self.width, bias=False)

    def forward(self, inputs: Inputs) -> Tensor:
        """The linear combinations at each hour that completes `lags` hours."""
        hours, batch, nodes, _ = inputs.values.shape
        past = inputs.values[..., : self.shape.past_features]
        ahead = inputs.values[self.shape.lags - 1 :, ..., self.shape.past_features :]
        lags: Tensor = self.past(
            past.permute(1, 2, 3, 0).reshape(batch * nodes, -1, hours)
        )  # (batch * nodes, width, targets)
        lags = lags.reshape(batch, nodes, self.width, -1).permute(3, 0, 1, 2)
        combinations: Tensor = lags + self.ahead(ahead)
        return combinations


class Perceptron(LaggedLinear):
    """Two hidden layers of 64 on the same inputs, shared by all regions."""

    name = "mlp"
    title = "MLP on lags"
    width = 64

    def __init__(self, shape: Shape, graph: Graph) -> None:
        super().__init__(shape, graph)
        self.second = nn.Linear(self.width, self.width)

    def forward(self, inputs: Inputs) -> Tensor:
        """The second hidden layer."""
        return torch.relu(self.second(torch.relu(super().forward(inputs))))
