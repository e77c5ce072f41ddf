"""The interface of backbones: networks that turn past hours into features of the next hour, for each region."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from torch import Tensor, nn

from unmet.models.graph import Graph

__all__ = ["Backbone", "Inputs", "Shape"]


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the inputs: numbers of regions, features and past hours."""

    nodes: int
    features: int
    past_features: int  # the first features describe the past hour, the others the next one
    lags: int


class Inputs(NamedTuple):
    """The information at the end of each hour from which the next one is forecast."""

    values: Tensor  # (hours, batch, nodes, features)
    week: Tensor  # (hours, batch), hour of the week of the next hour


class Backbone(nn.Module, ABC):
    """A backbone. A subclass has a name, a title, a width and `forward`."""

    name: ClassVar[str]
    title: ClassVar[str]
    width: int  # number of output features of each region and hour

    def __init__(self, shape: Shape, graph: Graph) -> None:
        super().__init__()
        self.shape = shape
        self.graph = graph

    @abstractmethod
    def forward(self, inputs: Inputs) -> Tensor:
        """Features of the next hours, (hours - lags + 1, batch, nodes or 1, width).

        The first is for the hour after the first `lags` hours of `inputs`. Each may depend on all hours before it, and
        depends on at least the last `lags` of them.
        """
