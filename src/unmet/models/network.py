"""The trainable network: a backbone with a linear head for each region."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from unmet.models.backbones.base import Backbone, Inputs

__all__ = ["ForecastNetwork"]


class ForecastNetwork(nn.Module):
    """Maps inputs to the outputs that a likelihood reads, (targets, batch, nodes, outputs)."""

    def __init__(self, backbone: Backbone, outputs: int) -> None:
        super().__init__()
        self.backbone = backbone
        bound = 1 / math.sqrt(backbone.width)
        self.weight = nn.Parameter(torch.empty(backbone.shape.nodes, backbone.width, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(backbone.shape.nodes, outputs))

    def forward(self, inputs: Inputs) -> Tensor:
        """Outputs for every next hour with enough hours before it."""
        return torch.einsum("tbnw,nwo->tbno", self.backbone(inputs), self.weight) + self.bias
