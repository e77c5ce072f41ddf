"""A learned graph connects distant regions, which weights exp(-km) do not."""

from __future__ import annotations

import numpy as np
import torch

from unmet.models.backbones import BACKBONES, Inputs, Shape
from unmet.models.graph import Graph, region_graph


def influence(name: str) -> float:
    """How much region 0's features depend on region 1's demand, 30 km away."""
    torch.manual_seed(1)
    graph = Graph(region_graph(np.array([[55.6, 12.5], [55.9, 12.5]]), 2))
    net = BACKBONES.named(name)(Shape(2, 3, 1, 4), graph)
    values = torch.randn(6, 1, 2, 3, requires_grad=True)
    net(Inputs(values, torch.zeros(6, 1, dtype=torch.long)))[:, :, 0].sum().backward()
    return float(values.grad[:, :, 1].abs().max())


def test_a_learned_graph_connects_distant_regions():
    assert influence("tgcn") < 1e-6
    assert influence("tgcn-adaptive") > 1e-4


def test_the_weights_of_the_graph_are_learned():
    net = BACKBONES.named("tgcn-adaptive")(Shape(3, 3, 1, 4), Graph(region_graph(None, 3)))
    assert {"source", "target"} <= {name for name, _ in net.named_parameters()}
    assert net(Inputs(torch.randn(6, 2, 3, 3), torch.zeros(6, 2, dtype=torch.long))).shape == (3, 2, 3, 32)
