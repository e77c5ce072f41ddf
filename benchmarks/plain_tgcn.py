"""A straightforward T-GCN with `nn.LSTM` on windows: the baseline for the speed of the one in `unmet.models`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["PlainTGCN", "pass_over_windows"]


class PlainTGCN(nn.Module):
    """Two graph convolutions at every hour of a window, an LSTM, a linear head for each region."""

    def __init__(self, adjacency: Tensor, features: int, outputs: int) -> None:
        super().__init__()
        self.adjacency = adjacency
        self.first = nn.Linear(features, 16, bias=False)
        self.second = nn.Linear(16, 8, bias=False)
        self.lstm = nn.LSTM(8, 32, batch_first=True)
        self.heads = nn.ModuleList(nn.Linear(32, outputs) for _ in range(len(adjacency)))

    def forward(self, windows: Tensor) -> Tensor:
        """(batch, hours, nodes, features) -> (batch, nodes, outputs)."""
        hidden = torch.relu(self.first(self.adjacency @ windows))
        graph = torch.sigmoid(self.adjacency @ self.second(hidden))
        batch, hours, nodes, channels = graph.shape
        sequences = graph.permute(0, 2, 1, 3).reshape(batch * nodes, hours, channels)
        last = self.lstm(sequences)[0][:, -1].reshape(batch, nodes, -1)
        return torch.stack([head(last[:, i]) for i, head in enumerate(self.heads)], 1)


def pass_over_windows(
    network: PlainTGCN, values: Tensor, y: Tensor, lags: int, last: int, levels: Tensor, batch: int
) -> None:
    """One epoch: a gradient step for every batch of windows whose target lies before `last`."""
    optimizer = torch.optim.Adam(network.parameters(), 3e-4)
    for targets in torch.randperm(last - lags).split(batch):
        hours = targets[:, None] + torch.arange(lags)
        error = y[targets + lags][..., None] - network(values[hours])
        loss = torch.maximum(levels * error, (levels - 1) * error).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
